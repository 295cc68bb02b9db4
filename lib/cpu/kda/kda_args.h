// Arguments of the CPU kernels of kda: one struct for all of them.
#pragma once

#include "lib/common/kda_problem.h"

#include <cstdint>

namespace plait::impl::cpu {

/// Pointers in the order of role numbers; those that are not in use are null.
struct kda_args {
    const void *q;
    const void *k;
    const void *v;
    const void *g;
    const void *beta;
    void *o;
    const void *a_log;
    const void *dt_bias;
    void *reserve; ///< backward reads it
    const void *state_in;
    void *state_out; ///< may be state_in
    const int32_t *slots;
    const void *cu_seqlens;
    int32_t *status;
    void *dq;
    void *dk;
    void *dv;
    void *dg;
    void *dbeta;
    const void *d_o;
    void *da_log;
    void *ddt_bias;
    void *dstate_in;
    const void *dstate_out;
    void *scratch; ///< 64-byte aligned; its size is in <kernel>_args.h
    kda_problem problem;
};

} // namespace plait::impl::cpu
