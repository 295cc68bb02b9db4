// The table of sequences that every CPU kernel of conv1d keeps at the head of its scratch.
#pragma once

#include "lib/common/conv1d_problem.h"
#include "lib/cpu/sequences_layout.h"

namespace plait::impl::cpu {

inline sequence_rules conv1d_rules(const conv1d_problem &p) {
    return {p.varlen,    p.pooled, p.status,     p.index, p.pad,
            p.sequences, p.length, p.max_length, p.slots};
}

inline int64_t conv1d_table_bytes(const conv1d_problem &p) {
    return sequence_table_bytes(conv1d_rules(p));
}

} // namespace plait::impl::cpu
