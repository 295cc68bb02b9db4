// Plans of conv1d.fwd.cuda.* and conv1d.update.cuda on emulated kernels, against the definition and
// against each other.
#include "tests/emulate/conv1d_orders.h"
#include "tests/support/report.h"

#include <array>
#include <set>
#include <string>

namespace plait::test {
namespace {

conv1d_call forward(plait_dtype x, plait_layout layout, int64_t b, int64_t c, int64_t l,
                    int64_t k) {
    return with_silu_and_bias(PLAIT_FORWARD, x, layout, b, c, l, k);
}

} // namespace

TEST_CASE("emulated conv1d forward: shapes") {
    rng random(derive(config().seed, 11));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {1, 2, 3, 4, 5, 8, 9, 32, 40})
                for (const auto &[b, c, l] :
                     {std::array<int64_t, 3>{2, 3, 7}, {1, 8, 300}, {3, 16, 64}, {2, 5, 129}})
                    check_both(forward(x, layout, b, c, l, k), random);
    // What no candidate takes is not run: these must have been.
    for (const char *const step : {"conv1d.fwd_bct_tiled ", "conv1d.fwd_btc ", "conv1d.fwd_any "}) {
        const std::set<std::string> ran = noted_steps();
        const auto first = ran.lower_bound(step);
        CHECK_MESSAGE((first != ran.end() && first->rfind(step, 0) == 0), step);
    }
}

TEST_CASE("emulated conv1d forward: pitches and bases off alignment") {
    rng random(derive(config().seed, 12));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {2, 4, 7})
                for (const int64_t pitch : {0, 3, 8})
                    for (const int64_t shift : {0, 1, 5}) {
                        if (random.chance(0.6)) continue; // another part with every seed
                        conv1d_call call = forward(x, layout, 2, 24, 203, k);
                        call.residual = pitch == 3;
                        check_both(laid_out(call, layout, pitch, shift), random);
                        call = laid_out(call, layout, pitch, shift);
                        call.offsets[PLAIT_X] = 2; // x and y lie differently
                        check_orders(call, conv1d_filling::uniform, random);
                    }
}

// Variants "even" and "odd" of conv1d.fwd_btc: words of two channels, and wide windows.
TEST_CASE("emulated conv1d forward: tokens at multiples of 2 bytes, windows in groups") {
    rng random(derive(config().seed, 19));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16})
        for (const int64_t k : {2, 3, 4})
            for (const int64_t c : {50, 51, 62, 63, 125, 187, 250})
                for (const auto &[b, l] : {std::array<int64_t, 2>{1, 16}, {3, 33}, {2, 40}}) {
                    if (random.chance(0.8)) continue; // another part with every seed
                    conv1d_call call = forward(x, PLAIT_BTC, b, c, l, k);
                    call.residual = random.chance(0.3);
                    if (random.chance(0.3)) call = laid_out(call, PLAIT_BTC, 3, 0);
                    check_both(call, random);
                }
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const int64_t k : {8, 16, 32})
            for (const int64_t c : {7, 8})
                check_both(forward(x, PLAIT_BTC, 2, c, 2 * k + 75, k), random);
    for (const char *const step : {"conv1d.fwd_btc bf16.k4.even", "conv1d.fwd_btc bf16.k4.odd"}) {
        const std::set<std::string> ran = noted_steps();
        const auto first = ran.lower_bound(step);
        CHECK_MESSAGE((first != ran.end() && first->rfind(step, 0) == 0), step);
    }
}

TEST_CASE("emulated conv1d forward: long rows, many rows") {
    rng random(derive(config().seed, 13));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const auto &[b, c, l] :
                 {std::array<int64_t, 3>{1, 2, 9001}, {40, 1, 33}, {1, 1100, 40}, {300, 4, 4}})
                check_both(forward(x, layout, b, c, l, 4), random);
}

