// Layout of kda.gaps: zeros where tokens belong to no live sequence.
#pragma once

#include "lib/cuda/kda/common_layout.h"

namespace plait::impl {

struct kda_gaps_args {
    const kda_sequence *table; ///< of kda.offsets, or null
    const int32_t *slots;      ///< SLOTS, read without a table
    void *o, *dq, *dk, *dv, *dg, *dbeta;
    kda_problem problem;
    int64_t blocks;
};

constexpr int kda_gaps_threads = 256; ///< a warp a token

constexpr kda_launch kda_gaps_launch(kda_gaps_args &a) {
    const kda_problem &p = a.problem;
    a.blocks = kda_ceil_div(p.batch * p.length, kda_gaps_threads / 32);
    return {"all", kda_gaps_threads, kda_grid(a.blocks), 0};
}

/// Whether there can be such tokens; without value heads dq and dk are zero everywhere.
PLAIT_HD constexpr bool kda_has_gaps(const kda_problem &p) {
    return p.varlen || p.pooled || kda_reads_reserve(p) || p.value_heads == 0;
}

} // namespace plait::impl
