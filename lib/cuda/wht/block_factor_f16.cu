#include "lib/cuda/wht/block_factor_table.cuh"

namespace plait::impl::cuda {

kernel_list list_wht_block_factor_f16() { return wht_block_factor_list<scalar::f16>(); }

} // namespace plait::impl::cuda
