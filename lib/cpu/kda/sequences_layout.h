// The table of sequences that every CPU kernel of kda keeps at the head of its scratch.
#pragma once

#include "lib/common/kda_problem.h"
#include "lib/cpu/sequences_layout.h"

namespace plait::impl::cpu {

inline sequence_rules kda_rules(const kda_problem &p) {
    return {p.varlen,    p.pooled, p.status,     p.index, p.pad,
            p.sequences, p.length, p.max_length, p.slots};
}

inline int64_t kda_table_bytes(const kda_problem &p) { return sequence_table_bytes(kda_rules(p)); }

} // namespace plait::impl::cpu
