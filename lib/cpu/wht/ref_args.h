// Arguments and scratch size of the kernel wht.ref.
#pragma once

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

inline int64_t wht_ref_scratch_bytes(const wht_problem &p, int threads) {
    if (threads < 1) threads = 1;
    return wht_ref_slice_bytes(p) * (wht_ref_shares_transform(p, threads) ? 1 : threads);
}

} // namespace plait::impl::cpu
