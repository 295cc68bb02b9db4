// Which tokens and which state every sequence of a convolution has.
#pragma once

#include "lib/cpu/conv1d/conv1d_args.h"
#include "lib/cpu/conv1d/sequences_layout.h"
#include "lib/cpu/sequences.h"

namespace plait::impl::cpu {

using conv1d_span = sequence_span;

class conv1d_sequences : public sequence_table {
public:
    /// `scratch`: conv1d_table_bytes.
    conv1d_sequences(const conv1d_args &a, void *scratch, int64_t piece)
        : sequence_table(conv1d_rules(a.problem), {a.cu_seqlens, a.slots, a.status}, scratch,
                         piece) {}
};

} // namespace plait::impl::cpu
