// What the CUDA candidates of conv1d share: the device, the step that sanitizes offsets and slots,
// costs.
#pragma once

#include "lib/cuda/conv1d/common_layout.h"
#include "src/planner/conv1d_candidates.h"

namespace plait::impl {

/// "" when this build has code for the device.
verdict conv1d_cuda_device(const problem &, const profile &);

/// Workspace that holds what conv1d.offsets found; operands are none where there is no such step.
struct conv1d_sanitized {
    operand spans; ///< packed sequences
    operand slots; ///< SLOTS itself, or what is left of it; none without a pool
    int32_t pad;   ///< of `slots`
};

/// Whether the call needs the step, and its workspace.
bool conv1d_needs_offsets(const conv1d_problem &);
int64_t conv1d_offsets_bytes(const conv1d_problem &);
/// Appends the step where it is needed; `last_step` is the last that reads what it writes.
conv1d_sanitized conv1d_add_offsets(pipeline &, const conv1d_problem &, int last_step);
/// Appends conv1d.state; STATE_OUT is in use.
void conv1d_add_state(pipeline &, const conv1d_problem &, const conv1d_sanitized &);

/// Steps behind the first, or all, start while the one before them still runs, where the device
/// can. A first step of many blocks is better off with an empty device: early blocks crowd some
/// SMs.
void conv1d_start_early(pipeline &, const profile &, bool all);

/// Whether taps of a channel are aligned accesses of four.
bool conv1d_taps_packed(const conv1d_problem &);

/// What conv1d_fwd_args and conv1d_update_args have in common.
template <class Args>
void conv1d_fill_args(Args &a, const conv1d_problem &p, const conv1d_sanitized &from) {
    a.x_stride = conv1d_strides_of(p.x);
    a.y_stride = conv1d_strides_of(p.y);
    a.state_stride = conv1d_strides_of(p.state_in);
    a.w_c = p.w.c;
    a.w_t = p.w.t;
    a.bias_c = p.bias.c;
    a.batch = p.batch;
    a.channels = p.channels;
    a.length = p.length;
    a.width = p.width;
    a.entries = p.entries;
    a.slot_count = p.slots;
    a.pad = from.pad;
    a.x_type = p.x.type;
    a.y_type = p.y.type;
    a.w_type = p.w.type;
    a.bias_type = p.bias.type;
    a.state_type = p.state_in.type;
    a.silu = p.silu;
    a.residual = p.residual;
    a.w_wide = p.w.type == scalar::f32;
    a.bias_wide = p.bias.type == scalar::f32;
    a.w_packed = conv1d_taps_packed(p);
}

/// Rules of the kernels that hold x, y as vectors of f16, bf16 or f32.
verdict conv1d_vector_types(const conv1d_problem &);

/// What x, y and a main kernel's other tensors take, each byte once.
int64_t conv1d_bytes_read(const conv1d_problem &);
int64_t conv1d_bytes_written(const conv1d_problem &);
int64_t conv1d_flops(const conv1d_problem &);

/// One pass: `share` of the copy bandwidth, `slots` instructions for each output, `threads` that
/// run at most, `launches` of which the others are short.
cost conv1d_cuda_cost(const conv1d_problem &, const profile &, double share, double slots,
                      double threads, int launches);

} // namespace plait::impl
