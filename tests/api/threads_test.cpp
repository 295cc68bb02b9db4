#include "tests/api/common.h"

#include <atomic>
#include <thread>

using namespace plait::test;

namespace {

template <class Body> void in_threads(int count, Body &&body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread &t : threads) t.join();
}

} // namespace

TEST_CASE("eight threads plan from one context") {
    const context_ptr ctx = cpu_context();
    const desc_ptr shared = desc_of("wht:f32:b4:n256");
    const pref_ptr measure = new_pref();
    OK(plait_pref_set_rigor(measure.get(), PLAIT_MEASURE));
    OK(plait_pref_set_time_limit(measure.get(), 0.005));
    std::atomic<int> failures{0};
    in_threads(8, [&](int thread) {
        for (int round = 0; round < 20; ++round) {
            plait_plan *plan = nullptr;
            const bool timed = round == 3 * (thread % 4);
            if (plait_plan_create(&plan, ctx.get(), shared.get(),
                                  timed ? measure.get() : nullptr) != PLAIT_OK)
                ++failures;
            size_t size = 0;
            if (plait_wisdom_save(ctx.get(), nullptr, 0, &size) != PLAIT_OK) ++failures;
            if (plait_plan_print(plan, PLAIT_TEXT, nullptr, 0, &size) != PLAIT_OK) ++failures;
            plait_plan_destroy(plan);
            // Errors of one thread are not seen by another.
            const std::string token = "wht:f32:n" + std::to_string(3 + 2 * thread);
            plait_desc *bad = nullptr;
            if (plait_desc_from_token(&bad, token.c_str()) == PLAIT_OK) {
                if (plait_desc_check(bad) != PLAIT_ERR_INVALID_DESC) ++failures;
                plait_desc_destroy(bad);
            }
            if (!contains(plait_last_error(), std::to_string(3 + 2 * thread))) ++failures;
        }
    });
    CHECK(failures == 0);
}

TEST_CASE("many threads execute one plan with workspaces of their own") {
    const context_ptr ctx = cpu_context();
    OK(plait_context_set_threads(ctx.get(), 1));
    for (const pref_ptr &pref : {pref_ptr(), reference_pref()}) {
        const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b2:n64", pref.get());
        const size_t bytes = workspace_of(plan.get());
        std::atomic<int> wrong{0};
        in_threads(8, [&](int thread) {
            const aligned_buffer work(bytes);
            const aligned_buffer memory(4 * 256);
            float *x = reinterpret_cast<float *>(memory.get());
            float *y = x + 128;
            const plait_arg args[] = {{PLAIT_X, x}, {PLAIT_Y, y}};
            for (int round = 0; round < 50; ++round) {
                for (int i = 0; i < 128; ++i) x[i] = 0;
                x[0] = static_cast<float>(thread + 1);
                x[64] = static_cast<float>(round);
                if (plait_execute(plan.get(), args, 2, work.get(), bytes, nullptr) != PLAIT_OK)
                    ++wrong;
                for (int i = 0; i < 64; ++i)
                    if (y[i] != x[0] || y[64 + i] != x[64]) ++wrong;
            }
        });
        CHECK(wrong == 0);
    }
}

TEST_CASE("owners come and go in many threads") {
    const context_ptr ctx = cpu_context();
    plan_ptr plan = plan_of(ctx.get(), "wht:f32:n64", reference_pref().get());
    std::vector<plait_plan *> owned(8);
    for (plait_plan *&p : owned) p = plait_plan_retain(plan.get());
    plan.reset();
    std::atomic<int> failures{0};
    in_threads(8, [&](int thread) {
        plait_plan *mine = owned[static_cast<size_t>(thread)];
        for (int round = 0; round < 100; ++round) {
            plait_exec *exec = nullptr;
            if (plait_exec_from_plan(&exec, mine, nullptr) != PLAIT_OK) ++failures;
            alignas(16) float x[64] = {1}, y[64] = {};
            if (plait_exec_run(exec, x, y) != PLAIT_OK || y[63] != 1) ++failures;
            plait_exec_destroy(exec);
        }
        plait_plan_destroy(mine);
    });
    CHECK(failures == 0);
}
