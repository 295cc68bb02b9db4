// Arguments of the CPU kernels of conv1d: one struct for all of them.
#pragma once

#include "lib/common/conv1d_problem.h"

#include <cstdint>

namespace plait::impl::cpu {

/// Pointers in the order of role numbers; those that are not in use are null.
struct conv1d_args {
    const void *x;
    void *y;
    const void *w;
    const void *bias;
    const void *state_in;
    void *state_out;
    void *state; ///< of an update, instead of the two above
    const int32_t *position;
    const int32_t *slots;
    const void *cu_seqlens;
    const int32_t *seq_idx;
    int32_t *status;
    void *dx;
    const void *dy;
    void *dw;
    void *dbias;
    void *dstate_in;
    const void *dstate_out;
    void *scratch; ///< 64-byte aligned; its size is in <kernel>_scratch.h
    conv1d_problem problem;
    bool stream; ///< outputs are larger than the caches: store past them

    const void *first_state() const { return state != nullptr ? state : state_in; }
    void *last_state() const { return state != nullptr ? state : state_out; }
};

} // namespace plait::impl::cpu
