// Which thread of conv1d.bwd_btc holds which channels and tokens, its ring, and its launch data.
//
// A thread takes 2^log_vec channels side by side; 2^log_lanes threads a group of channels, the
// other threads of a block other walks of that group, which share one partial sum. Tile i of a row
// is tokens i * taps .. i * taps + taps - 1. Ring: slot, then taps rows of x and taps of dy, then
// threads, each with a cell.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_layout.h"

namespace plait::impl {

/// The steps are constants of the launch, which additions take as they are.
struct conv1d_btc_args : conv1d_bwd_args {
    int64_t x_step = 0, dy_step = 0, dx_step = 0; ///< bytes from a token to the one before it
    uint32_t x_turn = 0, dy_turn = 0;             ///< bits, modulo 32
};

inline constexpr int conv1d_bwd_btc_threads = 128;
inline constexpr int conv1d_bwd_btc_longest = 8; ///< width

/// log2 of the channels of a thread: windows, taps and their sums are in registers for each.
PLAIT_HD constexpr int conv1d_bwd_btc_log_vec(scalar x, int taps) {
    return x == scalar::f32 || taps > 4 ? 1 : 2;
}

/// Bytes of a token in the ring, for a thread. Loose: channels that need not lie on a multiple of
/// anything; of 16 bits, the words of 4 bytes that hold them.
PLAIT_HD constexpr int conv1d_bwd_btc_cell(scalar x, int taps, bool loose) {
    const int bytes = (x == scalar::f32 ? 4 : 2) << conv1d_bwd_btc_log_vec(x, taps);
    return loose && x != scalar::f32 ? bytes + 4 : bytes;
}

PLAIT_HD constexpr int conv1d_bwd_btc_slot(scalar x, int taps, bool loose) {
    return 2 * taps * conv1d_bwd_btc_threads * conv1d_bwd_btc_cell(x, taps, loose);
}

/// Slots: 16 to 24 KiB are on their way into each block.
PLAIT_HD constexpr int conv1d_bwd_btc_depth(scalar x, int taps, bool loose) {
    return 40960 / conv1d_bwd_btc_slot(x, taps, loose) < 4
               ? 40960 / conv1d_bwd_btc_slot(x, taps, loose)
               : 4;
}

/// Bytes of a stash for sums, [sum][thread] in cells of the ring's size; 0: not needed.
PLAIT_HD constexpr int conv1d_bwd_btc_stash(scalar x, int taps, bool marked, bool loose) {
    const int log_vec = conv1d_bwd_btc_log_vec(x, taps);
    return marked && !loose && log_vec == 2 ? ((taps + 1) << log_vec) * conv1d_bwd_btc_threads * 4
                                            : 0;
}

/// The ring; behind it sums of a tap, or the stash.
PLAIT_HD constexpr int conv1d_bwd_btc_smem(scalar x, int taps, bool marked, bool loose) {
    const int sums = (conv1d_bwd_btc_threads << conv1d_bwd_btc_log_vec(x, taps)) * 4;
    const int stash = conv1d_bwd_btc_stash(x, taps, marked, loose);
    return conv1d_bwd_btc_depth(x, taps, loose) * conv1d_bwd_btc_slot(x, taps, loose) +
           (stash > sums ? stash : sums);
}

/// Loose stores of a warp whose lanes hold neighbouring channels: the chunk of `vec` elements at
/// the multiple of its size at or below the thread's first element, k elements below it, holds the
/// last k of the lane before and the first vec - k of the thread. Byte k: bit 0: the chunk is
/// stored whole; bit 1 + e: the thread stores its element e alone. `left`: channels of the row from
/// the thread's on, or any number from 2 vec on.
PLAIT_HD constexpr uint32_t conv1d_bwd_btc_alone(int lane, int left, int vec) {
    uint32_t out = 0;
    for (int k = 0; k < vec; ++k) {
        const bool whole = (lane > 0 || k == 0) && left >= vec - k;
        const bool next = lane < 31 && left >= 2 * vec - k; // the chunk of the next lane is whole
        uint32_t byte = whole ? 1u : 0u;
        for (int e = 0; e < vec && e < left; ++e)
            if (e < vec - k ? !whole : !next) byte |= 2u << e;
        out |= byte << (8 * k);
    }
    return out;
}

/// Of a multiprocessor, by registers.
PLAIT_HD constexpr int conv1d_bwd_btc_blocks(scalar x, int taps, bool marked, bool loose) {
    const bool four = conv1d_bwd_btc_log_vec(x, taps) == 2;
    return marked && loose && four ? 3 : marked || four || taps > 4 ? 4 : 5;
}

/// Ends of rows and their states are known without marks.
inline bool conv1d_bwd_btc_reads_marks(const conv1d_problem &p) {
    return p.varlen || p.seq_idx.used();
}

/// "bf16.k4.silu.v4": the last part is the number of channels of a thread; .l4 if loose.
inline conv1d_name conv1d_bwd_btc_variant(scalar x, int taps, bool marked, bool silu, bool loose) {
    conv1d_name name = conv1d_bwd_variant(x, taps, marked, silu);
    int at = 0;
    while (name.text[at] != 0) ++at;
    conv1d_append(name, at, loose ? ".l" : ".v");
    conv1d_append(name, at, 1 << conv1d_bwd_btc_log_vec(x, taps));
    return name;
}

/// Whether all vectors of 2^log_vec channels of a tensor lie on multiples of their size.
inline bool conv1d_bwd_btc_aligned(const conv1d_view &v, int log_vec) {
    const int64_t vec = int64_t{1} << log_vec;
    return !v.used() || (v.align >= vec * scalar_bytes(v.type) && v.b % vec == 0 && v.t % vec == 0);
}

/// Divides rows into walks that fill about a whole number of waves: for each number of waves the
/// longest walks that fit, and of these the one that is done first. A walk costs `more` tiles: the
/// one behind it, its first loads, its sums. Few waves end less evenly.
inline void conv1d_bwd_btc_divide(conv1d_bwd_args *a, int64_t groups, int64_t rows,
                                  int64_t resident, int64_t per_slot) {
    constexpr double more = 3;
    constexpr int64_t least = 4, most_waves = 8;
    double best = 1e300;
    for (int64_t waves = 1; waves <= most_waves; ++waves) {
        const int64_t fit = waves * resident / groups;
        const int64_t walks = (fit < 1 ? 1 : fit) * per_slot;
        int64_t tiles = a->tiles, in_walk = 1;
        if (walks >= rows) {
            const int64_t parts = walks / rows;
            tiles = conv1d_ceil_div(a->tiles, parts);
            if (tiles < least) tiles = least < a->tiles ? least : a->tiles;
        } else {
            in_walk = conv1d_ceil_div(rows, walks);
        }
        const int64_t total = conv1d_ceil_div(rows, in_walk) * conv1d_ceil_div(a->tiles, tiles);
        const int64_t slots = conv1d_ceil_div(total, per_slot);
        const double rounds = static_cast<double>(conv1d_ceil_div(groups * slots, resident));
        const double time = rounds * (static_cast<double>(tiles) + more) *
                            static_cast<double>(in_walk) * (1 + 0.06 / static_cast<double>(waves));
        if (time >= best) continue;
        best = time;
        a->tiles_per_walk = tiles;
        a->rows_per_walk = in_walk;
        a->walks = total;
        a->slots = slots;
        a->items = groups * slots;
    }
}

inline conv1d_launch conv1d_bwd_btc_fill(const conv1d_problem &p, int sms, conv1d_btc_args *a) {
    a->x_step = -p.x.t * scalar_bytes(p.x.type);
    a->dy_step = -p.dy.t * scalar_bytes(p.dy.type);
    a->dx_step = p.dx.used() ? -p.dx.t * scalar_bytes(p.dx.type) : 0;
    a->x_turn = 8u * static_cast<uint32_t>(a->x_step);
    a->dy_turn = 8u * static_cast<uint32_t>(a->dy_step);
    const int taps = conv1d_bwd_taps(p.width);
    const bool marked = conv1d_bwd_marked(p);
    const int log_vec = conv1d_bwd_btc_log_vec(p.x.type, taps);
    const bool loose =
        p.channels % (int64_t{1} << log_vec) != 0 || !conv1d_bwd_btc_aligned(p.x, log_vec) ||
        !conv1d_bwd_btc_aligned(p.dy, log_vec) || !conv1d_bwd_btc_aligned(p.dx, log_vec);
    const int64_t vectors = conv1d_ceil_div(p.channels, int64_t{1} << log_vec);
    a->log_lanes = 0;
    while (a->log_lanes < 5 && (int64_t{1} << a->log_lanes) < vectors) ++a->log_lanes;
    const int64_t groups = conv1d_ceil_div(vectors, int64_t{1} << a->log_lanes);
    a->tile = taps;
    a->tiles = conv1d_ceil_div(p.length, a->tile);
    conv1d_bwd_btc_divide(a, groups, p.batch,
                          int64_t{sms} * conv1d_bwd_btc_blocks(p.x.type, taps, marked, loose),
                          conv1d_bwd_btc_threads >> a->log_lanes);
    conv1d_launch out{{},
                      conv1d_bwd_btc_threads,
                      a->items < conv1d_most_blocks ? a->items : conv1d_most_blocks,
                      conv1d_bwd_btc_smem(p.x.type, taps, marked, loose)};
    const conv1d_name name = conv1d_bwd_btc_variant(p.x.type, taps, marked, p.silu, loose);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
