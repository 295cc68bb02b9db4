#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_e4m3_product.cuh"

namespace plait::impl::cuda {

kernel_list list_wht_block_e4m3_f16() { return wht_block_e4m3_list<scalar::f16>(); }

} // namespace plait::impl::cuda