TEST_CASE("emulated conv1d forward: states, slots, ids, packed sequences") {
    rng random(derive(config().seed, 14));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {2, 3, 4, 7, 12})
                for (const int64_t l : {1, 2, 3, 70, 513})
                    for (int features = 1; features < 64; ++features) {
                        const bool in = features & 1, out = features & 2, ids = features & 4,
                                   varlen = features & 8, pool = features & 16,
                                   wide = features & 32;
                        if ((ids && varlen) || (pool && !in && !out) || (wide && !in)) continue;
                        if (random.chance(0.93)) continue; // another part with every seed
                        conv1d_call call = forward(x, layout, varlen ? 1 : 2, 9, l, k);
                        if (in) use(call, {PLAIT_STATE_IN});
                        if (out) use(call, {PLAIT_STATE_OUT});
                        if (ids) use(call, {PLAIT_SEQ_IDX});
                        if (varlen) call.varlen = {5, l};
                        if (pool) call.slots = {9, -1};
                        if (pool && random.chance(0.5)) use(call, {PLAIT_STATUS});
                        if (wide) call.types[PLAIT_STATE_IN] = PLAIT_F32;
                        if (random.chance(0.3)) call.entries = k + 2;
                        call.alias = in && out && !wide && random.chance(0.5);
                        call.residual = random.chance(0.3);
                        check_both(call, random);
                    }
}

// Tiles behind the first, more sequences than lanes, edges within and between them.
TEST_CASE("emulated conv1d forward: many sequences, ids and states in long rows") {
    rng random(derive(config().seed, 18));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {3, 4, 8, 13, 20})
                for (const int64_t l : {2048, 4101})
                    for (const int64_t sequences : {0, 7, 60, 1500}) {
                        if (random.chance(0.8)) continue; // another part with every seed
                        conv1d_call call = forward(x, layout, sequences > 0 ? 1 : 2, 3, l, k);
                        const bool state = random.chance(0.5);
                        if (state) use(call, {PLAIT_STATE_IN});
                        if (sequences > 0) {
                            call.varlen = {sequences, l};
                            if (state && random.chance(0.5)) call.slots = {sequences + 4, -1};
                        } else {
                            use(call, {PLAIT_SEQ_IDX});
                        }
                        check_orders(call, conv1d_filling::uniform, random);
                    }
}

// Variants "flat" of conv1d.fwd_bct_tiled: all rows as one row of vectors.
TEST_CASE("emulated conv1d forward: rows without gaps that begin anywhere, and masks") {
    rng random(derive(config().seed, 21));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16, PLAIT_F32}) {
        for (const int64_t l : {8, 9, 11, 15, 33, 511, 1030})
            for (const auto &[b, c] : {std::array<int64_t, 2>{1, 1}, {3, 1}, {2, 7}, {1, 40}}) {
                if (random.chance(0.5)) continue; // another part with every seed
                conv1d_call call = forward(x, PLAIT_BCT, b, c, l, 4);
                call.residual = random.chance(0.3);
                if (random.chance(0.3)) call.types[PLAIT_W] = PLAIT_F32;
                if (random.chance(0.3)) call.types[PLAIT_BIAS] = PLAIT_F32;
                check_both(call, random);
            }
        for (const int64_t l : {16, 264, 2048}) {
            conv1d_call call = forward(x, PLAIT_BCT, 2, 3, l, 4);
            use(call, {PLAIT_SEQ_IDX});
            check_both(call, random);
            call = forward(x, PLAIT_BCT, 1, 5, l, 4);
            call.varlen = {random.chance(0.5) ? 3 : 90, l};
            check_both(call, random);
            call = forward(x, PLAIT_BCT, 2, 3, l, random.between(2, 4));
            use(call, {PLAIT_STATE_IN, PLAIT_STATE_OUT});
            if (random.chance(0.5)) call.types[PLAIT_STATE_IN] = PLAIT_F32;
            check_both(call, random);
        }
    }
    const std::set<std::string> ran = noted_steps();
    for (const char *const step :
         {"conv1d.fwd_bct_tiled bf16.k4.flat", "conv1d.fwd_bct_tiled f32.k4.flat",
          "conv1d.fwd_bct_tiled bf16.k4.state"}) {
        const auto first = ran.lower_bound(step);
        CHECK_MESSAGE((first != ran.end() && first->rfind(step, 0) == 0), step);
    }
}

