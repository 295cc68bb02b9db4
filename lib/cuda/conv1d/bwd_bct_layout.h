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

// ---- Shared memory: a ring of tiles for each warp
// ------------------------------------------------

inline constexpr int conv1d_bwd_bct_stages = 4;

/// Bytes before the first lane of a row: multiples of 16 that hold what taps reach.
PLAIT_HD constexpr int conv1d_bwd_bct_halo(int taps, int log_vec) {
    return 16 * ((taps - 1 + (1 << log_vec) - 1) >> log_vec);
}

/// Lanes that share a row, at least.
PLAIT_HD constexpr int conv1d_bwd_bct_fewest(int taps, int log_vec) {
    int log = 2;
    while ((1 << (log_vec + log)) < taps - 1 + (1 << log_vec)) ++log;
    return 1 << log;
}

/// Bytes of x, or dy, in a stage: 16 a lane, and a halo for each row.
/// A stage is x, dy and, in kernels with marks, 16 bytes of those a lane; a warp's stages follow
/// each other, warps too.
PLAIT_HD constexpr int conv1d_bwd_bct_part(int taps, int log_vec) {
    return 512 + conv1d_bwd_bct_halo(taps, log_vec) * (32 / conv1d_bwd_bct_fewest(taps, log_vec));
}

/// Where a lane has its 16 bytes of x in the first stage.
PLAIT_HD constexpr int conv1d_bwd_bct_slot(int warp, int ring, int halo, int warp_lane,
                                           int log_lanes) {
    return warp * ring + halo * ((warp_lane >> log_lanes) + 1) + 16 * warp_lane;
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

/// Kernels without marks know no masks and no residual; states they do.
inline bool conv1d_bwd_bct_reads_marks(const conv1d_problem &p) {
    return p.varlen || p.seq_idx.used();
}
inline bool conv1d_bwd_bct_marked(const conv1d_problem &p) {
    return conv1d_bwd_bct_reads_marks(p) || p.residual;
}

/// Blocks of 128 threads that an SM runs at a time, as their registers allow.
PLAIT_HD constexpr int conv1d_bwd_bct_blocks(int taps, bool marked) {
    return taps > 8 ? 2 : taps > 4 ? (marked ? 3 : 4) : marked ? 4 : 6;
}
/// How often the device should be full, for an even end.
inline constexpr int64_t conv1d_bwd_bct_waves = 4;
/// Tiles of a walk, at least: its sums are reduced at its end. Fewer where warps would lack.
inline constexpr int64_t conv1d_bwd_bct_least = 8, conv1d_bwd_bct_least_few = 4;

/// Divides the rows of a channel among slots of `warps` warps, which it returns. As few slots as
/// fill the device, which runs `at_once` blocks: one slot needs no partial sums.
inline int conv1d_bwd_bct_divide(conv1d_bwd_args *a, int64_t channels, int64_t rows,
                                 int64_t at_once) {
    const int64_t per_warp = 32 >> a->log_lanes;
    const int64_t units = conv1d_ceil_div(rows, per_warp) * a->tiles; // tiles of a channel
    const bool many = static_cast<double>(units) * static_cast<double>(channels) >=
                      static_cast<double>(at_once * 8 * conv1d_bwd_bct_least);
    const int64_t least = many ? conv1d_bwd_bct_least : conv1d_bwd_bct_least_few;
    const int64_t most = units / least > 1 ? units / least : 1;
    int warps = conv1d_bwd_bct_threads / 32;
    while (warps > most) warps /= 2;
    int64_t slots = at_once * conv1d_bwd_bct_waves / channels;
    if (slots > most / warps) slots = most / warps;
    if (slots < 1) slots = 1;
    const int64_t walks = slots * warps * per_warp;
    a->parts = 1;
    a->rows_per_walk = 1;
    a->tiles_per_walk = a->tiles;
    if (per_warp > 1 || rows >= walks) {
        a->rows_per_walk = conv1d_ceil_div(rows, walks);
    } else {
        a->tiles_per_walk = conv1d_ceil_div(a->tiles, conv1d_ceil_div(walks, rows));
        a->parts = conv1d_ceil_div(a->tiles, a->tiles_per_walk);
    }
    a->walks = conv1d_ceil_div(rows, a->rows_per_walk) * a->parts;
    a->slots = conv1d_ceil_div(a->walks, warps * per_warp);
    a->items = channels * a->slots;
    return warps;
}

/// Elements from the lowest to behind the highest of a tensor, from its base.
inline void conv1d_bwd_reach(const conv1d_problem &p, const conv1d_view &v, int64_t *begin,
                             int64_t *end) {
    *begin = 0;
    *end = 1;
    const int64_t far[] = {(p.batch - 1) * v.b, (p.channels - 1) * v.c, (p.length - 1) * v.t};
    for (const int64_t one : far) *(one < 0 ? begin : end) += one;
}

inline conv1d_launch conv1d_bwd_bct_fill(const conv1d_problem &p, int sms, conv1d_bwd_args *a) {
    const int log_vec = conv1d_log_vec(p.x.type), vec = 1 << log_vec;
    const int taps = conv1d_bwd_taps(p.width);
    const bool even = p.x.b % vec == 0 && p.x.c % vec == 0;
    const int64_t tokens = p.length + (even ? 0 : vec - 1);
    // As many lanes for a row as leave the fewest idle, but as many as its taps reach over, and 8
    // for 128 bytes; all where the batch has no rows for the others.
    int least = 3;
    while ((vec << least) < taps - 1 + vec) ++least;
    while (least > 2 && (vec << (least - 1)) >= tokens && (vec << (least - 1)) >= taps - 1 + vec)
        --least;
    a->log_lanes = 5;
    double best = 1e300;
    for (int log = 5; log >= least; --log) {
        if (p.batch < 32 >> log || (log < 5 && tokens > vec * 256)) break;
        const int64_t tile = int64_t{vec} << log;
        const double work = static_cast<double>(conv1d_ceil_div(tokens, tile)) *
                            static_cast<double>(tile) * (1 + 0.02 * (5 - log));
        if (work < best) best = work, a->log_lanes = log;
    }
    a->tile = int64_t{vec} << a->log_lanes;
    a->tiles = conv1d_ceil_div(tokens, a->tile);
    const bool marked = conv1d_bwd_bct_marked(p);
    const int warps = conv1d_bwd_bct_divide(a, p.channels, p.batch,
                                            int64_t{sms} * conv1d_bwd_bct_blocks(taps, marked));
    conv1d_bwd_reach(p, p.x, &a->x_begin, &a->x_end);
    conv1d_bwd_reach(p, p.dy, &a->dy_begin, &a->dy_end);
    conv1d_launch out{{}, 32 * warps, conv1d_grid(a->items, 1), 0};
    const conv1d_name name = conv1d_bwd_variant(p.x.type, taps, marked, p.silu);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
