// What plait takes from the device it gives back; execute takes nothing.
#include "tests/gpu/gpu.h"

namespace plait::test {
namespace {

size_t free_memory() {
    size_t free = 0, total = 0;
    REQUIRE_CUDA(cudaDeviceSynchronize());
    cudaMemPool_t pool = nullptr;
    REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    REQUIRE_CUDA(cudaMemPoolTrimTo(pool, 0)); // stream-ordered memory that is kept for later
    REQUIRE_CUDA(cudaMemGetInfo(&free, &total));
    return free;
}

void use_everything() {
    const test_stream stream;
    plait_context *raw = nullptr;
    REQUIRE(plait_context_create(&raw, PLAIT_CUDA, 0) == PLAIT_OK);
    const context_ptr ctx(raw);
    for (const wht_call &c : typical_calls()) {
        const desc_ptr desc = desc_of(c);
        const pref_ptr pref = preferences("");
        REQUIRE(plait_pref_set_rigor(pref.get(), PLAIT_EXHAUSTIVE) == PLAIT_OK);
        REQUIRE(plait_pref_set_time_limit(pref.get(), 0.02) == PLAIT_OK);
        plait_plan *plan_raw = nullptr;
        REQUIRE(plait_plan_create(&plan_raw, ctx.get(), desc.get(), pref.get()) == PLAIT_OK);
        const plan_ptr plan(plan_raw);
        plait_exec *exec = nullptr;
        REQUIRE(plait_exec_from_plan(&exec, plan_raw, static_cast<cudaStream_t>(stream)) ==
                PLAIT_OK);
        guarded x(static_cast<size_t>(c.elements() * bytes_of(c.x)), 0, 0);
        guarded y(static_cast<size_t>(c.elements() * bytes_of(c.x)), 0, 0);
        target().wait();
        CHECK(plait_exec_run(exec, x.data(), y.data()) == PLAIT_OK);
        plait_exec_destroy(exec);
        stream.wait();
    }
}

} // namespace

TEST_CASE("memory: after everything is destroyed the device has as much free memory as before") {
    use_everything(); // modules and the runtime's own first
    use_everything();
    const size_t before = free_memory();
    for (int i = 0; i < 3; ++i) use_everything();
    CHECK(free_memory() == before);
}

TEST_CASE("memory: execute allocates nothing") {
    rng random(config().seed);
    for (const wht_call &c : typical_calls()) {
        const desc_ptr desc = desc_of(c);
        const wht_data data = random_data(c, filling::uniform, random);
        for (const candidate &by : applicable(desc.get())) {
            const plan_ptr plan = plan_by(by.name, desc.get());
            bound_call bound(c, plan.get(), data);
            REQUIRE(bound.execute() == PLAIT_OK);
            const size_t before = free_memory();
            for (int i = 0; i < 100; ++i) REQUIRE(bound.execute() == PLAIT_OK);
            CHECK(free_memory() == before);
        }
    }
}

TEST_CASE("memory: an allocator of the caller is used for scratch and for measuring") {
    struct counter {
        int64_t live = 0, calls = 0;
    } count;
    plait_context *raw = nullptr;
    REQUIRE(plait_context_create(&raw, PLAIT_CUDA, 0) == PLAIT_OK);
    const context_ptr ctx(raw);
    const auto take = [](void **ptr, size_t size, plait_stream, void *user) {
        auto *c = static_cast<counter *>(user);
        ++c->calls;
        if (cudaMalloc(ptr, size) != cudaSuccess) return PLAIT_ERR_OUT_OF_MEMORY;
        c->live += static_cast<int64_t>(size);
        return PLAIT_OK;
    };
    const auto give = [](void *ptr, size_t size, plait_stream, void *user) {
        static_cast<counter *>(user)->live -= static_cast<int64_t>(size);
        (void)cudaFree(ptr);
    };
    REQUIRE(plait_context_set_allocator(raw, take, give, &count) == PLAIT_OK);
    const wht_call c = rows_of(PLAIT_F16, 2, 1 << 17);
    const pref_ptr pref = preferences("", PLAIT_MATH_F32);
    REQUIRE(plait_pref_set_rigor(pref.get(), PLAIT_MEASURE) == PLAIT_OK);
    plait_plan *plan_raw = nullptr;
    REQUIRE(plait_plan_create(&plan_raw, raw, desc_of(c).get(), pref.get()) == PLAIT_OK);
    const plan_ptr plan(plan_raw);
    CHECK(count.calls > 0);
    CHECK(count.live == 0);
    void *work = nullptr;
    REQUIRE(plait_workspace_alloc(raw, 1000, nullptr, &work) == PLAIT_OK);
    CHECK(count.live == 1000);
    plait_workspace_free(raw, work, 1000, nullptr);
    CHECK(count.live == 0);
}

} // namespace plait::test
