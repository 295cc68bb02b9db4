// step: wht.block_e4m3 of 16-bit types
// y[row] = E4M3(scale * H_n x[row] / s), n = 2^7..2^15, s as in block_e4m3.cuh.
//   Tiling     wht.block_factor's: 16 of the row numbers (n = 2^15: 32) by tensor cores, the others
//              in registers; a warp has 2^11 results when the last addition is done, a block a row.
//              Groups: maxima of an access, of a thread, then by shuffles; rows that are longer
//              than a warp's part meet in shared memory.
//   Traffic    3 bytes an element, each once: 3/4 of a copy of x.
//   Flops      log2(n) - 4 additions, a maximum, a product and half a conversion an element; about
//              20 instructions, the time of their bytes on an H200.
//   Precision  products with +-1 are exact, sums f32; the rest as in block_e4m3.cuh.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/block_e4m3_groups.cuh"
#include "lib/cuda/wht/block_factor_product.cuh"
#include "lib/cuda/wht/block_factor_segment.cuh"

namespace plait::impl::cuda {

/// Maxima of this thread's accesses to those of their groups. `tops`: a word for each warp.
template <scalar S>
__device__ __forceinline__ void wht_block_e4m3_maxima(float (&m)[8], int log_group, float *tops) {
    // In front of an access lie bits 3..6 in lanes, 7..9 here, 10 in lanes, then warps.
    static_assert(wht_block_factor_regs(S, 1) == (bit_range(0, 3) | bit_range(7, 10)));
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        if (log_group <= 7 + k) continue;
#pragma unroll
        for (int q = 0; q < 8; ++q) {
            if (q & (1 << k)) continue;
            m[q] = m[q | 1 << k] = wht_larger(m[q], m[q | 1 << k]);
        }
    }
    // all eight are the same from here on where a group has all of them
    const int different = log_group > 9 ? 1 : 8;
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        if (log_group <= (k < 4 ? 3 + k : 10)) continue;
#pragma unroll
        for (int q = 0; q < 8; ++q)
            if (q < different) m[q] = wht_larger(m[q], __shfl_xor_sync(0xffffffffu, m[q], 1 << k));
    }
    if (log_group > 11) {
        const int warps = 1 << (log_group - 11); // of the row
        const int warp = static_cast<int>(threadIdx.x) >> 5;
        if (threadIdx.x % 32 == 0) tops[warp] = m[0];
        __syncthreads(); // read before the next tile's sums meet
        m[0] = tops[(warp & -warps) + static_cast<int>(threadIdx.x) % warps];
#pragma unroll
        for (int s = 1; s < 16; s *= 2)
            if (s < warps) m[0] = wht_larger(m[0], __shfl_xor_sync(0xffffffffu, m[0], s));
    }
}

/// Butterflies of the last phase for columns of 2^LogK, and the store of a warp's results.
template <scalar S, int M, int LogK>
__device__ __forceinline__ void wht_block_e4m3_finish(const wht_block_e4m3_args &args,
                                                      int64_t first_row, int rows, float (&a)[64],
                                                      float *tops) {
    wht_block_factor_butterflies<S, 1, 0>(a, LogK);
    const float scale = static_cast<float>(args.scale);
    const bool grouped = args.scales != nullptr || args.amax != nullptr;
    float m[8] = {};
    if (grouped) {
#pragma unroll
        for (int j = 0; j < 64; ++j) m[j / 8] = wht_larger(m[j / 8], a[j]);
        wht_block_e4m3_maxima<S>(m, args.log_group, tops);
    }
    const bool same = args.log_group > 9;
    const uint32_t own =
        (threadIdx.x >> 5 << wht_block_factor_log_segment(S)) | wht_block_factor_lane<S, 1>();
    float largest = 0, by = scale;
    wht_group_factors of{1.0f, 1.0f};
#pragma unroll
    for (int q = 0; q < 8; ++q) {
        const uint32_t e =
            own | bit_deposit(static_cast<uint32_t>(8 * q), wht_block_factor_regs(S, 1));
        const int in_tile = static_cast<int>(e >> args.log_n);
        const uint32_t column = e & ((1u << args.log_n) - 1u);
        if (in_tile >= rows) continue;
        const int64_t row = first_row + in_tile;
        if (grouped) {
            if (!same || q == 0) {
                largest = fabsf(m[q] * scale);
                of = wht_group_factors_of(largest);
                if (args.scales) by = scale * of.reciprocal;
            }
            if ((column & ((1u << args.log_group) - 1u)) == 0)
                wht_block_e4m3_note(args, row, column >> args.log_group, of.scale, largest);
        }
        wht_block_e4m3_put<3>(args, row, column, a + 8 * q, scale, of.reciprocal, by);
    }
}

