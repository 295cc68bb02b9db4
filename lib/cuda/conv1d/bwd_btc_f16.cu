#include "lib/cuda/conv1d/bwd_btc_table.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_btc_f16() { return conv1d_bwd_btc_list<scalar::f16>(); }

} // namespace plait::impl::cuda
