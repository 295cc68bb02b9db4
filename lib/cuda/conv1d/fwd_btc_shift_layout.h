// conv1d.fwd_btc, variants "shift1" to "shift7": channels contiguous, 16 bits, strides of tokens
// odd (fwd_btc_shift.cuh). A row of x or y is seen as vectors of 16 bytes at multiples of 16 bytes.
// With R the stride of tokens modulo 8, the channel that lies at a multiple of 16 bytes moves by R
// a token, so that shifts of eight tokens are constants once the first of them has shift 0. Warp w
// of a row loads 32 vectors from channel 240 w - shift on. A lane computes the eight channels 240 w
// + 8 lane .., `shift` of which come from the lane behind it, and stores the vector that it loaded,
// `shift` elements of which come from the lane before it. The last lane lacks samples: it has no
// channels. So warp w stores channels 240 w + 8 - shift .. 240 w + 247 - shift, the first warp
// those before them too, and the last one those behind.
#pragma once

#include "lib/cuda/conv1d/fwd_btc_layout.h"

namespace plait::impl {

constexpr int conv1d_shift_vector = 8;
constexpr int conv1d_shift_channels = 30 * conv1d_shift_vector; ///< from warp to warp
constexpr int conv1d_shift_round = 8;                           ///< tokens with shifts of their own
constexpr int conv1d_shift_ahead = 4;                           ///< tokens on their way
constexpr int conv1d_shift_strip = 16;                          ///< tokens of a thread
constexpr int conv1d_shift_blocks_per_sm = 4;
constexpr int64_t conv1d_shift_least = 200; ///< with fewer channels too many lanes are idle

/// Threads of a row of more than a vector.
constexpr int64_t conv1d_shift_groups(int64_t channels) {
    return conv1d_ceil_div(channels - conv1d_shift_vector, conv1d_shift_channels) * 32;
}

/// Of token i behind one of shift 0, or before it.
PLAIT_HD constexpr int conv1d_shift_of(int residue, int i) {
    return (i * residue) & (conv1d_shift_vector - 1);
}

/// How many tokens before the first one of a row, which begins `offset` elements behind a multiple
/// of 16 bytes, the shift is 0: residue^2 = 1 modulo 8.
PLAIT_HD constexpr int conv1d_shift_back(int residue, int64_t offset) {
    return static_cast<int>((offset & (conv1d_shift_vector - 1)) * residue) &
           (conv1d_shift_vector - 1);
}

/// Elements from .. to - 1 of its vector that a lane stores, whose first channel is `channel`.
struct conv1d_shift_part {
    int from, to;
};

PLAIT_HD constexpr conv1d_shift_part conv1d_shift_part_of(int lane, int channel, int channels,
                                                          int shift) {
    const bool first = channel == 0;
    if (lane == 0 && !first) return {0, 0};              // of the warp before
    if (lane == 31 && channel < channels) return {0, 0}; // of the warp behind
    const int left = channels - (channel - shift);
    return {first ? shift : 0, left < 0                     ? 0
                               : left < conv1d_shift_vector ? left
                                                            : conv1d_shift_vector};
}

/// "bf16.k4.shift5".
constexpr conv1d_name conv1d_btc_shift_variant(scalar s, int residue) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k4.shift");
    conv1d_append(name, at, residue);
    return name;
}

/// Rows begin `offset` <= 7 tokens late, all strips of a row are counted as if by 7.
constexpr conv1d_launch conv1d_fwd_btc_shift_launch(conv1d_fwd_args &a) {
    const int residue = static_cast<int>(a.x_stride.t & (conv1d_shift_vector - 1));
    const int64_t groups = conv1d_shift_groups(a.channels);
    const int64_t strips = conv1d_ceil_div(a.length + conv1d_shift_round - 1, conv1d_shift_strip);
    a.across = conv1d_divisor_of(groups);
    a.strips = conv1d_divisor_of(strips);
    a.strip = conv1d_shift_strip;
    const int64_t blocks = conv1d_ceil_div(a.batch * strips * groups, conv1d_btc_threads);
    a.blocks = static_cast<uint32_t>(blocks);
    return conv1d_fwd_launch(conv1d_btc_shift_variant(a.x_type, residue), conv1d_btc_threads,
                             blocks, 0);
}

} // namespace plait::impl
