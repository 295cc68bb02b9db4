#include "lib/cuda/conv1d/fwd_table.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_bct_tiled_bf16() {
    using rows = conv1d_bct_rows;
    static const kernel_entry entries[] = {
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, rows::aligned>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, rows::odd>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, rows::masked>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, rows::masked_aligned>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 4, rows::state>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 8, rows::aligned>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 8, rows::odd>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 8, rows::masked>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 16, rows::aligned>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 16, rows::odd>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 16, rows::masked>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 32, rows::aligned>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 32, rows::odd>(),
        conv1d_fwd_bct_tiled_entry<scalar::bf16, 32, rows::masked>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
