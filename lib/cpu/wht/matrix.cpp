// wht.matrix: y[k] = sum over j of H[k][j] x[j] along one axis, H any matrix of +1 and -1 up to
// order 256: those that wht.lines does not have, and the caller's. In place.
//   Blocks    `lanes` lines of the axis side by side in a piece of L1: additions and subtractions
//   of
//             whole vectors, whichever axis is innermost. order^2 of them for a line.
//   Threads   over blocks.
//   Numbers   f32 or f64, sums in ascending order; integers modulo 2^w.
#include "lib/cpu/wht/matrix_args.h"

#include "lib/common/factor_matrices.h"
#include "lib/cpu/wht/wht_kernels.h"

#include <algorithm>
#include <omp.h>
#include <type_traits>

namespace plait::impl::cpu {
namespace {

constexpr int lanes = 32;

template <class T> struct matrix_lines {
    const wht_matrix_args &a;
    const int64_t columns; ///< real numbers

    /// Lines [first, first + count), count up to `lanes`.
    void block(int64_t first, int count) const {
        T x[wht_factor_given_order * lanes];
        T *const w = static_cast<T *>(a.w);
        int64_t at[lanes];
        for (int l = 0; l < count; ++l) {
            const int64_t line = first + l;
            at[l] = line / columns * a.order * columns + line % columns;
        }
        for (int j = 0; j < a.order; ++j)
            for (int l = 0; l < count; ++l) x[j * lanes + l] = w[at[l] + j * columns];
        for (int j = 0; j < a.order; ++j)
            for (int l = count; l < lanes; ++l) x[j * lanes + l] = T(0);
        for (int k = 0; k < a.order; ++k) {
            T sum[lanes] = {};
            const int8_t *const sign = a.signs + k * a.order;
            for (int j = 0; j < a.order; ++j) {
                const T *const v = x + j * lanes;
                if (sign[j] > 0)
                    for (int l = 0; l < lanes; ++l) sum[l] += v[l];
                else
                    for (int l = 0; l < lanes; ++l) sum[l] -= v[l];
            }
            for (int l = 0; l < count; ++l) w[at[l] + k * columns] = sum[l];
        }
    }

    void run(int tid, int size) const {
        const int64_t all = a.groups * columns, blocks = (all + lanes - 1) / lanes;
        const int64_t begin = blocks / size * tid + std::min<int64_t>(blocks % size, tid);
        const int64_t end = blocks / size * (tid + 1) + std::min<int64_t>(blocks % size, tid + 1);
        for (int64_t b = begin; b < end; ++b)
            block(b * lanes, static_cast<int>(std::min<int64_t>(lanes, all - b * lanes)));
    }
};

/// Row k of the matrix that is multiplied by.
void expand(const wht_matrix_args &a) {
    for (int k = 0; k < a.order; ++k)
        for (int j = 0; j < a.order; ++j) {
            const int row = a.transposed ? j : k, column = a.transposed ? k : j;
            int sign = 1;
            if (a.factor) {
                const int64_t bit = row * a.factor_stride[0] + column * a.factor_stride[1];
                if (a.factor[bit / 32] >> (bit % 32) & 1u) sign = -1;
            } else {
                sign = wht_factor_sign(a.name, row, column);
            }
            a.signs[k * a.order + j] = static_cast<int8_t>(sign);
        }
}

template <class T> void run(const wht_matrix_args &a, int parts, int threads) {
    const matrix_lines<T> lines{a, a.columns * parts};
    if (threads <= 1) return lines.run(0, 1); // OpenMP would allocate a team even for one thread
#pragma omp parallel num_threads(threads)
    lines.run(omp_get_thread_num(), omp_get_num_threads());
}

} // namespace

void wht_matrix(const void *arguments, int threads) {
    const auto &a = *static_cast<const wht_matrix_args *>(arguments);
    expand(a);
    switch (a.w_type) {
    case scalar::f32: return run<float>(a, 1, threads);
    case scalar::f64: return run<double>(a, 1, threads);
    case scalar::c64: return run<float>(a, 2, threads);
    case scalar::c128: return run<double>(a, 2, threads);
    case scalar::i32: return run<uint32_t>(a, 1, threads);
    default: return run<uint64_t>(a, 1, threads);
    }
}

} // namespace plait::impl::cpu
