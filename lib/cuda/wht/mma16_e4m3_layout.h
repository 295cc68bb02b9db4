// Launch data of wht.mma16_e4m3: 16-bit rows of 2^7..2^15 as wht.mma16 takes them, stored in E4M3.
#pragma once

#include "lib/cuda/wht/block_e4m3_layout.h"
#include "lib/cuda/wht/mma16_layout.h"

namespace plait::impl {

constexpr int wht_mma16_e4m3_access = 8; ///< results of a store

/// A warp stores 2^8 results in a row, eight times: groups that lie in those, a row that a block
/// holds whole, or what a block of one warp has of one.
constexpr bool wht_mma16_e4m3_group(const wht_mma16_config &c, int log_group) {
    if (log_group < 3 || log_group > c.log_n) return false;
    return log_group <= 8 || c.log_warps == 0 || (log_group == c.log_n && c.halves == 1);
}

inline bool wht_mma16_e4m3_launch(scalar x, int log_n, wht_launch *out) {
    if (!wht_mma16_launch(x, x, log_n, true, out)) return false;
    const variant_name name = wht_variant(x, scalar::e4m3, ".n", log_n, true);
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->persistent = true;
    return true;
}

} // namespace plait::impl
