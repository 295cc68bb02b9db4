// The C++ wrapper: every member called once, owners, errors, chains.
#include "tests/api/common.h"

#include <cstring>
#include <plait/plait.hpp>
#include <type_traits>

using plait::test::contains;

static_assert(!std::is_copy_constructible_v<plait::context>);
static_assert(!std::is_copy_constructible_v<plait::desc>);
static_assert(!std::is_copy_constructible_v<plait::pref>);
static_assert(!std::is_copy_constructible_v<plait::exec>);
static_assert(!std::is_copy_constructible_v<plait::workspace>);
static_assert(std::is_nothrow_move_constructible_v<plait::context>);
static_assert(std::is_nothrow_move_constructible_v<plait::desc>);
static_assert(std::is_nothrow_move_constructible_v<plait::exec>);
static_assert(std::is_nothrow_move_constructible_v<plait::workspace>);
static_assert(std::is_copy_constructible_v<plait::plan>);

namespace {
template <class Call> plait_status code_of(Call &&call, const std::string &part) {
    try {
        call();
    } catch (const plait::error &e) {
        CHECK(contains(e.what(), part));
        return e.code();
    }
    return PLAIT_OK;
}
constexpr float expected[8] = {36, -4, -8, 0, -16, 0, 0, 0};
} // namespace

TEST_CASE("hpp: errors carry code and sentence") {
    CHECK(code_of([] { plait::wht(PLAIT_F32, {-1}); }, "extents[0]=-1") ==
          PLAIT_ERR_INVALID_ARGUMENT);
    CHECK(code_of([] { plait::wht(PLAIT_F32, {12}).validate(); }, "12") == PLAIT_ERR_INVALID_DESC);
    CHECK(code_of([] { plait::exec(PLAIT_CPU, 7, "wht:f32:n8"); }, "device=7") ==
          PLAIT_ERR_NO_DEVICE);
    CHECK(code_of([] { plait::context::from_profile("x"); }, "line 1") ==
          PLAIT_ERR_INVALID_ARGUMENT);
    const std::string cut("wht:f32:n8\0:garbage", 19);
    CHECK(code_of([&] { plait::desc::from_token(cut); }, "token: the text has a NUL") ==
          PLAIT_ERR_INVALID_ARGUMENT);
    CHECK(code_of([&] { plait::exec(PLAIT_CPU, 0, cut); }, "NUL") == PLAIT_ERR_INVALID_ARGUMENT);
    CHECK(code_of([&] { plait::pref().candidates(cut); }, "NUL") == PLAIT_ERR_INVALID_ARGUMENT);
}

TEST_CASE("hpp: descriptors chain") {
    plait::desc named = plait::wht(PLAIT_F32, {4, 64});
    named.axes(3).order(PLAIT_SEQUENCY).adjoint().scale(0.5).use(PLAIT_SIGNS);
    named.dtype(PLAIT_Y, PLAIT_F64).strides(PLAIT_X, {100, 1}).alignment(PLAIT_Y, 8);
    const std::string token = "wht:f32:n4:n64:seq:adj:scale=0.5:+signs:x.s100.1:y.f64.a8";
    CHECK(named.token() == token);
    CHECK(plait::wht(PLAIT_F32, {4, 64})
              .axes(3)
              .order(PLAIT_SEQUENCY)
              .adjoint()
              .scale(0.5)
              .use(PLAIT_SIGNS)
              .dtype(PLAIT_Y, PLAIT_F64)
              .strides(PLAIT_X, {100, 1})
              .alignment(PLAIT_Y, 8)
              .token() == token);
    CHECK(plait::desc::from_token(token).token() == token);
    const plait::desc in_place = plait::wht(PLAIT_F32, {8192, 4096}).scale(1. / 64).in_place();
    CHECK(in_place.token() == "wht:f32:b8192:n4096:scale=0.015625:y@x");
    CHECK(plait::wht(PLAIT_I32, {24}).factor(0, PLAIT_H12_SLOANE).bound(9).token() ==
          "wht:i32:n24.h12s:bound=9");
    CHECK(plait::wht(PLAIT_F32, {16}).bits(5).alias(PLAIT_Y, PLAIT_X).token() ==
          "wht:f32:n16:bits=5:y@x");
    const std::vector<plait::tensor> tensors = named.tensors();
    REQUIRE(tensors.size() == 3);
    CHECK(tensors[0].role == PLAIT_X);
    CHECK(tensors[0].strides == std::vector<std::int64_t>{100, 1});
    CHECK(tensors[1].dtype == PLAIT_F64);
    CHECK(tensors[1].access == PLAIT_WRITE);
    CHECK(tensors[2].extents == std::vector<std::int64_t>{4, 64});
}

