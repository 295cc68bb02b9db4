#include "lib/cuda/kernel_list.h"

#include <cstring>

namespace plait::impl::cuda {

const void *find_kernel(const char *kernel, const char *variant) {
    using list_fn = kernel_list (*)();
    static constexpr list_fn lists[] = {
        list_wht_any_float,
        list_wht_any_integer,
        list_wht_widen,
        list_wht_factor,
        list_wht_finish,
        list_wht_around_small,
        list_wht_block_e4m3_bf16,
        list_wht_block_e4m3_f16,
        list_wht_block_e4m3_f32,
        list_wht_block_f32,
        list_wht_block_f64,
        list_wht_block_i32,
        list_wht_block_i64,
        list_wht_block_c64,
        list_wht_block_c128,
        list_wht_block_f16,
        list_wht_block_bf16,
        list_wht_block_widen,
        list_wht_block_factor_f32,
        list_wht_block_factor_f64,
        list_wht_block_factor_f16,
        list_wht_block_factor_bf16,
        list_wht_fused_f32,
        list_wht_fused_f64,
        list_wht_fused_f16,
        list_wht_fused_bf16,
        list_wht_cluster_f32,
        list_wht_cluster_f64,
        list_wht_cluster_half,
        list_wht_columns_tiled_f32,
        list_wht_columns_tiled_integer,
        list_wht_columns_tiled_half,
        list_wht_columns_tiled_pairs,
        list_wht_columns_tiled_narrow,
        list_wht_columns_tiled_f64,
        list_wht_columns_shuffle,
        list_wht_mma16_f16,
        list_wht_mma16_bf16,
        list_wht_kron_tf32,
        list_wht_kron_int8,
        list_wht_l2_f32,
        list_wht_l2_f64,
        list_wht_l2_half,
        list_wht_l2_reset,
        list_conv1d_common,
        list_conv1d_fwd_any,
        list_conv1d_update_any,
        list_conv1d_update_rows_f32,
        list_conv1d_update_rows_f16,
        list_conv1d_update_rows_bf16,
        list_conv1d_update_lines_f32,
        list_conv1d_update_lines_f16,
        list_conv1d_update_lines_bf16,
        list_conv1d_fwd_bct,
        list_conv1d_fwd_bct_fix,
        list_conv1d_fwd_masks,
        list_conv1d_fwd_btc_f32,
        list_conv1d_fwd_btc_f16,
        list_conv1d_fwd_btc_bf16,
        list_conv1d_fwd_btc_pairs,
        list_conv1d_fwd_bct_tiled_f32,
        list_conv1d_fwd_bct_tiled_f16,
        list_conv1d_fwd_bct_tiled_bf16,
        list_conv1d_bwd_any,
        list_conv1d_bwd_bct_fix,
        list_conv1d_bwd_btc_fix,
        list_conv1d_bwd_btc_f32,
        list_conv1d_bwd_btc_f16,
        list_conv1d_bwd_btc_bf16,
        list_conv1d_bwd_bct_f32,
        list_conv1d_bwd_bct_f16,
        list_conv1d_bwd_bct_bf16,
        list_kda_common,
        list_kda_chunk16_prep,
        list_kda_chunk16_states,
        list_kda_chunk16_a,
        list_kda_chunk16_grad,
        list_kda_fwd_recurrent,
        list_kda_fwd_recurrent_few,
        list_kda_chunk64_prep_k64,
        list_kda_chunk64_prep_k128,
        list_kda_chunk64_prep_k192,
        list_kda_chunk64_fwd_scan_k64,
        list_kda_chunk64_fwd_scan_k128,
        list_kda_chunk64_fwd_scan_k192,
        list_kda_bwd_recurrent,
        list_kda_bwd_recurrent_wide,
        list_kda_chunk64_bwd_scan_k64,
        list_kda_chunk64_grad_k64,
        list_kda_chunk64_bwd_scan_k128,
        list_kda_chunk64_grad_k128,
        list_kda_chunk64_sums,
    };
    for (const list_fn list_of : lists) {
        const kernel_list list = list_of();
        for (int i = 0; i < list.count; ++i) {
            const kernel_entry &entry = list.entries[i];
            if (std::strcmp(entry.kernel, kernel) == 0 && std::strcmp(entry.variant, variant) == 0)
                return entry.func;
        }
    }
    return nullptr;
}

} // namespace plait::impl::cuda
