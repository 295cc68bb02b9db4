// Which thread of conv1d.bwd_btc holds which channels and tokens, its ring, and its launch data.
//
// A thread takes 2^log_vec channels side by side; 2^log_lanes threads a group of channels, the
// other threads of a block other walks of that group, which share one partial sum. Tile i of a row
// is tokens i * taps .. i * taps + taps - 1. Ring: slot, then taps rows of x and taps of dy, then
// threads, each with a cell.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_layout.h"

namespace plait::impl {

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

PLAIT_HD constexpr int conv1d_bwd_btc_smem(scalar x, int taps, bool loose) {
    return conv1d_bwd_btc_depth(x, taps, loose) * conv1d_bwd_btc_slot(x, taps, loose) +
           (conv1d_bwd_btc_threads << conv1d_bwd_btc_log_vec(x, taps)) * 4;
}

/// Of a multiprocessor, by registers.
PLAIT_HD constexpr int conv1d_bwd_btc_blocks(scalar x, int taps, bool marked) {
    const bool four = conv1d_bwd_btc_log_vec(x, taps) == 2;
    return marked ? 3 : four || taps > 4 ? 4 : 5;
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

inline conv1d_launch conv1d_bwd_btc_fill(const conv1d_problem &p, int sms, conv1d_bwd_args *a) {
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
                          int64_t{sms} * conv1d_bwd_btc_blocks(p.x.type, taps, marked),
                          conv1d_bwd_btc_threads >> a->log_lanes);
    conv1d_launch out{{},
                      conv1d_bwd_btc_threads,
                      a->items < conv1d_most_blocks ? a->items : conv1d_most_blocks,
                      conv1d_bwd_btc_smem(p.x.type, taps, loose)};
    const conv1d_name name = conv1d_bwd_btc_variant(p.x.type, taps, marked, p.silu, loose);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
