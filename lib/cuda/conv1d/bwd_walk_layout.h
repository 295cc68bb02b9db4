// How the fast kernels divide work. Tiles of the rows of a channel are walked from the last token
// to the first: what a tile needs of g behind it is what the tile before left in registers, and
// sums of dw stay in registers as long as the walk is in one channel.
#pragma once

#include "lib/cuda/conv1d/bwd_layout.h"

namespace plait::impl {

/// Divides `rows` of a.tiles tiles, for each of `channels` (or groups of them), into walks: whole
/// rows, or a part of one. About `wanted` walks in all, none below `least` tiles unless the rows
/// are; `per_slot` walks of a channel share a partial sum.
inline void conv1d_bwd_divide(conv1d_bwd_args *a, int64_t channels, int64_t rows, int64_t wanted,
                              int64_t least, int64_t per_slot) {
    const double all =
        static_cast<double>(channels) * static_cast<double>(rows) * static_cast<double>(a->tiles);
    const double share = all / static_cast<double>(wanted);
    const int64_t tiles = share > static_cast<double>(least) ? static_cast<int64_t>(share) : least;
    int64_t parts = 1;
    a->rows_per_walk = 1;
    if (tiles >= a->tiles) {
        a->rows_per_walk = tiles / a->tiles < rows ? tiles / a->tiles : rows;
    } else {
        parts = conv1d_ceil_div(a->tiles, tiles);
    }
    a->tiles_per_walk = conv1d_ceil_div(a->tiles, parts);
    a->walks =
        conv1d_ceil_div(rows, a->rows_per_walk) * conv1d_ceil_div(a->tiles, a->tiles_per_walk);
    a->slots = conv1d_ceil_div(a->walks, per_slot);
    a->items = channels * a->slots;
}

/// Rows and tiles of a walk.
struct conv1d_bwd_part {
    int32_t row, row_end, tile, tile_end;
};

PLAIT_HD constexpr conv1d_bwd_part conv1d_bwd_part_of(const conv1d_bwd_args &a, int64_t walk,
                                                      int64_t rows) {
    if (walk >= a.walks) return {0, 0, 0, 0};
    const int64_t parts = (a.tiles + a.tiles_per_walk - 1) / a.tiles_per_walk;
    const int64_t row = walk / parts * a.rows_per_walk, tile = walk % parts * a.tiles_per_walk;
    const int64_t row_end = row + a.rows_per_walk, tile_end = tile + a.tiles_per_walk;
    return {static_cast<int32_t>(row), static_cast<int32_t>(row_end < rows ? row_end : rows),
            static_cast<int32_t>(tile),
            static_cast<int32_t>(tile_end < a.tiles ? tile_end : a.tiles)};
}

// ---- Marks: which taps of a token count (conv1d.bwd_marks) --------------------------------------

/// Bits of a mark: `back` bit j: the tap that meets the token j before it counts (bit 0: the token
/// is live); `ahead` bit j: the token j behind it has a tap that meets it. Bit 0 of `ahead`: the
/// token is at an edge, where states are read (fast kernels then take its slow path).
/// Taps outside of a row count, because x and g are 0 there; except where there is a state.
/// Up to 4 taps: one byte, back in the low half; else 64 bits, and behind those of all tokens a
/// byte for each that is 1 where the mark is full.
struct conv1d_mark {
    uint32_t back, ahead;
};

PLAIT_HD constexpr bool conv1d_short_marks(int64_t width) { return width >= 2 && width <= 4; }
PLAIT_HD constexpr int conv1d_mark_bytes(int64_t width) {
    return conv1d_short_marks(width) ? 1 : 9;
}
inline constexpr int64_t conv1d_marks_slack = 16; ///< bytes behind: they are read 8 at a time
/// Then a byte for each group of tokens of the batch: 1 where one of them has a mark that is not
/// full. Zeros in front of them, which are the slack, and behind, for tokens outside of the batch.
inline constexpr int conv1d_marks_log_group = 5;
PLAIT_HD constexpr int64_t conv1d_marks_groups(int64_t tokens) {
    return (tokens + (1 << conv1d_marks_log_group) - 1) >> conv1d_marks_log_group;
}
PLAIT_HD constexpr int64_t conv1d_marks_groups_at(int64_t width, int64_t tokens) {
    return tokens * conv1d_mark_bytes(width) + conv1d_marks_slack;
}
PLAIT_HD constexpr int64_t conv1d_marks_size(int64_t width, int64_t tokens) {
    return conv1d_marks_groups_at(width, tokens) + conv1d_marks_groups(tokens) + conv1d_marks_slack;
}

/// All taps count and no edge is near.
PLAIT_HD constexpr conv1d_mark conv1d_full_mark(int width) {
    const uint32_t all = width >= 32 ? 0xffffffffu : (1u << width) - 1u;
    return {all, all & ~1u};
}

/// Kernels without marks know no masks, no states and no residual.
inline bool conv1d_bwd_marked(const conv1d_problem &p) {
    return p.varlen || p.seq_idx.used() || p.state_in.used() || p.dstate_out.used() || p.residual;
}

} // namespace plait::impl
