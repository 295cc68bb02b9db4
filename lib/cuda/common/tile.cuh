// Butterflies and exchanges of tiles whose layout is a constant of the instantiation:
// `Case::config()` has the tile_layout `tile` and the flags `own_words` and `word_wise`.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/common/tile_layout.h"

#include <cstdint>
#include <type_traits>

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
    const bool minus = (threadIdx.x >> LaneBit) & 1u;
    const T sign = minus ? T(-1) : T(1);
#pragma unroll
    for (int j = 0; j < Items; ++j) {
        const T other = __shfl_xor_sync(0xffffffffu, a[j], 1 << LaneBit);
        if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
            a[j] = other + (minus ? T(0) - a[j] : a[j]);
        } else if constexpr (std::is_integral_v<T>) {
            a[j] = a[j] * sign + other;
        } else if constexpr (sizeof(T) == 8) {
            a[j] = __fma_rn(a[j], sign, other);
        } else {
            a[j] = __fmaf_rn(a[j], sign, other);
        }
    }
}

template <class Case, int Phase, int Index, int Items, class T>
__device__ __forceinline__ void phase_butterflies_from(T (&a)[Items]) {
    constexpr tile_layout t = Case::config().tile;
    if constexpr (Index < t.log_tile) {
        constexpr int number = tile_stage_bit(t, Index);
        constexpr uint32_t bit = 1u << number;
        if constexpr ((t.phase[Phase].reg_stages & bit) != 0) {
            butterfly_items<bit_rank(t.phase[Phase].regs, number)>(a);
        } else if constexpr ((t.phase[Phase].lane_stages & bit) != 0) {
            butterfly_lanes<bit_rank(tile_thread_bits(t, Phase), number)>(a);
        }
        phase_butterflies_from<Case, Phase, Index + 1>(a);
    }
}

/// All butterflies of a phase, in the order of the layout.
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

/// An 8-byte number as two words.
__device__ __forceinline__ int low_word(double v) { return __double2loint(v); }
__device__ __forceinline__ int high_word(double v) { return __double2hiint(v); }
__device__ __forceinline__ int low_word(uint64_t v) { return static_cast<int>(v); }
__device__ __forceinline__ int high_word(uint64_t v) { return static_cast<int>(v >> 32); }
template <class T> __device__ __forceinline__ T join_words(int high, int low) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low);
    } else {
        return __hiloint2double(high, low);
    }
}

/// From the layout of Phase - 1 to that of Phase: 8-byte numbers in two rounds of 4-byte words, in
/// half the shared memory.
template <class Case, int Phase, int Items, class T>
__device__ __forceinline__ void exchange_by_words(T (&a)[Items], int *words) {
    constexpr tile_exchange kind = Case::config().tile.phase[Phase].exchange;
    int half[Items];
#pragma unroll
    for (int j = 0; j < Items; ++j) half[j] = low_word(a[j]);
    shared_write<Case, Phase - 1>(half, words);
    exchange_barrier<kind>(); // low words are written
    shared_read<Case, Phase>(half, words);
    exchange_barrier<kind>(); // low words are read before high words replace them
#pragma unroll
    for (int j = 0; j < Items; ++j) {
        const int high = high_word(a[j]);
        a[j] = join_words<T>(high, half[j]);
        half[j] = high;
    }
    shared_write<Case, Phase - 1>(half, words);
    exchange_barrier<kind>(); // high words are written
    shared_read<Case, Phase>(half, words);
#pragma unroll
    for (int j = 0; j < Items; ++j) a[j] = join_words<T>(half[j], low_word(a[j]));
}

