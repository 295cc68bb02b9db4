// Which thread of conv1d.bwd_btc holds which channels and tokens, and its launch data.
//
// A thread takes 2^log_vec channels side by side; 2^log_lanes threads a group of channels, the
// other threads of a block other walks of that group, which share one partial sum. Tile i of a row
// is tokens i * taps .. i * taps + taps - 1.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_layout.h"

namespace plait::impl {

/// Fewer with marks: more registers for each.
PLAIT_HD constexpr int conv1d_bwd_btc_threads(bool marked) { return marked ? 128 : 256; }

/// log2 of the channels of a thread: windows, taps and their sums are in registers for each.
PLAIT_HD constexpr int conv1d_bwd_btc_log_vec(scalar x, bool marked, bool vector) {
    return !vector ? 0 : x == scalar::f32 || marked ? 1 : 2;
}

/// "bf16.k4.silu.v4": the last part is the number of channels of a thread.
inline conv1d_name conv1d_bwd_btc_variant(scalar x, int taps, bool marked, bool silu, int log_vec) {
    conv1d_name name = conv1d_bwd_variant(x, taps, marked, silu);
    int at = 0;
    while (name.text[at] != 0) ++at;
    conv1d_append(name, at, ".v");
    conv1d_append(name, at, 1 << log_vec);
    return name;
}

/// Whether all vectors of 2^log_vec channels of a tensor lie on multiples of their size.
inline bool conv1d_bwd_btc_aligned(const conv1d_view &v, int log_vec) {
    const int64_t vec = int64_t{1} << log_vec;
    return !v.used() || (v.align >= vec * scalar_bytes(v.type) && v.b % vec == 0 && v.t % vec == 0);
}

inline constexpr int64_t conv1d_bwd_btc_waves = 4;
inline constexpr int64_t conv1d_bwd_btc_least = 8; ///< tiles of a walk: it computes one more

inline conv1d_launch conv1d_bwd_btc_fill(const conv1d_problem &p, int sms, conv1d_bwd_args *a) {
    const int taps = conv1d_bwd_taps(p.width);
    int log_vec = conv1d_bwd_btc_log_vec(p.x.type, conv1d_bwd_marked(p), true);
    if (p.channels % (int64_t{1} << log_vec) != 0 || !conv1d_bwd_btc_aligned(p.x, log_vec) ||
        !conv1d_bwd_btc_aligned(p.dy, log_vec) || !conv1d_bwd_btc_aligned(p.dx, log_vec))
        log_vec = 0;
    const int64_t vectors = conv1d_ceil_div(p.channels, int64_t{1} << log_vec);
    a->log_lanes = 0;
    while (a->log_lanes < 5 && (int64_t{1} << a->log_lanes) < vectors) ++a->log_lanes;
    const int64_t groups = conv1d_ceil_div(vectors, int64_t{1} << a->log_lanes);
    a->tile = taps;
    a->tiles = conv1d_ceil_div(p.length, a->tile);
    const int threads = conv1d_bwd_btc_threads(conv1d_bwd_marked(p));
    const int64_t walks_of_block = threads >> a->log_lanes;
    conv1d_bwd_divide(a, groups, p.batch,
                      sms * (512 / threads) * conv1d_bwd_btc_waves * walks_of_block,
                      conv1d_bwd_btc_least, walks_of_block);
    conv1d_launch out{{},
                      threads,
                      a->items < conv1d_most_blocks ? a->items : conv1d_most_blocks,
                      (threads << log_vec) * 4};
    const conv1d_name name =
        conv1d_bwd_btc_variant(p.x.type, taps, conv1d_bwd_marked(p), p.silu, log_vec);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
