// Launch data of wht.mma16_narrow: rows of 2^7..2^15 bits or bytes as wht.mma16 takes 16-bit ones.
#pragma once

#include "lib/cuda/wht/mma16_layout.h"

namespace plait::impl {

constexpr int wht_mma16_narrow_access = 8;      ///< elements of X that a lane widens at a time
constexpr int wht_mma16_narrow_counters = 2048; ///< of the rows of a tile together, at most
constexpr int64_t wht_mma16_narrow_reach = int64_t{1} << 23; ///< of bins; sums end at half of it

struct wht_mma16_narrow_args {
    const void *x;
    int32_t *y;                    ///< or null
    void *amax;                    ///< or null
    unsigned long long *histogram; ///< or null
    int64_t rows;
    int64_t x_row_stride; ///< elements, whole accesses
    int64_t y_row_stride; ///< elements, whole accesses of 16 bytes
    int64_t amax_stride;
    int64_t histogram_stride[2]; ///< from row to row, from bin to bin
    scalar amax_type;            ///< i32 or i64
    int32_t bins;
    int32_t first_bin;
    uint32_t bin_width;
    uint32_t bins_end; ///< bins * bin_width, at most 2^30
    int32_t bin_shift; ///< log2 of bin_width, or negative
};

constexpr bool wht_mma16_narrow_exists(scalar x, int log_n) {
    return (x == scalar::b1 || x == scalar::i8) && log_n >= 7 && log_n <= 15;
}

/// Tensor cores take both as f16, exactly.
PLAIT_HD constexpr wht_mma16_config wht_mma16_narrow_config(int log_n) {
    return wht_mma16_config_of(scalar::f16, log_n, true);
}

/// Behind what wht.mma16 has there: the counters of a tile.
inline bool wht_mma16_narrow_launch(scalar x, int log_n, int64_t bins, wht_launch *out) {
    if (!wht_mma16_narrow_exists(x, log_n)) return false;
    wht_mma16_launch(scalar::f16, scalar::f16, log_n, true, out);
    const variant_name name = wht_variant(x, scalar::i32, ".n", log_n, true);
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->smem_bytes += static_cast<int>(4 * bins * out->rows_per_tile);
    out->persistent = true;
    return true;
}

} // namespace plait::impl
