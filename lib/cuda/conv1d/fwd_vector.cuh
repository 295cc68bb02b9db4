// What the vector kernels of the forward pass share: elements of a tile are raw words until all
// loads are issued.
#pragma once

#include "lib/cuda/conv1d/common_taps.cuh"
#include "lib/cuda/conv1d/fwd_bct_layout.h"
#include "lib/cuda/conv1d/fwd_element.cuh"
#include "lib/cuda/conv1d/fwd_masks_layout.h"

namespace plait::impl::cuda {

/// Words of N elements.
template <scalar S, int N>
constexpr int conv1d_words = N *static_cast<int>(sizeof(typename stored<S>::bits)) / 4;

/// N elements (8 or 16 bytes, aligned) as words.
template <scalar S, int N>
__device__ __forceinline__ void conv1d_load_words(const typename stored<S>::bits *p,
                                                  uint32_t *words) {
    if constexpr (conv1d_words<S, N> == 2) {
        const uint2 r = __ldg(reinterpret_cast<const uint2 *>(p));
        words[0] = r.x, words[1] = r.y;
    } else {
        const uint4 r = __ldg(reinterpret_cast<const uint4 *>(p));
        words[0] = r.x, words[1] = r.y, words[2] = r.z, words[3] = r.w;
    }
}

/// Tokens first .. first + N - 1 of a row of `length`, one by one; 0 outside.
template <scalar S, int N>
__device__ __forceinline__ void conv1d_gather_words(const typename stored<S>::bits *row, int first,
                                                    int length, uint32_t *words) {
    constexpr int in_word = 4 / static_cast<int>(sizeof(typename stored<S>::bits));
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const int p = first + i;
        const uint32_t bits = p >= 0 && p < length ? __ldg(row + p) : 0;
        if (i % in_word == 0) {
            words[i / in_word] = bits;
        } else {
            words[i / in_word] |= bits << 16;
        }
    }
}

template <scalar S, int N>
__device__ __forceinline__ void conv1d_widen_words(const uint32_t *words, float *out) {
#pragma unroll
    for (int i = 0; i < conv1d_words<S, N>; ++i) {
        if constexpr (S == scalar::f32) {
            out[i] = __uint_as_float(words[i]);
        } else {
            widen_pair<S>(words[i], out[2 * i], out[2 * i + 1]);
        }
    }
}

/// N values to tokens first .., vectors where the 16 bytes lie inside the row, else one by one:
/// fewer accesses by pieces of a vector took longer, by what they decide.
template <scalar S, int N>
__device__ __forceinline__ void conv1d_store_tokens(typename stored<S>::bits *row, int first,
                                                    int length, const float *values) {
    constexpr int v = conv1d_vector(S);
    constexpr int log_v = v == 8 ? 3 : 2;
#pragma unroll
    for (int i = 0; i < N; i += v) {
        const int t = first + i;
        if (t >= 0 && t + v <= length) {
            store_elements<S, log_v>(row, t, values + i, 1.0f);
            continue;
        }
#pragma unroll
        for (int j = 0; j < v; ++j) {
            if (t + j < 0 || t + j >= length) continue;
            if constexpr (S == scalar::f32) {
                row[t + j] = __float_as_uint(values[i + j]);
            } else {
                row[t + j] = round_half<S>(values[i + j]);
            }
        }
    }
}

/// acc[j] = bias + taps over window[Halo + j - d], oldest sample first.
template <int Taps, int Halo, int N>
__device__ __forceinline__ void conv1d_taps(int width, const float (&taps)[Taps], float bias,
                                            const float *window, float *acc) {
    // Widths of an instantiation lie above those of the one with half as many taps.
    constexpr int always = Taps == 4 ? 1 : Taps / 2 + 1;
    if (width == Taps) {
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] = bias;
#pragma unroll
        for (int d = Taps - 1; d >= always; --d) {
#pragma unroll
            for (int j = 0; j < N; ++j) acc[j] = __fmaf_rn(taps[d], window[Halo + j - d], acc[j]);
        }
    } else {
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] = bias;
#pragma unroll
        for (int d = Taps - 2; d >= always; --d) {
            if (d >= width) continue;
#pragma unroll
            for (int j = 0; j < N; ++j) acc[j] = __fmaf_rn(taps[d], window[Halo + j - d], acc[j]);
        }
    }
