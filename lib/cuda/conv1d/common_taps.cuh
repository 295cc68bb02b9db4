// Taps and bias of a channel in registers, for kernels whose x, y have one type.
#pragma once

#include "lib/cuda/conv1d/common.cuh"

namespace plait::impl::cuda {

/// x, y and perhaps w, bias, state have type S, the others f32.
template <scalar S>
__device__ __forceinline__ float conv1d_load_as(const void *base, int64_t index, bool wide) {
    if (S == scalar::f32 || wide) return __ldg(static_cast<const float *>(base) + index);
    return widen<S>(__ldg(static_cast<const typename stored<S>::bits *>(base) + index));
}

/// taps[d] meets the sample d before the current one; those from `width` on are not set.
template <scalar S, int Taps, class Args>
__device__ __forceinline__ void conv1d_load_taps(const Args &a, int64_t channel,
                                                 float (&taps)[Taps]) {
    const int64_t base = channel * a.w_c;
    if constexpr (Taps == 4) {
        if (a.w_packed) {
            float w[4];
            if (S == scalar::f32 || a.w_wide) {
                widen_raw<scalar::f32, 2>(
                    __ldg(reinterpret_cast<const uint4 *>(static_cast<const float *>(a.w) + base)),
                    w);
            } else if constexpr (S != scalar::f32) {
                widen_raw<S, 2>(__ldg(reinterpret_cast<const uint2 *>(
                                    static_cast<const uint16_t *>(a.w) + base)),
                                w);
            }
#pragma unroll
            for (int d = 0; d < 4; ++d) taps[d] = w[3 - d];
            return;
        }
    }
    const int width = static_cast<int>(a.width);
    if (S == scalar::f32 || a.w_wide) {
        const float *w = static_cast<const float *>(a.w) + base;
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            if (d < width) taps[d] = __ldg(w + (width - 1 - d) * a.w_t);
    } else if constexpr (S != scalar::f32) {
        const uint16_t *w = static_cast<const uint16_t *>(a.w) + base;
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            if (d < width) taps[d] = widen<S>(__ldg(w + (width - 1 - d) * a.w_t));
    }
}

template <scalar S, class Args>
__device__ __forceinline__ float conv1d_load_bias(const Args &a, int64_t channel) {
    return a.bias == nullptr ? 0.0f : conv1d_load_as<S>(a.bias, channel * a.bias_c, a.bias_wide);
}

} // namespace plait::impl::cuda
