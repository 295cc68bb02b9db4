// Which lane of conv1d.bwd_bct holds which tokens, and its launch data.
//
// 2^log_lanes lanes walk over tiles of 16 bytes a lane. Token of tile, lane and element:
//   tile << (log_lanes + log_vec)  +  lane << log_vec  +  element  -  shift
// with the shift that puts lanes of every row on multiples of 16 bytes. The other lanes of the warp
// take other walks of the same channel.
#pragma once

#include "lib/cuda/conv1d/bwd_walk_layout.h"

namespace plait::impl {

inline constexpr int conv1d_bwd_bct_threads = 128;
inline constexpr int conv1d_bwd_bct_longest = 32; ///< width

PLAIT_HD constexpr int conv1d_log_vec(scalar s) { return s == scalar::f32 ? 2 : 3; }

/// Elements from the multiple of 16 bytes before a row to its start, for a base on such a multiple.
PLAIT_HD constexpr int32_t conv1d_bwd_bct_shift(const conv1d_view &x, int log_vec, int64_t b,
                                                int64_t c) {
    // the low bits of a product are those of the product of low bits
    const uint32_t low = static_cast<uint32_t>(b) * static_cast<uint32_t>(x.b) +
                         static_cast<uint32_t>(c) * static_cast<uint32_t>(x.c);
    return static_cast<int32_t>(low & ((1u << log_vec) - 1u));
}

/// Taps of the instantiation that computes `width`: 2, 3 and 4 have their own.
PLAIT_HD constexpr int conv1d_bwd_taps(int64_t width) {
    return conv1d_short_marks(width) ? static_cast<int>(width) : width <= 8 ? 8 : 32;
}

/// "bf16.k4.silu", "f32.k8.marks": up to 4 taps without marks the activation is of the variant.
inline conv1d_name conv1d_bwd_variant(scalar x, int taps, bool marks, bool silu) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(x));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    if (marks) {
        conv1d_append(name, at, ".marks");
    } else if (taps <= 4) {
        conv1d_append(name, at, silu ? ".silu" : ".none");
    }
    return name;
}

/// Warps that a device runs at a time, about; each walk should be a small part of what one does.
inline constexpr int64_t conv1d_bwd_bct_warps_per_sm = 24;
inline constexpr int64_t conv1d_bwd_bct_waves = 8;
inline constexpr int64_t conv1d_bwd_bct_least = 4; ///< tiles of a walk: sums are reduced at its end

inline conv1d_launch conv1d_bwd_bct_fill(const conv1d_problem &p, int sms, conv1d_bwd_args *a) {
    const int log_vec = conv1d_log_vec(p.x.type), vec = 1 << log_vec;
    const int taps = conv1d_bwd_taps(p.width);
    const bool even = p.x.b % vec == 0 && p.x.c % vec == 0;
    const int64_t tokens = p.length + (even ? 0 : vec - 1);
    // As many lanes for a row as leave the fewest idle, but as many as its taps reach over.
    int least = 2;
    while ((vec << least) < taps - 1) ++least;
    a->log_lanes = 5;
    double best = 1e300;
    for (int log = 5; log >= least; --log) {
        const int64_t tile = int64_t{vec} << log;
        const double work = static_cast<double>(conv1d_ceil_div(tokens, tile)) *
                            static_cast<double>(tile) * (1 + 0.02 * (5 - log));
        if (work < best) best = work, a->log_lanes = log;
    }
    a->tile = int64_t{vec} << a->log_lanes;
    a->tiles = conv1d_ceil_div(tokens, a->tile);
    const int64_t per_warp = 32 >> a->log_lanes;
    conv1d_bwd_divide(a, p.channels, p.batch,
                      sms * conv1d_bwd_bct_warps_per_sm * conv1d_bwd_bct_waves * per_warp,
                      conv1d_bwd_bct_least, per_warp);
    conv1d_launch out{
        {}, conv1d_bwd_bct_threads, conv1d_grid(a->items * 32, conv1d_bwd_bct_threads), 0};
    const conv1d_name name = conv1d_bwd_variant(p.x.type, taps, conv1d_bwd_marked(p), p.silu);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
