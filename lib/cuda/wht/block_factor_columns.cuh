// The factor of wht.block_factor by additions: a thread has all m elements of a column.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/wht/block_factor_layout.h"

#include <utility>

namespace plait::impl::cuda {

/// Bit j: entry j of row k is -1.
constexpr uint64_t wht_block_factor_minus(wht_factor f, bool adjoint, int k) {
    const wht_factor_table t = make_wht_factor_table(f);
    uint64_t bits = 0;
    for (int j = 0; j < t.order; ++j)
        if ((adjoint ? t.sign[j * t.order + k] : t.sign[k * t.order + j]) < 0)
            bits |= uint64_t{1} << j;
    return bits;
}

/// Sums of how many elements, all signs of them, serve the rows: 2^(group - 1) of each group.
template <scalar S, wht_factor F, bool Adjoint> struct wht_block_factor_case {
    static constexpr scalar type = S;
    static constexpr int order = wht_factor_order(F);
    static constexpr int group = S == scalar::f64 ? 2 : 4;
    static constexpr int kinds = 1 << (group - 1), groups = order / group;
    template <int K> struct row {
        static constexpr uint64_t minus = wht_block_factor_minus(F, Adjoint, K);
    };
};

/// Row K of the factor. Of a group, kind: bit i says whether the signs of elements 0 and i + 1
/// differ; then the sum is that of element 0 as it is.
template <class Case, int K, class T>
__device__ __forceinline__ T wht_block_factor_row(const T (&sums)[Case::groups * Case::kinds]) {
    constexpr uint64_t minus = Case::template row<K>::minus;
    T value = T(0);
#pragma unroll
    for (int g = 0; g < Case::groups; ++g) {
        const auto signs = static_cast<int>(minus >> Case::group * g) & ((1 << Case::group) - 1);
        const bool negative = (signs & 1) != 0;
        const int kind = (negative ? ~signs : signs) >> 1 & (Case::kinds - 1);
        const T one = sums[g * Case::kinds + kind];
        value = g == 0 ? (negative ? -one : one) : negative ? value - one : value + one;
    }
    return value;
}

/// A column: sums of its groups, rows to shared memory.
template <class Case, class Put, int M, class T, int... K>
__device__ __forceinline__ void wht_block_factor_column(const T (&v)[M], Put put,
                                                        std::integer_sequence<int, K...>) {
    T sums[Case::groups * Case::kinds];
#pragma unroll
    for (int g = 0; g < Case::groups; ++g) {
        const T *of = v + g * Case::group;
        T *to = sums + g * Case::kinds;
        const T sum = of[0] + of[1], difference = of[0] - of[1];
        if constexpr (Case::group == 2) {
            to[0] = sum, to[1] = difference;
        } else {
            const T sum2 = of[2] + of[3], difference2 = of[2] - of[3];
            to[0] = sum + sum2, to[6] = sum - sum2;
            to[4] = sum + difference2, to[2] = sum - difference2;
            to[1] = difference + sum2, to[7] = difference - sum2;
            to[5] = difference + difference2, to[3] = difference - difference2;
        }
    }
    (put(K, wht_block_factor_row<Case, K>(sums)), ...);
}

/// LogK: a constant makes places of elements parts of instructions; -1: args.log_k. The
/// low bits of the row number, all that the swizzle takes of it, are those of the row of the
/// factor: m is a multiple of 4.
template <class Case, int LogK, class T>
__device__ __forceinline__ void wht_block_factor_columns(const wht_block_factor_args &args,
                                                         int64_t row, int rows, T *words) {
    constexpr scalar S = Case::type;
    constexpr int m = Case::order;
    const int log_k = LogK < 0 ? args.log_k : LogK, columns = rows << log_k;
    for (int q = static_cast<int>(threadIdx.x); q < columns; q += static_cast<int>(blockDim.x)) {
        const int r = q >> log_k, j = q & ((1 << log_k) - 1);
        const int64_t from = (row + r) * args.x_row_stride + j;
        const auto first = static_cast<uint32_t>((r * m << log_k) + j);
        const uint32_t own = wht_block_factor_word(S, first);
        T v[m];
#pragma unroll
        for (int i = 0; i < m; ++i)
            load_elements<S, 0>(args.x, from + (static_cast<int64_t>(i) << log_k), v + i);
        const auto put = [&](int i, T value) {
            const uint32_t part = static_cast<uint32_t>(i) << log_k;
            if constexpr (LogK < 0) {
                words[wht_block_factor_word(S, first + part)] = value;
            } else {
                words[(own ^ wht_block_factor_word(S, part) ^ part) + part] = value;
            }
        };
        wht_block_factor_column<Case>(v, put, std::make_integer_sequence<int, m>());
    }
}

} // namespace plait::impl::cuda
