#include "lib/cuda/conv1d/bwd_bct_table.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_bct_bf16() { return conv1d_bwd_bct_list<scalar::bf16>(); }

} // namespace plait::impl::cuda
