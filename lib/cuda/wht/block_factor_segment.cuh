// A warp's segment of wht.block_factor: registers, words and butterflies of its two phases.
#pragma once

#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/block_factor_layout.h"

namespace plait::impl::cuda {

/// Butterflies of a phase on those of the bits From..9 that a row has and no step before did.
template <scalar S, int Phase, int From, int Items, class T>
__device__ __forceinline__ void wht_block_factor_butterflies(T (&a)[Items], int log_k) {
    constexpr uint32_t regs = wht_block_factor_regs(S, Phase);
    constexpr uint32_t before = (wht_is_half(S) ? bit_range(0, wht_block_factor_log_fused) : 0u) |
                                (Phase == 1 ? wht_block_factor_regs(S, 0) : 0u);
    if constexpr (From < wht_block_factor_log_k) {
        if constexpr ((before >> From & 1u) == 0) {
            if constexpr ((regs >> From & 1u) != 0) {
                if (From < log_k) butterfly_items<bit_rank(regs, From)>(a);
            } else if constexpr (Phase == 1) { // f64: one bit more than two phases hold
                constexpr uint32_t lanes = bit_range(0, wht_block_factor_log_segment(S)) & ~regs;
                if (From < log_k) butterfly_lanes<bit_rank(lanes, From)>(a);
            }
        }
        wht_block_factor_butterflies<S, Phase, From + 1>(a, log_k);
    }
}

/// The part of a segment's index that the lane numbers.
template <scalar S, int Phase> __device__ __forceinline__ uint32_t wht_block_factor_lane() {
    return bit_deposit(threadIdx.x & 31u, bit_range(0, wht_block_factor_log_segment(S)) &
                                              ~wht_block_factor_regs(S, Phase));
}

/// Between registers and the units of a segment that this thread holds in a phase.
template <scalar S, int Phase, class T, class Access>
__device__ __forceinline__ void wht_block_factor_units(T *segment, Access access) {
    constexpr wht_block_factor_shape shape = wht_block_factor_shape_of(S);
    constexpr uint32_t regs = wht_block_factor_regs(S, Phase);
    constexpr uint32_t low = 8u << shape.log_unit; // words below it are swizzled
    const uint32_t own = wht_block_factor_word(S, wht_block_factor_lane<S, Phase>());
#pragma unroll
    for (int j = 0; j < 1 << shape.log_items; j += 1 << shape.log_unit) {
        const uint32_t item = wht_block_factor_word(S, bit_deposit(static_cast<uint32_t>(j), regs));
        access(j, reinterpret_cast<uint4 *>(segment +
                                            ((own ^ (item & (low - 1))) + (item & ~(low - 1)))));
    }
}

/// The units of the first phase back to their places.
template <scalar S, int Items, class T>
__device__ __forceinline__ void wht_block_factor_write(const T (&a)[Items], T *segment) {
    wht_block_factor_units<S, 0>(segment, [&](int j, uint4 *at) {
        if constexpr (sizeof(T) == 4) {
            *reinterpret_cast<float4 *>(at) = make_float4(a[j], a[j + 1], a[j + 2], a[j + 3]);
        } else {
            *reinterpret_cast<double2 *>(at) = make_double2(a[j], a[j + 1]);
        }
    });
}

template <scalar S, int Phase, int Items, class T>
__device__ __forceinline__ void wht_block_factor_read(T (&a)[Items], T *segment) {
    constexpr scalar word = S == scalar::f64 ? S : scalar::f32;
    wht_block_factor_units<S, Phase>(segment, [&](int j, const uint4 *at) {
        widen_raw<word, wht_block_factor_shape_of(S).log_unit>(*at, a + j);
    });
}

/// Brings the rows of a tile to L2, `lines` of 128 bytes in a row.
template <scalar S>
__device__ __forceinline__ void wht_block_factor_prefetch(const void *x, int64_t stride,
                                                          int64_t rows, int rows_per_tile,
                                                          int lines, int64_t tile) {
    if (lines == 0 || (tile + 1) * rows_per_tile > rows) return;
    constexpr int size = sizeof(typename stored<S>::bits);
    const char *from = static_cast<const char *>(x) + tile * rows_per_tile * stride * size;
    for (int i = static_cast<int>(threadIdx.x); i < lines; i += static_cast<int>(blockDim.x))
        prefetch_l2(from + i * prefetch_bytes);
}

} // namespace plait::impl::cuda
