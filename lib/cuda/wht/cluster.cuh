// wht.cluster: y[row] = scale * H_n x[row], n = 2^16..2^19 (f64: 2^15..2^18); 64-bit row strides.
// A cluster of 8 or 16 blocks holds a row: each element is read once and written once. A block
// transforms the bits within its part, n / blocks elements, and sends 16 bytes at a time through
// distributed shared memory to the block that transforms the bits of the block number and stores
// (cluster_layout.h). The data itself counts in (st.async, mbarrier); the barrier of the cluster
// says only that old words have been taken, and is relaxed: a release waits for stores to memory.
// Hence no block exits or is sent to while others need its words. In place works: a block stores
// when all parts have come. Limits: 16-byte bases and row strides, row strides >= n, sm_90.
// Precision: f32 sums for 16-bit types and f32, f64 for f64; one scaling and rounding at the store.
// Measured on an H200, time / copy: f32 2^16..2^19 1.12, 1.25, 1.38, 1.59; f64 1.12, 1.18, 1.31,
// 1.54; 16 bits 1.95 at 2^17. Each byte of DRAM once (ncu; asked for a row earlier, half of 2^18 was
// read twice). From 2^18 on the bound is the queue of shared-memory instructions: warps wait for
// it (mio_throttle 4.8 of an issue, everything else 2 or less) while DRAM is busy 55 to 75 % and the
// data path of shared memory 43 %; parts of 128 KB leave one block on an SM, whose phases follow
// each other. Clusters of 16 reach 112 of 132 SMs. The network (3.3 TB/s of 2.1 needed) is no bound.
// Lost: 64 elements a thread and two exchanges in place of three, with stores of 4 bytes (1.24 at
// 2^17, 1.47 at 2^18): the queue of global accesses (lg_throttle 2.6) then binds.
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

/// Count accumulators, in one access.
template <int Count, class T> __device__ __forceinline__ void shared_take(T *out, const T *words) {
    using raw = typename raw_access<Count *static_cast<int>(sizeof(T))>::type;
    constexpr scalar type = sizeof(T) == 8 ? scalar::f64 : scalar::f32;
    constexpr int log = Count == 4 ? 2 : Count == 2 ? 1 : 0;
    widen_raw<type, log>(*reinterpret_cast<const raw *>(words), out);
}

/// What this thread loads of a row, as stored.
template <class Case> struct wht_cluster_raw {
    static constexpr wht_cluster_config c = Case::config();
    static constexpr int vec = c.tile.log_vec_x;
    static constexpr int each = 1 << (c.tile.log_items - vec);
    static constexpr int count = each << c.log_rounds;
    raw_elements<c.x, vec> data[count];

    /// Where this thread's elements of a row begin.
    static __device__ __forceinline__ const void *begin(const wht_cluster_args &args, int64_t row,
                                                        uint32_t rank) {
        constexpr wht_cluster_config k = Case::config();
        return static_cast<const typename stored<k.x>::bits *>(args.x) + row * args.x_row_stride +
               (static_cast<int64_t>(rank) << wht_cluster_log_part(k)) +
               tile_thread_part(k.tile, 0, threadIdx.x);
    }

    /// The accesses From .. To - 1.
    template <int From, int To> __device__ __forceinline__ void load(const void *begin) {
        constexpr wht_cluster_config k = Case::config();
#pragma unroll
        for (int i = From; i < To; ++i) {
            const uint32_t item = tile_item_part(k.tile, 0, (i % each) << vec);
            data[i] = load_raw<k.x, vec>(
                begin, item + (static_cast<uint32_t>(i / each) << k.tile.log_tile));
        }
    }

    template <int Rounds, int Items, class T>
    __device__ __forceinline__ void widen(T (&a)[Rounds][Items]) const {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            widen_raw<Case::config().x, vec>(data[i], &a[i / each][(i % each) << vec]);
        }
    }
};

/// Brings the part of a later row to L2. Clusters start in order, so that the one as many ahead as
/// run at a time starts when this one is done.
template <class Case>
__device__ __forceinline__ void wht_cluster_prefetch(const wht_cluster_args &args, int64_t row,
                                                     int64_t step, uint32_t rank) {
    constexpr wht_cluster_config c = Case::config();
    if constexpr (c.prefetch) {
        row += c.ahead ? 2 * step : tiles_ahead(c.blocks_per_sm) >> c.log_cluster;
        if (row >= args.rows) return;
        constexpr uint32_t size = sizeof(typename stored<c.x>::bits);
        const int64_t at =
            row * args.x_row_stride + (static_cast<int64_t>(rank) << wht_cluster_log_part(c));
        prefetch_l2_bulk(static_cast<const char *>(args.x) + at * size,
                         size << wht_cluster_log_part(c));
    }
}

