// wht.cluster64: y[row] = scale * H_n x[row] of f32, n = 2^17, 2^18; 64-bit row strides.
#pragma once

#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/cluster64_layout.h"

namespace plait::impl::cuda {

template <int LogN, int Alt> struct wht_cluster64_case {
    PLAIT_HD static constexpr wht_cluster64_config config() {
        return wht_cluster64_config_of(LogN, Alt);
    }
};

/// Butterflies of the item bits From .. To - 1.
template <int From, int To, int Items>
__device__ __forceinline__ void wht_cluster64_butterflies(float (&a)[Items]) {
    if constexpr (From < To) {
        butterfly_items<From>(a);
        wht_cluster64_butterflies<From + 1, To>(a);
    }
}

/// The accesses From .. To - 1 of a thread.
template <int From, int To>
__device__ __forceinline__ void wht_cluster64_load(const float *begin, float *out) {
#pragma unroll
    for (int i = From; i < To; ++i) {
        load_elements<scalar::f32, 2>(begin, wht_cluster64_load_access(static_cast<uint32_t>(i)),
                                      out + 4 * i);
    }
}

/// Asks L2 for what is not loaded ahead of a row: the upper part of every 4096 elements.
template <class Case>
__device__ __forceinline__ void wht_cluster64_prefetch(const wht_cluster_args &args, int64_t row,
                                                       uint32_t rank) {
    constexpr wht_cluster64_config c = Case::config();
    constexpr uint32_t from = c.ahead << 8, size = 4096 - from;
    if (size == 0 || row >= args.rows || threadIdx.x >> (c.log_part - 12) != 0) return;
    prefetch_l2_bulk(static_cast<const float *>(args.x) + row * args.x_row_stride +
                         (static_cast<int64_t>(rank) << c.log_part) + (threadIdx.x << 12) + from,
                     4 * size);
}

/// Sends the units of a thread, unit Skew first, and loads for the next row into what `next` has.
template <class Case, int Skew, int Index, int Next>
__device__ __forceinline__ void wht_cluster64_send_from(uint32_t thread, const float (&a)[64],
                                                        float *kept, uint64_t *counter,
                                                        const float *begin, float (&next)[Next]) {
    constexpr wht_cluster64_config c = Case::config();
    if constexpr (Index < wht_cluster64_units) {
        constexpr uint32_t unit = Index ^ Skew, high = unit >> c.log_cluster;
        cluster_send(kept + wht_cluster64_kept(c, thread, high), 0, wht_cluster64_owner(c, unit),
                     a + 4 * unit, counter);
        if constexpr (Index < c.ahead) wht_cluster64_load<Index, Index + 1>(begin, next);
        wht_cluster64_send_from<Case, Skew, Index + 1>(thread, a, kept, counter, begin, next);
    }
}

/// Blocks and warps begin with different owners.
template <class Case, int Skew, int Next>
__device__ __forceinline__ void
wht_cluster64_send(uint32_t skew, uint32_t thread, const float (&a)[64], float *kept,
                   uint64_t *counter, const float *begin, float (&next)[Next]) {
    constexpr wht_cluster64_config c = Case::config();
    if constexpr (Skew + 1 < 1 << c.log_cluster) {
        if (skew != Skew) {
            wht_cluster64_send<Case, Skew + 1>(skew, thread, a, kept, counter, begin, next);
            return;
        }
    }
    wht_cluster64_send_from<Case, Skew, 0>(thread, a, kept, counter, begin, next);
}

template <class Case>
__device__ __forceinline__ void wht_cluster64_finish(const wht_cluster_args &args, int64_t row,
                                                     uint32_t rank, float scale,
                                                     const float *kept) {
    constexpr wht_cluster64_config c = Case::config();
    constexpr int items = 1 << wht_cluster64_log_items(c);
#pragma unroll
    for (int round = 0; round < wht_cluster64_rounds(c); ++round) {
        const uint32_t element =
            wht_cluster64_take(c, rank, threadIdx.x, static_cast<uint32_t>(round));
        const float *from = kept + wht_cluster64_take_word(c, element);
        float b[items];
#pragma unroll
        for (int j = 0; j < items; ++j)
            b[j] = from[wht_cluster64_item_word(c, static_cast<uint32_t>(j))];
        wht_cluster64_butterflies<0, wht_cluster64_log_items(c)>(b);
        float *to = static_cast<float *>(args.y) + row * args.y_row_stride + element;
#pragma unroll
        for (int j = 0; j < items; ++j) {
            store_elements<scalar::f32, 0>(to, wht_cluster64_item_element(static_cast<uint32_t>(j)),
                                           b + j, scale);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(wht_cluster64_threads(Case::config()),
                                  Case::config().blocks_per_sm)
    wht_cluster64(const __grid_constant__ wht_cluster_args args) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr wht_cluster64_config c = Case::config();
    extern __shared__ __align__(128) char shared[];
    auto *words = reinterpret_cast<float *>(shared);
    auto *counter = reinterpret_cast<uint64_t *>(shared + wht_cluster64_counter_at(c));
    const auto scale = static_cast<float>(args.scale);
    const uint32_t rank = cluster_rank();
    const int64_t first = blockIdx.x >> c.log_cluster, step = gridDim.x >> c.log_cluster;
    const float *x = static_cast<const float *>(args.x) +
                     (static_cast<int64_t>(rank) << c.log_part) +
                     wht_cluster64_load_thread(threadIdx.x);
    if (threadIdx.x == 0) counter_init(counter);
    float next[c.ahead > 0 ? 4 * c.ahead : 4];
    wht_cluster64_load<0, c.ahead>(x + first * args.x_row_stride, next);
    uint32_t parity = 0;
    for (int64_t row = first; row < args.rows; row += step) {
        float a[64];
        wht_cluster64_load<c.ahead, wht_cluster64_accesses>(x + row * args.x_row_stride, a);
#    pragma unroll
        for (int i = 0; i < 4 * c.ahead; ++i) a[i] = next[i];
        if (threadIdx.x == 0) counter_expect(counter, 4 << c.log_part);
        if (c.ahead == 0) {
            wht_cluster64_prefetch<Case>(
                args, row + (tiles_ahead(c.blocks_per_sm) >> c.log_cluster), rank);
        }
        wht_cluster64_butterflies<0, 6>(a);
        if (row != first) __syncthreads(); // what was sent before has been taken
        float *to = words + wht_cluster64_word(wht_cluster64_load_thread(threadIdx.x));
#    pragma unroll
        for (int i = 0; i < wht_cluster64_accesses; ++i) {
            *reinterpret_cast<float4 *>(
                to + wht_cluster64_word(wht_cluster64_load_access(static_cast<uint32_t>(i)))) =
                float4{a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]};
        }
        __syncthreads(); // all words are written
        const float *from = words + wht_cluster64_word(wht_cluster64_middle_thread(threadIdx.x));
#    pragma unroll
        for (int j = 0; j < 64; ++j)
            a[j] = from[wht_cluster64_middle_item(c, static_cast<uint32_t>(j))];
        wht_cluster64_butterflies<0, 6>(a);
        cluster_arrive_relaxed(); // behind the additions: the words have been read
        cluster_wait();           // by all blocks
        if (c.ahead > 0) wht_cluster64_prefetch<Case>(args, row + step, rank);
        const int64_t later = row + step < args.rows ? row + step : row;
        wht_cluster64_send<Case, 0>((rank ^ threadIdx.x >> 5) & bit_range(0, c.log_cluster),
                                    threadIdx.x, a, words + wht_cluster64_part(c, rank), counter,
                                    x + later * args.x_row_stride, next);
        counter_wait(counter, parity);
        parity ^= 1;
        wht_cluster64_finish<Case>(args, row, rank, scale, words);
    }
#endif
}

} // namespace plait::impl::cuda
