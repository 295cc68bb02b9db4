// THE LIST of kda: every way to compute Kimi Delta Attention. Steps, for grep:
//   kda.fwd.cuda.recurrent     kda.offsets, kda.fwd_recurrent
//   kda.fwd.cuda.chunk64       kda.offsets, kda.chunk64_prep, kda.chunk64_fwd_scan
//   kda.fwd.cpu.chunk          kda.fwd_chunk
//   kda.fwd.cpu.ref            kda.ref
//   kda.bwd.cuda.recurrent     kda.offsets, kda.gaps, kda.bwd_recurrent, ...
//                              ... kda.bwd_finish, kda.bwd_params
//   kda.bwd.cuda.chunk16.split kda.offsets, kda.bwd_c16_prep, kda.bwd_c16_states, kda.bwd_c16_a,
//                              kda.bwd_c16_b2, kda.bwd_c16_b1, kda.bwd_c16_b3, kda.bwd_c16_heads,
//                              kda.bwd_c16_sums, kda.gaps
//   kda.bwd.cuda.chunk64       kda.offsets, kda.gaps, kda.chunk64_prep, kda.chunk64_fwd_scan,
//                              kda.chunk64_bwd_scan, kda.chunk64_grad, kda.chunk64_sums,
//                              for few heads kda.chunk64_scans in place of both scans; with a
//                              reserve without kda.chunk64_prep, whose records forward has kept
//   kda.bwd.cpu.chunk          kda.bwd_chunk
//   kda.bwd.cpu.ref            kda.ref
// Only the steps that a problem needs: offsets for packed sequences, and for slots with STATUS;
// gaps for packed sequences and slots.
#include "src/planner/kda_candidates.h"

namespace plait::impl {

// clang-format off
const std::vector<candidate> &kda_fwd_table() {
static const std::vector<candidate> table = {
    // name, revision, backend, operands, run to run, applicable, estimate, build
    {"kda.fwd.cuda.chunk64", 2, PLAIT_CUDA, narrowest::stored, true,
     kda_cuda_chunk64_applicable, kda_cuda_chunk64_estimate, kda_cuda_fwd_chunk64_build},
    {"kda.fwd.cuda.recurrent", 2, PLAIT_CUDA, narrowest::f32, true,
     kda_cuda_fwd_recurrent_applicable, kda_cuda_fwd_recurrent_estimate,
     kda_cuda_fwd_recurrent_build},
    {"kda.fwd.cpu.chunk", 1, PLAIT_CPU, narrowest::f32, true,
     kda_cpu_chunk_applicable, kda_cpu_chunk_estimate, kda_cpu_chunk_build},
    {"kda.fwd.cpu.ref", 1, PLAIT_CPU, narrowest::exact, true,
     kda_cpu_ref_applicable, kda_cpu_ref_estimate, kda_cpu_ref_build},
};
return table;
}

const std::vector<candidate> &kda_bwd_table() {
static const std::vector<candidate> table = {
    {"kda.bwd.cuda.chunk16.split", 1, PLAIT_CUDA, narrowest::stored, true,
     kda_cuda_chunk16_applicable, kda_cuda_chunk16_estimate, kda_cuda_chunk16_build},
    {"kda.bwd.cuda.chunk64", 2, PLAIT_CUDA, narrowest::stored, true,
     kda_cuda_chunk64_applicable, kda_cuda_chunk64_estimate, kda_cuda_bwd_chunk64_build},
    {"kda.bwd.cuda.recurrent", 1, PLAIT_CUDA, narrowest::f32, true,
     kda_cuda_bwd_recurrent_applicable, kda_cuda_bwd_recurrent_estimate,
     kda_cuda_bwd_recurrent_build},
    {"kda.bwd.cpu.chunk", 1, PLAIT_CPU, narrowest::f32, true,
     kda_cpu_chunk_applicable, kda_cpu_chunk_estimate, kda_cpu_chunk_build},
    {"kda.bwd.cpu.ref", 1, PLAIT_CPU, narrowest::exact, true,
     kda_cpu_ref_applicable, kda_cpu_ref_estimate, kda_cpu_ref_build},
};
return table;
}
// clang-format on

} // namespace plait::impl
