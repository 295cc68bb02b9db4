// Launch data of wht.diagonal: rows of wht.block, real or complex, between diagonals that all rows
// share, and two transforms around one. n elements have at least 16 bytes.
#pragma once

#include "lib/cuda/wht/fused_layout.h"

namespace plait::impl {

enum class wht_diagonal_kind : int8_t {
    none,
    real,
    paired, ///< complex
};

/// In the order in which a transform, or its adjoint, meets them.
enum wht_diagonal_place { wht_diagonal_in = 0, wht_diagonal_mid = 1, wht_diagonal_out = 2 };

struct wht_diagonal_args {
    const void *x;
    void *y;           ///< may equal x; then the row strides are equal
    const void *signs; ///< bit i: element i of every row
    const void *diag[3];
    int64_t rows;
    int64_t x_row_stride; ///< real elements, >= n
    int64_t y_row_stride;
    double scale;
    wht_diagonal_kind kind[3];
    bool conjugate; ///< of all diagonals
    bool signs_out; ///< SIGNS stand behind the transform
    bool vector[2]; ///< 16-byte bases and strides of x, of y; else single elements
};

/// `parts` is 1 for complex rows, which `log_n` counts as real elements.
constexpr bool wht_diagonal_exists(scalar x, int log_n, int parts) {
    return wht_fused_exists(x, log_n) &&
           (parts == 0 || x == scalar::f32 || x == scalar::f64);
}

PLAIT_HD constexpr wht_block_config wht_diagonal_config_of(scalar x, int log_n, int parts) {
    wht_block_choice choice = wht_block_choose(x, log_n, true);
    choice.pipelined = false;
    return wht_block_make(x, x, log_n, true, choice, parts);
}

/// "f32.n12", "f64.pairs9.mid".
constexpr variant_name wht_diagonal_variant(scalar x, int log_n, int parts, bool mid) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, scalar_name(x));
    variant_append(name, at, parts > 0 ? ".pairs" : ".n");
    variant_append(name, at, log_n - parts);
    if (mid) variant_append(name, at, ".mid");
    return name;
}

inline bool wht_diagonal_launch(scalar x, int log_n, int parts, bool mid, wht_launch *out) {
    if (!wht_diagonal_exists(x, log_n, parts)) return false;
    const wht_block_config c = wht_diagonal_config_of(x, log_n, parts);
    *out = wht_block_launch_of(c, wht_diagonal_variant(x, log_n, parts, mid));
    return true;
}

} // namespace plait::impl