template <class Case>
__global__ void __launch_bounds__(32 * wht_block_factor_warps, 1)
    wht_block_e4m3_products(const __grid_constant__ wht_block_e4m3_args args) {
    constexpr scalar S = Case::type;
    constexpr int m = Case::order, low = 7; // column bits that phase 0 completes
    extern __shared__ __align__(16) char shared[];
    __shared__ float tops[wht_block_factor_warps];
    float *words = reinterpret_cast<float *>(shared);
    const int log_k = args.log_n - wht_log2_floor(m);
    const int64_t tiles = (args.rows - 1) / args.rows_per_tile + 1;
    float *segment = words + (threadIdx.x >> 5 << wht_block_factor_log_segment(S));
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t row = tile * args.rows_per_tile, left = args.rows - row;
        const int rows = left < args.rows_per_tile ? static_cast<int>(left) : args.rows_per_tile;
        if (tile != blockIdx.x) __syncthreads(); // the words of the tile before are read
        const wht_block_factor_rows of{args.x, row, args.x_row_stride, log_k, rows << log_k, true};
        wht_block_factor_products<S, m>(of, words, wht_hadamard_signs<m>);
        wht_block_factor_prefetch<S>(args.x, args.x_row_stride, args.rows, args.rows_per_tile,
                                     args.lines, tile + tiles_ahead(args.blocks_per_sm));
        __syncthreads(); // the sums of tensor cores are written
        float a[64];
        wht_block_factor_read<S, 0>(a, segment);
        if (log_k >= low) {
            wht_block_factor_butterflies<S, 0, 0>(a, low);
            wht_block_factor_write<S>(a, segment);
        } else {
            wht_block_factor_butterflies<S, 0, 0>(a, log_k);
            wht_block_factor_write<S>(a, segment);
        }
        __syncwarp(); // the words of the first phase are written
        wht_block_factor_read<S, 1>(a, segment);
        if (log_k == 10) {
            wht_block_e4m3_finish<S, m, 10>(args, row, rows, a, tops);
        } else if (log_k == 9) {
            wht_block_e4m3_finish<S, m, 9>(args, row, rows, a, tops);
        } else if (log_k == 8) {
            wht_block_e4m3_finish<S, m, 8>(args, row, rows, a, tops);
        } else {
            wht_block_e4m3_finish<S, m, 0>(args, row, rows, a, tops);
        }
    }
}

template <scalar S, int LogN> kernel_entry wht_block_e4m3_product_entry() {
    using product = wht_block_factor_product_case<S, wht_block_e4m3_order(LogN)>;
    static constexpr variant_name name =
        wht_variant(S, scalar::e4m3, ".m", wht_block_e4m3_order(LogN), true);
    return make_kernel_entry<&wht_block_e4m3_products<product>>("wht.block_e4m3", name.text);
}

template <scalar S> kernel_list wht_block_e4m3_list() {
    static const kernel_entry entries[] = {wht_block_e4m3_product_entry<S, 14>(),
                                           wht_block_e4m3_product_entry<S, 15>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
