// What a warp loads for the others of kda.chunk64_fwd_scan for few heads: records by bulk copies as
// soon as a stage is read, V by cp.async four chunks ahead.
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_parts.cuh"

namespace plait::impl::cuda {

/// One thread: a part of a record to its ring.
template <int Keys, int Tiles, bool Pair, bool Second>
__device__ __forceinline__ void kda64_split_fill(char *shared, const kda64_split_run &run,
                                                 const kda64_split_counters<Tiles, Pair> &counters,
                                                 int c) {
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, Pair);
    constexpr kda64_split_rings rings = kda64_split_rings_of(Tiles, Pair);
    constexpr uint32_t stages = Second ? rings.second : rings.first;
    constexpr uint32_t bytes = Second ? shape.second : shape.first;
    if (c >= run.chunks) return;
    const uint32_t n = run.used + static_cast<uint32_t>(c);
    uint64_t *counter = Second ? counters.second(n) : counters.first(n);
    counter_expect(counter, bytes);
    bulk_load(shared + (Second ? shape.rest : 0) + n % stages * bytes,
              run.records + c * run.pitch + (Second ? shape.first : 0), bytes, counter);
}

/// 16 tokens of V of a chunk, those of a warp of the chain, 0 where nothing is.
template <int Tiles>
__device__ __forceinline__ void kda64_split_fetch(const kda_chunk64_fwd_scan_args &a, int64_t at,
                                                  int count, int64_t value, int lane, char *tile) {
    const kda_view &v = a.p.v;
    const int row = lane / 2, column = lane % 2 * 8;
#pragma unroll
    for (int tile_of = 0; tile_of < Tiles; ++tile_of) {
        const int64_t from_value = value + 16 * tile_of + column;
        const int left =
            row < count ? static_cast<int>(min(a.p.dim_v - from_value, int64_t(8))) : 0;
        const int64_t from = left > 0 ? at + row * v.t + from_value * v.c : 0;
        char *to = tile + tile_of * kda64_words + kda64_at(16, row, column);
        if (a.vector) { // left is 8 or none
            async_copy<16>(shared_at_of(to), static_cast<const uint16_t *>(a.v) + from, left > 0);
            continue;
        }
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
            reinterpret_cast<uint16_t *>(to)[i] =
                i < left ? static_cast<uint16_t>(kda_load_bits(a.v, from + i * v.c, v.type))
                         : uint16_t(0);
    }
}

/// V of chunk c, all tokens, by the warp that loads.
template <int Keys, int Tiles, bool Pair>
__device__ __forceinline__ void kda64_split_values(const kda_chunk64_fwd_scan_args &a, char *shared,
                                                   const kda64_split_run &run, int lane, int c) {
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, Pair);
    if (c < run.chunks) {
        const kda_view &v = a.p.v;
        int64_t at = kda_at(v, run.w.row, run.w.begin + int64_t(c) * kda64_rows, run.hv);
        const int tokens = run.tokens(c);
#pragma unroll 1
        for (int x = 0; x < kda64_chain_warps; ++x, at += 16 * v.t)
            kda64_split_fetch<Tiles>(
                a, at, tokens - 16 * x, run.first, lane,
                shared + shape.v + (x * kda64_split_v + c % kda64_split_v) * Tiles * kda64_words);
    }
    async_commit();
}

/// Fills what the chain reads: before the first chunk, and when all of the stage of chunk c is
/// read. By one warp; a stage is there when its record and the V of all lanes are: each says so
/// itself, as racecheck does not follow an order through __syncwarp.
template <int Keys, int Tiles, bool Pair>
__device__ __forceinline__ void
kda64_split_begin_loads(const kda_chunk64_fwd_scan_args &a, char *shared,
                        const kda64_split_run &run,
                        const kda64_split_counters<Tiles, Pair> &counters, int lane) {
    if (lane == 0)
        for (int c = 0; c < kda64_split_rings_of(Tiles, Pair).first; ++c)
            kda64_split_fill<Keys, Tiles, Pair, false>(shared, run, counters, c);
    for (int c = 0; c < kda64_split_v; ++c)
        kda64_split_values<Keys, Tiles, Pair>(a, shared, run, lane, c);
    async_wait<kda64_split_v - 2>();
    for (int c = 0; c < 2 && c < run.chunks; ++c)
        counter_arrive(counters.first(run.used + static_cast<uint32_t>(c)));
}
template <int Keys, int Tiles, bool Pair>
__device__ __forceinline__ void
kda64_split_more_loads(const kda_chunk64_fwd_scan_args &a, char *shared, const kda64_split_run &run,
                       const kda64_split_counters<Tiles, Pair> &counters, int lane, int c) {
    if (lane == 0)
        kda64_split_fill<Keys, Tiles, Pair, false>(shared, run, counters,
                                                   c + kda64_split_rings_of(Tiles, Pair).first);
    kda64_split_values<Keys, Tiles, Pair>(a, shared, run, lane, c + kda64_split_v);
    async_wait<kda64_split_v - 2>();
    if (c + 2 < run.chunks) counter_arrive(counters.first(run.used + static_cast<uint32_t>(c + 2)));
}

} // namespace plait::impl::cuda