/// Phase and those after it, for tiles whose words of phase - 1 are written.
template <class Case, int Phase, int Rounds, int Items, class T>
__device__ __forceinline__ void tile_phases_from(T (&a)[Rounds][Items], T *words) {
    constexpr tile_layout t = Case::config().tile;
    if constexpr (Phase < t.phases) {
        exchange_barrier<t.phase[Phase].exchange>(); // all words of this phase are written
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
            shared_read<Case, Phase>(a[i], words + i * tile_words(t));
        }
        // additions of one tile run while the words of the other are on their way
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
            phase_butterflies<Case, Phase>(a[i]);
            // a warp exchange rewrites the words that the same thread has just read
            if constexpr (Phase + 1 < t.phases) {
                shared_write<Case, Phase>(a[i], words + i * tile_words(t));
            }
        }
        tile_phases_from<Case, Phase + 1>(a, words);
    }
}

template <class Case, int Phase, int Items, class T>
__device__ __forceinline__ void tile_phases_by_words(T (&a)[Items], int *words) {
    phase_butterflies<Case, Phase>(a);
    if constexpr (Phase + 1 < Case::config().tile.phases) {
        exchange_by_words<Case, Phase + 1>(a, words);
        tile_phases_by_words<Case, Phase + 1>(a, words);
    }
}

/// Transforms tiles in registers, together with the bit that tells two of them apart. `in_use`, the
/// same for all threads of the block: another may still read the words of the tiles before. They
/// meet as late as possible, when the additions of the first phase are done.
template <class Case, int Rounds, int Items, class T>
__device__ __forceinline__ void transform_tiles(T (&a)[Rounds][Items], char *shared, bool in_use) {
    constexpr auto c = Case::config();
    constexpr bool late = !c.word_wise && (Rounds == 1 || c.own_words);
    T *words = reinterpret_cast<T *>(shared);
    if (!late && c.tile.phases > 1 && in_use) __syncthreads();
    if constexpr (Rounds == 2 && !c.tile.rounds_last) butterfly_arrays(a[0], a[1]);
    if constexpr (c.word_wise) {
        static_assert(Rounds == 1, "not needed");
        tile_phases_by_words<Case, 0>(a[0], reinterpret_cast<int *>(shared));
    } else if constexpr (Rounds == 1 || c.own_words) {
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
            phase_butterflies<Case, 0>(a[i]);
            if constexpr (c.tile.phases > 1) {
                if (i == 0 && in_use) __syncthreads();
                shared_write<Case, 0>(a[i], words + i * tile_words(c.tile));
            }
        }
        tile_phases_from<Case, 1>(a, words);
    } else {
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
            T(&one)[1][Items] = *reinterpret_cast<T(*)[1][Items]>(&a[i]);
            phase_butterflies<Case, 0>(one[0]);
            if (i > 0) __syncthreads(); // the other tile's words are read
            shared_write<Case, 0>(one[0], words);
            tile_phases_from<Case, 1>(one, words);
        }
    }
    if constexpr (Rounds == 2 && c.tile.rounds_last) butterfly_arrays(a[0], a[1]);
}

/// What one prefetch brings to L2.
constexpr int prefetch_bytes = 128;

/// Asks L2 for the line of p.
__device__ __forceinline__ void prefetch_l2(const void *p) {
#ifdef __CUDACC__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
#else
    static_cast<void>(p);
#endif
}

/// How far ahead to prefetch: blocks start in order, so the tile that many ahead starts when the
/// ones that run now are done.
__device__ __forceinline__ int64_t tiles_ahead(int blocks_per_sm) {
#ifdef __CUDACC__
    int sms;
    asm("mov.u32 %0, %%nsmid;" : "=r"(sms));
#else
    const int sms = 1;
#endif
    return static_cast<int64_t>(sms) * blocks_per_sm;
}

/// From here on the compiler does not know where the value came from.
template <class V> __device__ __forceinline__ void make_opaque(V &value) {
#ifdef __CUDACC__
    if constexpr (sizeof(V) == 8) {
        asm volatile("" : "+l"(value));
    } else {
        asm volatile("" : "+r"(value));
    }
#else
    static_cast<void>(value);
#endif
}

} // namespace plait::impl::cuda
