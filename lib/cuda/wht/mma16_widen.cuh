// Bits and bytes as the f16 operands of wht.mma16.
#pragma once

#include "lib/cuda/common/convert.cuh"

namespace plait::impl::cuda {

/// f16 pair minus 1152.
__device__ __forceinline__ uint32_t wht_mma16_centre(uint32_t pair) {
#ifdef __CUDACC__
    uint32_t out;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(out) : "r"(pair), "r"(0x64806480u));
    return out;
#else
    float low, high;
    widen_pair<scalar::f16>(pair, low, high);
    return round_pair<scalar::f16>(low - 1152.0f, high - 1152.0f);
#endif
}

/// Bytes 2 i and 2 i + 1 of four, as the last bits of f16 pairs from 1024 on.
__device__ __forceinline__ uint32_t wht_mma16_pair(uint32_t four, int i) {
#ifdef __CUDACC__
    return __byte_perm(four, 0x64646464u, i ? 0x4342 : 0x4140);
#else
    const uint32_t two = four >> (16 * i);
    return 0x64006400u | (two & 0xffu) | (two & 0xff00u) << 8;
#endif
}

/// Elements at .. at + 7 of X, `at` a multiple of 8.
template <scalar X> __device__ __forceinline__ uint4 wht_mma16_widened(const void *x, int64_t at) {
    uint32_t w[4];
    if constexpr (X == scalar::b1) {
        const uint32_t bits = __ldg(static_cast<const uint8_t *>(x) + (at >> 3));
        const uint32_t apart = bits | bits << 15; // bits 2 i and 2 i + 1, 16 places apart
#pragma unroll
        for (int i = 0; i < 4; ++i) w[i] = 0x3c003c00u ^ (apart << (15 - 2 * i) & 0x80008000u);
    } else {
        static_assert(X == scalar::i8, "others are no f16");
        const uint2 raw =
            __ldcs(reinterpret_cast<const uint2 *>(static_cast<const int8_t *>(x) + at));
        const uint32_t four[2] = {raw.x ^ 0x80808080u, raw.y ^ 0x80808080u};
#pragma unroll
        for (int i = 0; i < 4; ++i) w[i] = wht_mma16_centre(wht_mma16_pair(four[i / 2], i % 2));
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

} // namespace plait::impl::cuda
