// Launch data of conv1d.bwd_any: channels and tokens of a tile, and its shared memory.
#pragma once

#include "lib/cuda/conv1d/bwd_layout.h"

namespace plait::impl {

inline constexpr int64_t conv1d_bwd_any_blocks_per_sm = 8;

/// Fills the arguments; depends on the problem and the device's numbers alone. At most
/// `smem_limit` bytes of shared memory.
inline conv1d_launch conv1d_bwd_any_fill(const conv1d_problem &p, int sms, int64_t smem_limit,
                                         conv1d_bwd_args *a) {
    const bool wide = p.accumulator == scalar::f64;
    const int64_t word = wide ? 8 : 4;
    const auto distance = [](int64_t stride) { return stride < 0 ? -stride : stride; };
    const auto words = [&](int log_lanes, int64_t tile) {
        return (tile + p.width - 1) << log_lanes;
    };
    a->log_lanes = p.channels > 1 && distance(p.x.c) < distance(p.x.t) ? 5 : 0;
    while (a->log_lanes > 0 && (int64_t{1} << (a->log_lanes - 1)) >= p.channels) --a->log_lanes;
    const int64_t sums = conv1d_bwd_threads * word;
    while (a->log_lanes > 0 && words(a->log_lanes, 64) * word > smem_limit - sums) --a->log_lanes;
    // A tile computes g of its own tokens and of width - 1 behind it: not many more than its own.
    a->tile = conv1d_bwd_threads >> (a->log_lanes > 2 ? 2 : a->log_lanes);
    while (a->tile < p.width && words(a->log_lanes, 2 * a->tile) * word <= smem_limit - sums)
        a->tile *= 2;
    a->g_shared = words(a->log_lanes, a->tile) * word <= smem_limit - sums;
    const int rest = 8 - a->log_lanes; // log2 of the threads of a channel
    a->log_group = 0;
    while (a->log_group < rest && (int64_t{1} << a->log_group) < p.width + 1) ++a->log_group;

    const int64_t groups = conv1d_ceil_div(p.channels, int64_t{1} << a->log_lanes);
    a->tiles = conv1d_ceil_div(p.length, a->tile);
    const int64_t tiles = a->tiles * p.batch;
    const int64_t wanted = conv1d_ceil_div(sms * conv1d_bwd_any_blocks_per_sm, groups);
    a->slots = tiles < wanted ? tiles : wanted;
    a->items = groups * a->slots;

    const int64_t most = sms * conv1d_bwd_any_blocks_per_sm;
    conv1d_launch out{{}, conv1d_bwd_threads, a->items < most ? a->items : most, 0};
    const char *name = wide ? "f64" : "f32";
    for (int i = 0; i < 4; ++i) out.variant[i] = name[i];
    out.smem_bytes =
        static_cast<int>(sums + (a->g_shared ? words(a->log_lanes, a->tile) * word : 0));
    return out;
}

} // namespace plait::impl
