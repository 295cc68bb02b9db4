#include "tests/api/common.h"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <unistd.h>

using namespace plait::test;

TEST_CASE("contexts: what is refused") {
    FAILS(plait_context_create(nullptr, PLAIT_CPU, 0), PLAIT_ERR_INVALID_ARGUMENT, "ctx=NULL");
    int mark = 0;
    auto *ctx = reinterpret_cast<plait_context *>(&mark);
    FAILS(plait_context_create(&ctx, garbage<plait_backend>(), 0), PLAIT_ERR_INVALID_ARGUMENT,
          "backend=99");
    CHECK(ctx == nullptr);
    ctx = reinterpret_cast<plait_context *>(&mark);
    FAILS(plait_context_create(&ctx, PLAIT_CPU, 1), PLAIT_ERR_NO_DEVICE, "device=1");
    CHECK(ctx == nullptr);
    FAILS(plait_context_create(&ctx, PLAIT_CPU, -1), PLAIT_ERR_NO_DEVICE, "device=-1");
    int devices = 0;
    OK(plait_device_count(PLAIT_CUDA, &devices));
    FAILS(plait_context_create(&ctx, PLAIT_CUDA, devices), PLAIT_ERR_NO_DEVICE, "device=");
    FAILS(plait_context_create(&ctx, PLAIT_CUDA, -1), PLAIT_ERR_NO_DEVICE, "device=-1");
    plait_context_destroy(nullptr);
}

TEST_CASE("profiles: text, a context from it, and what it cannot do") {
    const context_ptr real = cpu_context();
    const std::string profile = profile_of(real.get());
    CHECK(contains(profile, "backend cpu"));
    FAILS(plait_context_profile(nullptr, nullptr, 0, nullptr), PLAIT_ERR_INVALID_ARGUMENT,
          "ctx=NULL");

    plait_context *made = nullptr;
    OK(plait_context_create_from_profile(&made, profile.c_str()));
    const context_ptr ctx(made);
    CHECK(profile_of(ctx.get()) == profile);
    const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b4:n64");
    const plan_ptr real_plan = plan_of(real.get(), "wht:f32:b4:n64");
    CHECK(print_of(plan.get()) == print_of(real_plan.get()));

    alignas(16) float x[256] = {}, y[256] = {1};
    const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
    FAILS(plait_execute(plan.get(), args, 2, nullptr, 0, nullptr), PLAIT_ERR_NO_DEVICE, "profile");
    CHECK(y[0] == 1);
    void *ptr = x;
    FAILS(plait_workspace_alloc(ctx.get(), 16, nullptr, &ptr), PLAIT_ERR_NO_DEVICE, "profile");
    CHECK(ptr == nullptr);
    plait_exec *exec = nullptr;
    FAILS(plait_exec_from_plan(&exec, plan.get(), nullptr), PLAIT_ERR_NO_DEVICE, "profile");
    CHECK(exec == nullptr);
    const pref_ptr pref = new_pref();
    OK(plait_pref_set_rigor(pref.get(), PLAIT_MEASURE));
    plait_plan *none = nullptr;
    const desc_ptr desc = desc_of("wht:f32:b4:n64");
    FAILS(plait_plan_create(&none, ctx.get(), desc.get(), pref.get()), PLAIT_ERR_NO_DEVICE, "");
    CHECK(none == nullptr);

    FAILS(plait_context_create_from_profile(nullptr, profile.c_str()), PLAIT_ERR_INVALID_ARGUMENT,
          "ctx=NULL");
    FAILS(plait_context_create_from_profile(&made, nullptr), PLAIT_ERR_INVALID_ARGUMENT,
          "profile=NULL");
    FAILS(plait_context_create_from_profile(&made, "nonsense\n"), PLAIT_ERR_INVALID_ARGUMENT,
          "line 1");
    CHECK(made == nullptr);
    FAILS(plait_context_create_from_profile(&made, "plait-profile 999\n"), PLAIT_ERR_VERSION,
          "999");
}

TEST_CASE("a plan for a device that is not here") {
    plait_context *made = nullptr;
    OK(plait_context_create_from_profile(&made, stored_profile("h200").c_str()));
    const context_ptr ctx(made);
    const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b1024:n1024");
    CHECK(contains(candidate_of(plan.get()), "wht.cuda."));
    FAILS(plait_context_set_threads(ctx.get(), 2), PLAIT_ERR_INVALID_ARGUMENT, "cuda");
}

