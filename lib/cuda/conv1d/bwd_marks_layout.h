// Marks: which taps of a token count. conv1d.bwd_btc takes them tap by tap, conv1d.bwd_bct a bit
// for each token that it leaves to conv1d.bwd_bct_fix.
#pragma once

#include "lib/cuda/conv1d/bwd_layout.h"

namespace plait::impl {

/// Bits of a mark: `back` bit j: the tap that meets the token j before it counts (bit 0: the token
/// is live); `ahead` bit j: the token j behind it has a tap that meets it; bit 0 is not used.
/// Taps outside of a row count, because x and g are 0 there; except where there is a state.
struct conv1d_mark {
    uint32_t back, ahead;
};

/// All taps count and no edge is near.
PLAIT_HD constexpr conv1d_mark conv1d_full_mark(int width) {
    const uint32_t all = width >= 32 ? 0xffffffffu : (1u << width) - 1u;
    return {all, all & ~1u};
}

/// Words of a row of conv1d.bwd_marks: bit t % 32 of word t / 32 is 1 where token t is at a border:
/// it belongs to nothing, or a tap of it meets something else than an element of its own sequence
/// or the zeros in front of a row without a state. Bits behind the row are 0. Behind each such word
/// lies one with a bit for each of its tokens that belongs to nothing: dx is 0 there.
PLAIT_HD constexpr int64_t conv1d_border_words(int64_t length) { return (length + 31) >> 5; }
PLAIT_HD constexpr int64_t conv1d_border_bytes(int64_t rows, int64_t length) {
    return 8 * rows * conv1d_border_words(length);
}

/// Tokens t .. t + 3 for t % 4 == 0, from the row's words t / 32 and the next: bit j, token t + j
/// has a dx of its own: one of the tokens whose taps meet it is at a border.
PLAIT_HD constexpr uint32_t conv1d_border_reach(uint32_t low, uint32_t high, int64_t t, int width) {
    const uint64_t bits = (low | static_cast<uint64_t>(high) << 32) >> (t & 31);
    const uint64_t reach = (uint64_t{1} << width) - 1;
    uint32_t out = 0;
    for (int j = 0; j < 4; ++j)
        if ((bits >> j & reach) != 0) out |= 1u << j;
    return out;
}

} // namespace plait::impl
