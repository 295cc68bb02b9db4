#include "tests/api/common.h"

#include <cmath>

using namespace plait::test;

TEST_CASE("preferences refuse NULL and garbage") {
    constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;
    FAILS(plait_pref_create(nullptr), argument, "pref=NULL");
    FAILS(plait_pref_set_rigor(nullptr, PLAIT_MEASURE), argument, "pref=NULL");
    FAILS(plait_pref_set_wisdom_only(nullptr, 1), argument, "pref=NULL");
    FAILS(plait_pref_set_workspace_limit(nullptr, 1), argument, "pref=NULL");
    FAILS(plait_pref_set_time_limit(nullptr, 1), argument, "pref=NULL");
    FAILS(plait_pref_set_determinism(nullptr, PLAIT_RUN_TO_RUN), argument, "pref=NULL");
    FAILS(plait_pref_set_math(nullptr, PLAIT_MATH_F32), argument, "pref=NULL");
    FAILS(plait_pref_set_candidates(nullptr, "*"), argument, "pref=NULL");
    plait_pref_destroy(nullptr);

    const pref_ptr pref = new_pref();
    FAILS(plait_pref_set_rigor(pref.get(), garbage<plait_rigor>(5)), argument, "rigor=5");
    FAILS(plait_pref_set_determinism(pref.get(), garbage<plait_determinism>(2)), argument,
          "level=2");
    FAILS(plait_pref_set_math(pref.get(), garbage<plait_math>(-1)), argument, "math=");
    for (const double bad : {0.0, -1.0, double(NAN), double(INFINITY)})
        FAILS(plait_pref_set_time_limit(pref.get(), bad), argument, "seconds=");
    FAILS(plait_pref_set_candidates(pref.get(), nullptr), argument, "pattern=NULL");
    FAILS(plait_pref_set_candidates(pref.get(), "a,,b"), argument, "a,,b");
    FAILS(plait_pref_set_candidates(pref.get(), "-"), argument, "-");
}

TEST_CASE("preferences filter") {
    const context_ptr ctx = cpu_context();
    const pref_ptr pref = new_pref();
    plait_plan *plan = nullptr;
    const desc_ptr desc = desc_of("wht:f32:b4:n64");

    OK(plait_pref_set_candidates(pref.get(), "-*.simd,-*.lines"));
    CHECK(candidate_of(plan_of(ctx.get(), "wht:f32:b4:n64", pref.get()).get()) == "wht.cpu.ref");
    OK(plait_pref_set_workspace_limit(pref.get(), 0));
    FAILS(plait_plan_create(&plan, ctx.get(), desc.get(), pref.get()), PLAIT_ERR_NOT_SUPPORTED,
          "wht.cpu.ref");
    CHECK(plan == nullptr);
    OK(plait_pref_set_workspace_limit(pref.get(), SIZE_MAX));
    OK(plait_pref_set_candidates(pref.get(), "nothing.*"));
    FAILS(plait_plan_create(&plan, ctx.get(), desc.get(), pref.get()), PLAIT_ERR_NOT_SUPPORTED,
          "nothing.*");
    OK(plait_pref_set_candidates(pref.get(), ""));
    OK(plait_pref_set_math(pref.get(), PLAIT_MATH_F32));
    OK(plait_pref_set_determinism(pref.get(), PLAIT_RUN_TO_RUN));
    OK(plait_plan_create(&plan, ctx.get(), desc.get(), pref.get()));
    plait_plan_destroy(plan);

    OK(plait_pref_set_wisdom_only(pref.get(), 1));
    FAILS(plait_plan_create(&plan, ctx.get(), desc.get(), pref.get()), PLAIT_ERR_NO_WISDOM,
          "wht:f32:b4:n64");
    OK(plait_pref_set_wisdom_only(pref.get(), 0));
    OK(plait_pref_set_rigor(pref.get(), PLAIT_EXHAUSTIVE));
    OK(plait_pref_set_time_limit(pref.get(), 0.02));
    OK(plait_plan_create(&plan, ctx.get(), desc.get(), pref.get()));
    const plan_ptr measured(plan);
    double seconds = -2;
    OK(plait_plan_get_f64(measured.get(), PLAIT_PLAN_SECONDS_MEASURED, &seconds));
    CHECK(seconds > 0);
    OK(plait_pref_set_wisdom_only(pref.get(), 1));
    const plan_ptr remembered = plan_of(ctx.get(), "wht:f32:b4:n64", pref.get());
    int64_t from_wisdom = 0;
    OK(plait_plan_get_i64(remembered.get(), PLAIT_PLAN_FROM_WISDOM, &from_wisdom));
    CHECK(from_wisdom == 1);
    OK(plait_plan_get_i64(measured.get(), PLAIT_PLAN_FROM_WISDOM, &from_wisdom));
    CHECK(from_wisdom == 0);
}

