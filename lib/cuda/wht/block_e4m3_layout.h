// Launch data of wht.block_e4m3: rows of 2^7..2^15 as wht.block takes them, stored in E4M3 with a
// scale for each row or for each group of a power of two.
#pragma once

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

/// Groups that a warp holds whole, or a whole row.
constexpr bool wht_block_e4m3_group(const wht_block_config &c, int log_group) {
    return log_group >= c.tile.log_vec_y &&
           (log_group <= 5 + c.tile.log_items || log_group == c.log_n) && log_group <= c.log_n;
}

inline bool wht_block_e4m3_launch(scalar x, int log_n, wht_launch *out) {
    if (!wht_block_e4m3_exists(x, log_n)) return false;
    const wht_block_config c = wht_block_e4m3_config(x, log_n);
    *out = wht_block_launch_of(c, wht_variant(x, scalar::e4m3, ".n", log_n, true));
    return true;
}

} // namespace plait::impl
