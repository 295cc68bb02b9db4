#include "lib/cuda/conv1d/fwd_table.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_bct() {
    static const kernel_entry entries[] = {
        conv1d_fwd_bct_entry<scalar::f32>(),
        conv1d_fwd_bct_entry<scalar::f16>(),
        conv1d_fwd_bct_entry<scalar::bf16>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
