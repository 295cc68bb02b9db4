// What both directions of kda.chunk64_scans share: words that warps tell one another, tiles that
// stay in memory, the ring of records.
#pragma once

#include "lib/cuda/kda/chunk64_scan.cuh"
#include "lib/cuda/kda/chunk64_scans_layout.h"

namespace plait::impl::cuda {

/// Packed tiles of 16 columns to [values][columns] in global memory, columns from `column` on.
template <int Columns>
__device__ __forceinline__ void kda64_keep_step(char *tile, int value, int column, int lane,
                                                const uint32_t (&words)[4]) {
    uint32_t w[4] = {words[0], words[1], words[2], words[3]};
    const int row = value + lane / 4 + (lane & 1) * 8, piece = column + (lane >> 1 & 1) * 8;
    *reinterpret_cast<uint4 *>(tile + kda64_at(Columns, row, piece)) = kda64_whole_piece(lane, w);
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

/// A record and rows of V or DO to their stage; all threads.
template <int Tiles, bool Convert>
__device__ __forceinline__ void kda64_scans_fill(char *stage, uint64_t *counter, const char *record,
                                                 int bytes, const kda_view &v, const void *base,
                                                 int64_t at, int rows, int64_t first, int64_t dim_v,
                                                 bool vector) {
    if (threadIdx.x == 0) {
        counter_expect(counter, static_cast<uint32_t>(bytes));
        bulk_load(stage, record, static_cast<uint32_t>(bytes), counter);
    }
    kda64_load_values<16 * Tiles, 32 * kda64_scans_warps * Tiles, Convert>(
        v, base, at, rows, first, dim_v, vector, stage + bytes);
}

} // namespace plait::impl::cuda
