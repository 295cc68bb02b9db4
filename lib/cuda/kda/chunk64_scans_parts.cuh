// What both directions of kda.chunk64_scans share: words that warps tell one another, tiles that
// stay in memory, the ring of records.
#pragma once

#include "lib/cuda/kda/chunk64_scan.cuh"
#include "lib/cuda/kda/chunk64_scans_layout.h"

namespace plait::impl::cuda {

/// Where a lane has the first of the words of packed tiles of 16 columns in a tile of `Columns` in
/// global memory: 8 rows on, and 8 columns on, are the others.
template <int Columns>
__device__ __forceinline__ int kda64_word_at(int value, int column, int lane) {
    return kda64_at(Columns, value + lane / 4, column) + lane % 4 * 4;
}
template <int Columns>
__device__ __forceinline__ void kda64_keep_step(char *tile, int at, const uint32_t (&words)[4]) {
    constexpr int rows = 8 * 2 * Columns;
    *reinterpret_cast<uint32_t *>(tile + at) = words[0];
    *reinterpret_cast<uint32_t *>(tile + at + rows) = words[1];
    *reinterpret_cast<uint32_t *>(tile + (at ^ 16)) = words[2];
    *reinterpret_cast<uint32_t *>(tile + (at ^ 16) + rows) = words[3];
}

/// load_matrices by addresses of 32 bits.
__device__ __forceinline__ void kda64_matrices(uint32_t (&w)[4], shared_at row) {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(row)
                 : "memory");
#else
    load_matrices(w, row);
#endif
}
__device__ __forceinline__ void kda64_matrices_transposed(uint32_t (&w)[4], shared_at row) {
#ifdef __CUDA_ARCH__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(row)
                 : "memory");
#else
    load_matrices_transposed(w, row);
#endif
}

__device__ __forceinline__ void kda64_tell(uint4 *to, int lane, const uint32_t (&w)[4]) {
    to[lane] = make_uint4(w[0], w[1], w[2], w[3]);
}
__device__ __forceinline__ void kda64_hear(const uint4 *from, int lane, uint32_t (&w)[4]) {
    const uint4 v = from[lane];
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
}

__device__ __forceinline__ void kda64_plus(float (&x)[mma_items_d], const float (&y)[mma_items_d]) {
#pragma unroll
    for (int i = 0; i < mma_items_d; ++i) x[i] += y[i];
}

/// Two tiles of 8 columns += a b.
__device__ __forceinline__ void kda64_add_two(float (&x)[mma_items_d], float (&y)[mma_items_d],
                                              const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    mma_add<scalar::bf16>(x, a, {b[0], b[1]});
    mma_add<scalar::bf16>(y, a, {b[2], b[3]});
}

/// The stage of the ring that is read, and the parity of its counter.
struct kda64_turns {
    int slot;
    uint32_t parity;
};
template <int Stages> __device__ __forceinline__ void kda64_next(kda64_turns &t) {
    if (++t.slot == Stages) t.slot = 0, t.parity ^= 1;
}

/// Who a thread is, and what it walks over.
struct kda64_scans_own {
    int lane, warp, tile; ///< the warp of its tile of 16 values
    int64_t hv, n, first, value;
    kda_place w;
    int chunks;
    int64_t begin; ///< number of the first chunk
};

template <int Tiles>
__device__ __forceinline__ kda64_scans_own kda64_scans_own_of(const kda_chunk64_scans_args &a,
                                                              int64_t block) {
    const kda_problem &p = a.p;
    const int number = static_cast<int>(threadIdx.x / 32);
    kda64_scans_own own{};
    own.lane = static_cast<int>(threadIdx.x % 32);
    own.warp = number % kda64_scans_warps, own.tile = number / kda64_scans_warps;
    own.first = block % a.slices * (16 * Tiles), own.value = own.first + 16 * own.tile;
    own.hv = block / a.slices % p.value_heads, own.n = block / a.slices / p.value_heads;
    own.w = kda_place_of(p, a.table, a.slots, own.n);
    own.chunks = own.w.live ? static_cast<int>(kda_ceil_div(own.w.length, kda64_rows)) : 0;
    own.begin = p.varlen ? a.table[own.n].first_chunk : own.n * kda_ceil_div(p.length, kda64_rows);
    return own;
}

/// Records and rows of V or DO, chunk by chunk in the order of the walk, to their stages.
template <int Tiles, bool Convert> struct kda64_scans_source {
    const char *record;
    int64_t record_step; ///< to the next
    const kda_view *v;
    const void *base;
    int64_t at, row_step; ///< of the first token of a chunk
    int64_t first, dim_v;
    int row, column; ///< of the 16 bytes of this thread
    int tile_at;
    bool vector, there;

    __device__ __forceinline__ void begin() {
        constexpr int pieces = 2 * Tiles; // of a row
        static_assert(64 * pieces == 32 * kda64_scans_warps * Tiles, "one for each thread");
        const int thread = static_cast<int>(threadIdx.x);
        row = thread / pieces, column = thread % pieces * 8;
        tile_at = kda64_at(16 * Tiles, row, column);
        there = dim_v - first > column;
    }
    /// All threads.
    __device__ __forceinline__ void fetch(char *stage, int bytes, uint64_t *counter, int rows) {
        if (threadIdx.x == 0) {
            counter_expect(counter, static_cast<uint32_t>(bytes));
            bulk_load(stage, record, static_cast<uint32_t>(bytes), counter);
        }
        record += record_step;
        if (vector)
            async_copy<16>(shared_at_of(stage) + bytes + tile_at,
                           static_cast<const uint16_t *>(base) + at + row * v->t + first + column,
                           there && row < rows);
        else
            kda64_load_values<16 * Tiles, 32 * kda64_scans_warps * Tiles, Convert>(
                *v, base, at, rows, first, dim_v, false, stage + bytes);
        at += row_step;
    }
};

} // namespace plait::impl::cuda
