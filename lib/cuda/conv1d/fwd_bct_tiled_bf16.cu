#include "lib/cuda/conv1d/fwd_table.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_bct_tiled_bf16() {
    static const kernel_entry entries[] = {
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, false>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, true>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 8, false>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 8, true>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 16, false>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 16, true>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 32, false>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 32, true>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
