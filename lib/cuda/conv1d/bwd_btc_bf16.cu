#include "lib/cuda/conv1d/bwd_btc_table.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_btc_bf16() { return conv1d_bwd_btc_list<scalar::bf16>(); }

} // namespace plait::impl::cuda
