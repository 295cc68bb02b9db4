// wht.cluster64: y[row] = scale * H_n x[row] of f32, n = 2^17, 2^18; 64-bit row strides.
#pragma once

#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/cluster64_layout.h"

namespace plait::impl::cuda {

template <scalar X, int LogN, int Alt> struct wht_cluster64_case {
    PLAIT_HD static constexpr wht_cluster64_config config() {
        return wht_cluster64_config_of(X, LogN, Alt);
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
template <scalar X, int From, int To, int Count>
__device__ __forceinline__ void wht_cluster64_load(const void *begin,
                                                   raw_elements<X, 2> (&out)[Count]) {
#pragma unroll
    for (int i = From; i < To; ++i)
        out[i] = load_raw<X, 2>(begin, wht_cluster64_load_access(static_cast<uint32_t>(i)));
}

/// Asks L2 for what is not loaded ahead of a row: the upper part of every 4096 elements.
template <class Case>
__device__ __forceinline__ void wht_cluster64_prefetch(const wht_cluster_args &args, int64_t row,
                                                       uint32_t rank) {
    constexpr wht_cluster64_config c = Case::config();
    constexpr uint32_t from = c.ahead << 8, size = 4096 - from;
    if (size == 0 || row >= args.rows || threadIdx.x >> (c.log_part - 12) != 0) return;
    using bits = typename stored<c.x>::bits;
    prefetch_l2_bulk(static_cast<const bits *>(args.x) + row * args.x_row_stride +
                         (static_cast<int64_t>(rank) << c.log_part) + (threadIdx.x << 12) + from,
                     sizeof(bits) * size);
}

/// Sends the units of a thread, unit Skew first, and loads for the next row into what `next` has.
template <class Case, int Skew, int Index, class Raw>
__device__ __forceinline__ void
wht_cluster64_send_from(uint32_t thread, const float (&a)[64], float *kept, uint64_t *counter,
                        const void *begin, Raw (&raw)[wht_cluster64_accesses]) {
    constexpr wht_cluster64_config c = Case::config();
    if constexpr (Index < wht_cluster64_units) {
        constexpr uint32_t unit = Index ^ Skew, high = unit >> c.log_cluster;
        cluster_send(kept + wht_cluster64_kept(c, thread, high), 0, wht_cluster64_owner(c, unit),
                     a + 4 * unit, counter);
        if constexpr (Index < c.ahead) wht_cluster64_load<c.x, Index, Index + 1>(begin, raw);
        wht_cluster64_send_from<Case, Skew, Index + 1>(thread, a, kept, counter, begin, raw);
    }
}

/// Blocks and warps begin with different owners.
template <class Case, int Skew, class Raw>
__device__ __forceinline__ void
wht_cluster64_send(uint32_t skew, uint32_t thread, const float (&a)[64], float *kept,
                   uint64_t *counter, const void *begin, Raw (&raw)[wht_cluster64_accesses]) {
    constexpr wht_cluster64_config c = Case::config();
    if constexpr (Skew + 1 < 1 << c.log_cluster) {
        if (skew != Skew) {
            wht_cluster64_send<Case, Skew + 1>(skew, thread, a, kept, counter, begin, raw);
            return;
        }
    }
    wht_cluster64_send_from<Case, Skew, 0>(thread, a, kept, counter, begin, raw);
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
        if constexpr (c.by_lanes) butterfly_lanes<4>(b);
        wht_cluster64_butterflies<0, wht_cluster64_log_items(c)>(b);
        const int64_t to = row * args.y_row_stride + element;
#pragma unroll
        for (int j = 0; j < items; ++j) {
            store_elements<c.x, 0>(
                args.y, to + wht_cluster64_item_element(c, static_cast<uint32_t>(j)), b + j, scale);
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
    const auto *x = static_cast<const typename stored<c.x>::bits *>(args.x) +
                    (static_cast<int64_t>(rank) << c.log_part) +
                    wht_cluster64_load_thread(threadIdx.x);
    if (threadIdx.x == 0) counter_init(counter);
    raw_elements<c.x, 2> raw[wht_cluster64_accesses];
    wht_cluster64_load<c.x, 0, c.ahead>(x + first * args.x_row_stride, raw);
    uint32_t parity = 0;
    for (int64_t row = first; row < args.rows; row += step) {
        float a[64];
        wht_cluster64_load<c.x, c.ahead, wht_cluster64_accesses>(x + row * args.x_row_stride, raw);
#    pragma unroll
        for (int i = 0; i < wht_cluster64_accesses; ++i) widen_raw<c.x, 2>(raw[i], a + 4 * i);
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
                                    x + later * args.x_row_stride, raw);
        counter_wait(counter, parity);
        parity ^= 1;
        wht_cluster64_finish<Case>(args, row, rank, scale, words);
    }
#endif
}

} // namespace plait::impl::cuda
