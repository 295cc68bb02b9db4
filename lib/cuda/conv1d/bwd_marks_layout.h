// Marks: which taps of a token count. conv1d.bwd_btc and, up to four taps, conv1d.bwd_bct take them
// tap by tap; beyond that conv1d.bwd_bct takes a bit for each token that it leaves to
// conv1d.bwd_bct_fix.
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

/// Fields of conv1d.bwd_marks: 2^log_vec tokens a word, token 0 of a row in its lowest bits. Bit 0:
/// the token is live; bit d: so is it, and the tap that meets the token d before it counts. Bits
/// from the width on are those of bit 0. All are 0 at tokens that conv1d.bwd_bct_fix does, at those
/// of nothing, and outside of the row. Pair i of a row has the words i - 1 and i, so that a lane
/// whose first token is of word i - 1 finds both in one access.
PLAIT_HD constexpr int conv1d_field_bits(int log_vec) { return 32 >> log_vec; }
/// Pieces of 32 tokens that a warp of conv1d.bwd_marks makes: from token -32 on if there are pairs.
PLAIT_HD constexpr int64_t conv1d_mark_pieces(int64_t length, int fields, int64_t pairs) {
    const int64_t tokens = (length + 31) >> 5, words = (pairs * fields + 31) >> 5;
    return fields == 0 ? tokens : 1 + (words > tokens ? words : tokens);
}

/// Behind the fields, and borders where there are some, a byte for each tile of each group of rows
/// that share a warp: not 0 where the field of a token of the tile, or of those that its x meet, is
/// not full. Where rows begin anywhere it holds for all places of the tile's first token.
PLAIT_HD constexpr int64_t conv1d_mark_flags(const conv1d_bwd_args &a) {
    return a.fields ? a.parts * a.tiles : 0;
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
