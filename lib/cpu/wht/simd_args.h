// Arguments and scratch size of the kernel wht.simd.
#pragma once

#include "lib/common/scalar.h"

#include <cstdint>

namespace plait::impl::cpu {

/// Rows of n contiguous elements, natural order. Row strides in elements, at least n unless there
/// is one row. In place: x == y and equal strides and element sizes.
struct wht_simd_args {
    const void *x;
    void *y;
    void *scratch; ///< wht_simd_scratch_bytes, 64-byte aligned; may be null where that is 0
    scalar x_type, y_type;
    int64_t rows, n; ///< n a power of two up to 2^32
    int64_t x_row_stride, y_row_stride;
    double scale; ///< 1 for integers
};

/// The type of the arithmetic, or none where the kernel does not take this pair of types.
constexpr scalar wht_simd_accumulator(scalar x, scalar y) {
    const bool short_x = x == scalar::f16 || x == scalar::bf16 || x == scalar::f32;
    const bool short_y = y == scalar::f16 || y == scalar::bf16 || y == scalar::f32;
    if (short_x && short_y) return scalar::f32;
    if ((x == scalar::f64 || x == scalar::i32 || x == scalar::i64) && x == y) return x;
    return scalar::none;
}

/// Scratch in bytes: column tiles of every thread, and rows that are converted.
int64_t wht_simd_scratch_bytes(scalar x, scalar y, int64_t n, int threads);

} // namespace plait::impl::cpu
