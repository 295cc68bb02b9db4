// kda.offsets: offsets_layout.h. Prefix maxima of offsets and ends and a prefix sum of chunks, 1024
// sequences at a time. Duplicate slots: every good sequence puts its number to its slot by a
// minimum; who finds a smaller one there is bad. Chunk slots: warps take a sequence each in turn,
// lanes its chunks. Reads cu[0..sequences] and nothing else, whatever they hold. One block does not
// walk. Bound: latency, about 2 us and 0.3 us for every further 1024 sequences (estimates).
#pragma once

#include "lib/cuda/kda/offsets_layout.h"

#include <cstdint>

namespace plait::impl::cuda {

/// Maximum (or sum) over the threads before this one, 0 for the first; `total` is that of all.
/// Values are not negative. Two barriers.
template <bool Sum>
__device__ __forceinline__ int64_t kda_prefix(int64_t value, int64_t *words, int64_t *total) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned by = 1; by < 32; by *= 2) {
        const int64_t other = __shfl_up_sync(0xffffffffu, value, by);
        if (lane >= by) value = Sum ? value + other : max(value, other);
    }
    if (lane == 31) words[warp] = value;
    const int64_t left = __shfl_up_sync(0xffffffffu, value, 1);
    __syncthreads(); // the words are written
    int64_t before = lane == 0 ? 0 : left, all = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) {
        const int64_t word = words[w];
        if (w < threadIdx.x / 32) before = Sum ? before + word : max(before, word);
        all = Sum ? all + word : max(all, word);
    }
    __syncthreads(); // the words are read before the next round replaces them
    *total = all;
    return before;
}

__device__ __forceinline__ int64_t kda_offset(const kda_offsets_args &a, int64_t i) {
    return a.wide ? static_cast<const int64_t *>(a.cu)[i] : static_cast<const int32_t *>(a.cu)[i];
}

/// Whether the reserve, where there is one, is of this problem.
__device__ __forceinline__ bool kda_offsets_knows(const kda_offsets_args &a) {
    return a.reserve == nullptr || a.reserve->same_as(a.expected);
}

/// What offsets and slots say of every sequence alone; the first bad one that this thread saw.
__device__ __forceinline__ int64_t kda_offsets_judge(const kda_offsets_args &a, int64_t *words) {
    int64_t highest = 0, first_bad = a.sequences; // highest: M of the sequences before this round
    const bool known = kda_offsets_knows(a);
    for (int64_t base = 0; base < a.sequences; base += blockDim.x) {
        const int64_t n = base + threadIdx.x;
        const bool here = n < a.sequences;
        kda_sequence e{0, a.tokens, 0, 0, -1, 1};
        bool good = here && known, pad = false;
        if (a.cu != nullptr) {
            const int64_t begin = here ? kda_offset(a, n) : -1;
            const int64_t end = here ? kda_offset(a, n + 1) : -1;
            const int64_t inside = begin >= 0 && begin <= a.tokens ? begin : 0;
            int64_t total;
            const int64_t before = kda_prefix<false>(inside, words, &total);
            good = good && begin >= 0 && begin == max(max(highest, before), inside) &&
                   begin <= end && end <= a.tokens && end - begin <= a.max_length &&
                   (n > 0 || begin == 0);
            highest = max(highest, total);
            e.begin = begin;
            e.length = good ? end - begin : 0;
        }
        if (!here) continue;
        if (good && a.slots != nullptr) {
            e.slot = a.slots[n];
            pad = e.slot == a.pad;
            good = pad || (e.slot >= 0 && e.slot < a.slot_count);
        }
        if (!good) first_bad = min(first_bad, n);
        e.live = good && !pad ? 1 : 0;
        a.table[n] = e;
        if (e.live && a.owners != nullptr) a.owners[e.slot] = ~uint64_t(0);
    }
    return first_bad;
}

