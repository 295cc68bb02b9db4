// What the candidates of kda share. THE LIST is kda_table.cpp.
#pragma once

#include "src/planner/operands.h"

namespace plait::impl {

verdict kda_cpu_chunk_applicable(const problem &, const profile &);
cost kda_cpu_chunk_estimate(const problem &, const profile &);
pipeline kda_cpu_chunk_build(const problem &, const profile &);

verdict kda_cpu_ref_applicable(const problem &, const profile &);
cost kda_cpu_ref_estimate(const problem &, const profile &);
pipeline kda_cpu_ref_build(const problem &, const profile &);

verdict kda_cuda_bwd_recurrent_applicable(const problem &, const profile &);
cost kda_cuda_bwd_recurrent_estimate(const problem &, const profile &);
pipeline kda_cuda_bwd_recurrent_build(const problem &, const profile &);

verdict kda_cuda_fwd_recurrent_applicable(const problem &, const profile &);
cost kda_cuda_fwd_recurrent_estimate(const problem &, const profile &);
pipeline kda_cuda_fwd_recurrent_build(const problem &, const profile &);

verdict kda_cuda_chunk64_applicable(const problem &, const profile &);
cost kda_cuda_chunk64_estimate(const problem &, const profile &);
pipeline kda_cuda_fwd_chunk64_build(const problem &, const profile &);
pipeline kda_cuda_bwd_chunk64_build(const problem &, const profile &);

verdict kda_cuda_chunk16_applicable(const problem &, const profile &);
cost kda_cuda_chunk16_estimate(const problem &, const profile &);
pipeline kda_cuda_chunk16_build(const problem &, const profile &);

} // namespace plait::impl
