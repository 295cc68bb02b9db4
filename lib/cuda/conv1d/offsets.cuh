// conv1d.offsets: offsets_layout.h. A prefix maximum over the offsets, 1024 at a time, hands the
// last one on. Duplicate slots: every live sequence puts its number to its slot by a minimum; who
// finds a smaller one there is bad. Reads cu[0..sequences] and nothing else, whatever they hold.
// Latency: about 1 us and 0.1 us for every further 1024 sequences.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/offsets_layout.h"

#include <cstdint>

namespace plait::impl::cuda {

/// Inclusive maximum over the block; `total` is that of all threads. Two barriers.
__device__ __forceinline__ int64_t conv1d_prefix_max(int64_t value, int64_t *words,
                                                     int64_t *total) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned by = 1; by < 32; by *= 2) {
        const int64_t other = __shfl_up_sync(0xffffffffu, value, by);
        if (lane >= by) value = max(value, other);
    }
    if (lane == 31) words[warp] = value;
    __syncthreads(); // the words are written
    int64_t before = 0, all = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) {
        all = max(all, words[w]);
        if (w < warp) before = max(before, words[w]);
    }
    __syncthreads(); // the words are read before the next round replaces them
    *total = all;
    return max(value, before);
}

__device__ __forceinline__ int64_t conv1d_offset(const conv1d_offsets_args &a, int64_t i) {
    return a.wide ? static_cast<const int64_t *>(a.cu)[i] : static_cast<const int32_t *>(a.cu)[i];
}

__device__ __forceinline__ bool conv1d_slot_lives(const conv1d_offsets_args &a, int32_t slot) {
    return slot != a.pad && slot >= 0 && slot < a.slot_count;
}

__global__ void __launch_bounds__(conv1d_offsets_threads)
    conv1d_offsets(const __grid_constant__ conv1d_offsets_args a) {
    start_successor();
    wait_for_predecessor();
    extern __shared__ __align__(16) char shared[];
    int64_t *words = reinterpret_cast<int64_t *>(shared);
    int64_t highest = 0;             // M of the sequences before this round
    int64_t first_bad = a.sequences; // of this thread
    const unsigned self = threadIdx.x;
    for (int64_t base = 0; base < a.sequences; base += blockDim.x) {
        const int64_t n = base + self;
        bool good = n < a.sequences;
        if (a.cu != nullptr) {
            const int64_t begin = good ? conv1d_offset(a, n) : -1;
            const int64_t end = good ? conv1d_offset(a, n + 1) : -1;
            const bool inside = begin >= 0 && begin <= a.tokens;
            int64_t total;
            const int64_t top =
                max(highest, conv1d_prefix_max(inside ? begin : int64_t(0), words, &total));
            highest = max(highest, total);
            good = good && begin == top && begin <= end && end <= a.tokens &&
                   end - begin <= a.max_length && (n > 0 || begin == 0);
            if (n < a.sequences) {
                a.spans[n] = {top, good ? end : top - 1};
                if (!good) first_bad = min(first_bad, n);
            }
        }
        if (a.slots == nullptr || n >= a.sequences) continue;
        const int32_t slot = a.slots[n];
        const bool lives = good && conv1d_slot_lives(a, slot);
        if (!lives && slot != a.pad) first_bad = min(first_bad, n);
        a.live_slots[n] = lives ? slot : -1;
        if (lives && a.owners != nullptr) a.owners[slot] = ~uint64_t(0);
    }
    if (a.slots != nullptr && a.owners != nullptr) {
        __syncthreads(); // every owner that will be looked at is reset
        for (int64_t n = self; n < a.sequences; n += blockDim.x)
            if (a.live_slots[n] >= 0)
                atomicMin(reinterpret_cast<unsigned long long *>(a.owners + a.live_slots[n]),
                          static_cast<unsigned long long>(n));
        __syncthreads(); // every owner is the first of its sequences
        for (int64_t n = self; n < a.sequences; n += blockDim.x) {
            const int32_t slot = a.live_slots[n];
            if (slot < 0 || __ldcg(a.owners + slot) == static_cast<uint64_t>(n)) continue;
            a.live_slots[n] = -1;
            first_bad = min(first_bad, n);
        }
    }
    if (a.status == nullptr) return;
    // The first bad one is the maximum of its distance from the end.
    int64_t furthest;
    conv1d_prefix_max(a.sequences - first_bad, words, &furthest);
    if (self == 0)
        *a.status =
            furthest == 0
                ? 0
                : static_cast<int32_t>(min(a.sequences - furthest, int64_t(INT32_MAX - 1)) + 1);
}

} // namespace plait::impl::cuda
