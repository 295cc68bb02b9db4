// conv1d.fwd_bct: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], time contiguous, K <= 4, rows of
// x and y at multiples of 16 bytes; bf16, f16, f32 as in fwd_bct_tiled. A block takes a row and
// walks along it, 16 bytes a thread at a time; each thread finds the samples in front of its own in
// shared memory, the first one those that the chunk before left. The next chunk is loaded before
// the one barrier of a chunk. Bytes: 2 elements an output. An output takes K FMAs, 6 slots of
// SiLU (16 bits) and about 9 of the rest: 19 at K = 4. Parallel over rows alone: 132 SMs want 1000.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

/// The words of a thread's 16 bytes, one by one where the row ends inside them.
template <scalar S>
__device__ __forceinline__ void conv1d_bct_load(const typename stored<S>::bits *x, int t,
                                                int length, uint32_t (&words)[4]) {
    constexpr int v = conv1d_vector(S);
    if (t + v <= length) {
        conv1d_load_words<S, v>(x + t, words);
    } else {
        conv1d_gather_words<S, v>(x, t, length, words);
    }
}

template <scalar S>
__device__ __forceinline__ void conv1d_bct_row(const conv1d_fwd_args &a, uint32_t row,
                                               float4 *words_left) {
    using bits = typename stored<S>::bits;
    constexpr int v = conv1d_vector(S), chunk = conv1d_bct_threads * v, halo = 4;
    const int length = static_cast<int>(a.length), self = static_cast<int>(threadIdx.x);
    const uint32_t b = conv1d_quotient(row, a.channel_count);
    const uint32_t c = row - b * a.channel_count.d;
    const bits *x = static_cast<const bits *>(a.x) + b * a.x_stride.b + c * a.x_stride.c;
    bits *y = static_cast<bits *>(a.y) + b * a.y_stride.b + c * a.y_stride.c;
    uint32_t words[4], next[4] = {};
    conv1d_bct_load<S>(x, self * v, length, words);
    float taps[1][4], bias[1];
    conv1d_load_taps<S>(a, c, taps, bias);
    const conv1d_sequence s = conv1d_sequence_of(a, b);
    constexpr int stride = conv1d_bct_threads + 1;
    if (self < 4) {
        // What lies before the row, in front of the first thread's samples.
        float before = 0.0f;
        const int64_t p = self - halo;
        if (s.live && a.state_in != nullptr && p > -a.width)
            before = conv1d_load_as<S>(a.state_in,
                                       s.state * a.state_stride.b + c * a.state_stride.c +
                                           (a.entries + p) * a.state_stride.t,
                                       a.state_wide);
        reinterpret_cast<float *>(words_left)[self] = before;
    }
    for (int t0 = 0, half = 0; t0 < length; t0 += chunk, half ^= 1) {
        if (t0 + chunk < length) conv1d_bct_load<S>(x, t0 + chunk + self * v, length, next);
        float window[halo + v];
        conv1d_widen_words<S, v>(words, window + halo);
        float4 *now = words_left + half * stride;
        const float4 mine = make_float4(window[v], window[v + 1], window[v + 2], window[v + 3]);
        // The last thread leaves its samples to the next chunk, below.
        if (self + 1 < conv1d_bct_threads) now[self + 1] = mine;
        __syncthreads(); // samples in front of each thread are written
        if (self + 1 == conv1d_bct_threads) words_left[(half ^ 1) * stride] = mine;
        const float4 front = now[self];
        window[0] = front.x, window[1] = front.y, window[2] = front.z, window[3] = front.w;
        float out[v];
        conv1d_compute<S, 4, halo, v>(a, taps[0], bias[0], window, out);
        if (!s.live) {
#pragma unroll
            for (int j = 0; j < v; ++j) out[j] = 0.0f;
        }
        conv1d_store_tokens<S, v>(y, t0 + self * v, length, out);
#pragma unroll
        for (int j = 0; j < 4; ++j) words[j] = next[j];
    }
}

template <scalar S>
__global__ void __launch_bounds__(conv1d_bct_threads, 8)
    conv1d_fwd_bct(const __grid_constant__ conv1d_fwd_args a) {
    extern __shared__ __align__(16) char shared[];
    start_successor();
    for (uint32_t row = wait_for_predecessor(); row < a.blocks; row += gridDim.x) {
        conv1d_bct_row<S>(a, row, reinterpret_cast<float4 *>(shared));
        __syncthreads(); // the row's samples are read before those of the next replace them
    }
}

} // namespace plait::impl::cuda
