// Launch data of wht.block_factor: y[row] = scale * (H_m (x) H_2^k) x[row] for the factors of order
// 12, 20, 28 and 40, k <= 10.
//
// A block holds whole rows in shared memory. First a thread has all m elements of a column, 2^k
// apart; then a warp has segments of 2^10 elements in a row, whose low k bits it transforms: those
// of an access and the top ones in registers, five by shuffles.
#pragma once

#include "lib/common/factor_matrices.h"
#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

constexpr int wht_block_factor_threads = 256;
constexpr int wht_block_factor_blocks = 2; ///< of an SM that registers allow
constexpr int wht_block_factor_segment = 10;
constexpr int wht_block_factor_wanted = 4096; ///< elements of a tile of several rows, about

struct wht_block_factor_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= m 2^k
    int64_t y_row_stride;
    double scale;
    int32_t log_k;
    int32_t rows_per_tile;
    bool pairs;  ///< 16-bit elements: two columns are one access
    bool vector; ///< y: 16-byte base, strides of whole accesses
};

constexpr bool wht_block_factor_exists(scalar x, wht_factor f, int log_k) {
    if (x != scalar::f32 && x != scalar::f64 && !wht_is_half(x)) return false;
    return f >= wht_factor::h12_paley2 && f <= wht_factor::h40 && log_k >= 0 &&
           log_k <= wht_block_factor_segment;
}

/// "f32.h20.adj": matrices by number, a symmetric one has no adjoint of its own.
constexpr variant_name wht_block_factor_variant(scalar x, wht_factor f, bool adjoint) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, scalar_name(x));
    variant_append(name, at, ".f");
    variant_append(name, at, static_cast<int>(f));
    variant_append(name, at, ".m");
    variant_append(name, at, wht_factor_order(f));
    if (adjoint) variant_append(name, at, ".adj");
    return name;
}

inline bool wht_block_factor_launch(scalar x, wht_factor f, bool adjoint, int log_k,
                                    wht_launch *out) {
    if (!wht_block_factor_exists(x, f, log_k)) return false;
    const variant_name name = wht_block_factor_variant(x, f, adjoint && !wht_factor_symmetric(f));
    const int n = wht_factor_order(f) << log_k;
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = wht_block_factor_threads;
    out->rows_per_tile = n >= wht_block_factor_wanted ? 1 : wht_block_factor_wanted / n;
    out->smem_bytes = out->rows_per_tile * n * wht_accumulate_bytes(x);
    out->min_blocks_per_sm = wht_block_factor_blocks;
    return true;
}

} // namespace plait::impl