#pragma unroll
    for (int d = always - 1; d >= 0; --d) {
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] = __fmaf_rn(taps[d], window[Halo + j - d], acc[j]);
    }
}

/// The activation of N outputs, and the samples `now` of a residual.
template <scalar S, int N>
__device__ __forceinline__ void conv1d_activate(const conv1d_fwd_args &a, const float *now,
                                                float *acc) {
    if (a.silu) {
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] = conv1d_silu<S != scalar::f32>(acc[j]);
    }
    if (a.residual) {
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] = __fadd_rn(acc[j], now[j]);
    }
}

template <scalar S, int Taps, int Halo, int N>
__device__ __forceinline__ void conv1d_compute(const conv1d_fwd_args &a, const float (&taps)[Taps],
                                               float bias, const float *window, float *acc) {
    conv1d_taps<Taps, Halo, N>(static_cast<int>(a.width), taps, bias, window, acc);
    conv1d_activate<S, N>(a, window + Halo, acc);
}

/// conv1d_compute where width is Taps, SiLU follows, and no residual.
template <scalar S, int Taps, int Halo, int N>
__device__ __forceinline__ void conv1d_compute_silu(const float (&taps)[Taps], float bias,
                                                    const float *window, float *acc) {
#pragma unroll
    for (int j = 0; j < N; ++j) acc[j] = bias;
#pragma unroll
    for (int d = Taps - 1; d >= 0; --d) {
#pragma unroll
        for (int j = 0; j < N; ++j) acc[j] = __fmaf_rn(taps[d], window[Halo + j - d], acc[j]);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) acc[j] = conv1d_silu<S != scalar::f32>(acc[j]);
}

/// Words of the masks of a vector.
template <scalar S, int Taps>
constexpr int conv1d_mask_words = conv1d_vector(S) * Taps < 32 ? 1 : conv1d_vector(S) * Taps / 32;

/// conv1d_compute of four taps with fields in one word: a byte, of two tokens, at a time, of which
/// one instruction makes predicates where the compiler sees no more. Fields of dead tokens are 0.
template <scalar S, int N>
__device__ __forceinline__ void
conv1d_compute_fields(const conv1d_fwd_args &a, const float (&taps)[4], float bias,
                      const float *window, uint32_t fields, float *acc) {
    fields &= 0x11111111u * ((1u << static_cast<int>(a.width)) - 1u); // taps that are not set
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        uint32_t byte = fields >> (4 * j);
        conv1d_pin(byte);
        acc[j] = acc[j + 1] = bias;
#pragma unroll
        for (int d = 3; d >= 0; --d) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                if (d == 0 || (byte >> (4 * i + d) & 1u) != 0)
                    acc[j + i] = __fmaf_rn(taps[d], window[4 + j + i - d], acc[j + i]);
        }
    }
    conv1d_activate<S, N>(a, window + 4, acc);
    conv1d_pin(fields);
#pragma unroll
    for (int j = 0; j < N; ++j) acc[j] = (fields >> (4 * j) & 1u) != 0 ? acc[j] : 0.0f;
}

/// conv1d_compute with fields of `Taps` bits: samples of other ids are skipped, dead tokens are 0.
template <scalar S, int Taps, int Halo, int N>
__device__ __forceinline__ void
conv1d_compute_masked(const conv1d_fwd_args &a, const float (&taps)[Taps], float bias,
                      const float *window, const uint32_t *masks, float *acc) {
    const auto counts = [&](int j, int d) {
        const int bit = j * Taps + d;
        return (masks[bit / 32] >> bit % 32 & 1u) != 0;
    };
#pragma unroll
    for (int j = 0; j < N; ++j) acc[j] = bias;
#pragma unroll
    for (int d = Taps - 1; d >= 0; --d) {
        if (d >= static_cast<int>(a.width)) continue;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float next = __fmaf_rn(taps[d], window[Halo + j - d], acc[j]);
            acc[j] = counts(j, d) ? next : acc[j];
        }
    }
    conv1d_activate<S, N>(a, window + Halo, acc);
#pragma unroll
    for (int j = 0; j < N; ++j) acc[j] = counts(j, 0) ? acc[j] : 0.0f;
}

} // namespace plait::impl::cuda
