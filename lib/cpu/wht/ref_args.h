// Arguments and scratch size of the kernel wht.ref.
#pragma once

#include "lib/common/factor_matrices.h"
#include "lib/common/wht_problem.h"

#include <cstdint>

namespace plait::impl::cpu {

/// Pointers that are not in use are null.
struct wht_ref_args {
    const void *x;
    void *y;
    const uint32_t *signs;
    const void *diag;
    int32_t *overflow;
    void *scratch; ///< wht_ref_scratch_bytes, 64-byte aligned
    const uint32_t *factor;
    const void *rows;
    const void *diag_in;
    const void *diag_mid;
    void *amax;
    float *scales;
    int64_t *histogram;
    int32_t *status;
    wht_problem problem;
};

/// Elements of one transform: the product of the transformed lengths.
inline int64_t wht_ref_points(const wht_problem &p) {
    int64_t n = 1;
    for (int a = 0; a < p.axes; ++a)
        if (p.axis[a].transformed) n *= p.axis[a].length;
    return n;
}

inline int64_t wht_ref_transforms(const wht_problem &p) {
    int64_t count = 1;
    for (int a = 0; a < p.axes; ++a)
        if (!p.axis[a].transformed) count *= p.axis[a].length;
    return count;
}

/// Whether all threads work inside one transform (one scratch) rather than on one each. A big
/// transform would need too much scratch per thread, a small batch would leave threads idle.
inline bool wht_ref_shares_transform(const wht_problem &p, int threads) {
    const int64_t n = wht_ref_points(p);
    return threads > 1 && (n >= (int64_t{1} << 22) ||
                           (n >= (int64_t{1} << 14) && wht_ref_transforms(p) < threads));
}

/// Scratch of one transform: doubles, pairs of doubles for complex types, 64-bit integers, 128-bit
/// integers where overflow must be seen. Rounded up to cache lines.
inline int64_t wht_ref_slice_bytes(const wht_problem &p) {
    const bool wide = p.x == scalar::c64 || p.x == scalar::c128 || p.overflow;
    return (wht_ref_points(p) * (wide ? 16 : 8) + 63) / 64 * 64;
}

/// Order of the factor of a transformed axis, 1 without one.
inline int wht_ref_order(const wht_problem &p, const wht_axis &axis) {
    return axis.factor == wht_factor::given ? p.given_order : wht_factor_order(axis.factor);
}

/// Bytes of the matrix of an axis: a byte per entry, before the slices of the transforms.
inline int64_t wht_ref_matrix_bytes(const wht_problem &p, const wht_axis &axis) {
    const int64_t m = axis.transformed ? wht_ref_order(p, axis) : 1;
    return m > 1 ? (m * m + 63) / 64 * 64 : 0;
}

inline int64_t wht_ref_matrices_bytes(const wht_problem &p) {
    int64_t bytes = 0;
    for (int a = 0; a < p.axes; ++a) bytes += wht_ref_matrix_bytes(p, p.axis[a]);
    return bytes;
}

inline int64_t wht_ref_scratch_bytes(const wht_problem &p, int threads) {
    if (threads < 1) threads = 1;
    return wht_ref_matrices_bytes(p) +
           wht_ref_slice_bytes(p) * (wht_ref_shares_transform(p, threads) ? 1 : threads);
}

} // namespace plait::impl::cpu
