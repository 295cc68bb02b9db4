// wht.block_factor: y[row] = scale * (H_m (x) H_2^k) x[row], m = 12, 20, 28, 40, the factor or its
// transpose, in one pass (block_factor_layout.h says who holds what).
//   Traffic    each element once in, once out, once through shared memory.
//   Additions  sums and differences of two columns of the matrix serve all its rows: m / 2 + 1 for
//              an element, and k. No signs at run time: each matrix is code of its own.
//   Precision  16-bit types and f32 accumulate in f32, f64 in f64; one scale, one rounding.
//   In place   works: a tile is in shared memory before it is written.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/common/tile.cuh"
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

template <scalar S, wht_factor F, bool Adjoint> struct wht_block_factor_case {
    static constexpr scalar type = S;
    static constexpr int order = wht_factor_order(F);
    template <int K> struct row {
        static constexpr uint64_t minus = wht_block_factor_minus(F, Adjoint, K);
    };
};

/// Row K of the factor; sums[2 p] and sums[2 p + 1] are the sum and difference of columns 2 p and
/// 2 p + 1.
template <class Case, int K, int M, class T>
__device__ __forceinline__ T wht_block_factor_row(const T (&sums)[M]) {
    constexpr uint64_t minus = Case::template row<K>::minus;
    T value = T(0);
#pragma unroll
    for (int p = 0; p < M / 2; ++p) {
        const auto signs = static_cast<int>(minus >> 2 * p & 3u);
        const T one = signs == 0 || signs == 3 ? sums[2 * p] : sums[2 * p + 1];
        const bool negative = (signs & 1) != 0;
        value = p == 0 ? (negative ? -one : one) : negative ? value - one : value + one;
    }
    return value;
}

/// A column: its elements to sums, rows to shared memory.
template <class Case, int M, class T, int... K>
__device__ __forceinline__ void wht_block_factor_column(T (&v)[M], T *words, int log_k,
                                                        std::integer_sequence<int, K...>) {
#pragma unroll
    for (int p = 0; p < M; p += 2) {
        const T a = v[p], b = v[p + 1];
        v[p] = a + b;
        v[p + 1] = a - b;
    }
    ((words[K << log_k] = wht_block_factor_row<Case, K>(v)), ...);
}

template <class Case, class T>
__device__ __forceinline__ void wht_block_factor_columns(const wht_block_factor_args &args,
                                                         int64_t row, int rows, T *words) {
    constexpr int m = Case::order;
    constexpr scalar S = Case::type;
    constexpr auto each = std::make_integer_sequence<int, m>();
    const int log_k = args.log_k, columns = rows << log_k;
    const auto place = [&](int q, T *&to) {
        const int r = q >> log_k, j = q & ((1 << log_k) - 1);
        to = words + (r * m << log_k) + j;
        return (row + r) * args.x_row_stride + j;
    };
    if constexpr (sizeof(typename stored<S>::bits) == 2) {
        if (args.pairs) {
            for (int q = 2 * static_cast<int>(threadIdx.x); q < columns;
                 q += 2 * wht_block_factor_threads) {
                T *to;
                const int64_t from = place(q, to);
                uint32_t both[m];
#pragma unroll
                for (int i = 0; i < m; ++i)
                    both[i] = load_raw<S, 1>(args.x, from + (static_cast<int64_t>(i) << log_k));
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    T v[m];
#pragma unroll
                    for (int i = 0; i < m; ++i)
                        v[i] = widen<S>(static_cast<uint16_t>(both[i] >> 16 * half));
                    wht_block_factor_column<Case>(v, to + half, log_k, each);
                }
            }
            return;
        }
    }
    for (int q = static_cast<int>(threadIdx.x); q < columns; q += wht_block_factor_threads) {
        T *to;
        const int64_t from = place(q, to);
        T v[m];
#pragma unroll
        for (int i = 0; i < m; ++i)
            load_elements<S, 0>(args.x, from + (static_cast<int64_t>(i) << log_k), v + i);
        wht_block_factor_column<Case>(v, to, log_k, each);
    }
}

/// Butterflies on the low log_k bits of a segment: bits 0..V-1 and V+5.. in registers.
template <int V, int Bit, int Items, class T>
__device__ __forceinline__ void wht_block_factor_butterflies(T (&a)[Items], int log_k) {
    if constexpr (Bit < wht_block_factor_segment) {
        if (Bit < log_k) {
            if constexpr (Bit < V) {
                butterfly_items<Bit>(a);
            } else if constexpr (Bit < V + 5) {
                butterfly_lanes<Bit - V>(a);
            } else {
                butterfly_items<Bit - 5>(a);
            }
        }
        wht_block_factor_butterflies<V, Bit + 1>(a, log_k);
    }
}

template <class Case, class T>
__device__ __forceinline__ void wht_block_factor_segments(const wht_block_factor_args &args,
                                                          int64_t row, int rows, const T *words) {
    constexpr scalar S = Case::type;
    constexpr int V = sizeof(T) == 8 ? 1 : 2; // of an access
    constexpr int items = 1 << (wht_block_factor_segment - 5), steps = items >> V;
    const int log_k = args.log_k, n = Case::order << log_k, elements = rows * n;
    const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
    const T scale = static_cast<T>(args.scale);
    for (int first = warp << wht_block_factor_segment; first < elements;
         first += wht_block_factor_threads / 32 << wht_block_factor_segment) {
        T a[items];
        const int own = first + (lane << V);
#pragma unroll
        for (int s = 0; s < steps; ++s) {
            const int e = own + (s << (V + 5));
#pragma unroll
            for (int i = 0; i < 1 << V; ++i) a[(s << V) + i] = e < elements ? words[e + i] : T(0);
        }
        wht_block_factor_butterflies<V, 0>(a, log_k);
#pragma unroll
        for (int s = 0; s < steps; ++s) {
            const int e = own + (s << (V + 5));
            if (e >= elements) continue;
            const int r = args.rows_per_tile == 1 ? 0 : (e >> log_k) / Case::order;
            const int64_t at = (row + r) * args.y_row_stride + (e - r * n);
            if (args.vector) {
                store_elements<S, V>(args.y, at, a + (s << V), scale);
            } else {
#pragma unroll
                for (int i = 0; i < 1 << V; ++i)
                    store_elements<S, 0>(args.y, at + i, a + (s << V) + i, scale);
            }
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(wht_block_factor_threads, wht_block_factor_blocks)
    wht_block_factor(const __grid_constant__ wht_block_factor_args args) {
    using T = accumulator<Case::type>;
    extern __shared__ __align__(16) char shared[];
    T *words = reinterpret_cast<T *>(shared);
    const int64_t tiles = (args.rows - 1) / args.rows_per_tile + 1;
    start_successor();
    for (int64_t tile = wait_for_predecessor(); tile < tiles; tile += gridDim.x) {
        const int64_t row = tile * args.rows_per_tile;
        const int64_t left = args.rows - row;
        const int rows = left < args.rows_per_tile ? static_cast<int>(left) : args.rows_per_tile;
        wht_block_factor_columns<Case>(args, row, rows, words);
        __syncthreads(); // the products with the factor are written
        wht_block_factor_segments<Case>(args, row, rows, words);
        __syncthreads(); // they are read
    }
}

} // namespace plait::impl::cuda
