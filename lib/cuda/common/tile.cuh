// Butterflies and exchanges of a tile whose layout is a constant of the instantiation.
// `Case::config().tile` is the tile_layout.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/common/tile_layout.h"

#include <cstdint>

namespace plait::impl::cuda {

/// (u, v) -> (u + v, u - v) for one element bit that the registers hold.
template <int ItemBit, int Items, class T>
__device__ __forceinline__ void butterfly_items(T (&a)[Items]) {
#pragma unroll
    for (int j = 0; j < Items; ++j) {
        if (j & (1 << ItemBit)) continue;
        const T u = a[j], v = a[j | 1 << ItemBit];
        a[j] = u + v;
        a[j | 1 << ItemBit] = u - v;
    }
}

/// The same for a bit that tells two arrays apart.
template <class T, int Items>
__device__ __forceinline__ void butterfly_arrays(T (&a)[Items], T (&b)[Items]) {
#pragma unroll
    for (int j = 0; j < Items; ++j) {
        const T u = a[j], v = b[j];
        a[j] = u + v;
        b[j] = u - v;
    }
}

/// The same for a bit of the lane number. The product with +-1 is exact.
template <int LaneBit, int Items, class T>
__device__ __forceinline__ void butterfly_lanes(T (&a)[Items]) {
    const T sign = (threadIdx.x >> LaneBit) & 1u ? T(-1) : T(1);
#pragma unroll
    for (int j = 0; j < Items; ++j) {
        const T other = __shfl_xor_sync(0xffffffffu, a[j], 1 << LaneBit);
        if constexpr (sizeof(T) == 8) {
            a[j] = __fma_rn(a[j], sign, other);
        } else {
            a[j] = __fmaf_rn(a[j], sign, other);
        }
    }
}

template <class Case, int Phase, int Bit, int Items, class T>
__device__ __forceinline__ void phase_butterflies_from(T (&a)[Items]) {
    constexpr tile_layout t = Case::config().tile;
    if constexpr (Bit < t.log_tile) {
        constexpr uint32_t bit = 1u << Bit;
        if constexpr ((t.phase[Phase].reg_stages & bit) != 0) {
            butterfly_items<bit_rank(t.phase[Phase].regs, Bit)>(a);
        } else if constexpr ((t.phase[Phase].lane_stages & bit) != 0) {
            butterfly_lanes<bit_rank(tile_thread_bits(t, Phase), Bit)>(a);
        }
        phase_butterflies_from<Case, Phase, Bit + 1>(a);
    }
}

/// All butterflies of a phase, lowest bit first.
template <class Case, int Phase, int Items, class T>
__device__ __forceinline__ void phase_butterflies(T (&a)[Items]) {
    phase_butterflies_from<Case, Phase, 0>(a);
}

template <class Case, int Phase, int Items, class T, class W>
__device__ __forceinline__ void shared_write(const T (&a)[Items], W *words) {
    constexpr tile_layout t = Case::config().tile;
    W *base = words + tile_word(t, tile_thread_part(t, Phase, threadIdx.x));
#pragma unroll
    for (int j = 0; j < Items; ++j) base[tile_word(t, tile_item_part(t, Phase, j))] = a[j];
}

template <class Case, int Phase, int Items, class T, class W>
__device__ __forceinline__ void shared_read(T (&a)[Items], const W *words) {
    constexpr tile_layout t = Case::config().tile;
    const W *base = words + tile_word(t, tile_thread_part(t, Phase, threadIdx.x));
#pragma unroll
    for (int j = 0; j < Items; ++j) a[j] = base[tile_word(t, tile_item_part(t, Phase, j))];
}

template <tile_exchange Kind> __device__ __forceinline__ void exchange_barrier() {
    if constexpr (Kind == tile_exchange::block) {
        __syncthreads();
    } else {
        __syncwarp();
    }
}

/// From the layout of Phase - 1 to that of Phase. The words written must be free: read before by
/// their writer alone (a warp exchange writes what its warp has just read, by the same threads), or
/// separated by a barrier of the caller.
template <class Case, int Phase, int Items, class T>
__device__ __forceinline__ void exchange(T (&a)[Items], T *words) {
    constexpr tile_exchange kind = Case::config().tile.phase[Phase].exchange;
    shared_write<Case, Phase - 1>(a, words);
    exchange_barrier<kind>(); // all words of the new phase are written
    shared_read<Case, Phase>(a, words);
}

/// The same for doubles in two rounds of 4-byte words, in half the shared memory.
template <class Case, int Phase, int Items>
__device__ __forceinline__ void exchange_by_words(double (&a)[Items], int *words) {
    constexpr tile_exchange kind = Case::config().tile.phase[Phase].exchange;
    int half[Items];
#pragma unroll
    for (int j = 0; j < Items; ++j) half[j] = __double2loint(a[j]);
    shared_write<Case, Phase - 1>(half, words);
    exchange_barrier<kind>(); // low words are written
    shared_read<Case, Phase>(half, words);
    exchange_barrier<kind>(); // low words are read before high words replace them
#pragma unroll
    for (int j = 0; j < Items; ++j) {
        const int high = __double2hiint(a[j]);
        a[j] = __hiloint2double(high, half[j]);
        half[j] = high;
    }
    shared_write<Case, Phase - 1>(half, words);
    exchange_barrier<kind>(); // high words are written
    shared_read<Case, Phase>(half, words);
#pragma unroll
    for (int j = 0; j < Items; ++j) a[j] = __hiloint2double(half[j], __double2loint(a[j]));
}

/// What one prefetch brings to L2.
constexpr int prefetch_bytes = 128;

/// Asks L2 for the line of p.
__device__ __forceinline__ void prefetch_l2(const void *p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

/// How far ahead to prefetch: blocks start in order, so the tile that many ahead starts when the
/// ones that run now are done.
__device__ __forceinline__ int64_t tiles_ahead(int blocks_per_sm) {
    int sms;
    asm("mov.u32 %0, %%nsmid;" : "=r"(sms));
    return static_cast<int64_t>(sms) * blocks_per_sm;
}

} // namespace plait::impl::cuda
