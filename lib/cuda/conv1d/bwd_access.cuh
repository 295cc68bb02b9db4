// One element at a time, for any problem: which sequence a token is of, which taps count, what they
// read. conv1d.bwd_any is made of this; the fast kernels use it for tokens at an edge.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/conv1d/bwd_args.h"

namespace plait::impl::cuda {

/// A f64 in a f32 with its last bit set if it is not exact: rounding that to 16 bits is one
/// rounding.
__device__ __forceinline__ float narrow_to_odd(double value) {
    const float nearest = static_cast<float>(value);
    if (static_cast<double>(nearest) == value || value != value) return nearest;
    uint32_t bits = __float_as_uint(nearest);
    const double beyond = static_cast<double>(nearest);
    if ((beyond < 0 ? -beyond : beyond) > (value < 0 ? -value : value)) bits -= 1;
    return __uint_as_float(bits | 1u);
}

template <class A>
__device__ __forceinline__ A load_as(const void *base, scalar type, int64_t index) {
    switch (type) {
    case scalar::f64: return static_cast<A>(static_cast<const double *>(base)[index]);
    case scalar::f32: return static_cast<A>(static_cast<const float *>(base)[index]);
    case scalar::f16:
        return static_cast<A>(widen<scalar::f16>(static_cast<const uint16_t *>(base)[index]));
    default: return static_cast<A>(widen<scalar::bf16>(static_cast<const uint16_t *>(base)[index]));
    }
}

template <class A>
__device__ __forceinline__ void store_as(void *base, scalar type, int64_t index, A value) {
    switch (type) {
    case scalar::f64: static_cast<double *>(base)[index] = static_cast<double>(value); return;
    case scalar::f32: static_cast<float *>(base)[index] = static_cast<float>(value); return;
    default: break;
    }
    float narrow;
    if constexpr (sizeof(A) == 8) {
        narrow = narrow_to_odd(value);
    } else {
        narrow = value;
    }
    static_cast<uint16_t *>(base)[index] =
        type == scalar::f16 ? round_half<scalar::f16>(narrow) : round_half<scalar::bf16>(narrow);
}

__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

__device__ __forceinline__ int64_t at(const conv1d_view &v, int64_t b, int64_t c, int64_t t) {
    return b * v.b + c * v.c + t * v.t;
}

/// The sequence of a token.
struct conv1d_span {
    int64_t row;        ///< of its states; -1: the token belongs to nothing
    int64_t begin, end; ///< tokens
};

__device__ __forceinline__ conv1d_span conv1d_span_of(const conv1d_bwd_args &a, int64_t b,
                                                      int64_t t) {
    if (!a.spans) return {b, 0, a.length};
    // the last sequence that begins at t or before it
    int64_t low = 0, high = a.sequences;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a.spans[2 * middle] <= t) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) return {-1, 0, 0};
    const conv1d_span s = {low - 1, a.spans[2 * low - 2], a.spans[2 * low - 1]};
    return t < s.end ? s : conv1d_span{-1, 0, 0};
}

__device__ __forceinline__ int32_t conv1d_id(const conv1d_bwd_args &a, int64_t b, int64_t t) {
    return a.seq_idx[b * a.vseq_idx.b + t * a.vseq_idx.t];
}

/// Tokens that are not live have the output 0 and touch nothing.
__device__ __forceinline__ bool conv1d_live(const conv1d_bwd_args &a, const conv1d_span &s,
                                            int64_t b, int64_t t) {
    return s.row >= 0 && (!a.seq_idx || conv1d_id(a, b, t) >= 0);
}

/// Whether the tap of the live token t that meets position p counts. Positions before the sequence
/// count as long as there is a state.
__device__ __forceinline__ bool conv1d_counts(const conv1d_bwd_args &a, const conv1d_span &s,
                                              int64_t b, int64_t t, int64_t p) {
    if (p < s.begin && !a.state_in) return false;
    if (!a.seq_idx) return true;
    return conv1d_id(a, b, t) == conv1d_id(a, b, p < 0 ? 0 : p);
}

/// The raw input at a position that counts.
template <class A>
__device__ __forceinline__ A conv1d_input(const conv1d_bwd_args &a, const conv1d_span &s, int64_t b,
                                          int64_t c, int64_t p) {
    if (p >= s.begin) return load_as<A>(a.x, a.vx.type, at(a.vx, b, c, p));
    return load_as<A>(a.state_in, a.vstate_in.type,
                      at(a.vstate_in, s.row, c, p - s.begin + a.entries));
}

/// In the order of the forward.
template <class A>
__device__ __forceinline__ A conv1d_pre(const conv1d_bwd_args &a, const conv1d_span &s, int64_t b,
                                        int64_t c, int64_t t) {
    A pre = a.bias ? load_as<A>(a.bias, a.vbias.type, c * a.vbias.c) : A(0);
    for (int k = 0; k < a.width; ++k) {
        const int64_t p = t - (a.width - 1) + k;
        if (!conv1d_counts(a, s, b, t, p)) continue;
        const A w = load_as<A>(a.w, a.vw.type, c * a.vw.c + k * a.vw.t);
        pre = fused(w, conv1d_input<A>(a, s, b, c, p), pre);
    }
    return pre;
}

/// What position p of its sequence gets from the gradient of the last state.
template <class A>
__device__ __forceinline__ A conv1d_tail(const conv1d_bwd_args &a, const conv1d_span &s, int64_t b,
                                         int64_t c, int64_t p) {
    const int64_t entry = p - s.end + a.entries;
    if (!a.dstate_out || entry < 0) return A(0);
    if (a.seq_idx) {
        const int32_t last = conv1d_id(a, b, a.length - 1);
        if (last < 0 || conv1d_id(a, b, p < 0 ? 0 : p) != last) return A(0);
    }
    return load_as<A>(a.dstate_out, a.vdstate_out.type, at(a.vdstate_out, s.row, c, entry));
}

} // namespace plait::impl::cuda
