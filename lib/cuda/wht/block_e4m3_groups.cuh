// Groups of results that are stored in E4M3: largest magnitudes, scales, and the store.
#pragma once

#include "lib/cuda/wht/block_e4m3_layout.h"
#include "lib/cuda/wht/e4m3.cuh"

namespace plait::impl::cuda {

/// The larger magnitude, NaN above Inf; m is one already.
__device__ __forceinline__ float wht_larger(float m, float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(m), "f"(fabsf(v)));
    return larger;
#else
    const uint32_t a = __float_as_uint(m), b = __float_as_uint(v) & 0x7fffffffu;
    return __uint_as_float(a < b ? b : a);
#endif
}

/// The scale of a group and its reciprocal.
struct wht_group_factors {
    float scale, reciprocal;
};

/// wht_group_scale() without the branches of a division: for normal results the remainder of the
/// product with 1 / 448 is exact and corrects it; smaller ones are replaced.
__device__ __forceinline__ wht_group_factors wht_group_factors_of(float largest) {
    const float estimate = largest * (1.0f / 448.0f);
    const float rest = __fmaf_rn(-448.0f, estimate, largest);
    const float scale = __fmaf_rn(rest, 1.0f / 448.0f, estimate);
    const bool none = !(largest > 0) || largest > 3.4028234663852886e38f;
    const float s = none ? 1.0f : scale < 0x1p-126f ? 0x1p-126f : scale;
    return {s, 1.0f / s};
}

/// The scale and the largest magnitude of a group to SCALES and AMAX.
__device__ __forceinline__ void wht_block_e4m3_note(const wht_block_e4m3_args &args, int64_t row,
                                                    int64_t group, float scale, float largest) {
    if (args.scales)
        args.scales[row * args.scales_stride[0] + group * args.scales_stride[1]] = scale;
    const int64_t at = row * args.amax_stride[0] + group * args.amax_stride[1];
    if (args.amax_type == scalar::f32)
        static_cast<float *>(args.amax)[at] = largest;
    else if (args.amax_type == scalar::f64)
        static_cast<double *>(args.amax)[at] = static_cast<double>(largest);
}

/// 2^V results to Y.
template <int V>
__device__ __forceinline__ void wht_block_e4m3_store(const wht_block_e4m3_args &args, int64_t row,
                                                     uint32_t column, const float *v, float by) {
    uint16_t pair[1 << (V - 1)];
#pragma unroll
    for (int e = 0; e < 1 << V; e += 2) pair[e / 2] = wht_round_e4m3_pair(v[e] * by, v[e + 1] * by);
    auto *y = static_cast<uint8_t *>(args.y) + row * args.y_row_stride + column;
    if constexpr (V == 3) {
        uint2 word;
        word.x = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
        word.y = pair[2] | static_cast<uint32_t>(pair[3]) << 16;
        __stcs(reinterpret_cast<uint2 *>(y), word);
    } else if constexpr (V == 2) {
        __stcs(reinterpret_cast<uint32_t *>(y), pair[0] | static_cast<uint32_t>(pair[1]) << 16);
    } else {
        __stcs(reinterpret_cast<uint16_t *>(y), pair[0]);
    }
}

/// The same of a group: times scale, or with SCALES `by`, the product of it and the reciprocal.
template <int V>
__device__ __forceinline__ void wht_block_e4m3_put(const wht_block_e4m3_args &args, int64_t row,
                                                   uint32_t column, float *v, float scale,
                                                   float reciprocal, float by) {
    if (fabsf(by) > 3.4028234663852886e38f) { // tiny results: by two products
#pragma unroll
        for (int e = 0; e < 1 << V; ++e) v[e] *= scale * 0x1p-64f * reciprocal;
        by = 0x1p64f;
    }
    wht_block_e4m3_store<V>(args, row, column, v, by);
}

} // namespace plait::impl::cuda