TEST_CASE("hpp: descriptors of convolutions chain") {
    plait::desc named = plait::conv1d(PLAIT_FORWARD, PLAIT_BF16, 1, 64, 300, 4);
    named.layout(PLAIT_BTC).activation(PLAIT_ACT_SILU).residual().state(PLAIT_STATE_LINEAR, 5);
    named.varlen(3, 200).slots(7, -1).use(PLAIT_BIAS).use(PLAIT_STATE_IN).use(PLAIT_STATE_OUT);
    named.alias(PLAIT_STATE_OUT, PLAIT_STATE_IN).use(PLAIT_STATUS);
    CHECK(named.token() == plait::conv1d(PLAIT_FORWARD, PLAIT_BF16, 1, 64, 300, 4)
                               .layout(PLAIT_BTC)
                               .activation(PLAIT_ACT_SILU)
                               .residual()
                               .state(PLAIT_STATE_LINEAR, 5)
                               .varlen(3, 200)
                               .slots(7, -1)
                               .use(PLAIT_BIAS)
                               .use(PLAIT_STATE_IN)
                               .use(PLAIT_STATE_OUT)
                               .alias(PLAIT_STATE_OUT, PLAIT_STATE_IN)
                               .use(PLAIT_STATUS)
                               .token());
    CHECK(plait::desc::from_token(named.token()).token() == named.token());
    CHECK(contains(named.token(), "conv1d.fwd:bf16:b1:t300:c64:k4:silu:residual:state=lin.5:"
                                  "seqs=3.200:slots=7.-1:"));
    CHECK(plait::conv1d(PLAIT_UPDATE, PLAIT_F32, 2, 3, 1, 4).state(PLAIT_STATE_RING, 3).token() ==
          "conv1d.update:f32:b2:c3:t1:k4:state=ring.3");
    CHECK(code_of([] { plait::wht(PLAIT_F32, {8}).residual(); }, "not conv1d") ==
          PLAIT_ERR_INVALID_ARGUMENT);
}

TEST_CASE("hpp: descriptors of Kimi Delta Attention chain") {
    plait::desc named = plait::kda(PLAIT_BACKWARD, PLAIT_BF16, 1, 300, 2, 6, 64, 128);
    named.gate(PLAIT_GATE_BOUNDED, -5).beta_logit(2).qk_norm().qk_scale(0.5);
    named.state(PLAIT_STATE_VK).varlen(3, 200).use(PLAIT_STATE_OUT).use(PLAIT_DV, false);
    CHECK(named.token() == plait::kda(PLAIT_BACKWARD, PLAIT_BF16, 1, 300, 2, 6, 64, 128)
                               .gate(PLAIT_GATE_BOUNDED, -5)
                               .beta_logit(2)
                               .qk_norm()
                               .qk_scale(0.5)
                               .state(PLAIT_STATE_VK)
                               .varlen(3, 200)
                               .use(PLAIT_STATE_OUT)
                               .use(PLAIT_DV, false)
                               .token());
    CHECK(named.token() == "kda.bwd:bf16:b1:t300:h2:hv6:k64:v128:gate=bounded.-5:beta=logit.2:"
                           "norm=1e-06:scale=0.5:state=vk:seqs=3.200:+state_out-dv");
    CHECK(plait::desc::from_token(named.token()).token() == named.token());
    named.beta_value().qk_norm(false);
    CHECK(plait::kda(PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1, 2, 2)
              .beta_logit()
              .beta_value()
              .gate(PLAIT_GATE_LOG)
              .token() == "kda.fwd:f32:b1:t1:h1:k2:v2:gate=log");
    CHECK(code_of([] { plait::wht(PLAIT_F32, {8}).gate(PLAIT_GATE_LOG); }, "not kda") ==
          PLAIT_ERR_INVALID_ARGUMENT);
}

