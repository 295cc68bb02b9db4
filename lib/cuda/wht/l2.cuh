// wht.l2: y[row] = scale * H_n x[row], n = 2^16..2^22 (l2_layout.h), in one launch that reads x and
// writes y once: between its two passes a row stays in the L2 cache, in y itself, for 16-bit types
// as f32 in a ring of rows in the workspace. Every byte crosses L2 four times.
// Blocks take tickets, one tile each, until there are none; the passes of different rows alternate.
// Forward progress, whatever else is resident: a tile waits only for tiles of smaller tickets (its
// row's pass 1; for the ring, pass 2 of the row that had the slot). Tickets are taken in order, by
// blocks that run; a block has one tile at a time and announces the last one before it waits. So
// the smallest ticket that is not done never waits, with one block as with many.
// Limits: 16-byte bases and strides; counters are zero (wht.l2_reset). In place works: x of a row
// is read by pass 1 only, and a tile of either pass writes the places that it has read.
// Precision: f32 accumulates in f32, f64 in f64, 16-bit types in f32 with one rounding at the end.
// Measured on an H200 against a copy: f32 1.61 (2^16) to 1.68 (2^21), two passes over the memory
// 2.05 to 2.16. Bound by L2: lts__throughput 98.9 % at 2^20 (ncu), DRAM 66 %; without additions and
// exchanges it took as long. A kernel that only reads and writes in L2 reaches 60 % of its sectors,
// this one 51 %. Memory is read once (1076 MB of 1074) and written 1.1 to 1.5 times (1529 MB at
// 2^20): L2 writes back some of what pass 2 still needs.
#pragma once

#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/l2_layout.h"