TEST_CASE("threads: later plans copy the number") {
    const context_ptr ctx = cpu_context();
    OK(plait_context_set_threads(ctx.get(), 3));
    const plan_ptr three = plan_of(ctx.get(), "wht:f32:b64:n1024");
    OK(plait_context_set_threads(ctx.get(), 1));
    const plan_ptr one = plan_of(ctx.get(), "wht:f32:b64:n1024");
    CHECK(contains(profile_of(ctx.get()), "threads 1\n"));
    CHECK(contains(print_of(three.get(), PLAIT_JSON), "3"));
    CHECK(print_of(three.get()) != print_of(one.get()));
    OK(plait_context_set_threads(ctx.get(), 0));
    const std::string all = profile_of(ctx.get());
    const size_t cores = all.find("\ncores ") + 7;
    CHECK(contains(all, "\nthreads " + all.substr(cores, all.find('\n', cores) - cores) + "\n"));

    FAILS(plait_context_set_threads(ctx.get(), -1), PLAIT_ERR_INVALID_ARGUMENT, "threads=-1");
    FAILS(plait_context_set_threads(ctx.get(), 1000000), PLAIT_ERR_INVALID_ARGUMENT,
          "threads=1000000");
    FAILS(plait_context_set_threads(nullptr, 1), PLAIT_ERR_INVALID_ARGUMENT, "ctx=NULL");
}

namespace {

/// Counts, and remembers the size of every block that is out.
struct counting_memory {
    std::mutex mutex;
    std::map<void *, size_t> out;
    int allocations = 0;
    int wrong_sizes = 0;
    plait_status answer = PLAIT_OK;
    bool give_null = false;
    size_t shift = 0; ///< bytes that its blocks begin too late

    static plait_status take(void **ptr, size_t bytes, plait_stream, void *user) {
        auto *self = static_cast<counting_memory *>(user);
        const std::lock_guard<std::mutex> lock(self->mutex);
        if (self->answer != PLAIT_OK || self->give_null) return self->answer;
        if (posix_memalign(ptr, PLAIT_WORKSPACE_ALIGNMENT, bytes + self->shift) != 0)
            return PLAIT_ERR_OUT_OF_MEMORY;
        *ptr = static_cast<char *>(*ptr) + self->shift;
        self->out[*ptr] = bytes;
        ++self->allocations;
        return PLAIT_OK;
    }
    static void give(void *ptr, size_t bytes, plait_stream, void *user) {
        auto *self = static_cast<counting_memory *>(user);
        const std::lock_guard<std::mutex> lock(self->mutex);
        const auto at = self->out.find(ptr);
        if (at == self->out.end() || at->second != bytes) ++self->wrong_sizes;
        if (at != self->out.end()) self->out.erase(at);
        std::free(static_cast<char *>(ptr) - self->shift);
    }
    bool balanced() const { return out.empty() && wrong_sizes == 0; }
};

} // namespace

