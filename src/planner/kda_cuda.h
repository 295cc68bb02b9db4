// What the CUDA candidates of kda share: the device, the steps that sanitize offsets and slots and
// clear tokens of nobody, operands, costs.
#pragma once

#include "lib/cuda/kda/common_layout.h"
#include "src/planner/kda_candidates.h"

#include <initializer_list>
#include <vector>

namespace plait::impl {

/// "" when this build has code for the device and no tensor is f64.
verdict kda_cuda_device(const problem &, const profile &);

/// "" unless the problem has a reserve, which the candidate neither writes nor reads.
verdict kda_without_reserve(const problem &);

/// Workspace that holds what kda.offsets found; operands are none where there is no such step.
struct kda_sanitized {
    operand table;  ///< kda_sequence[sequences + 1]
    operand chunks; ///< kda_chunk[kda_chunk_slots]
    operand slots;  ///< SLOTS itself where there is no table; none without a pool
};

/// Most bytes that the pieces take; INT64_MAX beyond 64 bits. chunk: 0 where no chunks are needed.
int64_t kda_offsets_bytes(const kda_problem &, int64_t chunk);
/// Appends the step where it is needed; `last_step` is the last that reads what it writes.
kda_sanitized kda_add_offsets(pipeline &, const kda_problem &, int64_t chunk, int last_step);
/// Appends kda.gaps where there may be tokens of no live sequence and there are outputs to clear.
void kda_add_gaps(pipeline &, const problem &, const kda_sanitized &);
bool kda_needs_gaps(const kda_problem &);

/// The tensor of a role, or none where the call has none.
operand kda_operand(const problem &, plait_role);
std::vector<operand> kda_operands(const problem &, std::initializer_list<plait_role>);
void kda_set_launch(step &, const char *kernel, const kda_launch &);

/// The tensors, each byte once, but of a pool only the slots of the call.
void kda_add_traffic(const problem &, step &);
/// Products and sums of the recurrence, in which decay, predict, write and read are 7 for every
/// entry of a state and token; backward runs them again.
int64_t kda_flops(const kda_problem &);

/// The longer of bytes at `share` of the copy bandwidth and of arithmetic: flops at `rate` of the
/// f32 units, and `serial` seconds that no other block shortens.
cost kda_cuda_cost(const profile &, double bytes, double share, double flops, double rate,
                   double serial, int launches);

} // namespace plait::impl
