// Arguments, scratch size and blocking of the kernel wht.simd.
#pragma once

#include "lib/common/scalar.h"
#include "lib/cpu/team_layout.h"

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
    const bool alone = x == scalar::f64 || x == scalar::c64 || x == scalar::c128 ||
                       x == scalar::i32 || x == scalar::i64;
    if (alone && x == y) return x;
    return scalar::none;
}

/// Whether rows pass through a buffer of accumulators on their way.
constexpr bool wht_simd_converts(scalar x, scalar y) {
    return wht_simd_accumulator(x, y) != x || x != y;
}

/// Bytes of a block that is transformed within L1, and of what should stay within L2: the longest
/// converted row for which every thread has a buffer of its own.
constexpr int64_t wht_simd_l1_bytes = int64_t{1} << 14;
constexpr int64_t wht_simd_l2_bytes = int64_t{1} << 18;

/// Stages of one sweep that joins blocks.
constexpr int wht_simd_join_bits = 3;

/// Opening a parallel region takes as long as one core takes for about this much of the rows.
constexpr int64_t wht_simd_thread_bytes = int64_t{1} << 15;

constexpr int wht_simd_team(int64_t bytes, int threads) {
    return whole_team(bytes / wht_simd_thread_bytes, threads);
}

/// Converted rows pass through a buffer of accumulators; other rows need no scratch.
struct wht_simd_scratch {
    int64_t buffer_bytes; ///< of one buffer
    bool shared;          ///< one buffer, for a row that all threads work on, else one per thread
};

constexpr wht_simd_scratch wht_simd_scratch_layout(scalar x, scalar y, int64_t n) {
    if (!wht_simd_converts(x, y)) return {0, false};
    const int64_t row = n * scalar_bytes(wht_simd_accumulator(x, y));
    return {row > wht_simd_l1_bytes ? row : wht_simd_l1_bytes, row > wht_simd_l2_bytes};
}

constexpr int64_t wht_simd_scratch_bytes(scalar x, scalar y, int64_t n, int threads) {
    const wht_simd_scratch s = wht_simd_scratch_layout(x, y, n);
    return s.buffer_bytes * (s.shared || threads < 1 ? 1 : threads);
}

} // namespace plait::impl::cpu