TEST_CASE("emulated conv1d forward and update: random calls") {
    rng random(derive(config().seed, 15));
    for (int i = 0; i < 600; ++i) {
        const conv1d_call call = random_conv1d(random, 20000);
        if (call.direction == PLAIT_BACKWARD) continue;
        check_orders(call, conv1d_filling::uniform, random);
    }
}

TEST_CASE("emulated conv1d update: layouts, rings, slots") {
    rng random(derive(config().seed, 16));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {1, 2, 3, 4, 6})
                for (const int64_t s : {1, 2, 5})
                    for (const int64_t c : {1, 7, 64, 520})
                        for (int features = 0; features < 8; ++features) {
                            if (c == 520 && s > 1) continue;
                            if (random.chance(0.7)) continue; // another part with every seed
                            const int64_t b = c > 8 ? 3 : 9;
                            conv1d_call call = conv1d(PLAIT_UPDATE, x, b, c, s, k);
                            call.layout = layout;
                            call.silu = true;
                            call.used = {PLAIT_BIAS};
                            call.ring = features & 1;
                            call.residual = features & 2;
                            if (features & 4) call.slots = {b + 4, -1};
                            if (call.ring || random.chance(0.3)) call.entries = k + 1;
                            if (call.slots && random.chance(0.5)) use(call, {PLAIT_STATUS});
                            if (random.chance(0.2)) call = laid_out(call, layout, 8, 0);
                            if (random.chance(0.2)) call = laid_out(call, layout, 3, 1);
                            check_both(call, random);
                        }
}

// Variants *.samples: a thread a sample, where the ring has room for all and the history.
TEST_CASE("emulated conv1d update: some samples into a ring") {
    rng random(derive(config().seed, 20));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F16, PLAIT_F32})
        for (const int64_t s : {2, 3, 4, 7})
            for (const int64_t more : {2, 3, 5})
                for (const int64_t c : {64, 128, 384}) {
                    if (random.chance(0.75)) continue; // another part with every seed
                    conv1d_call call = conv1d(PLAIT_UPDATE, x, 3, c, s, 4);
                    call.layout = PLAIT_BTC;
                    call.silu = true;
                    call.used = {PLAIT_BIAS};
                    call.ring = true;
                    call.entries = s + more;
                    call.residual = random.chance(0.3);
                    if (random.chance(0.5)) call.slots = {7, -1};
                    check_both(call, random);
                }
    const std::set<std::string> ran = noted_steps();
    for (const char *const step :
         {"conv1d.update bf16.v2.samples", "conv1d.update f32.v1.samples"}) {
        const auto first = ran.lower_bound(step);
        CHECK_MESSAGE((first != ran.end() && first->rfind(step, 0) == 0), step);
    }
}

// From 256 threads of an SM on an update takes 16 bytes a thread.
TEST_CASE("emulated conv1d update: large batches") {
    rng random(derive(config().seed, 17));
    for (const plait_dtype x : {PLAIT_BF16, PLAIT_F32})
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
            for (const int64_t k : {2, 3, 4})
                for (const bool ring : {false, true}) {
                    if (ring && (layout == PLAIT_BCT || k != 4)) continue;
                    conv1d_call call =
                        conv1d(PLAIT_UPDATE, x, x == PLAIT_F32 ? 17 : 34, 8192, 1, k);
                    call.layout = layout;
                    call.silu = true;
                    call.used = {PLAIT_BIAS};
                    call.ring = ring;
                    if (ring) call.entries = 5;
                    call.slots = {40, -1};
                    const conv1d_inputs in = random_inputs(call, conv1d_filling::uniform, random);
                    expect(call, in, roundoff_of(call));
                }
}

} // namespace plait::test
