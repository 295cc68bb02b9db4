// Plans of conv1d.bwd.cuda.* on emulated kernels, against the definition.
#include "tests/emulate/conv1d_orders.h"
#include "tests/support/report.h"

#include <array>
#include <cmath>
#include <set>
#include <string>

namespace plait::test {
namespace {

conv1d_call backward(plait_dtype x, plait_layout layout, int64_t b, int64_t c, int64_t l,
                     int64_t k) {
    return with_silu_and_bias(PLAIT_BACKWARD, x, layout, b, c, l, k);
}

} // namespace

TEST_CASE("emulated conv1d backward: shapes") {
    rng random(derive(config().seed, 1));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {1, 2, 3, 4, 5, 8, 32, 40})
                for (const auto &[b, c, l] :
                     {std::array<int64_t, 3>{2, 3, 7}, {1, 8, 300}, {3, 16, 64}, {2, 5, 129}})
                    check_both(backward(x, layout, b, c, l, k), random);
}

TEST_CASE("emulated conv1d backward: long rows, many rows") {
    rng random(derive(config().seed, 2));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const auto &[b, c, l] :
                 {std::array<int64_t, 3>{1, 2, 9001}, {40, 1, 33}, {1, 264, 40}})
                check_both(backward(x, layout, b, c, l, 4), random);
}

// Tokens at odd strides whose rows begin with a cell of four: by constants.
TEST_CASE("emulated conv1d backward: odd strides of channels") {
    rng random(derive(config().seed, 7));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16})
        for (const int64_t c : {5, 123, 125, 127, 249, 251})
            for (const int64_t l : {4, 24, 60}) {
                if (random.chance(0.6)) continue; // another part with every seed
                conv1d_call call = backward(x, PLAIT_BTC, random.chance(0.5) ? 1 : 3, c, l, 4);
                if (random.chance(0.2)) use(call, {PLAIT_STATE_IN});
                if (random.chance(0.2)) use(call, {PLAIT_SEQ_IDX});
                check_orders(call, conv1d_filling::uniform, random);
            }
    const std::set<std::string> ran = noted_steps();
    for (const char *const step :
         {"conv1d.bwd_btc bf16.k4.silu.r1.l4", "conv1d.bwd_btc bf16.k4.silu.r3.l4"}) {
        const auto first = ran.lower_bound(step);
        CHECK_MESSAGE((first != ran.end() && first->rfind(step, 0) == 0), step);
    }
}

TEST_CASE("emulated conv1d backward: states, ids, packed sequences") {
    rng random(derive(config().seed, 3));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {2, 3, 4, 7})
                for (const int64_t l : {1, 2, 3, 70, 513})
                    for (int features = 1; features < 16; ++features) {
                        if (random.chance(0.85)) continue; // another part with every seed
                        conv1d_call call = backward(x, layout, 2, 8, l, k);
                        if (features & 1) use(call, {PLAIT_STATE_IN});
                        if (features & 2) use(call, {PLAIT_STATE_OUT});
                        const int kind = features >> 2;
                        if (kind == 1) use(call, {PLAIT_SEQ_IDX});
                        if (kind == 2) call.batch = 1, call.varlen = {random.between(1, 9), l};
                        if (kind == 3) call.residual = true;
                        if (random.chance(0.3)) call.entries = k + 2;
                        check_both(call, random);
                    }
}

TEST_CASE("emulated conv1d backward: anything") {
    const int calls = config().small ? 40 : 400;
    for (int i = 0; i < calls; ++i) {
        rng random(derive(config().seed, static_cast<uint64_t>(1000 + i)));
        conv1d_call call = random_conv1d(random, 20000);
        if (call.direction != PLAIT_BACKWARD) continue;
        check_orders(call, conv1d_filling::uniform, random);
    }
}

/// <A x, g> = <x, A^T g> with A linear in x, and the same in w: no reference is needed.
TEST_CASE("emulated conv1d backward: adjoint identities") {
    rng random(derive(config().seed, 4));
    for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
        for (const int64_t k : {2, 3, 4, 9}) {
            conv1d_call call = backward(PLAIT_F32, layout, 2, 8, 77, k);
            call.silu = false;
            const conv1d_inputs in = random_inputs(call, conv1d_filling::quarters, random);
            conv1d_inputs forward = in;
            forward.op = conv1d_op::forward;
            const conv1d_array y = conv1d_reference(forward, 0).y.value;
            long double left = 0;
            for (size_t i = 0; i < y.v.size(); ++i) left += y.v[i] * in.dy.v[i];
            for_each_candidate(call, [&](const candidate &by) {
                conv1d_outcome out = result_of(call, in, by);
                long double by_x = 0, by_w = 0, by_bias = 0;
                const std::vector<double> &dx = out.values[PLAIT_DX], &dw = out.values[PLAIT_DW];
                const std::vector<double> &db = out.values[PLAIT_DBIAS];
                for (size_t i = 0; i < dx.size(); ++i) by_x += dx[i] * in.x.v[i];
                for (size_t i = 0; i < dw.size(); ++i) by_w += dw[i] * in.w.v[i];
                for (size_t i = 0; i < db.size(); ++i) by_bias += db[i] * in.b.v[i];
                CHECK(left == by_x + by_bias);
                CHECK(left == by_w + by_bias);
            });
        }
}

TEST_CASE("emulated conv1d backward: offsets that break the rules") {
    rng random(derive(config().seed, 5));
    for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
        for (int i = 0; i < 30; ++i) {
            conv1d_call call = backward(PLAIT_BF16, layout, 1, 8, 50, 4);
            use(call, {PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_STATUS});
            call.varlen = {5, 30};
            conv1d_inputs in = random_inputs(call, conv1d_filling::uniform, random);
            for (int n = 0; n < 2; ++n)
                in.offsets[static_cast<size_t>(random.between(0, 5))] =
                    random.pick<int64_t>({-1, 0, 7, 49, 50, 51, INT64_MIN, INT64_MAX, 1 << 20});
            const conv1d_results ref = conv1d_reference(in, roundoff_of(call));
            for_each_candidate(call, [&](const candidate &by) {
                const conv1d_outcome out = result_of(call, in, by);
                CHECK(out.status == ref.status);
                CHECK(judge(call, ref, out).wrong == "");
            });
        }
}

/// dy and x hold NaN where they enter nothing.
TEST_CASE("emulated conv1d backward: what belongs to nothing reaches nothing") {
    rng random(derive(config().seed, 6));
    for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
        for (const int64_t k : {3, 4, 6}) {
            conv1d_call call = backward(PLAIT_F32, layout, 1, 4, 90, k);
            use(call, {PLAIT_SEQ_IDX});
            conv1d_inputs in = random_inputs(call, conv1d_filling::uniform, random);
            for (int64_t t = 0; t < 90; ++t) {
                if (t % 11 < 3) in.seq_idx[static_cast<size_t>(t)] = -1;
            }
            const conv1d_results ref = conv1d_reference(in, roundoff_of(call));
            for (int64_t c = 0; c < 4; ++c)
                for (int64_t t = 0; t < 90; ++t)
                    if (in.seq_idx[static_cast<size_t>(t)] < 0)
                        in.x.at(0, c, t) = in.dy.at(0, c, t) = std::nanl("");
            for_each_candidate(call, [&](const candidate &by) {
                CHECK(judge(call, ref, result_of(call, in, by)).wrong == "");
            });
        }
}

} // namespace plait::test
