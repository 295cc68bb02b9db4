// Execute inside stream capture: the graph replays with new data. (Reports W14, W32.)
#include "tests/gpu/gpu.h"

namespace plait::test {

TEST_CASE("graph: a captured execute gives the new right answer at each replay") {
    rng random(config().seed);
    for (wht_call c : typical_calls()) {
        if (config().small && c.elements() > 200000) continue;
        for (bool in_place : {false, true}) {
            c.alias = in_place;
            const desc_ptr desc = desc_of(c);
            for (const candidate &by : applicable(desc.get())) {
                const std::string token = token_of(desc.get());
                CAPTURE(token);
                CAPTURE(by.name);
                const plan_ptr plan = plan_by(by.name, desc.get());
                wht_data data = random_data(c, filling::uniform, random);
                bound_call bound(c, plan.get(), data);
                const test_stream stream;
                cudaGraph_t graph = nullptr;
                cudaGraphExec_t exec = nullptr;
                // Global mode refuses every call that could synchronise or allocate.
                REQUIRE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
                CHECK(bound.execute(static_cast<cudaStream_t>(stream)) == PLAIT_OK);
                REQUIRE_CUDA(cudaStreamEndCapture(stream, &graph));
                REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
                for (int replay = 0; replay < 3; ++replay) {
                    data = random_data(c, filling::uniform, random);
                    bound.put_x(data.x);
                    bound.poison();
                    REQUIRE_CUDA(cudaGraphLaunch(exec, stream));
                    stream.wait();
                    CHECK(worst_ratio(c, reference(c, data), bound.y(), roundoff_of(by, c)) <= 1);
                    CHECK(bound.damage() == "");
                }
                REQUIRE_CUDA(cudaGraphExecDestroy(exec));
                REQUIRE_CUDA(cudaGraphDestroy(graph));
            }
        }
    }
}

TEST_CASE("graph: the plan may be destroyed before the graph is replayed") {
    rng random(config().seed);
    const wht_call c = rows_of(PLAIT_F32, 8, 4096);
    const wht_data data = random_data(c, filling::integers, random);
    plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get());
    bound_call bound(c, plan.get(), data);
    const test_stream stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(bound.execute(static_cast<cudaStream_t>(stream)) == PLAIT_OK);
    REQUIRE_CUDA(cudaStreamEndCapture(stream, &graph));
    plan.reset();
    REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    REQUIRE_CUDA(cudaGraphLaunch(exec, stream));
    stream.wait();
    CHECK(first_difference(c, reference(c, data), bound.y()) == "");
    REQUIRE_CUDA(cudaGraphExecDestroy(exec));
    REQUIRE_CUDA(cudaGraphDestroy(graph));
}

TEST_CASE("graph: a launch into a broken capture is refused by the name of its step") {
    const wht_call c = rows_of(PLAIT_F32, 8, 4096);
    rng random(config().seed);
    const wht_data data = random_data(c, filling::integers, random);
    const plan_ptr plan = plan_by("wht.cuda.*", desc_of(c).get());
    bound_call bound(c, plan.get(), data);
    const test_stream stream;
    cudaGraph_t graph = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cudaStreamSynchronize(stream) != cudaSuccess); // this breaks the capture
    CHECK(bound.execute(static_cast<cudaStream_t>(stream)) == PLAIT_ERR_CAPTURING);
    CHECK(std::string(plait_last_error()).find("wht.block") != std::string::npos);
    (void)cudaStreamEndCapture(stream, &graph);
    (void)cudaGetLastError();
    CHECK(bound.execute(static_cast<cudaStream_t>(stream)) == PLAIT_OK);
    stream.wait();
    CHECK(first_difference(c, reference(c, data), bound.y()) == "");
}

} // namespace plait::test
