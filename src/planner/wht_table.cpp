// THE LIST of wht: every way to compute a Walsh-Hadamard transform. Steps, for grep:
//   wht.cuda.block             wht.block
//   wht.cuda.fused             wht.fused
//   wht.cuda.diagonal          wht.diagonal
//   wht.cuda.block_e4m3        wht.block_e4m3
//   wht.cuda.mma16_e4m3        wht.mma16_e4m3
//   wht.cuda.mma16_narrow      wht.mma16_narrow
//   wht.cuda.block_factor      wht.block_factor
//   wht.cuda.cluster           wht.cluster
//   wht.cuda.l2                wht.l2_reset, wht.l2
//   wht.cuda.two_pass.shuffle  wht.block or wht.mma16, wht.columns_shuffle
//   wht.cuda.two_pass.tiled    wht.block or wht.mma16, wht.columns_tiled
//   wht.cuda.mma16             wht.mma16
//   wht.cuda.kron_tf32         wht.kron_tf32
//   wht.cuda.kron_3xtf32       wht.kron_tf32
//   wht.cuda.kron_int8         wht.kron_int8
//   wht.cuda.columns           wht.block, wht.any, wht.columns_shuffle, wht.columns_tiled
//   wht.cuda.multi_pass        wht.block, wht.columns_tiled, ...
//   wht.cuda.any               wht.l2_reset, wht.any, ...
//   wht.cuda.composed          wht.l2_reset, wht.clear, wht.rows_status, wht.chains, wht.widen,
//                              wht.factor, wht.finish, wht.groups, and those of the others
//   wht.cpu.simd               wht.simd
//   wht.cpu.lines              wht.lines, ...
//   wht.cpu.around             wht.inputs, wht.matrix, wht.results, and those of wht.cpu.simd or
//                              wht.cpu.lines
//   wht.cpu.ref                wht.ref
#include "src/planner/wht_candidates.h"

namespace plait::impl {

// clang-format off
const std::vector<candidate> &wht_table() {
static const std::vector<candidate> table = {
    // name, revision, backend, operands, run to run, applicable, estimate, build
    {"wht.cuda.block", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_block_applicable, wht_cuda_block_estimate, wht_cuda_block_build},
    {"wht.cuda.fused", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_fused_applicable, wht_cuda_fused_estimate, wht_cuda_fused_build},
    {"wht.cuda.diagonal", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_diagonal_applicable, wht_cuda_diagonal_estimate, wht_cuda_diagonal_build},
    {"wht.cuda.block_e4m3", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_block_e4m3_applicable, wht_cuda_block_e4m3_estimate, wht_cuda_block_e4m3_build},
    {"wht.cuda.mma16_e4m3", 1, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_mma16_e4m3_applicable, wht_cuda_mma16_e4m3_estimate, wht_cuda_mma16_e4m3_build},
    {"wht.cuda.mma16_narrow", 1, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_mma16_narrow_applicable, wht_cuda_mma16_narrow_estimate,
     wht_cuda_mma16_narrow_build},
    {"wht.cuda.block_factor", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_block_factor_applicable, wht_cuda_block_factor_estimate,
     wht_cuda_block_factor_build},
    {"wht.cuda.cluster", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_cluster_applicable, wht_cuda_cluster_estimate, wht_cuda_cluster_build},
    {"wht.cuda.l2", 1, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_l2_applicable, wht_cuda_l2_estimate, wht_cuda_l2_build},
    {"wht.cuda.two_pass.shuffle", 3, PLAIT_CUDA, narrowest::stored, true,
     wht_cuda_two_pass_shuffle_applicable, wht_cuda_two_pass_shuffle_estimate,
     wht_cuda_two_pass_shuffle_build},
    {"wht.cuda.two_pass.tiled", 3, PLAIT_CUDA, narrowest::stored, true,
     wht_cuda_two_pass_tiled_applicable, wht_cuda_two_pass_tiled_estimate,
     wht_cuda_two_pass_tiled_build},
    {"wht.cuda.mma16", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_mma16_applicable, wht_cuda_mma16_estimate, wht_cuda_mma16_build},
    {"wht.cuda.kron_tf32", 1, PLAIT_CUDA, narrowest::tf32, true,
     wht_cuda_kron_tf32_applicable, wht_cuda_kron_tf32_estimate, wht_cuda_kron_tf32_build},
    {"wht.cuda.kron_3xtf32", 1, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_kron_3xtf32_applicable, wht_cuda_kron_3xtf32_estimate, wht_cuda_kron_3xtf32_build},
    {"wht.cuda.kron_int8", 1, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_kron_int8_applicable, wht_cuda_kron_int8_estimate, wht_cuda_kron_int8_build},
    {"wht.cuda.columns", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_columns_applicable, wht_cuda_columns_estimate, wht_cuda_columns_build},
    {"wht.cuda.multi_pass", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_multi_pass_applicable, wht_cuda_multi_pass_estimate, wht_cuda_multi_pass_build},
    {"wht.cuda.any", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_any_applicable, wht_cuda_any_estimate, wht_cuda_any_build, true},
    {"wht.cuda.composed", 2, PLAIT_CUDA, narrowest::f32, true,
     wht_cuda_composed_applicable, wht_cuda_composed_estimate, wht_cuda_composed_build, false,
     [](const problem &p) { return !wht_ref_only(p).empty(); }},
    {"wht.cpu.simd", 1, PLAIT_CPU, narrowest::f32, true,
     wht_cpu_simd_applicable, wht_cpu_simd_estimate, wht_cpu_simd_build},
    {"wht.cpu.lines", 1, PLAIT_CPU, narrowest::f32, true,
     wht_cpu_lines_applicable, wht_cpu_lines_estimate, wht_cpu_lines_build},
    {"wht.cpu.around", 1, PLAIT_CPU, narrowest::f32, true,
     wht_cpu_around_applicable, wht_cpu_around_estimate, wht_cpu_around_build},
    {"wht.cpu.ref", 1, PLAIT_CPU, narrowest::exact, true,
     wht_cpu_ref_applicable, wht_cpu_ref_estimate, wht_cpu_ref_build},
};
return table;
}
// clang-format on

} // namespace plait::impl
