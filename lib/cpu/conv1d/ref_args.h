// Scratch of the kernel conv1d.ref.
#pragma once

#include "lib/cpu/conv1d/sequences_layout.h"

namespace plait::impl::cpu {

/// Tokens that a thread converts at a time.
constexpr int64_t conv1d_ref_chunk = 512;

/// Doubles of one thread: weights and their gradients, a chunk of xe and, in backward, of g.
inline int64_t conv1d_ref_slice(const conv1d_problem &p) {
    const int64_t line = p.width + conv1d_ref_chunk;
    return (p.direction == conv1d_direction::backward ? 2 * p.width + 2 * line : p.width + line) +
           8; // 64 bytes between threads
}

inline int64_t conv1d_ref_scratch_bytes(const conv1d_problem &p, int threads) {
    const int64_t table = conv1d_table_bytes(p);
    const int64_t team = threads < 1 ? 1 : threads;
    if (table == INT64_MAX || p.width > (int64_t{1} << 55) / team) return INT64_MAX;
    return table + (8 * conv1d_ref_slice(p) * team + 63) / 64 * 64;
}

} // namespace plait::impl::cpu
