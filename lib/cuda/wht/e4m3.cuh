// E4M3 (lib/common/fp8.h) on the device: rounded once, to nearest even, saturating.
#pragma once

#include "lib/cuda/common/convert.cuh"

#ifndef __CUDACC__
#    include "lib/common/fp8.h"
#endif

namespace plait::impl::cuda {

__device__ __forceinline__ uint8_t wht_round_e4m3(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(v));
    return static_cast<uint8_t>(pair);
#else
    const uint32_t bits = __float_as_uint(v), sign = bits >> 24 & 0x80u;
    uint32_t size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return 0x7f;                                // NaN
    if (size >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu); // from 448 on
    if (size < 0x3c800000u) // below 2^-6: steps of 2^-9, as bits of a sum
        return static_cast<uint8_t>(
            sign | (__float_as_uint(__uint_as_float(size) * 512.0f + 8388608.0f) & 0xffu));
    size += 0x7ffffu + (size >> 20 & 1u);
    size = (size >> 20) - ((127u - 7u) << 3);
    return static_cast<uint8_t>(sign | (size < 0x7eu ? size : 0x7eu));
#endif
}

__device__ __forceinline__ uint8_t wht_round_e4m3(double v) {
#ifdef __CUDACC__
    // To odd as F32, which has bits to spare, then to nearest even. NaN stays NaN.
    const float cut = __double2float_rz(v);
    const uint32_t odd = static_cast<double>(cut) != v ? 1u : 0u;
    return wht_round_e4m3(__uint_as_float(__float_as_uint(cut) | odd));
#else
    return f64_to_e4m3(v);
#endif
}

/// Two of them, the first in the low byte.
__device__ __forceinline__ uint16_t wht_round_e4m3_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return static_cast<uint16_t>(wht_round_e4m3(low) | wht_round_e4m3(high) << 8);
#endif
}

/// SCALES of a group whose largest magnitude is `largest`.
__device__ __forceinline__ float wht_group_scale(double largest) {
    if (!(largest > 0) || largest > 1.7976931348623157e308) return 1.0f; // zeros, NaN, Inf
    const double scale = largest / 448.0;
    return static_cast<float>(scale < 0x1p-126 ? 0x1p-126 : scale);
}
/// The same, rounded once.
__device__ __forceinline__ float wht_group_scale(float largest) {
    if (!(largest > 0) || largest > 3.4028234663852886e38f) return 1.0f;
    const float scale = largest / 448.0f;
    return scale < 0x1p-126f ? 0x1p-126f : scale;
}

} // namespace plait::impl::cuda