/// Takes out all users of a slot but the first.
__device__ __forceinline__ int64_t kda_offsets_unshare(const kda_offsets_args &a,
                                                       int64_t first_bad) {
    __syncthreads(); // every owner that will be looked at is reset
    for (int64_t n = threadIdx.x; n < a.sequences; n += blockDim.x)
        if (a.table[n].live)
            atomicMin(reinterpret_cast<unsigned long long *>(a.owners + a.table[n].slot),
                      static_cast<unsigned long long>(n));
    __syncthreads(); // every owner is the first of its sequences
    for (int64_t n = threadIdx.x; n < a.sequences; n += blockDim.x) {
        if (!a.table[n].live) continue;
        if (__ldcg(a.owners + a.table[n].slot) == static_cast<uint64_t>(n)) continue;
        a.table[n].live = 0;
        first_bad = min(first_bad, n);
    }
    return first_bad;
}

/// Gaps and first chunks, when it is known who lives; a thread reads the entries that it wrote.
/// Returns how many chunks there are.
__device__ __forceinline__ int64_t kda_offsets_place(const kda_offsets_args &a, int64_t *words) {
    int64_t reached = 0, chunks = 0; // by the sequences before this round
    for (int64_t base = 0; base <= a.sequences; base += blockDim.x) {
        const int64_t n = base + threadIdx.x;
        kda_sequence e{a.tokens, 0, 0, 0, -1, 0};
        if (n < a.sequences) e = a.table[n];
        const int64_t own = e.live ? kda_ceil_div(e.length, a.chunk) : 0;
        int64_t furthest, count;
        // Ends of live sequences do not decrease.
        e.gap = max(reached,
                    kda_prefix<false>(e.live ? e.begin + e.length : int64_t(0), words, &furthest));
        e.first_chunk = chunks + kda_prefix<true>(own, words, &count);
        if (a.cu == nullptr) e.gap = 0;
        if (!e.live && n < a.sequences) {
            e.slot = -1;
            if (a.cu != nullptr) e.begin = e.gap, e.length = 0;
        }
        if (n <= a.sequences) a.table[n] = e;
        reached = max(reached, furthest);
        chunks += count;
    }
    return chunks;
}

/// Every warp takes sequences 32 apart at a time, one for each lane to look up, so that few
/// sequences use all warps.
__device__ __forceinline__ void kda_offsets_chunks(const kda_offsets_args &a, int64_t used) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t base = 0; base < a.sequences; base += blockDim.x) {
        const int64_t n = base + lane * (blockDim.x / 32) + warp;
        int64_t begin = 0, first = 0, count = 0;
        if (n < a.sequences) {
            const kda_sequence e = a.table[n];
            begin = e.begin;
            first = e.first_chunk;
            count = e.live ? kda_ceil_div(e.length, a.chunk) : 0;
        }
        for (int from = 0; from < 32; ++from) {
            const int64_t here = __shfl_sync(0xffffffffu, count, from);
            const int64_t to = __shfl_sync(0xffffffffu, first, from);
            const int64_t token = __shfl_sync(0xffffffffu, begin, from);
            const int64_t sequence = base + from * int64_t(blockDim.x / 32) + warp;
            for (int64_t c = lane; c < here; c += 32)
                a.chunks[to + c] = {sequence, token + c * a.chunk};
        }
    }
    for (int64_t c = used + threadIdx.x; c < a.chunk_slots; c += blockDim.x) a.chunks[c] = {-1, 0};
}

__global__ void __launch_bounds__(kda_offsets_threads)
    kda_offsets(const __grid_constant__ kda_offsets_args a) {
    extern __shared__ __align__(16) char shared[];
    int64_t *words = reinterpret_cast<int64_t *>(shared);
    int64_t first_bad = kda_offsets_judge(a, words);
    if (a.owners != nullptr) first_bad = kda_offsets_unshare(a, first_bad);
    const int64_t used = kda_offsets_place(a, words);
    if (a.chunks != nullptr) {
        __syncthreads(); // the table is complete
        kda_offsets_chunks(a, used);
    }
    if (a.status == nullptr) return;
    // The first bad one is the maximum of its distance from the end.
    int64_t furthest;
    kda_prefix<false>(a.sequences - first_bad, words, &furthest);
    if (threadIdx.x == 0)
        *a.status =
            !kda_offsets_knows(a) ? -1
            : furthest == 0
                ? 0
                : static_cast<int32_t>(min(a.sequences - furthest, int64_t(INT32_MAX - 1)) + 1);
}

} // namespace plait::impl::cuda
