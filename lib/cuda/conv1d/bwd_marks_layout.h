// Marks: which taps of a token count, as conv1d.bwd_marks writes them for the fast kernels, and
// which groups of tokens have one that is not full.
#pragma once

#include "lib/cuda/conv1d/bwd_layout.h"

namespace plait::impl {

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
