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

/// The accesses From .. To - 1 of a thread, of all that meet in a job.
template <class Case> struct wht_cluster64_raw {
    static constexpr int split = 1 << Case::config().log_split;
    using bits = typename stored<Case::config().x>::bits;
    using raw_type = raw_elements<Case::config().x, 2>;
    raw_type data[wht_cluster64_accesses][split];

    template <int From, int To> __device__ __forceinline__ void load(const bits *begin) {
        constexpr wht_cluster64_config c = Case::config();
#pragma unroll
        for (int i = From; i < To; ++i) {
#pragma unroll
            for (int k = 0; k < split; ++k) {
                const auto *p =
                    begin + (wht_cluster64_load_access(static_cast<uint32_t>(i)) |
                             static_cast<uint32_t>(k) << wht_cluster64_log_job(Case::config()));
                if constexpr (split > 1) { // another cluster reads the same
                    data[i][k] = __ldcg(reinterpret_cast<const raw_type *>(p));
                } else {
                    data[i][k] = load_raw<c.x, 2>(p, 0);
                }
            }
        }
    }

    /// The bits above those of a job: each job has one sum of all. Products with +-1 are exact.
    __device__ __forceinline__ void combine(uint32_t job, float (&a)[64]) const {
        constexpr wht_cluster64_config c = Case::config();
#pragma unroll
        for (int i = 0; i < wht_cluster64_accesses; ++i) {
            float sum[split][4];
#pragma unroll
            for (int k = 0; k < split; ++k) widen_raw<c.x, 2>(data[i][k], sum[k]);
#pragma unroll
            for (int bit = c.log_split - 1; bit >= 0; --bit) {
                const float sign = job >> bit & 1u ? -1.f : 1.f;
#pragma unroll
                for (int k = 0; k < 1 << bit; ++k) {
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        sum[k][e] = __fmaf_rn(sum[k | 1 << bit][e], sign, sum[k][e]);
                }
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) a[4 * i + e] = sum[0][e];
        }
    }
};

/// Where the elements of a thread in a job's row begin.
template <class Case>
__device__ __forceinline__ const typename stored<Case::config().x>::bits *
wht_cluster64_begin(const wht_cluster_args &args, int64_t job, uint32_t rank) {
    constexpr wht_cluster64_config c = Case::config();
    return static_cast<const typename stored<c.x>::bits *>(args.x) +
           (job >> c.log_split) * args.x_row_stride + (static_cast<int64_t>(rank) << c.log_part);
}

/// Asks L2 for what is not loaded ahead: the upper part of every 4096 elements.
template <class Case>
__device__ __forceinline__ void wht_cluster64_prefetch(const wht_cluster_args &args, int64_t job,
                                                       uint32_t rank) {
    constexpr wht_cluster64_config c = Case::config();
    constexpr uint32_t from = c.ahead << 8, size = 4096 - from, log_pieces = c.log_part - 12;
    const uint32_t split = threadIdx.x >> log_pieces;
    if (size == 0 || job >= args.rows << c.log_split || split >> c.log_split != 0) return;
    const uint32_t piece = threadIdx.x & bit_range(0, log_pieces);
    prefetch_l2_bulk(wht_cluster64_begin<Case>(args, job, rank) +
                         (split << wht_cluster64_log_job(c)) + (piece << 12) + from,
                     sizeof(typename stored<c.x>::bits) * size);
}

/// Sends the units of a thread, unit Skew first, and loads for the next row into what `next` has.
template <class Case, int Skew, int Index>
__device__ __forceinline__ void
wht_cluster64_send_from(uint32_t thread, const float (&a)[64], float *kept, uint64_t *counter,
                        const typename wht_cluster64_raw<Case>::bits *begin,
                        wht_cluster64_raw<Case> &raw) {
    constexpr wht_cluster64_config c = Case::config();
    if constexpr (Index < wht_cluster64_units) {
        constexpr uint32_t unit = Index ^ Skew, high = unit >> c.log_cluster;
        cluster_send(kept + wht_cluster64_kept(c, thread, high), 0, wht_cluster64_owner(c, unit),
                     a + 4 * unit, counter);
        if constexpr (Index < c.ahead) raw.template load<Index, Index + 1>(begin);
        wht_cluster64_send_from<Case, Skew, Index + 1>(thread, a, kept, counter, begin, raw);
    }
}

/// Blocks and warps begin with different owners.
template <class Case, int Skew>
__device__ __forceinline__ void
wht_cluster64_send(uint32_t skew, uint32_t thread, const float (&a)[64], float *kept,
                   uint64_t *counter, const typename wht_cluster64_raw<Case>::bits *begin,
                   wht_cluster64_raw<Case> &raw) {
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
__device__ __forceinline__ void wht_cluster64_finish(const wht_cluster_args &args, int64_t job,
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
        const int64_t to = (job >> c.log_split) * args.y_row_stride +
                           ((job & bit_range(0, c.log_split)) << wht_cluster64_log_job(c)) +
                           element;
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
    const int64_t jobs = args.rows << c.log_split;
    const auto begin = [&](int64_t job) {
        return wht_cluster64_begin<Case>(args, job, rank) + wht_cluster64_load_thread(threadIdx.x);
    };
    if (threadIdx.x == 0) counter_init(counter);
    wht_cluster64_raw<Case> raw;
    raw.template load<0, c.ahead>(begin(first));
    uint32_t parity = 0;
    for (int64_t job = first; job < jobs; job += step) {
        float a[64];
        raw.template load<c.ahead, wht_cluster64_accesses>(begin(job));
        raw.combine(static_cast<uint32_t>(job), a);
        if (threadIdx.x == 0) counter_expect(counter, 4 << c.log_part);
        if (c.ahead == 0) {
            wht_cluster64_prefetch<Case>(
                args, job + (tiles_ahead(c.blocks_per_sm) >> c.log_cluster), rank);
        }
        wht_cluster64_butterflies<0, 6>(a);
        if (job != first) __syncthreads(); // what was sent before has been taken
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
        if (c.ahead > 0) wht_cluster64_prefetch<Case>(args, job + step, rank);
        const int64_t later = job + step < jobs ? job + step : job;
        wht_cluster64_send<Case, 0>((rank ^ threadIdx.x >> 5) & bit_range(0, c.log_cluster),
                                    threadIdx.x, a, words + wht_cluster64_part(c, rank), counter,
                                    begin(later), raw);
        counter_wait(counter, parity);
        parity ^= 1;
        wht_cluster64_finish<Case>(args, job, rank, scale, words);
    }
#endif
}

} // namespace plait::impl::cuda
