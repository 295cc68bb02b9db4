// Launch data of wht.block_e4m3: rows of 2^7..2^15 as wht.block takes them, stored in E4M3 with a
// scale for each row or for each group of a power of two.
#pragma once

#include "lib/cuda/wht/block_factor_layout.h"
#include "lib/cuda/wht/block_layout.h"

namespace plait::impl {

struct wht_block_e4m3_args {
    const void *x;
    void *y;
    float *scales; ///< or null
    void *amax;    ///< or null
    int64_t rows;
    int64_t x_row_stride;     ///< elements, a multiple of 16 bytes
    int64_t y_row_stride;     ///< elements, a multiple of an access
    int64_t scales_stride[2]; ///< from row to row, from group to group
    int64_t amax_stride[2];
    double scale;
    int32_t log_group; ///< log2 of the results of a group
    int32_t log_n;     ///< 16-bit types: of a row, as rows_per_tile to lines
    int32_t rows_per_tile;
    int32_t blocks_per_sm;
    int32_t lines; ///< of 128 bytes that the rows of a tile of x take; 0: no prefetch
    scalar amax_type;
};

constexpr bool wht_block_e4m3_exists(scalar x, int log_n) {
    return (wht_is_half(x) || x == scalar::f32) && log_n >= 7 && log_n <= 15;
}

/// As wht.block with vectors stores its own type: an access of Y has the same elements.
PLAIT_HD constexpr wht_block_config wht_block_e4m3_config(scalar x, int log_n) {
    wht_block_config c = wht_block_config_of(x, x, log_n, true);
    c.pipelined = false;
    c.prefetch = true;
    return c;
}

/// Groups of at least an access that a warp holds whole, or a whole row.
constexpr int wht_block_e4m3_most_group(scalar x, int log_n) {
    return wht_is_half(x) ? wht_block_factor_log_segment(x)
                          : 5 + wht_block_e4m3_config(x, log_n).tile.log_items;
}
constexpr bool wht_block_e4m3_group(scalar x, int log_n, int log_group) {
    const int least = wht_is_half(x) ? 3 : wht_block_e4m3_config(x, log_n).tile.log_vec_y;
    return log_group >= least && log_group <= log_n &&
           (log_group <= wht_block_e4m3_most_group(x, log_n) || log_group == log_n);
}

// ---- 16-bit types: tiles and exchanges of wht.block_factor, H_16 (n = 2^15: H_32) for its factor

PLAIT_HD constexpr int wht_block_e4m3_order(int log_n) { return log_n == 15 ? 32 : 16; }
constexpr int wht_block_e4m3_log_tile = 13; ///< of several rows

inline bool wht_block_e4m3_launch(scalar x, int log_n, wht_launch *out) {
    if (!wht_block_e4m3_exists(x, log_n)) return false;
    *out = wht_launch{};
    variant_name name = wht_variant(x, scalar::e4m3, ".n", log_n, true);
    if (wht_is_half(x)) {
        name = wht_variant(x, scalar::e4m3, ".m", wht_block_e4m3_order(log_n), true);
        const int log_tile = wht_max(log_n, wht_block_e4m3_log_tile);
        out->threads = 32 << (log_tile - wht_block_factor_log_segment(x)); // a segment for a warp
        out->smem_bytes = 4 << log_tile;
        out->min_blocks_per_sm = 32 * wht_block_factor_warps / out->threads;
        out->rows_per_tile = 1 << (log_tile - log_n);
    } else {
        const wht_block_config c = wht_block_e4m3_config(x, log_n);
        out->threads = tile_threads(c.tile);
        out->smem_bytes = wht_block_smem_bytes(c);
        out->min_blocks_per_sm = c.blocks_per_sm;
        out->rows_per_tile = wht_block_rows_per_tile(c);
    }
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    return true;
}

} // namespace plait::impl