TEST_CASE("plans: what is refused") {
    constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;
    const context_ptr ctx = cpu_context();
    const desc_ptr desc = desc_of("wht:f32:b4:n64");
    const plan_ptr good = plan_of(ctx.get(), "wht:f32:b4:n64");
    plait_plan *plan = nullptr;
    size_t size = 0;
    int64_t whole = 0;
    double real = 0;
    FAILS(plait_plan_create(nullptr, ctx.get(), desc.get(), nullptr), argument, "plan=NULL");
    FAILS(plait_plan_create(&plan, nullptr, desc.get(), nullptr), argument, "ctx=NULL");
    FAILS(plait_plan_create(&plan, ctx.get(), nullptr, nullptr), argument, "desc=NULL");
    FAILS(plait_plan_workspace_size(nullptr, &size), argument, "plan=NULL");
    FAILS(plait_plan_workspace_size(good.get(), nullptr), argument, "bytes=NULL");
    FAILS(plait_plan_reserve_size(nullptr, &size), argument, "plan=NULL");
    FAILS(plait_plan_reserve_size(good.get(), nullptr), argument, "bytes=NULL");
    size = 1;
    OK(plait_plan_reserve_size(good.get(), &size));
    CHECK(size == 0);
    FAILS(plait_plan_get_i64(nullptr, PLAIT_PLAN_STEPS, &whole), argument, "plan=NULL");
    FAILS(plait_plan_get_i64(good.get(), PLAIT_PLAN_STEPS, nullptr), argument, "value=NULL");
    FAILS(plait_plan_get_i64(good.get(), garbage<plait_plan_attr>(), &whole), argument, "attr=99");
    FAILS(plait_plan_get_i64(good.get(), PLAIT_PLAN_SECONDS_ESTIMATED, &whole), argument,
          "plait_plan_get_f64");
    FAILS(plait_plan_get_f64(nullptr, PLAIT_PLAN_SECONDS_ESTIMATED, &real), argument, "plan=NULL");
    FAILS(plait_plan_get_f64(good.get(), PLAIT_PLAN_SECONDS_ESTIMATED, nullptr), argument,
          "value=NULL");
    FAILS(plait_plan_get_f64(good.get(), garbage<plait_plan_attr>(), &real), argument, "attr=99");
    FAILS(plait_plan_get_f64(good.get(), PLAIT_PLAN_STEPS, &real), argument, "plait_plan_get_i64");
    FAILS(plait_plan_candidate(nullptr, nullptr, 0, &size), argument, "plan=NULL");
    FAILS(plait_plan_print(nullptr, PLAIT_TEXT, nullptr, 0, &size), argument, "plan=NULL");
    FAILS(plait_plan_print(good.get(), garbage<plait_format>(), nullptr, 0, &size), argument,
          "format=99");
    FAILS(plait_candidates_print(nullptr, desc.get(), nullptr, PLAIT_TEXT, nullptr, 0, &size),
          argument, "ctx=NULL");
    FAILS(plait_candidates_print(ctx.get(), nullptr, nullptr, PLAIT_TEXT, nullptr, 0, &size),
          argument, "desc=NULL");
    FAILS(plait_candidates_print(ctx.get(), desc.get(), nullptr, garbage<plait_format>(), nullptr,
                                 0, &size),
          argument, "format=99");
    CHECK(plait_plan_retain(nullptr) == nullptr);
    plait_plan_destroy(nullptr);
}

