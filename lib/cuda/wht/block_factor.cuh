// wht.block_factor: y[row] = scale * (H_m (x) H_2^k) x[row], m = 12, 20, 28, 40, the factor or its
// transpose, in one pass (block_factor_layout.h says who holds what).
//   Traffic    each element once in, once out; through shared memory twice, 16 bytes at a time.
//   Additions  sums of four columns of the matrix serve all its rows: m / 4 + 2 for an element,
//              and k; f64 has registers for sums of two. No signs at run time: each matrix is code.
//   Tensor     16-bit elements times +-1 are exact, their sums f32: no additions for the factor.
//              Products have 16 places for 4 elements of each of 4 lanes; those behind m are 0.
//   Precision  16-bit types and f32 accumulate in f32, f64 in f64; one scale, one rounding.
//   In place   works: a tile is in shared memory before it is written.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/block_factor_columns.cuh"
#include "lib/cuda/wht/block_factor_product.cuh"
#include "lib/cuda/wht/block_factor_segment.cuh"

namespace plait::impl::cuda {

/// Butterflies of phase 1 for rows of 2^LogK, and stores. A constant, as branches between
/// butterflies would make the compiler move registers.
template <scalar S, int M, int LogK, int Items, class T>
__device__ __forceinline__ void wht_block_factor_finish(const wht_block_factor_args &args,
                                                        int64_t row, int elements, int first,
                                                        T (&a)[Items], T *words) {
    constexpr int v = wht_block_factor_shape_of(S).log_vec;
    constexpr uint32_t regs = wht_block_factor_regs(S, 1);
    const T scale = static_cast<T>(args.scale);
    const int log_k = args.log_k;
    const auto place = [&](int at) {
        const int r = args.rows_per_tile == 1 ? 0 : (at >> log_k) / M;
        return (row + r) * args.y_row_stride + (at - (r * M << log_k));
    };
    wht_block_factor_butterflies<S, 1, 0>(a, LogK);
    if (args.y_vector) {
        const int own = first + static_cast<int>(wht_block_factor_lane<S, 1>());
        const int64_t from = args.rows_per_tile == 1 ? place(own) : 0;
#pragma unroll
        for (int j = 0; j < Items; j += 1 << v) {
            const int item = static_cast<int>(bit_deposit(static_cast<uint32_t>(j), regs));
            if (own + item >= elements) continue;
            const int64_t at = args.rows_per_tile == 1 ? from + item : place(own + item);
            store_elements<S, v>(args.y, at, a + j, scale);
        }
        return;
    }
    // Element by element, in a row: through the words of this segment.
    wht_block_factor_units<S, 1>(words + first, [&](int j, uint4 *at) {
        T *to = reinterpret_cast<T *>(at);
#pragma unroll
        for (int i = 0; i < 1 << wht_block_factor_shape_of(S).log_unit; ++i) to[i] = a[j + i];
    });
    __syncwarp(); // they are written
    const int end = first + (1 << wht_block_factor_log_segment(S));
    for (int e = first + static_cast<int>(threadIdx.x & 31u); e < end && e < elements; e += 32) {
        const T value = words[wht_block_factor_word(S, static_cast<uint32_t>(e))];
        store_elements<S, 0>(args.y, place(e), &value, scale);
    }
}

template <scalar S, int M, class T>
__device__ __forceinline__ void wht_block_factor_segments(const wht_block_factor_args &args,
                                                          int64_t row, int rows, T *words) {
    constexpr wht_block_factor_shape shape = wht_block_factor_shape_of(S);
    constexpr int log_segment = wht_block_factor_log_segment(S);
    constexpr int low = shape.log_vec + shape.log_items - shape.log_unit; // bits of phase 0
    const int log_k = args.log_k, elements = rows * M << log_k;
    const int warp = static_cast<int>(threadIdx.x) >> 5, warps = static_cast<int>(blockDim.x) >> 5;
    for (int first = warp << log_segment; first < elements; first += warps << log_segment) {
        T a[1 << shape.log_items];
        wht_block_factor_read<S, 0>(a, words + first);
        if (log_k >= low) {
            wht_block_factor_butterflies<S, 0, 0>(a, low);
            wht_block_factor_write<S>(a, words + first);
        } else {
            wht_block_factor_butterflies<S, 0, 0>(a, log_k);
            wht_block_factor_write<S>(a, words + first);
        }
        __syncwarp(); // the words of the first phase are written
        wht_block_factor_read<S, 1>(a, words + first);
        if (log_k == 10) {
            wht_block_factor_finish<S, M, 10>(args, row, elements, first, a, words);
        } else if (log_k == 9) {
            wht_block_factor_finish<S, M, 9>(args, row, elements, first, a, words);
        } else if (log_k == 8) {
            wht_block_factor_finish<S, M, 8>(args, row, elements, first, a, words);
        } else if (low < 7 && log_k == 7) {
            wht_block_factor_finish<S, M, 7>(args, row, elements, first, a, words);
        } else if (low < 6 && log_k == 6) {
            wht_block_factor_finish<S, M, 6>(args, row, elements, first, a, words);
        } else {
            wht_block_factor_finish<S, M, 0>(args, row, elements, first, a, words);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(32 * wht_block_factor_warps(Case::type, Case::order), 1)
    wht_block_factor(const __grid_constant__ wht_block_factor_args args) {
    constexpr scalar S = Case::type;
    using T = accumulator<S>;
    extern __shared__ __align__(16) char shared[];
    T *words = reinterpret_cast<T *>(shared);
    const int64_t tiles = (args.rows - 1) / args.rows_per_tile + 1;
    start_successor();
    const int64_t first = wait_for_predecessor();
    for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
        const int64_t row = tile * args.rows_per_tile;
        const int64_t left = args.rows - row;
        const int rows = left < args.rows_per_tile ? static_cast<int>(left) : args.rows_per_tile;
        if (tile != first) __syncthreads(); // the words of the tile before are read
        if constexpr (wht_is_half(S)) {
            const wht_block_factor_rows of{
                args.x, row, args.x_row_stride, args.log_k, rows << args.log_k, args.x_vector};
            wht_block_factor_products<S, Case::order>(of, words, [&](int i, int l) {
                const uint64_t all = i < Case::order ? args.minus[i] : 0;
                return pick_bytes(static_cast<uint32_t>(all), static_cast<uint32_t>(all >> 32),
                                  static_cast<uint32_t>(2 * l | (2 * l + 1) << 8));
            });
        } else if constexpr (S == scalar::f64) { // no registers left for constant places
            wht_block_factor_columns<Case, -1>(args, row, rows, words);
        } else {
            switch (args.log_k) {
            case 10: wht_block_factor_columns<Case, 10>(args, row, rows, words); break;
            case 9: wht_block_factor_columns<Case, 9>(args, row, rows, words); break;
            case 8: wht_block_factor_columns<Case, 8>(args, row, rows, words); break;
            case 7: wht_block_factor_columns<Case, 7>(args, row, rows, words); break;
            default: wht_block_factor_columns<Case, -1>(args, row, rows, words); break;
            }
        }
        wht_block_factor_prefetch<S>(args.x, args.x_row_stride, args.rows, args.rows_per_tile,
                                     args.lines, tile + tiles_ahead(args.blocks_per_sm));
        __syncthreads(); // the products with the factor are written
        int64_t again = row;
        if constexpr (S == scalar::f64) { // or it would wait in a register beside a column
            int64_t number = tile;
            make_opaque(number);
            again = number * args.rows_per_tile;
        }
        wht_block_factor_segments<S, Case::order>(args, again, rows, words);
    }
}

} // namespace plait::impl::cuda
