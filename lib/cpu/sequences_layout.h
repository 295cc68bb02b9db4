// The table of sequences that a CPU kernel keeps at the head of its scratch, where offsets or slots
// are data.
#pragma once

#include "lib/common/scalar.h"

#include <cstdint>

namespace plait::impl::cpu {

/// What a problem says about its sequences. Rows of a batch are sequences too.
struct sequence_rules {
    bool varlen;  ///< one row; sequences lie behind one another along time
    bool pooled;  ///< states live in slots
    bool status;  ///< STATUS is in use
    scalar index; ///< of CU_SEQLENS: i32 or i64
    int32_t pad;  ///< the slot number of sequences without a slot
    int64_t sequences, length, max_length, slots;
};

/// What is kept of a sequence whose place or slot is data.
struct sequence_entry {
    int64_t begin, length;
    int64_t first_piece; ///< pieces of the sequences before
    int32_t slot;
    int32_t live;
};

inline bool has_sequence_table(const sequence_rules &r) { return r.varlen || r.pooled; }

/// Slots in use, by open addressing: a pool may have 2^31 slots, so it is not indexed by slot.
inline int64_t seen_slot_cells(const sequence_rules &r) {
    if (!r.pooled || !r.status) return 0;
    int64_t cells = 16;
    while (cells < 2 * r.sequences) cells *= 2;
    return cells;
}

/// A multiple of 64; INT64_MAX if that is beyond 64 bits.
inline int64_t sequence_table_bytes(const sequence_rules &r) {
    if (!has_sequence_table(r)) return 0;
    if (r.sequences > (int64_t{1} << 55)) return INT64_MAX;
    const int64_t bytes = r.sequences * int64_t{sizeof(sequence_entry)} + 4 * seen_slot_cells(r);
    return (bytes + 63) / 64 * 64;
}

} // namespace plait::impl::cpu
