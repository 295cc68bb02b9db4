// Launch data of wht.columns_product: columns of 2^11 and 2^12 16-bit elements, eight of them in a
// block.
//
// Words and threads of wht.block_factor: an element of the tile is [row of the factor][other rows]
// [column], of which the factor H_16 or H_32 goes by tensor cores and 2^7 other rows in registers.
#pragma once

#include "lib/cuda/wht/block_factor_layout.h"
#include "lib/cuda/wht/columns_layout.h"

namespace plait::impl {

constexpr int wht_columns_product_log_run = 3;  ///< columns, 16 bytes of a row
constexpr int wht_columns_product_log_rows = 7; ///< that registers transform

constexpr bool wht_columns_product_exists(scalar x, scalar y, int log_m) {
    return wht_is_half(x) && y == x && (log_m == 11 || log_m == 12);
}

PLAIT_HD constexpr wht_columns_config wht_columns_product_config(scalar x, int log_m) {
    wht_columns_config c{};
    c.x = c.y = x;
    c.log_m = log_m;
    c.log_run = c.log_columns = wht_columns_product_log_run;
    c.vector = true;
    return c;
}

/// False when no such kernel is instantiated or rows are too short.
inline bool wht_columns_product_launch(scalar x, scalar y, int log_m, int log_inner,
                                       wht_launch *out) {
    if (!wht_columns_product_exists(x, y, log_m) || log_inner < wht_columns_product_log_run)
        return false;
    const variant_name name = wht_variant(x, y, ".k", log_m, true);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    const int log_tile = log_m + wht_columns_product_log_run;
    out->threads = 32 << (log_tile - wht_block_factor_log_segment(x)); // a segment for a warp
    out->smem_bytes = 4 << log_tile;
    out->min_blocks_per_sm = 32 * wht_block_factor_warps / out->threads;
    out->log_columns = wht_columns_product_log_run;
    return true;
}

} // namespace plait::impl