/// Sends each unit to its owner; the registers that this frees take the next row.
template <class Case, int Unit, int Rounds, int Items, class T>
__device__ __forceinline__ void
wht_cluster_send_from(uint32_t rank, uint32_t thread, const T (&a)[Rounds][Items], T *kept,
                      uint64_t *counter, const void *next, wht_cluster_raw<Case> &raw) {
    constexpr wht_cluster_config c = Case::config();
    constexpr int units = wht_cluster_units(c), each = units >> c.log_rounds;
    if constexpr (Unit < units) {
        cluster_send(kept + wht_cluster_word(c, rank, thread, 0),
                     static_cast<int>(wht_cluster_word(c, 0, 0, Unit)),
                     wht_cluster_owner(c, thread, Unit),
                     a[Unit / each] + (Unit % each << c.log_unit), counter);
        constexpr int count = wht_cluster_raw<Case>::count;
        if constexpr (c.ahead) {
            raw.template load<Unit * count / units, (Unit + 1) * count / units>(next);
        }
        wht_cluster_send_from<Case, Unit + 1>(rank, thread, a, kept, counter, next, raw);
    }
}

/// The bits of the block number, for what this block owns, and the stores.
template <class Case, class T>
__device__ __forceinline__ void wht_cluster_finish(const wht_cluster_args &args, int64_t row,
                                                   uint32_t rank, T scale, const T *kept) {
    constexpr wht_cluster_config c = Case::config();
    constexpr int parts = wht_cluster_blocks(c), take = 1 << c.log_take;
#pragma unroll
    for (int round = 0; round < wht_cluster_rounds(c); ++round) {
        const uint32_t word = wht_cluster_take(c, threadIdx.x, static_cast<uint32_t>(round));
        T b[parts * take];
#pragma unroll
        for (int p = 0; p < parts; ++p) {
            shared_take<take>(b + p * take,
                              kept + word + (p << (wht_cluster_log_part(c) - c.log_cluster)));
        }
        butterfly_range<c.log_take, c.log_take + c.log_cluster>(b);
        const int64_t origin =
            row * args.y_row_stride + wht_cluster_element(Case::config(), rank, word);
#pragma unroll
        for (int p = 0; p < parts; ++p) {
            store_elements<c.x, c.log_take>(
                args.y, origin + (static_cast<int64_t>(p) << wht_cluster_log_part(c)), b + p * take,
                scale);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_cluster(const __grid_constant__ wht_cluster_args args) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr wht_cluster_config c = Case::config();
    using T = accumulator<c.x>;
    extern __shared__ __align__(128) char shared[];
    T *kept = reinterpret_cast<T *>(shared + wht_cluster_kept_at(c));
    auto *counter = reinterpret_cast<uint64_t *>(shared + wht_cluster_counter_at(c));
    const T scale = static_cast<T>(args.scale);
    const uint32_t rank = cluster_rank();
    const int64_t first = blockIdx.x >> c.log_cluster, step = gridDim.x >> c.log_cluster;
    wht_cluster_raw<Case> raw;
    constexpr int loads = wht_cluster_raw<Case>::count;
    if (threadIdx.x == 0) counter_init(counter);
    if constexpr (c.ahead) {
        if (first < args.rows) raw.template load<0, loads>(raw.begin(args, first, rank));
    }
    cluster_arrive_relaxed();
    uint32_t parity = 0;
    for (int64_t row = first; row < args.rows; row += step) {
        T a[1 << c.log_rounds][1 << c.tile.log_items];
        if constexpr (!c.ahead) raw.template load<0, loads>(raw.begin(args, row, rank));
        if (threadIdx.x == 0) {
            counter_expect(counter, wht_cluster_kept_bytes(c));
            if (!c.ahead) wht_cluster_prefetch<Case>(args, row, step, rank);
        }
        raw.widen(a);
        transform_tiles<Case>(a, shared, row != first);
        cluster_wait(); // all blocks run, and have taken what they were sent before
        uint32_t thread = threadIdx.x;
        make_opaque(thread); // or the addresses of all owners would stay in registers
        // Without a branch, which would cost registers: the last row is loaded twice.
        const int64_t next = row + step < args.rows ? row + step : row;
        wht_cluster_send_from<Case, 0>(rank, thread, a, kept, counter, raw.begin(args, next, rank),
                                       raw);
        // not earlier: L2 gives up what is asked for long before it is loaded
        if (c.ahead && threadIdx.x == 0) wht_cluster_prefetch<Case>(args, row, step, rank);
        counter_wait(counter, parity);
        parity ^= 1;
        wht_cluster_finish<Case>(args, row, rank, scale, kept);
        cluster_arrive_relaxed(); // what was stored has been read
    }
    cluster_wait();
#endif
}

} // namespace plait::impl::cuda
