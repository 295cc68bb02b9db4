// The table of sequences that every CPU kernel of conv1d keeps at the head of its scratch, where
// offsets or slots are data.
#pragma once

#include "lib/common/conv1d_problem.h"

namespace plait::impl::cpu {

/// What is kept of a sequence whose place or slot is data.
struct conv1d_entry {
    int64_t begin, length;
    int64_t first_piece; ///< pieces of the sequences before
    int32_t slot;
    int32_t live;
};

inline bool conv1d_has_table(const conv1d_problem &p) { return p.varlen || p.pooled; }

/// Slots in use, by open addressing: a pool may have 2^31 slots, so it is not indexed by slot.
inline int64_t conv1d_seen_cells(const conv1d_problem &p) {
    if (!p.pooled || !p.status) return 0;
    int64_t cells = 16;
    while (cells < 2 * p.sequences) cells *= 2;
    return cells;
}

/// A multiple of 64; INT64_MAX if that is beyond 64 bits.
inline int64_t conv1d_table_bytes(const conv1d_problem &p) {
    if (!conv1d_has_table(p)) return 0;
    if (p.sequences > (int64_t{1} << 55)) return INT64_MAX;
    const int64_t bytes = p.sequences * int64_t{sizeof(conv1d_entry)} + 4 * conv1d_seen_cells(p);
    return (bytes + 63) / 64 * 64;
}

} // namespace plait::impl::cpu
