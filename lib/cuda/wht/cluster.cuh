// wht.cluster: y[row] = scale * H_n x[row], n = 2^log_n (f64 15..18, others 16..19); 64-bit
// strides.
#pragma once

#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/cluster_layout.h"

namespace plait::impl::cuda {

template <scalar X, int LogN> struct wht_cluster_case {
    PLAIT_HD static constexpr wht_cluster_config config() { return wht_cluster_config_of(X, LogN); }
};

/// Butterflies of the item bits From .. To - 1.
template <int From, int To, int Items, class T>
__device__ __forceinline__ void butterfly_range(T (&a)[Items]) {
    if constexpr (From < To) {
        butterfly_items<From>(a);
        butterfly_range<From + 1, To>(a);
    }
}

/// Bytes words of shared memory at a multiple of their size.
__device__ __forceinline__ void shared_take4(float *out, const float *words) {
    const float4 v = *reinterpret_cast<const float4 *>(words);
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
}
__device__ __forceinline__ void shared_take2(float *out, const float *words) {
    const float2 v = *reinterpret_cast<const float2 *>(words);
    out[0] = v.x, out[1] = v.y;
}
__device__ __forceinline__ void shared_take2(double *out, const double *words) {
    const double2 v = *reinterpret_cast<const double2 *>(words);
    out[0] = v.x, out[1] = v.y;
}

/// This block's part of a row.
template <class Case, int Items, class T>
__device__ __forceinline__ void wht_cluster_load(const wht_cluster_args &args, int64_t row,
                                                 uint32_t rank, T (&a)[Items]) {
    constexpr wht_cluster_config c = Case::config();
    constexpr int v = c.tile.log_vec_x;
    const int64_t origin = row * args.x_row_stride + (rank << c.tile.log_tile) +
                           tile_thread_part(c.tile, 0, threadIdx.x);
#pragma unroll
    for (int j = 0; j < Items; j += 1 << v) {
        load_elements<c.x, v>(args.x, origin + tile_item_part(c.tile, 0, j), a + j);
    }
}

/// The bits within a part; arrives at the barrier of the cluster when nobody needs the words.
template <class Case, int Items, class T>
__device__ __forceinline__ void wht_cluster_part(T (&a)[Items], T *words, bool in_use) {
    phase_butterflies<Case, 0>(a);
    if (in_use) __syncthreads(); // what was sent here before is taken
    shared_write<Case, 0>(a, words);
    __syncthreads(); // phase 0 is written
    shared_read<Case, 1>(a, words);
    phase_butterflies<Case, 1>(a);
    shared_write<Case, 1>(a, words);
    __syncwarp(); // phase 1 is written
    shared_read<Case, 2>(a, words);
    cluster_arrive();
    phase_butterflies<Case, 2>(a);
}

/// Brings the part of a later row to L2: clusters start in order, so this block's place goes to
/// that row when this one is done.
template <class Case>
__device__ __forceinline__ void wht_cluster_prefetch(const wht_cluster_args &args, int64_t row,
                                                     uint32_t rank) {
    constexpr wht_cluster_config c = Case::config();
    if (threadIdx.x != 0) return;
    const int64_t next = row + (tiles_ahead(c.blocks_per_sm) >> c.log_cluster);
    if (next >= args.rows) return;
    constexpr uint32_t size = sizeof(typename stored<c.x>::bits);
    const int64_t at = next * args.x_row_stride + (rank << c.tile.log_tile);
    prefetch_l2_bulk(static_cast<const char *>(args.x) + at * size, size << c.tile.log_tile);
}

template <class Case, int Items, class T>
__device__ __forceinline__ void wht_cluster_send(const T (&a)[Items], T *words, uint32_t rank) {
    constexpr wht_cluster_config c = Case::config();
#pragma unroll
    for (int unit = 0; unit < Items >> c.log_unit; ++unit) {
        const uint32_t item = static_cast<uint32_t>(unit);
        cluster_store(words + wht_cluster_word(c, rank, threadIdx.x, item),
                      wht_cluster_owner(c, threadIdx.x, item), a + (unit << c.log_unit));
    }
}

/// The bits of the block number, for what this block owns, and the stores.
template <class Case, class T>
__device__ __forceinline__ void wht_cluster_finish(const wht_cluster_args &args, int64_t row,
                                                   uint32_t rank, T scale, const T *words) {
    constexpr wht_cluster_config c = Case::config();
    constexpr int parts = wht_cluster_blocks(c), take = 1 << c.log_take;
#pragma unroll
    for (int round = 0; round < wht_cluster_rounds(c); ++round) {
        const uint32_t word = wht_cluster_take(c, threadIdx.x, static_cast<uint32_t>(round));
        T b[parts * take];
#pragma unroll
        for (int p = 0; p < parts; ++p) {
            const T *from = words + word + (p << (c.tile.log_tile - c.log_cluster));
            if constexpr (take == 4) {
                shared_take4(b + p * take, from);
            } else {
                shared_take2(b + p * take, from);
            }
        }
        butterfly_range<c.log_take, c.log_take + c.log_cluster>(b);
        const int64_t origin =
            row * args.y_row_stride + wht_cluster_element(Case::config(), rank, word);
#pragma unroll
        for (int p = 0; p < parts; ++p) {
            store_elements<c.x, c.log_take>(
                args.y, origin + (static_cast<int64_t>(p) << c.tile.log_tile), b + p * take, scale);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_cluster(const __grid_constant__ wht_cluster_args args) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr wht_cluster_config c = Case::config();
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    T *words = reinterpret_cast<T *>(shared);
    const T scale = static_cast<T>(args.scale);
    const uint32_t rank = cluster_rank();
    const int64_t first = blockIdx.x >> c.log_cluster, step = gridDim.x >> c.log_cluster;
    for (int64_t row = first; row < args.rows; row += step) {
        T a[1 << c.tile.log_items];
        wht_cluster_load<Case>(args, row, rank, a);
        wht_cluster_prefetch<Case>(args, row, rank);
        wht_cluster_part<Case>(a, words, row != first);
        cluster_wait(); // nobody needs the words of its own part any more
        wht_cluster_send<Case>(a, words, rank);
        cluster_arrive();
        cluster_wait(); // all has been sent
        wht_cluster_finish<Case>(args, row, rank, scale, words);
    }
#endif
}

} // namespace plait::impl::cuda
