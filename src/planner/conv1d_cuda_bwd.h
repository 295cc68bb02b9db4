// What the CUDA candidates of conv1d.bwd are made of: which kernels run, with which workspace.
#pragma once

#include "lib/cuda/conv1d/bwd_any_layout.h"
#include "lib/cuda/conv1d/bwd_btc_layout.h"
#include "src/planner/conv1d_cuda.h"

namespace plait::impl::conv1d_bwd {

enum class way { bct, btc, any };

/// The main kernel of a candidate.
struct main_step {
    const char *kernel;
    conv1d_launch launch;
    conv1d_btc_args args; ///< of which the other kernels take the base
};

double elements_of(const conv1d_problem &p);
bool has_tokens(const conv1d_problem &p);
bool wants_sums(const conv1d_problem &p);
bool runs_main(const conv1d_problem &p);
bool runs_state(const conv1d_problem &p);
/// Also without sequences: STATUS is written.
bool runs_offsets(const conv1d_problem &p);
main_step main_of(way how, const conv1d_problem &p, const profile &device);
bool runs_marks(way how, const conv1d_problem &p);
/// The main kernel writes dw and dbias itself.
bool writes_sums(way how, const conv1d_problem &p, const main_step &m);
bool runs_fix(way how, const conv1d_problem &p);
/// Partial sums of conv1d.bwd_bct_fix and conv1d.bwd_btc_fix.
int64_t more_slots(way how, const conv1d_problem &p);
/// conv1d.bwd_state, where no other step writes the gradient of the first state.
bool runs_own_state(way how, const conv1d_problem &p);
int64_t mark_tokens_bytes(way how, const conv1d_problem &p, const main_step &m);
double marks_bytes(way how, const conv1d_problem &p, const main_step &m);
int64_t accumulator_bytes(const conv1d_problem &p);
double partial_bytes(way how, const conv1d_problem &p, const main_step &m);

pipeline build(const problem &, const profile &, way);

} // namespace plait::impl::conv1d_bwd