namespace plait::impl::cuda {

template <scalar X, int LogN> struct wht_l2_case {
    PLAIT_HD static constexpr wht_l2_config config() { return wht_l2_config_of(X, LogN); }
};

template <class Case, int Pass> struct wht_l2_pass_case {
    PLAIT_HD static constexpr wht_l2_pass config() { return Case::config().pass[Pass]; }
};

// ---- Counters ----------------------------------------------------------------------------------

/// All threads of a block meet, from different places of the code: __syncthreads() is for one
/// place.
template <class Case> __device__ __forceinline__ void block_barrier() {
#ifdef __CUDACC__
    asm volatile("barrier.sync 1, %0;" ::"n"(wht_l2_threads(Case::config())) : "memory");
#else
    __syncthreads();
#endif
}

/// What was written before the additions that this value shows is visible after it.
__device__ __forceinline__ uint32_t load_acquire(const uint32_t *p) {
#ifdef __CUDACC__
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
#else
    return *p;
#endif
}

/// Adds 1 after everything that the block wrote before its last barrier.
__device__ __forceinline__ void add_release(uint32_t *p) {
#ifdef __CUDACC__
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
#else
    ++*p;
#endif
}

__device__ __forceinline__ void wait_a_little() {
#ifdef __CUDACC__
    __nanosleep(40);
#endif
}

// ---- Chunks of 16 bytes ------------------------------------------------------------------------

template <class Pass, int Phase, int Items, class T>
__device__ __forceinline__ void chunks_write(const T (&a)[Items], T *words) {
    constexpr tile_layout t = Pass::config().tile;
    T *base = words + tile_word(t, tile_thread_part(t, Phase, threadIdx.x));
#pragma unroll
    for (int j = 0; j < Items; j += 1 << t.log_vec_x) {
        T *p = base + tile_word(t, tile_item_part(t, Phase, j));
        if constexpr (sizeof(T) == 4) {
            *reinterpret_cast<float4 *>(p) = float4{a[j], a[j + 1], a[j + 2], a[j + 3]};
        } else {
            *reinterpret_cast<double2 *>(p) = double2{a[j], a[j + 1]};
        }
    }
}

template <class Pass, int Phase, int Items, class T>
__device__ __forceinline__ void chunks_read(T (&a)[Items], const T *words) {
    constexpr tile_layout t = Pass::config().tile;
    const T *base = words + tile_word(t, tile_thread_part(t, Phase, threadIdx.x));
#pragma unroll
    for (int j = 0; j < Items; j += 1 << t.log_vec_x) {
        const T *p = base + tile_word(t, tile_item_part(t, Phase, j));
        if constexpr (sizeof(T) == 4) {
            const float4 r = *reinterpret_cast<const float4 *>(p);
            a[j] = r.x, a[j + 1] = r.y, a[j + 2] = r.z, a[j + 3] = r.w;
        } else {
            const double2 r = *reinterpret_cast<const double2 *>(p);
            a[j] = r.x, a[j + 1] = r.y;
        }
    }
}

/// What pass 1 leaves is read from L2 soon: cached there, not in L1.
template <class T> __device__ __forceinline__ void mid_load(const T *p, T *out) {
    if constexpr (sizeof(T) == 4) {
        const float4 r = __ldcg(reinterpret_cast<const float4 *>(p));
        out[0] = r.x, out[1] = r.y, out[2] = r.z, out[3] = r.w;
    } else {
        const double2 r = __ldcg(reinterpret_cast<const double2 *>(p));
        out[0] = r.x, out[1] = r.y;
    }
}

template <class T> __device__ __forceinline__ void mid_store(T *p, const T *in) {
    if constexpr (sizeof(T) == 4) {
        __stcg(reinterpret_cast<float4 *>(p), float4{in[0], in[1], in[2], in[3]});
    } else {
        __stcg(reinterpret_cast<double2 *>(p), double2{in[0], in[1]});
    }
}

/// Calls access(item, offset) for every chunk of this thread; offsets count from the tile's first.
template <class Case, int Pass, int Phase, class Access>
__device__ __forceinline__ void wht_l2_each(Access access) {
    constexpr wht_l2_config c = Case::config();
    constexpr tile_layout t = c.pass[Pass].tile;
    const int64_t base = wht_l2_offset(c, Pass, tile_thread_part(t, Phase, threadIdx.x));
#pragma unroll
    for (int j = 0; j < (1 << t.log_items); j += 1 << t.log_vec_x)
        access(j, base + wht_l2_offset(Case::config(), Pass, tile_item_part(t, Phase, j)));
}

template <class Case, class Pass, int Phase, int Items, class T>
__device__ __forceinline__ void wht_l2_phases(T (&a)[Items], T *words) {
    constexpr tile_layout t = Pass::config().tile;
    phase_butterflies<Pass, Phase>(a);
    if constexpr (Phase + 1 < t.phases) {
        // into the words that this thread has just read, or that the last tile is done with
        chunks_write<Pass, Phase>(a, words);
        // all words of the next phase are written
        if constexpr (t.phase[Phase + 1].exchange == tile_exchange::block) {
            block_barrier<Case>();
        } else {
            __syncwarp();
        }
        chunks_read<Pass, Phase + 1>(a, words);
        wht_l2_phases<Case, Pass, Phase + 1>(a, words);
    }
}

// ---- Tiles -------------------------------------------------------------------------------------

template <class Case> struct wht_l2_block {
    static constexpr wht_l2_config c = Case::config();
    static constexpr bool ring = c.x != c.mid;
    static constexpr uint32_t row_tiles = 1u << c.log_m;
    static constexpr uint32_t late = 1u << 31; ///< of a ticket: what it waits for was not there
    using T = accumulator<c.x>;
    static constexpr int items = 1 << c.pass[0].tile.log_items;

    const wht_l2_args &args;
    int32_t pending = 0; ///< the counter of the last tile, not yet told; 0: none

    __device__ __forceinline__ explicit wht_l2_block(const wht_l2_args &a) : args(a) {}

    __device__ __forceinline__ int32_t tiles() const { return args.rows << c.log_m; }
    __device__ __forceinline__ wht_l2_job job(uint32_t ticket) const {
        return wht_l2_job_of(static_cast<int32_t>(ticket), args.lead, tiles());
    }
    /// Which counter tells of a row; 0 is that of the tickets.
    __device__ __forceinline__ int32_t done(int pass, int32_t row) const {
        return 1 + pass * args.rows + row;
    }
    __device__ __forceinline__ bool is_done(int pass, int32_t row) const {
        return load_acquire(args.counters + done(pass, row)) >= row_tiles;
    }
    __device__ __forceinline__ bool ready(const wht_l2_job &j) const {
        const int32_t row = j.tile >> c.log_m;
        if (j.pass == 1) return is_done(0, row);
        return !ring || row < args.slots || is_done(1, row - args.slots);
    }
    __device__ __forceinline__ T *mid(int32_t row) const {
        if constexpr (ring) {
            return static_cast<T *>(args.mid) +
                   (static_cast<int64_t>(static_cast<uint32_t>(row) %
                                         static_cast<uint32_t>(args.slots))
                    << c.log_n);
        } else {
            return static_cast<T *>(args.y) + row * args.y_row_stride;
        }
    }

    // The leader takes tickets, tells what is done and waits; a barrier passes on what it has seen.

    __device__ __forceinline__ bool has(uint32_t ticket) const {
        return ticket < 2 * static_cast<uint32_t>(tiles());
    }
    __device__ __forceinline__ uint32_t take() const { return atomicAdd(args.counters, 1u); }
    __device__ __forceinline__ uint32_t look(uint32_t ticket) const {
        return has(ticket) && !ready(job(ticket)) ? ticket | late : ticket;
    }
    __device__ __forceinline__ void tell() {
        if (pending) add_release(args.counters + pending);
        pending = 0;
    }
    __device__ __forceinline__ void wait(const wht_l2_job &j) {
        tell(); // or this block could wait for itself
        while (!ready(j)) wait_a_little();
    }

    __device__ __forceinline__ void load(const wht_l2_job &j, T (&a)[items]) const {
        const int32_t row = j.tile >> c.log_m;
        if (j.pass == 0) {
            const int64_t first =
                row * args.x_row_stride + wht_l2_tile_offset(Case::config(), 0, j.tile);
            wht_l2_each<Case, 0, 0>([&](int i, int64_t offset) {
                load_elements<Case::config().x, Case::config().pass[0].tile.log_vec_x>(
                    args.x, first + offset, a + i);
            });
        } else {
            const T *p = mid(row) + wht_l2_tile_offset(Case::config(), 1, j.tile);
            wht_l2_each<Case, 1, 0>([&](int i, int64_t offset) { mid_load(p + offset, a + i); });
        }
    }

    __device__ __forceinline__ void transform_and_store(const wht_l2_job &j, T (&a)[items],
                                                        T *words) const {
        const int32_t row = j.tile >> c.log_m;
        if (j.pass == 0) {
            wht_l2_phases<Case, wht_l2_pass_case<Case, 0>, 0>(a, words);
            T *p = mid(row) + wht_l2_tile_offset(Case::config(), 0, j.tile);
            wht_l2_each<Case, 0, c.pass[0].tile.phases - 1>(
                [&](int i, int64_t offset) { mid_store(p + offset, a + i); });
        } else {
            wht_l2_phases<Case, wht_l2_pass_case<Case, 1>, 0>(a, words);
            const T scale = static_cast<T>(args.scale);
            const int64_t first =
                row * args.y_row_stride + wht_l2_tile_offset(Case::config(), 1, j.tile);
            wht_l2_each<Case, 1, c.pass[1].tile.phases - 1>([&](int i, int64_t offset) {
                store_elements<Case::config().x, Case::config().pass[1].tile.log_vec_y>(
                    args.y, first + offset, a + i, scale);
            });
        }
    }
};

/// What the warps of a tile do: all but the last of a block.
template <class Case>
__device__ __forceinline__ void wht_l2_work(const wht_l2_block<Case> &b, const uint32_t *slot,
                                            char *shared) {
    using block = wht_l2_block<Case>;
    using T = typename block::T;
    for (int turn = 0;; turn ^= 1) {
        // the ticket is there; words of the last tile are read and its stores issued
        block_barrier<Case>();
        const uint32_t ticket = slot[turn] & ~block::late;
        if (!b.has(ticket)) return;
        if (slot[turn] & block::late)
            block_barrier<Case>(); // what the leader waited for is visible
        const wht_l2_job j = b.job(ticket);
        T a[block::items];
        b.load(j, a);
        b.transform_and_store(j, a, reinterpret_cast<T *>(shared));
    }
}

/// What the last warp does meanwhile: it passes the same barriers.
template <class Case>
__device__ __forceinline__ void wht_l2_lead_block(wht_l2_block<Case> &b, uint32_t *slot,
                                                  bool leader) {
    using block = wht_l2_block<Case>;
    if (leader) slot[0] = b.look(b.take());
    for (int turn = 0;; turn ^= 1) {
        block_barrier<Case>();
        const uint32_t ticket = slot[turn] & ~block::late;
        if (leader) b.tell();
        if (!b.has(ticket)) return;
        const wht_l2_job j = b.job(ticket);
        if (slot[turn] & block::late) {
            if (leader) b.wait(j);
            block_barrier<Case>();
        }
        const uint32_t next = leader ? b.take() : 0;
        if (j.pass == 0 || block::c.pass[1].tile.phases > 1) block_barrier<Case>(); // the exchange
        if (leader) {
            if (block::ring || j.pass == 0) b.pending = b.done(j.pass, j.tile >> block::c.log_m);
            slot[turn ^ 1] = b.look(next);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(wht_l2_threads(Case::config()), Case::config().blocks_per_sm)
    wht_l2(const __grid_constant__ wht_l2_args args) {
    extern __shared__ __align__(16) char shared[];
    __shared__ uint32_t slot[2]; // the ticket of this turn; that of the next is written meanwhile
    constexpr unsigned workers = tile_threads(Case::config().pass[0].tile);
    wht_l2_block<Case> b(args);
    if (threadIdx.x < workers) {
        wht_l2_work(b, slot, shared);
    } else {
        wht_l2_lead_block(b, slot, threadIdx.x == workers);
    }
}

} // namespace plait::impl::cuda