TEST_CASE("allocators: used and balanced") {
    counting_memory memory;
    const context_ptr ctx = cpu_context();
    OK(plait_context_set_allocator(ctx.get(), counting_memory::take, counting_memory::give,
                                   &memory));
    void *ptr = nullptr;
    OK(plait_workspace_alloc(ctx.get(), 1000, nullptr, &ptr));
    CHECK(memory.out.count(ptr) == 1);
    plait_workspace_free(ctx.get(), ptr, 1000, nullptr);
    CHECK(memory.allocations == 1);
    CHECK(memory.balanced());
    ptr = &memory;
    OK(plait_workspace_alloc(ctx.get(), 0, nullptr, &ptr));
    CHECK(ptr == nullptr);
    plait_workspace_free(ctx.get(), nullptr, 0, nullptr);
    CHECK(memory.allocations == 1);

    SUBCASE("measuring") {
        const pref_ptr pref = new_pref();
        OK(plait_pref_set_rigor(pref.get(), PLAIT_MEASURE));
        OK(plait_pref_set_time_limit(pref.get(), 0.01));
        const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b4:n64", pref.get());
        CHECK(memory.allocations > 2);
        CHECK(memory.balanced());
        double seconds = 0;
        OK(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_MEASURED, &seconds));
        CHECK(seconds > 0);
        memory.answer = PLAIT_ERR_OUT_OF_MEMORY;
        plait_plan *none = nullptr;
        const desc_ptr desc = desc_of("wht:f32:b8:n64");
        FAILS(plait_plan_create(&none, ctx.get(), desc.get(), pref.get()), PLAIT_ERR_OUT_OF_MEMORY,
              "allocator");
        CHECK(none == nullptr);
        CHECK(memory.balanced());
    }
    SUBCASE("execs keep the functions of their plan") {
        const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b4:n64", reference_pref().get());
        REQUIRE(workspace_of(plan.get()) > 0);
        plait_exec *made = nullptr;
        OK(plait_exec_from_plan(&made, plan.get(), nullptr));
        exec_ptr exec(made);
        CHECK(memory.out.size() == 1);
        OK(plait_context_set_allocator(ctx.get(), nullptr, nullptr, nullptr));
        const int before = memory.allocations;
        OK(plait_workspace_alloc(ctx.get(), 64, nullptr, &ptr));
        plait_workspace_free(ctx.get(), ptr, 64, nullptr);
        CHECK(memory.allocations == before);
        exec.reset();
        CHECK(memory.balanced());
        memory.answer = PLAIT_ERR_INTERNAL;
        FAILS(plait_exec_from_plan(&made, plan.get(), nullptr), PLAIT_ERR_OUT_OF_MEMORY,
              "internal");
        CHECK(made == nullptr);
    }
    SUBCASE("failures") {
        memory.answer = PLAIT_ERR_IO;
        FAILS(plait_workspace_alloc(ctx.get(), 10, nullptr, &ptr), PLAIT_ERR_OUT_OF_MEMORY,
              "10 bytes");
        CHECK(ptr == nullptr);
        memory.answer = PLAIT_OK;
        memory.give_null = true;
        FAILS(plait_workspace_alloc(ctx.get(), 10, nullptr, &ptr), PLAIT_ERR_OUT_OF_MEMORY, "NULL");
        memory.give_null = false;
        memory.shift = 16;
        FAILS(plait_workspace_alloc(ctx.get(), 10, nullptr, &ptr), PLAIT_ERR_WORKSPACE,
              "not aligned to 256");
        CHECK(ptr == nullptr);
        const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b4:n64", reference_pref().get());
        plait_exec *made = nullptr;
        FAILS(plait_exec_from_plan(&made, plan.get(), nullptr), PLAIT_ERR_WORKSPACE, "not aligned");
        CHECK(made == nullptr);
        CHECK(memory.balanced());
    }
}

TEST_CASE("allocators: what is refused") {
    const context_ptr ctx = cpu_context();
    FAILS(plait_context_set_allocator(nullptr, nullptr, nullptr, nullptr),
          PLAIT_ERR_INVALID_ARGUMENT, "ctx=NULL");
    FAILS(plait_context_set_allocator(ctx.get(), counting_memory::take, nullptr, nullptr),
          PLAIT_ERR_INVALID_ARGUMENT, "dealloc=NULL");
    FAILS(plait_context_set_allocator(ctx.get(), nullptr, counting_memory::give, nullptr),
          PLAIT_ERR_INVALID_ARGUMENT, "alloc=NULL");
    void *ptr = nullptr;
    FAILS(plait_workspace_alloc(nullptr, 10, nullptr, &ptr), PLAIT_ERR_INVALID_ARGUMENT,
          "ctx=NULL");
    FAILS(plait_workspace_alloc(ctx.get(), 10, nullptr, nullptr), PLAIT_ERR_INVALID_ARGUMENT,
          "ptr=NULL");
    FAILS(plait_workspace_alloc(ctx.get(), SIZE_MAX / 2, nullptr, &ptr), PLAIT_ERR_OUT_OF_MEMORY,
          "bytes");
    plait_workspace_free(nullptr, nullptr, 0, nullptr);
}

TEST_CASE("the default workspace is aligned") {
    const context_ptr ctx = cpu_context();
    for (const size_t bytes : {1u, 255u, 4096u, 1000003u}) {
        void *ptr = nullptr;
        OK(plait_workspace_alloc(ctx.get(), bytes, nullptr, &ptr));
        CHECK(reinterpret_cast<uintptr_t>(ptr) % PLAIT_WORKSPACE_ALIGNMENT == 0);
        std::memset(ptr, 1, bytes);
        plait_workspace_free(ctx.get(), ptr, bytes, nullptr);
    }
}

