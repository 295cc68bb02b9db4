// What the parts of kda.chunk64_fwd_scan for few heads share: the sequence of a block, counters,
// and what they hand to one another.
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan.cuh"

namespace plait::impl::cuda {

/// What a block does for one sequence.
struct kda64_split_run {
    kda_place w;
    int64_t hv;
    int64_t first;       ///< value of the block
    int chunks;          ///< of the sequence
    uint32_t used;       ///< chunks behind this block
    const char *records; ///< of the first chunk
    int64_t pitch;       ///< bytes from record to record

    __device__ __forceinline__ int tokens(int c) const {
        const int64_t left = w.length - int64_t(c) * kda64_rows;
        return left < kda64_rows ? static_cast<int>(left) : kda64_rows;
    }
};

/// Whether there is a sequence: behind the last one stands a gap. `clear`: zeros to what is not
/// live are the work of this block.
template <int Keys, int Values>
__device__ __forceinline__ bool kda64_split_begin(const kda_chunk64_fwd_scan_args &a, int64_t block,
                                                  bool clear, kda64_split_run &run) {
    constexpr kda64_record r = kda64_record_of(Keys);
    const kda_problem &p = a.p;
    const int64_t n = block / a.slices / p.value_heads;
    run.hv = block / a.slices % p.value_heads;
    run.w = kda_place_of(p, a.table, a.slots, n);
    run.first = block % a.slices * Values;
    const kda_place &w = run.w;
    if (clear) {
        kda64_clear<Values>(a, w.row, w.gap, w.begin - w.gap, run.hv, run.first);
        if (n < p.sequences && !w.live)
            kda64_clear<Values>(a, w.row, w.begin, w.length, run.hv, run.first);
    }
    if (n == p.sequences) return false;
    run.chunks = w.live ? static_cast<int>(kda_ceil_div(w.length, kda64_rows)) : 0;
    const int64_t begin =
        p.varlen ? a.table[n].first_chunk : n * kda_ceil_div(p.length, kda64_rows);
    run.records = a.records + (begin * p.value_heads + run.hv) * r.bytes;
    run.pitch = p.value_heads * r.bytes;
    return true;
}

/// Counters: stages of both rings that are there; that the chain has read its stage; that O has
/// read what the chain has left. In a pair also words of a chunk that are there, and are read.
template <int Tiles, bool Pair> struct kda64_split_counters {
    static constexpr kda64_split_rings rings = kda64_split_rings_of(Tiles, Pair);
    static constexpr uint32_t stages = rings.first, rest = rings.second, kept = rings.words;
    static constexpr uint32_t at_ready = stages + rest, at_done = at_ready + stages;
    static constexpr uint32_t at_full = at_done + kept, at_read = at_full + kept;
    uint64_t *all;

    __device__ __forceinline__ uint64_t *first(uint32_t n) const { return all + n % stages; }
    __device__ __forceinline__ uint64_t *second(uint32_t n) const {
        return all + stages + n % rest;
    }
    __device__ __forceinline__ uint64_t *ready(uint32_t n) const {
        return all + at_ready + n % stages;
    }
    __device__ __forceinline__ uint64_t *done(uint32_t n) const { return all + at_done + n % kept; }
    __device__ __forceinline__ uint64_t *full(uint32_t n) const { return all + at_full + n % kept; }
    __device__ __forceinline__ uint64_t *read(uint32_t n) const { return all + at_read + n % kept; }
    __device__ __forceinline__ void init() const {
        for (uint32_t i = 0; i < at_done; ++i) // the record, V of 32 lanes
            counter_init(all + i, i < stages ? 1 + 32 : 1);
        for (uint32_t i = 0; i < kept; ++i) {
            counter_init(all + at_done + i, Pair ? 1 : 2 * Tiles);
            counter_init(all + at_full + i);
            counter_init(all + at_read + i, kda64_chain_warps);
        }
    }
    __device__ __forceinline__ void wait_first(uint32_t n) const {
        counter_wait_block(first(n), n / stages & 1);
    }
    __device__ __forceinline__ void wait_second(uint32_t n) const {
        counter_wait_block(second(n), n / rest & 1);
    }
    __device__ __forceinline__ void wait_ready(uint32_t n) const {
        counter_wait_block(ready(n), n / stages & 1);
    }
    __device__ __forceinline__ void wait_done(uint32_t n) const {
        if constexpr (Pair)
            counter_wait(done(n), n / kept & 1);
        else
            counter_wait_block(done(n), n / kept & 1);
    }
    __device__ __forceinline__ void wait_full(uint32_t n) const {
        counter_wait(full(n), n / kept & 1);
    }
    __device__ __forceinline__ void wait_read(uint32_t n) const {
        counter_wait_block(read(n), n / kept & 1);
    }
};

/// Words to where the other block of a pair keeps those of a chunk.
__device__ __forceinline__ void kda64_send_words(char *own, const uint32_t (&w)[4],
                                                 uint64_t *counter) {
    const float values[4] = {__uint_as_float(w[0]), __uint_as_float(w[1]), __uint_as_float(w[2]),
                             __uint_as_float(w[3])};
    cluster_send(reinterpret_cast<float *>(own), 0, 1, values, counter);
}

} // namespace plait::impl::cuda
