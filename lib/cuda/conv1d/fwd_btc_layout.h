// Layout of conv1d.fwd_btc: channels contiguous, x, y of one type. A thread takes `vector` channels
// and a strip of tokens; threads side by side take channels, then strips, then rows.
#pragma once

#include "lib/cuda/conv1d/fwd_bct_layout.h"

namespace plait::impl {

constexpr int conv1d_btc_threads = 128;
constexpr int conv1d_btc_step = 4; ///< tokens that are loaded before the first is stored

/// Channels of a thread, 16 bytes of them, or what the registers of more taps allow.
PLAIT_HD constexpr int conv1d_btc_vector(scalar s, int taps) {
    return taps == 4 ? conv1d_vector(s) : taps == 8 ? conv1d_vector(s) / 2 : 1;
}

/// Blocks that registers must leave room for on an SM.
PLAIT_HD constexpr int conv1d_btc_blocks_per_sm(int taps, int vector, bool full) {
    return taps == 32 ? 2 : full && vector > 1 ? 3 : 4;
}

constexpr int64_t conv1d_btc_most_groups = INT64_C(1) << 23;
constexpr int conv1d_btc_longest_strip = 128;
constexpr int conv1d_btc_shortest_strip = 16;

/// Strips halve until there are this many threads: several waves of what the device holds.
constexpr int32_t conv1d_btc_strip(int64_t rows, int64_t length, int64_t groups, int64_t threads) {
    int32_t strip = conv1d_btc_longest_strip;
    while (strip > conv1d_btc_shortest_strip &&
           rows * conv1d_ceil_div(length, strip) * groups < threads)
        strip /= 2;
    return strip;
}

/// "bf16.k4.v8", "f32.k32.v1.full".
constexpr conv1d_name conv1d_btc_variant(scalar s, int taps, int vector, bool full) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    conv1d_append(name, at, ".v");
    conv1d_append(name, at, vector);
    if (full) conv1d_append(name, at, ".full");
    return name;
}

/// `vector`: 1, or conv1d_btc_vector of the type and width. rows * strips < 2^31.
constexpr conv1d_launch conv1d_fwd_btc_launch(conv1d_fwd_args &a, int vector, int32_t strip,
                                              bool full) {
    const int64_t groups = a.channels / vector;
    const int64_t strips = conv1d_ceil_div(a.length, strip);
    const int64_t blocks = conv1d_ceil_div(a.batch * strips * groups, conv1d_btc_threads);
    a.across = conv1d_divisor_of(groups);
    a.strips = conv1d_divisor_of(strips);
    a.strip = strip;
    a.blocks = static_cast<uint32_t>(blocks);
    return conv1d_fwd_launch(conv1d_btc_variant(a.x_type, conv1d_fwd_taps(a.width), vector, full),
                             conv1d_btc_threads, blocks, 0);
}

} // namespace plait::impl