TEST_CASE("the environment of a context") {
    plait_context *ctx = nullptr;
    SUBCASE("PLAIT_THREADS") {
        {
            const environment_variable threads("PLAIT_THREADS", "3");
            CHECK(contains(profile_of(cpu_context().get()), "threads 3\n"));
            OK(plait_context_create_from_profile(&ctx, stored_profile("cpu_avx2_2c").c_str()));
            CHECK(contains(profile_of(ctx), "threads 2\n")); // a profile says its own
            plait_context_destroy(ctx);
            ctx = nullptr;
        }
        for (const char *bad : {"many", "2x", "-1", "99999999999"}) {
            const environment_variable threads("PLAIT_THREADS", bad);
            FAILS(plait_context_create(&ctx, PLAIT_CPU, 0), PLAIT_ERR_INVALID_ARGUMENT,
                  std::string("PLAIT_THREADS=") + bad);
        }
    }
    SUBCASE("PLAIT_CANDIDATES, and preferences win over it") {
        {
            const environment_variable pattern("PLAIT_CANDIDATES", "wht.cpu.ref");
            const context_ptr only_ref = cpu_context();
            CHECK(candidate_of(plan_of(only_ref.get(), "wht:f32:n64").get()) == "wht.cpu.ref");
            const pref_ptr pref = new_pref();
            OK(plait_pref_set_candidates(pref.get(), ""));
            CHECK(candidate_of(plan_of(only_ref.get(), "wht:f32:n64", pref.get()).get()) ==
                  "wht.cpu.ref");
            OK(plait_pref_set_candidates(pref.get(), "*.simd"));
            CHECK(candidate_of(plan_of(only_ref.get(), "wht:f32:n64", pref.get()).get()) ==
                  "wht.cpu.simd");
        }
        const environment_variable pattern("PLAIT_CANDIDATES", "wht.*,,");
        FAILS(plait_context_create(&ctx, PLAIT_CPU, 0), PLAIT_ERR_INVALID_ARGUMENT,
              "PLAIT_CANDIDATES");
    }
    SUBCASE("PLAIT_WISDOM") {
        const std::string path = "plait_test_" + std::to_string(getpid()) + ".wisdom";
        {
            const environment_variable missing("PLAIT_WISDOM", path);
            CHECK(wisdom_of(cpu_context().get()) == "plait-wisdom 1\n"); // the first run of all
        }
        {
            const environment_variable nothing("PLAIT_WISDOM", "/dev/null"); // no times yet
            CHECK(wisdom_of(cpu_context().get()) == "plait-wisdom 1\n");
        }
        {
            const environment_variable unreadable("PLAIT_WISDOM", "/");
            FAILS(plait_context_create(&ctx, PLAIT_CPU, 0), PLAIT_ERR_IO, "PLAIT_WISDOM: path=/");
            CHECK(ctx == nullptr);
        }
        std::ofstream(path) << "no header\n";
        {
            const environment_variable headless("PLAIT_WISDOM", path);
            FAILS(plait_context_create(&ctx, PLAIT_CPU, 0), PLAIT_ERR_INVALID_ARGUMENT,
                  "PLAIT_WISDOM: path=");
            CHECK(ctx == nullptr);
        }
        std::ofstream(path) << "plait-wisdom 99\n";
        {
            const environment_variable newer("PLAIT_WISDOM", path);
            FAILS(plait_context_create(&ctx, PLAIT_CPU, 0), PLAIT_ERR_VERSION, path);
        }
        const context_ptr first = cpu_context();
        const pref_ptr measure = new_pref();
        OK(plait_pref_set_rigor(measure.get(), PLAIT_MEASURE));
        OK(plait_pref_set_time_limit(measure.get(), 0.01));
        plan_of(first.get(), "wht:f32:n64", measure.get());
        OK(plait_wisdom_save_file(first.get(), path.c_str()));
        {
            const environment_variable good("PLAIT_WISDOM", path);
            const context_ptr second = cpu_context();
            CHECK(wisdom_of(second.get()) == wisdom_of(first.get()));
        }
        std::remove(path.c_str());
    }
}
