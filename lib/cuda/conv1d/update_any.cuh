// Part of conv1d.update, which begins in update_vector.cuh:
// variants any.*, every well-formed update. A thread takes a (row, channel): all
// outputs first, then the state, oldest entry first, so that nothing is read behind its store.
// Channels lie next to one another in a warp. Bound: latency, two dependent trips to memory (slot,
// then all else); no shared memory.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/common.cuh"
#include "lib/cuda/conv1d/update_layout.h"

namespace plait::impl::cuda {

template <class T> struct conv1d_update_row {
    int64_t x, y, state; ///< first elements
    int64_t start;       ///< entry that the first sample goes to; linear: entries
    bool live;
};

template <class T>
__device__ __forceinline__ T conv1d_update_pre(const conv1d_update_args &a,
                                               const conv1d_update_row<T> &r, int64_t channel,
                                               int64_t s) {
    T sum = a.bias == nullptr ? T(0) : conv1d_load<T>(a.bias, channel * a.bias_c, a.bias_type);
    for (int64_t k = 0; k < a.width; ++k) {
        const int64_t p = s - (a.width - 1) + k;
        const T value = p >= 0 ? conv1d_load<T>(a.x, r.x + p * a.x_stride.t, a.x_type)
                               : conv1d_load<T>(a.state,
                                                r.state + conv1d_ring_entry(r.start, p, a.entries) *
                                                              a.state_stride.t,
                                                a.state_type);
        sum = conv1d_fma(conv1d_load<T>(a.w, channel * a.w_c + k * a.w_t, a.w_type), value, sum);
    }
    return sum;
}

template <class T>
__device__ __forceinline__ void
conv1d_update_outputs(const conv1d_update_args &a, const conv1d_update_row<T> &r, int64_t channel) {
    const bool narrow = conv1d_is_half(a.y_type);
    for (int64_t s = 0; s < a.length; ++s) {
        T value(0);
        if (r.live) {
            const T pre = conv1d_update_pre<T>(a, r, channel, s);
            const T now = a.residual ? conv1d_load<T>(a.x, r.x + s * a.x_stride.t, a.x_type) : T(0);
            value = narrow ? conv1d_finish<true>(pre, a.silu, a.residual, now)
                           : conv1d_finish<false>(pre, a.silu, a.residual, now);
        }
        conv1d_store(a.y, r.y + s * a.y_stride.t, a.y_type, value);
    }
}

/// An entry of the new state: the bits where the types agree.
__device__ __forceinline__ void conv1d_update_entry(const conv1d_update_args &a, int64_t to,
                                                    uint64_t bits, scalar type) {
    if (type == a.state_type) {
        conv1d_store_bits(a.state, to, a.state_type, bits);
    } else {
        conv1d_store(a.state, to, a.state_type, conv1d_widen_bits(bits, type));
    }
}

template <class T>
__device__ __forceinline__ void conv1d_update_state(const conv1d_update_args &a,
                                                    const conv1d_update_row<T> &r) {
    if (a.position != nullptr) {
        // Of samples that meet in an entry the last stays.
        const int64_t first = a.length > a.entries ? a.length - a.entries : 0;
        for (int64_t s = first; s < a.length; ++s) {
            const int64_t entry = (r.start + s) % a.entries;
            conv1d_update_entry(a, r.state + entry * a.state_stride.t,
                                conv1d_load_bits(a.x, r.x + s * a.x_stride.t, a.x_type), a.x_type);
        }
        return;
    }
    for (int64_t i = 0; i < a.entries; i += 4) {
        uint64_t bits[4];
        scalar type[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int64_t p = a.length - a.entries + i + j;
            type[j] = p < 0 ? a.state_type : a.x_type;
            bits[j] = 0;
            if (i + j >= a.entries) continue;
            bits[j] = p < 0
                          ? conv1d_load_bits(a.state, r.state + (p + a.entries) * a.state_stride.t,
                                             a.state_type)
                          : conv1d_load_bits(a.x, r.x + p * a.x_stride.t, a.x_type);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (i + j < a.entries)
                conv1d_update_entry(a, r.state + (i + j) * a.state_stride.t, bits[j], type[j]);
    }
}

template <class T>
__global__ void __launch_bounds__(conv1d_update_threads)
    conv1d_update_any(const __grid_constant__ conv1d_update_args a) {
    start_successor();
    const uint32_t first = wait_for_predecessor();
    const int64_t all = a.batch * a.channels;
    const int64_t ahead = static_cast<int64_t>(gridDim.x) * conv1d_update_threads;
    for (int64_t i = static_cast<int64_t>(first) * conv1d_update_threads + threadIdx.x; i < all;
         i += ahead) {
        const int64_t row = i / a.channels, channel = i - row * a.channels;
        const int64_t slot = a.slots == nullptr ? row : a.slots[row];
        conv1d_update_row<T> r;
        r.x = row * a.x_stride.b + channel * a.x_stride.c;
        r.y = row * a.y_stride.b + channel * a.y_stride.c;
        r.state = slot * a.state_stride.b + channel * a.state_stride.c;
        r.live = a.slots == nullptr || (slot != a.pad && slot >= 0 && slot < a.slot_count);
        r.start = a.position == nullptr ? a.entries : conv1d_ring_start(a.position[row], a.entries);
        conv1d_update_outputs(a, r, channel);
        if (r.live) conv1d_update_state(a, r);
    }
}

} // namespace plait::impl::cuda
