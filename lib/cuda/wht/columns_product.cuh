// wht.columns_product: y = scale * (H_m (x) I) x on [batch][outer][m][inner] as wht.columns_tiled,
// m = 2^11, 2^12, of 16-bit types, eight columns at a time (columns_product_layout.h).
//   Tiling     a block holds all rows of its columns as f32 in shared memory. Tensor cores multiply
//              by H_16 or H_32; then a warp has 2^11 sums and their 2^7 rows in two phases.
//   Traffic    each element once in, once out, 16 bytes of a row at a time: half a sector, whose
//              other half is its neighbour's, which runs at the same time and meets it in L2.
//   Precision  products with +-1 are exact, sums f32; one scale, one rounding.
//   Accesses   16 bytes where bases and batch strides allow it, else the same elements one by one.
//   In place   works: a tile is in shared memory before it is written.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/wht/block_factor_product.cuh"
#include "lib/cuda/wht/block_factor_segment.cuh"
#include "lib/cuda/wht/columns_product_layout.h"

namespace plait::impl::cuda {

template <scalar S, int LogM> struct wht_columns_product_case {
    static constexpr scalar type = S;
    static constexpr int log_m = LogM;
    static constexpr int order = 1 << (LogM - wht_columns_product_log_rows);
};

__device__ __forceinline__ bool wht_columns_product_vector(const void *base, int64_t batch_stride) {
    return reinterpret_cast<uintptr_t>(base) % 16 == 0 && batch_stride % 8 == 0;
}

/// Asks for the lines of a tile's rows: those of some rows, the tiles beside it for the others.
template <class Case>
__device__ __forceinline__ void wht_columns_product_prefetch(const wht_columns_args &args,
                                                             int64_t tile) {
    constexpr int sharing = prefetch_bytes / 16;
    constexpr wht_columns_config c = wht_columns_product_config(Case::type, Case::log_m);
    const auto *x = static_cast<const uint16_t *>(args.x) + wht_columns_tile_place(c, args, tile).x;
    for (int i = static_cast<int>(threadIdx.x); i < (1 << Case::log_m) / sharing;
         i += static_cast<int>(blockDim.x))
        prefetch_l2(x + ((i * sharing + (tile & (sharing - 1))) << args.log_inner));
}

template <class Case>
__global__ void __launch_bounds__(32 * wht_block_factor_warps, 1)
    wht_columns_product(const __grid_constant__ wht_columns_args args) {
    constexpr scalar S = Case::type;
    constexpr int m = Case::order, run = wht_columns_product_log_run;
    constexpr int rows = wht_columns_product_log_rows, log_k = rows + run;
    constexpr wht_columns_config c = wht_columns_product_config(S, Case::log_m);
    constexpr uint32_t regs = wht_block_factor_regs(S, 1);
    extern __shared__ __align__(16) char shared[];
    float *words = reinterpret_cast<float *>(shared);
    const uint32_t begin = threadIdx.x >> 5 << wht_block_factor_log_segment(S);
    const float scale = static_cast<float>(args.scale);
    const bool x_vector = wht_columns_product_vector(args.x, args.x_batch_stride);
    const bool y_vector = wht_columns_product_vector(args.y, args.y_batch_stride);
    const int64_t tiles = (args.batch * args.outer) << (args.log_inner - run);
    const int together = wht_block_factor_warps * 32 / static_cast<int>(blockDim.x);
    start_successor();
    const int64_t first = wait_for_predecessor();
    for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
        const wht_columns_place place = wht_columns_tile_place(c, args, tile);
        if (tile != first) __syncthreads(); // the words of the tile before are read
        const auto fetch = [&](int q, int i, uint4(&raw)[m / 4]) {
            const int64_t row = (i << rows) + (q >> run);
#pragma unroll
            for (int s = 0; s < m / 4; ++s) {
                const int64_t at = place.x + ((row + (s << rows)) << args.log_inner);
                if (x_vector) {
                    raw[s] = load_raw<S, 3>(args.x, at);
                    continue;
                }
                uint32_t word[4] = {};
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    word[e / 2] |= static_cast<uint32_t>(load_raw<S, 0>(args.x, at + e))
                                   << 16 * (e % 2);
                raw[s] = make_uint4(word[0], word[1], word[2], word[3]);
            }
        };
        wht_block_factor_products<S, m, 8u>(log_k, 1 << log_k, words, fetch, wht_hadamard_signs<m>);
        const int64_t next = tile + tiles_ahead(together);
        if (next < tiles) wht_columns_product_prefetch<Case>(args, next);
        __syncthreads(); // the sums of tensor cores are written
        float a[64];
        wht_block_factor_read<S, 0>(a, words + begin);
        wht_block_factor_butterflies<S, 0, 0>(a, log_k);
        wht_block_factor_write<S>(a, words + begin);
        __syncwarp(); // the words of the first phase are written
        wht_block_factor_read<S, 1>(a, words + begin);
        wht_block_factor_butterflies<S, 1, 0>(a, log_k);
        const uint32_t own = begin | wht_block_factor_lane<S, 1>();
#pragma unroll
        for (int j = 0; j < 64; j += 8) {
            const int64_t row = (own | bit_deposit(static_cast<uint32_t>(j), regs)) >> run;
            const int64_t at = place.y + (row << args.log_inner);
            if (y_vector) {
                store_elements<S, 3>(args.y, at, a + j, scale);
                continue;
            }
#pragma unroll
            for (int e = 0; e < 8; ++e) store_elements<S, 0>(args.y, at + e, a + j + e, scale);
        }
    }
}

template <scalar S, int LogM> kernel_entry wht_columns_product_entry() {
    static_assert(wht_columns_product_exists(S, S, LogM),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_variant(S, S, ".k", LogM, true);
    return make_kernel_entry<&wht_columns_product<wht_columns_product_case<S, LogM>>>(
        "wht.columns_product", name.text);
}

} // namespace plait::impl::cuda
