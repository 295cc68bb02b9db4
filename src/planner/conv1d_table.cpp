// THE LIST of conv1d: every way to compute a causal depthwise convolution. Steps, for grep:
//   conv1d.fwd.cuda.bct_tiled  conv1d.offsets, conv1d.fwd_masks, conv1d.fwd_bct_tiled, ...
//                              ... conv1d.fwd_bct_fix, conv1d.state
//   conv1d.fwd.cuda.bct        conv1d.offsets, conv1d.fwd_bct, conv1d.state
//   conv1d.fwd.cuda.btc        conv1d.offsets, conv1d.fwd_btc, conv1d.state
//   conv1d.fwd.cuda.any        conv1d.offsets, conv1d.fwd_any, conv1d.state
//   conv1d.fwd.cpu.simd        conv1d.fwd_simd
//   conv1d.fwd.cpu.ref         conv1d.ref
//   conv1d.bwd.cuda.bct        conv1d.offsets, conv1d.bwd_marks, conv1d.bwd_bct, ...
//                              ... conv1d.bwd_bct_fix, ...
//   conv1d.bwd.cuda.btc        conv1d.offsets, conv1d.bwd_btc_marks, conv1d.bwd_btc, ...
//                              ... conv1d.bwd_btc_fix, ...
//   conv1d.bwd.cuda.any        conv1d.offsets, conv1d.bwd_any, ...
//                              ... conv1d.bwd_reduce, conv1d.bwd_state
//   conv1d.bwd.cpu.simd        conv1d.bwd_simd
//   conv1d.bwd.cpu.ref         conv1d.ref
//   conv1d.update.cuda         conv1d.offsets, conv1d.update
//   conv1d.update.cpu.simd     conv1d.update_simd
//   conv1d.update.cpu.ref      conv1d.ref
// Only the steps that a problem needs: offsets for packed sequences, and for slots with STATUS;
// fwd_masks for ids without states; fwd_bct_fix for other ids, slots, packed sequences, and states
// that fwd_bct_tiled does not read itself;
// marks for packed sequences and ids, bwd_bct_fix behind them; bwd_btc_fix for states; bwd_reduce
// where one block has not all of a channel's sums; state for STATE_OUT.
#include "src/planner/conv1d_candidates.h"

namespace plait::impl {

// clang-format off
const std::vector<candidate> &conv1d_fwd_table() {
static const std::vector<candidate> table = {
    // name, revision, backend, operands, run to run, applicable, estimate, build
    {"conv1d.fwd.cuda.bct_tiled", 5, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_fwd_bct_tiled_applicable, conv1d_cuda_fwd_bct_tiled_estimate,
     conv1d_cuda_fwd_bct_tiled_build},
    {"conv1d.fwd.cuda.bct", 1, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_fwd_bct_applicable, conv1d_cuda_fwd_bct_estimate, conv1d_cuda_fwd_bct_build},
    {"conv1d.fwd.cuda.btc", 3, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_fwd_btc_applicable, conv1d_cuda_fwd_btc_estimate, conv1d_cuda_fwd_btc_build},
    {"conv1d.fwd.cuda.any", 1, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_fwd_any_applicable, conv1d_cuda_fwd_any_estimate, conv1d_cuda_fwd_any_build},
    {"conv1d.fwd.cpu.simd", 1, PLAIT_CPU, narrowest::f32, true,
     conv1d_cpu_simd_applicable, conv1d_cpu_simd_estimate, conv1d_cpu_simd_build},
    {"conv1d.fwd.cpu.ref", 1, PLAIT_CPU, narrowest::exact, true,
     conv1d_cpu_ref_applicable, conv1d_cpu_ref_estimate, conv1d_cpu_ref_build},
};
return table;
}

const std::vector<candidate> &conv1d_bwd_table() {
static const std::vector<candidate> table = {
    {"conv1d.bwd.cuda.bct", 3, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_bwd_bct_applicable, conv1d_cuda_bwd_bct_estimate, conv1d_cuda_bwd_bct_build},
    {"conv1d.bwd.cuda.btc", 5, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_bwd_btc_applicable, conv1d_cuda_bwd_btc_estimate, conv1d_cuda_bwd_btc_build},
    {"conv1d.bwd.cuda.any", 1, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_bwd_any_applicable, conv1d_cuda_bwd_any_estimate, conv1d_cuda_bwd_any_build},
    {"conv1d.bwd.cpu.simd", 1, PLAIT_CPU, narrowest::f32, true,
     conv1d_cpu_simd_applicable, conv1d_cpu_simd_estimate, conv1d_cpu_simd_build},
    {"conv1d.bwd.cpu.ref", 1, PLAIT_CPU, narrowest::exact, true,
     conv1d_cpu_ref_applicable, conv1d_cpu_ref_estimate, conv1d_cpu_ref_build},
};
return table;
}

const std::vector<candidate> &conv1d_update_table() {
static const std::vector<candidate> table = {
    {"conv1d.update.cuda", 4, PLAIT_CUDA, narrowest::f32, true,
     conv1d_cuda_update_applicable, conv1d_cuda_update_estimate, conv1d_cuda_update_build},
    {"conv1d.update.cpu.simd", 1, PLAIT_CPU, narrowest::f32, true,
     conv1d_cpu_simd_applicable, conv1d_cpu_simd_estimate, conv1d_cpu_simd_build},
    {"conv1d.update.cpu.ref", 1, PLAIT_CPU, narrowest::exact, true,
     conv1d_cpu_ref_applicable, conv1d_cpu_ref_estimate, conv1d_cpu_ref_build},
};
return table;
}
// clang-format on

} // namespace plait::impl
