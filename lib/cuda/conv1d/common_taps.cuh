// Taps and bias of channels in registers, for kernels whose x, y have one type. All loads are
// issued before the first of them is used: decisions about types stand around the channels, not
// inside.
#pragma once

#include "lib/cuda/conv1d/common.cuh"

namespace plait::impl::cuda {

/// x, y and perhaps w, bias, state have type S, the others f32.
template <scalar S>
__device__ __forceinline__ float conv1d_load_as(const void *base, int64_t index, bool wide) {
    if (S == scalar::f32 || wide) return __ldg(static_cast<const float *>(base) + index);
    return widen<S>(__ldg(static_cast<const typename stored<S>::bits *>(base) + index));
}

/// All taps of each channel, four in one access.
template <scalar S, int V, int Taps>
__device__ __forceinline__ void conv1d_load_packed(const void *w, int64_t channel, int64_t stride,
                                                   float (&taps)[V][Taps]) {
    constexpr int n = Taps / 4;
    const auto *from = static_cast<const typename stored<S>::bits *>(w) + channel * stride;
    raw_elements<S, 2> raw[V][n];
#pragma unroll
    for (int i = 0; i < V; ++i) {
#pragma unroll
        for (int q = 0; q < n; ++q)
            raw[i][q] = __ldg(reinterpret_cast<const raw_elements<S, 2> *>(from + 4 * q));
        from += stride;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
#pragma unroll
        for (int q = 0; q < n; ++q) {
            float v[4];
            widen_raw<S, 2>(raw[i][q], v);
#pragma unroll
            for (int j = 0; j < 4; ++j) taps[i][Taps - 1 - 4 * q - j] = v[j];
        }
    }
}

template <scalar S, int V, int Taps, class Args>
__device__ __forceinline__ void conv1d_load_single(const Args &a, int64_t channel,
                                                   float (&taps)[V][Taps]) {
    const auto *w = static_cast<const typename stored<S>::bits *>(a.w) + channel * a.w_c;
    const int width = static_cast<int>(a.width);
#pragma unroll
    for (int i = 0; i < V; ++i) {
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            if (d < width) taps[i][d] = widen<S>(__ldg(w + i * a.w_c + (width - 1 - d) * a.w_t));
    }
}

/// taps[i][d] of channel + i meets the sample d before the current one; those from `width` on are
/// not set. Packed: by aligned accesses where taps are, which takes more registers.
template <scalar S, bool Packed, int V, int Taps, class Args>
__device__ __forceinline__ void conv1d_load_taps_by(const Args &a, int64_t channel,
                                                    float (&taps)[V][Taps], float (&bias)[V]) {
    const bool wide_bias = S == scalar::f32 || a.bias_wide;
    uint32_t bits[V] = {};
    if (a.bias != nullptr) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const int64_t at = (channel + i) * a.bias_c;
            bits[i] = wide_bias ? __ldg(static_cast<const uint32_t *>(a.bias) + at)
                                : __ldg(static_cast<const uint16_t *>(a.bias) + at);
        }
    }
    const bool wide = S == scalar::f32 || a.w_wide;
    bool done = false;
    if constexpr (Packed) {
        done = a.w_packed && (Taps <= 8 || a.width == Taps);
        if (done && wide) conv1d_load_packed<scalar::f32>(a.w, channel, a.w_c, taps);
        if (done && !wide) conv1d_load_packed<S>(a.w, channel, a.w_c, taps);
    }
    if (!done && wide) conv1d_load_single<scalar::f32>(a, channel, taps);
    if (!done && !wide) conv1d_load_single<S>(a, channel, taps);
#pragma unroll
    for (int i = 0; i < V; ++i)
        bias[i] = wide_bias ? __uint_as_float(bits[i])
                            : widen<S>(static_cast<typename stored<S>::bits>(bits[i]));
}

template <scalar S, int V, int Taps, class Args>
__device__ __forceinline__ void conv1d_load_taps(const Args &a, int64_t channel,
                                                 float (&taps)[V][Taps], float (&bias)[V]) {
    conv1d_load_taps_by<S, Taps <= 8>(a, channel, taps, bias);
}

} // namespace plait::impl::cuda
