// One element at a time, for any problem: which sequence a token is of, which taps count, what they
// read. conv1d.bwd_any is made of this; the fast kernels use it for tokens at an edge.
#pragma once

#include "lib/cuda/conv1d/bwd_layout.h"
#include "lib/cuda/conv1d/common.cuh"

namespace plait::impl::cuda {

__device__ __forceinline__ int64_t conv1d_at(const conv1d_view &v, int64_t b, int64_t c,
                                             int64_t t) {
    return b * v.b + c * v.c + t * v.t;
}

/// The sequence of a token.
struct conv1d_sequence {
    int64_t row;        ///< of its states; -1: the token belongs to nothing
    int64_t begin, end; ///< tokens
};

__device__ __forceinline__ conv1d_sequence conv1d_sequence_of(const conv1d_bwd_args &a, int64_t b,
                                                              int64_t t) {
    if (!a.packed) return {b, 0, a.length};
    // the last sequence that begins at t or before it
    int64_t low = 0, high = a.sequences;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a.spans[middle].begin <= t) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) return {-1, 0, 0};
    const conv1d_sequence s = {low - 1, a.spans[low - 1].begin, a.spans[low - 1].end};
    return t < s.end ? s : conv1d_sequence{-1, 0, 0};
}

__device__ __forceinline__ int32_t conv1d_id(const conv1d_bwd_args &a, int64_t b, int64_t t) {
    return a.seq_idx[b * a.vseq_idx.b + t * a.vseq_idx.t];
}

/// Tokens that are not live have the output 0 and touch nothing.
__device__ __forceinline__ bool conv1d_live(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                            int64_t b, int64_t t) {
    return s.row >= 0 && (!a.seq_idx || conv1d_id(a, b, t) >= 0);
}

/// Whether the tap of the live token t that meets position p counts. Positions before the sequence
/// count as long as there is a state.
__device__ __forceinline__ bool conv1d_counts(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                              int64_t b, int64_t t, int64_t p) {
    if (p < s.begin && !a.state_in) return false;
    if (!a.seq_idx) return true;
    return conv1d_id(a, b, t) == conv1d_id(a, b, p < 0 ? 0 : p);
}

/// The raw input at a position that counts.
template <class A>
__device__ __forceinline__ A conv1d_input(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                          int64_t b, int64_t c, int64_t p) {
    if (p >= s.begin) return conv1d_load<A>(a.x, conv1d_at(a.vx, b, c, p), a.vx.type);
    return conv1d_load<A>(a.state_in, conv1d_at(a.vstate_in, s.row, c, p - s.begin + a.entries),
                          a.vstate_in.type);
}

/// In the order of the forward.
template <class A>
__device__ __forceinline__ A conv1d_pre(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                        int64_t b, int64_t c, int64_t t) {
    A pre = a.bias ? conv1d_load<A>(a.bias, c * a.vbias.c, a.vbias.type) : A(0);
    for (int k = 0; k < a.width; ++k) {
        const int64_t p = t - (a.width - 1) + k;
        if (!conv1d_counts(a, s, b, t, p)) continue;
        const A w = conv1d_load<A>(a.w, c * a.vw.c + k * a.vw.t, a.vw.type);
        pre = conv1d_fma(w, conv1d_input<A>(a, s, b, c, p), pre);
    }
    return pre;
}

/// What position p of its sequence gets from the gradient of the last state.
template <class A>
__device__ __forceinline__ A conv1d_tail(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                         int64_t b, int64_t c, int64_t p) {
    const int64_t entry = p - s.end + a.entries;
    if (!a.dstate_out || entry < 0) return A(0);
    if (a.seq_idx) {
        const int32_t last = conv1d_id(a, b, a.length - 1);
        if (last < 0 || conv1d_id(a, b, p < 0 ? 0 : p) != last) return A(0);
    }
    return conv1d_load<A>(a.dstate_out, conv1d_at(a.vdstate_out, s.row, c, entry),
                          a.vdstate_out.type);
}

} // namespace plait::impl::cuda