TEST_CASE("what a plan tells") {
    const context_ptr ctx = cpu_context();
    const plan_ptr plan = plan_of(ctx.get(), "wht:f32:b4:n64");
    const auto i64 = [&](plait_plan_attr attr) {
        int64_t value = -1;
        OK(plait_plan_get_i64(plan.get(), attr, &value));
        return value;
    };
    CHECK(i64(PLAIT_PLAN_STEPS) >= 1);
    CHECK(i64(PLAIT_PLAN_RIGOR) == PLAIT_ESTIMATE);
    CHECK(i64(PLAIT_PLAN_FROM_WISDOM) == 0);
    CHECK(i64(PLAIT_PLAN_BYTES_READ) >= 4 * 64 * 4);
    CHECK(i64(PLAIT_PLAN_BYTES_WRITTEN) >= 4 * 64 * 4);
    CHECK(i64(PLAIT_PLAN_FLOPS) >= 4 * 64 * 6);
    double seconds = 0;
    OK(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_ESTIMATED, &seconds));
    CHECK(seconds > 0);
    OK(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_MEASURED, &seconds));
    CHECK(seconds < 0);

    const std::string text = print_of(plan.get());
    CHECK(contains(text, "wht:f32:b4:n64"));
    CHECK(contains(text, candidate_of(plan.get())));
    const std::string json = print_of(plan.get(), PLAIT_JSON);
    CHECK(json.front() == '{');
    CHECK(contains(json, candidate_of(plan.get())));

    const desc_ptr desc = desc_of("wht:f32:b4:n64");
    const std::string all = text_of([&](char *b, size_t c, size_t *s) {
        return plait_candidates_print(ctx.get(), desc.get(), nullptr, PLAIT_TEXT, b, c, s);
    });
    CHECK(contains(all, "wht.cpu.ref"));
    CHECK(contains(all, "chosen"));
    const std::string all_json = text_of([&](char *b, size_t c, size_t *s) {
        return plait_candidates_print(ctx.get(), desc.get(), nullptr, PLAIT_JSON, b, c, s);
    });
    CHECK(all_json.front() == '{');
}

TEST_CASE("an empty problem has a plan that does nothing") {
    const context_ptr ctx = cpu_context();
    for (const char *token : {"wht:f32:b0:n64", "wht:f32:b4:n0", "wht:i32:b0:n8"}) {
        INFO(token);
        const plan_ptr plan = plan_of(ctx.get(), token);
        CHECK(candidate_of(plan.get()) == "none");
        CHECK(workspace_of(plan.get()) == 0);
        int64_t steps = -1;
        OK(plait_plan_get_i64(plan.get(), PLAIT_PLAN_STEPS, &steps));
        CHECK(steps == 0);
        CHECK(contains(print_of(plan.get()), token));
        OK(plait_execute(plan.get(), nullptr, 0, nullptr, 0, nullptr));
        const plait_arg nulls[] = {{PLAIT_X, nullptr}, {PLAIT_Y, nullptr}};
        OK(plait_execute(plan.get(), nulls, 2, nullptr, 0, nullptr));
        plait_exec *exec = nullptr;
        OK(plait_exec_from_plan(&exec, plan.get(), nullptr));
        OK(plait_exec_run(exec, nullptr, nullptr));
        plait_exec_destroy(exec);
    }
}

TEST_CASE("the overflow report of an empty problem is written") {
    const context_ptr ctx = cpu_context();
    for (const char *token : {"wht:i32:b0:n8:+overflow", "wht:i64:b4:n0:+overflow",
                              "wht:i32:b0:n16384:+signs+overflow"}) {
        INFO(token);
        const plan_ptr plan = plan_of(ctx.get(), token);
        plait_exec *made = nullptr;
        OK(plait_exec_from_plan(&made, plan.get(), nullptr));
        const exec_ptr exec(made);
        alignas(16) int32_t flag = -1;
        alignas(16) int8_t signs[16] = {};
        const plait_arg args[] = {
            {PLAIT_X, nullptr}, {PLAIT_Y, nullptr}, {PLAIT_OVERFLOW, &flag}, {PLAIT_SIGNS, signs}};
        OK(plait_exec_run_args(exec.get(), args, contains(token, "signs") ? 4 : 3));
        CHECK(flag == 0);
        int64_t bytes = -1;
        OK(plait_plan_get_i64(plan.get(), PLAIT_PLAN_BYTES_WRITTEN, &bytes));
        CHECK(bytes == 4);
        double seconds = -1;
        OK(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_ESTIMATED, &seconds));
        CHECK(seconds >= 0);
    }
}

TEST_CASE("a plan outlives context, descriptor and preferences, and has owners") {
    plan_ptr plan;
    {
        const context_ptr ctx = cpu_context();
        const pref_ptr pref = reference_pref();
        plan = plan_of(ctx.get(), "wht:f32:n8", pref.get());
    }
    plait_plan *second = plait_plan_retain(plan.get());
    CHECK(second == plan.get());
    plan.reset();
    const aligned_buffer work(workspace_of(second));
    alignas(16) float x[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    alignas(16) float y[8] = {};
    const plait_arg args[] = {{PLAIT_Y, y}, {PLAIT_X, x}};
    OK(plait_execute(second, args, 2, work.get(), workspace_of(second), nullptr));
    for (const float v : y) CHECK(v == 1);
    plait_plan_destroy(second);
}
