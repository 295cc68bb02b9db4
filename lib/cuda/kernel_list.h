// The tables of instantiated kernels, one for each .cu file, joined by kernel_table.cpp.
#pragma once

#include "lib/cuda/kernel_table.h"

namespace plait::impl::cuda {

struct kernel_list {
    const kernel_entry *entries;
    int count;
};

kernel_list list_wht_any_float();
kernel_list list_wht_any_integer();
kernel_list list_wht_widen();
kernel_list list_wht_factor();
kernel_list list_wht_finish();
kernel_list list_wht_around_small(); ///< wht.groups, wht.clear, wht.chains, wht.rows_status
kernel_list list_wht_block_e4m3_bf16();
kernel_list list_wht_block_e4m3_f16();
kernel_list list_wht_block_e4m3_f32();
kernel_list list_wht_block_f32();
kernel_list list_wht_block_f64();
kernel_list list_wht_block_i32();
kernel_list list_wht_block_i64();
kernel_list list_wht_block_c64();
kernel_list list_wht_block_c128();
kernel_list list_wht_block_f16();
kernel_list list_wht_block_bf16();
kernel_list list_wht_block_widen(); ///< f16 and bf16 to f32
kernel_list list_wht_block_factor_f32();
kernel_list list_wht_block_factor_f64();
kernel_list list_wht_block_factor_f16();
kernel_list list_wht_block_factor_bf16();
kernel_list list_wht_fused_f32();
kernel_list list_wht_fused_f64();
kernel_list list_wht_fused_f16();
kernel_list list_wht_fused_bf16();
kernel_list list_wht_cluster_f32();
kernel_list list_wht_cluster_f64();
kernel_list list_wht_cluster_half();
kernel_list list_wht_columns_tiled_f32();
kernel_list list_wht_columns_tiled_f64();
kernel_list list_wht_columns_tiled_integer(); ///< i32, i64
kernel_list list_wht_columns_tiled_half();
kernel_list list_wht_columns_tiled_pairs();  ///< 16-bit, aligned
kernel_list list_wht_columns_tiled_narrow(); ///< f32 to f16 and bf16
kernel_list list_wht_columns_shuffle();
kernel_list list_wht_mma16_f16();
kernel_list list_wht_mma16_bf16();
kernel_list list_wht_mma16_narrow(); ///< b1 and i8 to i32
kernel_list list_wht_kron_tf32();
kernel_list list_wht_kron_int8(); ///< i32, f32, f64
kernel_list list_wht_l2_f32();
kernel_list list_wht_l2_f64();
kernel_list list_wht_l2_half(); ///< f16 and bf16
kernel_list list_wht_l2_reset();
kernel_list list_conv1d_fwd_any();
kernel_list list_conv1d_fwd_bct();
kernel_list list_conv1d_fwd_bct_fix();
kernel_list list_conv1d_fwd_masks();
kernel_list list_conv1d_fwd_btc_f32();
kernel_list list_conv1d_fwd_btc_f16();
kernel_list list_conv1d_fwd_btc_bf16();
kernel_list list_conv1d_fwd_btc_pairs();
kernel_list list_conv1d_bwd_btc_odd();
kernel_list list_conv1d_fwd_bct_flat();
kernel_list list_conv1d_fwd_bct_tiled_f32();
kernel_list list_conv1d_fwd_bct_tiled_f16();
kernel_list list_conv1d_fwd_bct_tiled_bf16();
kernel_list list_conv1d_update_any();
kernel_list list_conv1d_update_rows_f32();
kernel_list list_conv1d_update_rows_f16();
kernel_list list_conv1d_update_rows_bf16();
kernel_list list_conv1d_update_lines_f32();
kernel_list list_conv1d_update_lines_f16();
kernel_list list_conv1d_update_lines_bf16();
kernel_list list_conv1d_common(); ///< conv1d.offsets, conv1d.state
kernel_list list_conv1d_bwd_bct_f32();
kernel_list list_conv1d_bwd_bct_f16();
kernel_list list_conv1d_bwd_bct_bf16();
kernel_list list_conv1d_bwd_btc_f32();
kernel_list list_conv1d_bwd_btc_f16();
kernel_list list_conv1d_bwd_btc_bf16();
kernel_list list_conv1d_bwd_bct_fix();
kernel_list list_conv1d_bwd_btc_fix(); ///< also conv1d.bwd_btc_marks
kernel_list list_conv1d_bwd_any();     ///< also conv1d.bwd_state, conv1d.bwd_reduce
kernel_list list_kda_chunk16_prep();   ///< also kda.bwd_c16_heads, kda.bwd_c16_sums
kernel_list list_kda_chunk16_states();
kernel_list list_kda_chunk16_a();
kernel_list list_kda_chunk16_grad();
kernel_list list_kda_common(); ///< kda.offsets, kda.gaps
kernel_list list_kda_fwd_recurrent();
kernel_list list_kda_fwd_recurrent_few();
kernel_list list_kda_chunk64_prep_k64();
kernel_list list_kda_chunk64_prep_k128();
kernel_list list_kda_chunk64_prep_k192();
kernel_list list_kda_chunk64_fwd_scan_k64();
kernel_list list_kda_chunk64_fwd_scan_k128();
kernel_list list_kda_chunk64_fwd_scan_k192();
kernel_list list_kda_bwd_recurrent_wide();
kernel_list list_kda_bwd_recurrent(); ///< also kda.bwd_finish, kda.bwd_params
kernel_list list_kda_chunk64_bwd_scan_k64();
kernel_list list_kda_chunk64_grad_k64();
kernel_list list_kda_chunk64_bwd_scan_k128();
kernel_list list_kda_chunk64_scans_k128();
kernel_list list_kda_chunk64_grad_k128();
kernel_list list_kda_chunk64_sums();

} // namespace plait::impl::cuda