TEST_CASE("hpp: context, preferences, plan, workspace") {
    plait::context ctx(PLAIT_CPU);
    ctx.set_threads(1).set_allocator(nullptr, nullptr);
    CHECK(contains(ctx.profile(), "threads 1\n"));
    const plait::context twin = plait::context::from_profile(ctx.profile());
    CHECK(twin.profile() == ctx.profile());
    CHECK(plait::device_count(PLAIT_CPU) == 1);
    CHECK(plait::version() == PLAIT_VERSION);
    CHECK(contains(plait::build_info(), "plait "));
    plait::set_log(0, nullptr);

    const plait::desc what = plait::wht(PLAIT_F32, {8});
    const plait::pref how = plait::pref()
                                .candidates("wht.cpu.ref")
                                .rigor(PLAIT_MEASURE)
                                .time_limit(0.01)
                                .workspace_limit(1 << 20)
                                .determinism(PLAIT_RUN_TO_RUN)
                                .math(PLAIT_MATH_F32)
                                .wisdom_only(false);
    plait::plan plan(ctx, what, how);
    CHECK(plan.candidate() == "wht.cpu.ref");
    CHECK(plan.get_i64(PLAIT_PLAN_RIGOR) == PLAIT_MEASURE);
    CHECK(plan.get_f64(PLAIT_PLAN_SECONDS_MEASURED) > 0);
    CHECK(contains(plan.print(), "wht.cpu.ref"));
    CHECK(contains(plait::candidates(ctx, what), "wht.cpu.simd"));
    CHECK(plait::candidates(ctx, what, how, PLAIT_JSON).front() == '{');

    const plait::plan copy = plan;
    CHECK(copy.native() == plan.native());
    plan = plait::plan(ctx, what);
    CHECK(copy.native() != plan.native());
    plait::workspace work(ctx, copy.workspace_size());
    CHECK(copy.reserve_size() == 0);
    CHECK(plait::plan(
              ctx, plait::desc::from_token("kda.fwd:f64:b1:t65:h1:k3:v5:gate=log:reserve=chunk64"))
              .reserve_size() == 256 + 2 * 256);
    plait::workspace moved = std::move(work);
    CHECK(work.get() == nullptr);
    work = std::move(moved);
    alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
    copy.execute({plait::arg(PLAIT_X, x), {PLAIT_Y, y}}, work.get(), work.bytes());
    CHECK(std::equal(y, y + 8, expected));
    const std::vector<plait_arg> args = {plait::arg(PLAIT_X, x), plait::arg(PLAIT_Y, y)};
    copy.execute(args, work.get(), work.bytes());

    const std::string wisdom = ctx.wisdom();
    CHECK(contains(wisdom, "wht:f32:n8 | "));
    ctx.clear_wisdom();
    CHECK(ctx.wisdom() != wisdom);
    CHECK(ctx.load_wisdom(wisdom).loaded == 1);
    ctx.save_wisdom_file("plait_hpp_test.wisdom");
    ctx.clear_wisdom();
    CHECK(ctx.load_wisdom_file("plait_hpp_test.wisdom").loaded == 1);
    CHECK(ctx.wisdom() == wisdom);
    std::remove("plait_hpp_test.wisdom");
}

TEST_CASE("hpp: exec") {
    alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
    plait::exec first(PLAIT_CPU, 0, "wht:f32:n8");
    first(x, y);
    CHECK(std::equal(y, y + 8, expected));
    plait::exec second(PLAIT_CPU, 0, plait::wht(PLAIT_F32, {8}).scale(0.5));
    second.run({plait::arg(PLAIT_X, x), plait::arg(PLAIT_Y, y)});
    CHECK(y[0] == 18);
    plait::exec third(second.plan());
    CHECK(third.plan().native() == second.plan().native());
    second = std::move(first);
    third.run({{PLAIT_X, x}, {PLAIT_Y, y}});
    third.run(std::vector<plait_arg>{{PLAIT_X, x}, {PLAIT_Y, y}});
    third.set_stream(nullptr)(x, y);
    CHECK(y[0] == 18);
    CHECK(third.native() != nullptr);
    CHECK(code_of([&] { third(x, x); }, "plait_desc_set_alias") == PLAIT_ERR_POINTER);
    const std::vector<float> in(x, x + 8), few(7);
    std::vector<float> out(8);
    std::vector<double> wide(8);
    third(in, out);
    CHECK(out[0] == 18);
    CHECK(code_of([&] { third(in, wide); }, "y is f64") == PLAIT_ERR_INVALID_ARGUMENT);
    CHECK(code_of([&] { third(few, out); }, "x has 7 elements") == PLAIT_ERR_INVALID_ARGUMENT);
}

TEST_CASE("hpp: a convolution") {
    alignas(16) float x[4] = {1, 2, 3, 4}, w[2] = {10, 1}, bias[1] = {100}, y[4] = {};
    alignas(16) float before[1] = {5}, after[1] = {};
    plait::exec step(PLAIT_CPU, 0,
                     plait::conv1d(PLAIT_FORWARD, PLAIT_F32, 1, 1, 4, 2)
                         .use(PLAIT_BIAS)
                         .use(PLAIT_STATE_IN)
                         .use(PLAIT_STATE_OUT));
    step.run({{PLAIT_X, x},
              {PLAIT_Y, y},
              {PLAIT_W, w},
              {PLAIT_BIAS, bias},
              {PLAIT_STATE_IN, before},
              {PLAIT_STATE_OUT, after}});
    const float expected_y[4] = {151, 112, 123, 134};
    CHECK(std::equal(y, y + 4, expected_y));
    CHECK(after[0] == 4);
}

TEST_CASE("hpp: a text that another thread makes longer is asked for again") {
    int calls = 0;
    const std::string text = plait::detail::text([&](char *buf, size_t cap, size_t *size) {
        // Longer with each of the first two pairs of calls.
        const std::string now(calls < 4 ? 10 + static_cast<size_t>(calls) : 20, 'x');
        ++calls;
        *size = now.size() + 1;
        if (!buf) return PLAIT_OK;
        if (cap < *size) return PLAIT_ERR_BUFFER_TOO_SMALL;
        std::memcpy(buf, now.c_str(), *size);
        return PLAIT_OK;
    });
    CHECK(text == std::string(20, 'x'));
    CHECK(calls == 6);
}
