// What the candidates of conv1d share. THE LIST is conv1d_table.cpp.
#pragma once

#include "src/planner/operands.h"

namespace plait::impl {

verdict conv1d_cpu_simd_applicable(const problem &, const profile &);
cost conv1d_cpu_simd_estimate(const problem &, const profile &);
pipeline conv1d_cpu_simd_build(const problem &, const profile &);

verdict conv1d_cpu_ref_applicable(const problem &, const profile &);
cost conv1d_cpu_ref_estimate(const problem &, const profile &);
pipeline conv1d_cpu_ref_build(const problem &, const profile &);

verdict conv1d_cuda_bwd_bct_applicable(const problem &, const profile &);
cost conv1d_cuda_bwd_bct_estimate(const problem &, const profile &);
pipeline conv1d_cuda_bwd_bct_build(const problem &, const profile &);

verdict conv1d_cuda_bwd_btc_applicable(const problem &, const profile &);
cost conv1d_cuda_bwd_btc_estimate(const problem &, const profile &);
pipeline conv1d_cuda_bwd_btc_build(const problem &, const profile &);

verdict conv1d_cuda_bwd_any_applicable(const problem &, const profile &);
cost conv1d_cuda_bwd_any_estimate(const problem &, const profile &);
pipeline conv1d_cuda_bwd_any_build(const problem &, const profile &);

verdict conv1d_cuda_fwd_bct_applicable(const problem &, const profile &);
cost conv1d_cuda_fwd_bct_estimate(const problem &, const profile &);
pipeline conv1d_cuda_fwd_bct_build(const problem &, const profile &);

verdict conv1d_cuda_fwd_btc_applicable(const problem &, const profile &);
cost conv1d_cuda_fwd_btc_estimate(const problem &, const profile &);
pipeline conv1d_cuda_fwd_btc_build(const problem &, const profile &);

verdict conv1d_cuda_fwd_bct_tiled_applicable(const problem &, const profile &);
cost conv1d_cuda_fwd_bct_tiled_estimate(const problem &, const profile &);
pipeline conv1d_cuda_fwd_bct_tiled_build(const problem &, const profile &);

verdict conv1d_cuda_fwd_any_applicable(const problem &, const profile &);
cost conv1d_cuda_fwd_any_estimate(const problem &, const profile &);
pipeline conv1d_cuda_fwd_any_build(const problem &, const profile &);

verdict conv1d_cuda_update_applicable(const problem &, const profile &);
cost conv1d_cuda_update_estimate(const problem &, const profile &);
pipeline conv1d_cuda_update_build(const problem &, const profile &);

} // namespace plait::impl
