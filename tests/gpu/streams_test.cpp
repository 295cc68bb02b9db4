// One plan, many streams, many threads.
#include "tests/gpu/gpu.h"

#include <atomic>
#include <thread>
#include <tuple>

namespace plait::test {

TEST_CASE("streams: two streams with a workspace each run one plan, ordered by their stream only") {
    rng random(config().seed);
    for (plait_dtype type : device_types) {
        const wht_call c = rows_of(type, 2, 1 << 18);
        const desc_ptr desc = desc_of(c);
        for (const candidate &by : applicable(desc.get())) {
            CAPTURE(by.name);
            const plan_ptr plan = plan_by(by.name, desc.get());
            const test_stream streams[2];
            std::unique_ptr<bound_call> bound[2];
            wht_data data[2];
            for (int i : {0, 1}) {
                data[i] = random_data(c, filling::integers, random);
                bound[i] = std::make_unique<bound_call>(c, plan.get(), data[i]);
            }
            for (int turn = 0; turn < 20; ++turn)
                for (int i : {0, 1})
                    CHECK(bound[i]->execute(static_cast<cudaStream_t>(streams[i])) == PLAIT_OK);
            for (int i : {0, 1}) {
                streams[i].wait();
                CHECK(worst_ratio(c, reference(c, data[i]), bound[i]->y(), roundoff_of(by, c)) <=
                      1);
                CHECK(bound[i]->damage() == "");
            }
        }
    }
}

TEST_CASE("streams: execute returns while the stream is still busy with what came before") {
    const wht_call c = rows_of(PLAIT_F32, 64, 4096);
    rng random(config().seed);
    const wht_data data = random_data(c, filling::integers, random);
    const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get());
    bound_call bound(c, plan.get(), data);
    const test_stream stream;
    device_delay(0.2, static_cast<cudaStream_t>(stream));
    CHECK(bound.execute(static_cast<cudaStream_t>(stream)) == PLAIT_OK);
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady); // no synchronisation inside
    (void)cudaGetLastError();
    stream.wait();
    CHECK(first_difference(c, reference(c, data), bound.y()) == "");
}

TEST_CASE("streams: eight threads, each with its stream, one plan") {
    rng random(config().seed);
    for (const auto &[type, n] : {std::pair{PLAIT_F32, 4096}, {PLAIT_F16, 1 << 17}}) {
        const wht_call c = rows_of(type, 3, n);
        const wht_data data = random_data(c, filling::integers, random);
        const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get(), PLAIT_MATH_F32);
        const test_stream streams[8];
        std::vector<std::unique_ptr<bound_call>> bound;
        for (int t = 0; t < 8; ++t)
            bound.push_back(std::make_unique<bound_call>(c, plan.get(), data));
        std::atomic<int> failures{0};
        std::vector<std::thread> threads;
        const int turns = config().small ? 20 : 2000;
        for (size_t t = 0; t < 8; ++t)
            threads.emplace_back([&, t] {
                const cudaStream_t own = streams[t];
                for (int i = 0; i < turns; ++i)
                    if (bound[t]->execute(own) != PLAIT_OK) ++failures;
            });
        for (std::thread &t : threads) t.join();
        for (const test_stream &s : streams) s.wait();
        CHECK(failures == 0);
        const expectation ref = reference(c, data);
        for (auto &b : bound) {
            CHECK(first_difference(c, ref, b->y()) == "");
            CHECK(b->damage() == "");
        }
    }
}

TEST_CASE("streams: blocks that wait for each other finish on whatever is left of the device") {
    // Two launches whose blocks take tickets share two multiprocessors; neither is all resident.
    rng random(config().seed);
    for (const auto &[type, rows, n] :
         {std::tuple{PLAIT_F32, 3, 1 << 20}, {PLAIT_F16, 9, 1 << 18}}) {
        const wht_call c = rows_of(type, rows, n);
        const desc_ptr desc = desc_of(c);
        const plan_ptr plan = plan_by("wht.cuda.l2", desc.get());
        const wht_data data = random_data(c, filling::integers, random);
        const test_stream other, streams[2];
        std::unique_ptr<bound_call> bound[2];
        for (auto &b : bound) b = std::make_unique<bound_call>(c, plan.get(), data);
        target().wait();
        device_occupy(2, 1.0, static_cast<cudaStream_t>(other));
        for (int turn = 0; turn < 10; ++turn)
            for (int i : {0, 1})
                CHECK(bound[i]->execute(static_cast<cudaStream_t>(streams[i])) == PLAIT_OK);
        for (const test_stream &s : streams) s.wait();
        // They did not wait for its end; under a checker everything takes so long that it may come.
        if (!config().small) CHECK(cudaStreamQuery(other) == cudaErrorNotReady);
        (void)cudaGetLastError();
        other.wait();
        const expectation ref = reference(c, data);
        for (const auto &b : bound) {
            CHECK(worst_ratio(c, ref, b->y(), roundoff(PLAIT_F32)) <= 1);
            CHECK(b->damage() == "");
        }
    }
}

TEST_CASE("streams: an exec owns scratch and a stream, and moves to another one") {
    rng random(config().seed);
    for (plait_dtype type : device_types) {
        const wht_call c = rows_of(type, 2, 1 << 17);
        const wht_data data = random_data(c, filling::integers, random);
        const expectation ref = reference(c, data);
        const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get(), PLAIT_MATH_F32);
        const test_stream streams[2];
        guarded x(data.x.size(), 0, 0);
        x.put(data.x);
        plait_exec *raw[2] = {};
        exec_ptr execs[2];
        std::unique_ptr<guarded> y[2];
        for (int i : {0, 1}) {
            REQUIRE(plait_exec_from_plan(&raw[i], plan.get(),
                                         static_cast<cudaStream_t>(streams[i])) == PLAIT_OK);
            execs[i].reset(raw[i]);
            y[i] = std::make_unique<guarded>(data.x.size(), 0, 0xFF);
        }
        target().wait();
        for (int i : {0, 1}) CHECK(plait_exec_run(raw[i], x.data(), y[i]->data()) == PLAIT_OK);
        for (int i : {0, 1}) {
            streams[i].wait();
            CHECK(first_difference(c, ref, y[i]->get()) == "");
            target().fill(y[i]->data(), 0xFF, y[i]->size());
        }
        target().wait();
        CHECK(plait_exec_set_stream(raw[0], static_cast<cudaStream_t>(streams[1])) == PLAIT_OK);
        CHECK(plait_exec_run(raw[0], x.data(), y[0]->data()) == PLAIT_OK);
        execs[0].reset(); // legal while its work still runs
        streams[1].wait();
        CHECK(first_difference(c, ref, y[0]->get()) == "");
        CHECK(y[0]->damage() == "");
    }
}

} // namespace plait::test
