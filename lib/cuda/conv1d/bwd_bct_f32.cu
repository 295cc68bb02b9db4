#include "lib/cuda/conv1d/bwd_bct_table.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_bct_f32() { return conv1d_bwd_bct_list<scalar::f32>(); }

} // namespace plait::impl::cuda
