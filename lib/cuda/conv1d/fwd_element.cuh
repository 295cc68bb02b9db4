// One output of any forward convolution. fwd_any computes all with it; the other kernels those that
// their fast path does not cover.
#pragma once

#include "lib/cuda/conv1d/common.cuh"
#include "lib/cuda/conv1d/fwd_layout.h"

namespace plait::impl::cuda {

/// The sequence that a token belongs to.
struct conv1d_sequence {
    int64_t begin, end; ///< tokens of its row
    int64_t state;      ///< row of the states
    bool live;          ///< else its outputs are 0
};

__device__ __forceinline__ conv1d_sequence conv1d_sequence_of(const conv1d_fwd_args &a, int64_t n) {
    conv1d_sequence s{0, a.length, n, true};
    if (a.spans != nullptr) {
        s.begin = a.spans[n].begin;
        s.end = a.spans[n].end;
    }
    if (a.slots != nullptr) {
        const int32_t slot = a.slots[n];
        s.live = slot != a.pad && slot >= 0 && slot < a.slot_count;
        s.state = slot;
    }
    return s;
}

/// The last sequence that begins at or before token t, -1 if none does: begins are sorted, and
/// behind the one that owns t all lie beyond t.
__device__ __forceinline__ int64_t conv1d_find_sequence(const conv1d_fwd_args &a, int64_t t) {
    int64_t low = -1, high = a.sequences; // begin[low] <= t < begin[high]
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (a.spans[middle].begin <= t) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/// The sequence of token t of a row; not live where the token belongs to none.
__device__ __forceinline__ conv1d_sequence conv1d_locate(const conv1d_fwd_args &a, int64_t row,
                                                         int64_t t) {
    if (a.spans == nullptr) return conv1d_sequence_of(a, row);
    const int64_t n = conv1d_find_sequence(a, t);
    if (n < 0) return {0, 0, 0, false};
    conv1d_sequence s = conv1d_sequence_of(a, n);
    s.live = s.live && t < s.end;
    return s;
}

template <class T>
__device__ __forceinline__ T conv1d_output_before_rounding(const conv1d_fwd_args &a,
                                                           const conv1d_sequence &s, int64_t row,
                                                           int64_t channel, int64_t t) {
    const int32_t *ids = a.seq_idx == nullptr ? nullptr : a.seq_idx + row * a.ids_b;
    const int32_t id = ids == nullptr ? 0 : ids[t * a.ids_t];
    if (!s.live || id < 0) return T(0);
    const bool first_state = a.state_in != nullptr;
    // Before the first token ids are that of the first token if there is a state, else none.
    const bool reaches_back = ids == nullptr || (first_state && ids[0] == id);
    const int64_t x = row * a.x_stride.b + channel * a.x_stride.c;
    const int64_t state = s.state * a.state_stride.b + channel * a.state_stride.c;
    T sum = a.bias == nullptr ? T(0) : conv1d_load<T>(a.bias, channel * a.bias_c, a.bias_type);
    for (int64_t k = 0; k < a.width; ++k) {
        const int64_t p = t - (a.width - 1) + k;
        T value(0);
        if (p >= s.begin) {
            if (ids != nullptr && ids[p * a.ids_t] != id) continue;
            value = conv1d_load<T>(a.x, x + p * a.x_stride.t, a.x_type);
        } else {
            if (!reaches_back) continue;
            if (first_state)
                value = conv1d_load<T>(
                    a.state_in, state + (p - s.begin + a.entries) * a.state_stride.t, a.state_type);
        }
        sum = conv1d_fma(conv1d_load<T>(a.w, channel * a.w_c + k * a.w_t, a.w_type), value, sum);
    }
    const T now = a.residual ? conv1d_load<T>(a.x, x + t * a.x_stride.t, a.x_type) : T(0);
    return a.y_type == scalar::f32 || a.y_type == scalar::f64
               ? conv1d_finish<false>(sum, a.silu, a.residual, now)
               : conv1d_finish<true>(sum, a.silu, a.residual, now);
}

template <class T>
__device__ __forceinline__ void conv1d_write_output(const conv1d_fwd_args &a,
                                                    const conv1d_sequence &s, int64_t row,
                                                    int64_t channel, int64_t t) {
    const T value = conv1d_output_before_rounding<T>(a, s, row, channel, t);
    conv1d_store(a.y, row * a.y_stride.b + channel * a.y_stride.c + t * a.y_stride.t, a.y_type,
                 value);
}

} // namespace plait::impl::cuda
