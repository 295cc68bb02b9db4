// conv1d.fwd_btc: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], channels contiguous, x, y bf16,
// f16 or f32, w, bias, states of that type or f32, K <= 32. A thread holds 16 bytes of channels
// (8 for K in 5..8; an element where channels are not aligned or K > 8) with taps and window in
// registers and walks a strip of tokens, four loads at a time. Bytes: 2 elements an output; the
// halo in front of a strip comes from L2. An output takes K FMAs, 2 MUFU and 9 slots of SiLU and
// about 4 of the rest: 17 at K = 4, where 28 (16 bits) or 56 (f32) are free at the copy rate of an
// H200. f32 accumulators. A packed sequence that begins inside a strip refills the window; ids
// are compared once a token for all channels of the thread.
#pragma once

#include "lib/cuda/conv1d/fwd_btc_layout.h"
#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

constexpr int conv1d_log2(int n) { return n == 8 ? 3 : n == 4 ? 2 : n == 2 ? 1 : 0; }

template <scalar S, int V, int Taps> struct conv1d_btc_thread {
    using bits = typename stored<S>::bits;
    static constexpr int log_v = conv1d_log2(V), history = Taps - 1, step = conv1d_btc_step;

    const bits *x; ///< first channel, token 0
    bits *y;
    int64_t channel;
    float taps[V][Taps], bias[V];
    float window[history + step][V]; ///< the history, then the tokens of a step
    int32_t id[history + step];      ///< with seq_idx

    __device__ __forceinline__ raw_elements<S, log_v> load(const conv1d_fwd_args &a, int t) const {
        return __ldg(reinterpret_cast<const raw_elements<S, log_v> *>(x + t * a.x_stride.t));
    }

    /// What precedes token t of a sequence: window[history - d] is the sample d before it.
    template <bool Full>
    __device__ __forceinline__ void fill(const conv1d_fwd_args &a, const conv1d_sequence &s,
                                         const int32_t *ids, int t) {
        const int width = static_cast<int>(a.width), begin = static_cast<int>(s.begin);
        raw_elements<S, log_v> raw[history];
#pragma unroll
        for (int d = history; d > 0; --d) {
            const bool inside = d < width && t - d >= begin;
            raw[history - d] = raw_elements<S, log_v>{};
            if (Full) id[history - d] = -1;
            if (!inside) continue;
            raw[history - d] = load(a, t - d);
            if (Full && ids != nullptr) id[history - d] = __ldg(ids + (t - d) * a.ids_t);
        }
#pragma unroll
        for (int h = 0; h < history; ++h) widen_raw<S, log_v>(raw[h], window[h]);
        if (!Full || a.state_in == nullptr || !s.live || t - begin >= width - 1) return;
        const int64_t state = s.state * a.state_stride.b + channel * a.state_stride.c +
                              (a.entries - begin) * a.state_stride.t;
#pragma unroll
        for (int d = history; d > 0; --d) {
            const int p = t - d;
            if (d >= width || p >= begin) continue;
#pragma unroll
            for (int i = 0; i < V; ++i)
                window[history - d][i] = conv1d_load_as<S>(
                    a.state_in, state + p * a.state_stride.t + i * a.state_stride.c, a.state_wide);
            if (ids != nullptr) id[history - d] = __ldg(ids);
        }
    }

    /// Tokens t .. stop - 1, which lie behind the window.
    template <bool Full>
    __device__ __forceinline__ void walk(const conv1d_fwd_args &a, const conv1d_sequence &s,
                                         const int32_t *ids, int t, int stop) {
        const int width = static_cast<int>(a.width);
        for (; t < stop; t += step) {
            raw_elements<S, log_v> raw[step];
#pragma unroll
            for (int u = 0; u < step; ++u) {
                raw[u] = raw_elements<S, log_v>{};
                if (t + u >= stop) continue;
                raw[u] = load(a, t + u);
                if (Full && ids != nullptr) id[history + u] = __ldg(ids + (t + u) * a.ids_t);
            }
#pragma unroll
            for (int u = 0; u < step; ++u) {
                widen_raw<S, log_v>(raw[u], window[history + u]);
                if (t + u >= stop) break;
                float out[V];
#pragma unroll
                for (int i = 0; i < V; ++i) out[i] = bias[i];
#pragma unroll
                for (int d = history; d >= 0; --d) {
                    if (d >= width) continue;
                    if (Full && ids != nullptr && id[history + u - d] != id[history + u]) continue;
#pragma unroll
                    for (int i = 0; i < V; ++i)
                        out[i] = __fmaf_rn(taps[i][d], window[history + u - d][i], out[i]);
                }
                finish(a, window[history + u], out);
                if (Full &&
                    (!s.live || t + u >= s.end || (ids != nullptr && id[history + u] < 0))) {
#pragma unroll
                    for (int i = 0; i < V; ++i) out[i] = 0.0f;
                }
                store_elements<S, log_v>(y, (t + u) * a.y_stride.t, out, 1.0f);
            }
#pragma unroll
            for (int h = 0; h < history; ++h) {
#pragma unroll
                for (int i = 0; i < V; ++i) window[h][i] = window[h + step][i];
                if (Full) id[h] = id[h + step];
            }
        }
    }

    __device__ __forceinline__ void finish(const conv1d_fwd_args &a, const float (&now)[V],
                                           float (&out)[V]) const {
        if (a.silu) {
#pragma unroll
            for (int i = 0; i < V; ++i) out[i] = conv1d_silu<S != scalar::f32>(out[i]);
        }
        if (a.residual) {
#pragma unroll
            for (int i = 0; i < V; ++i) out[i] = __fadd_rn(out[i], now[i]);
        }
    }
};

template <scalar S, int V, int Taps, bool Full>
__device__ __forceinline__ void conv1d_btc_strip_body(const conv1d_fwd_args &a, uint32_t line,
                                                      uint32_t group) {
    using bits = typename stored<S>::bits;
    const int length = static_cast<int>(a.length);
    const uint32_t b = conv1d_quotient(line, a.strips);
    int t = static_cast<int>(line - b * a.strips.d) * a.strip;
    const int end = min(t + a.strip, length);
    conv1d_btc_thread<S, V, Taps> self;
    self.channel = static_cast<int64_t>(group) * V;
    self.x = static_cast<const bits *>(a.x) + b * a.x_stride.b + self.channel;
    self.y = static_cast<bits *>(a.y) + b * a.y_stride.b + self.channel;
    conv1d_load_taps<S>(a, self.channel, self.taps, self.bias);
    if constexpr (!Full) {
        const conv1d_sequence s{0, a.length, 0, true};
        self.template fill<false>(a, s, nullptr, t);
        self.template walk<false>(a, s, nullptr, t, end);
    } else {
        const int32_t *ids = a.seq_idx == nullptr ? nullptr : a.seq_idx + b * a.ids_b;
        int64_t n = a.spans == nullptr ? static_cast<int64_t>(b) : conv1d_find_sequence(a, t);
        while (t < end) {
            // From one sequence's first token to the next one's.
            int stop = end;
            conv1d_sequence s{0, 0, 0, false};
            if (a.spans != nullptr) {
                while (n + 1 < a.sequences && a.spans[n + 1].begin <= t) ++n;
                if (n + 1 < a.sequences && a.spans[n + 1].begin < stop)
                    stop = static_cast<int>(a.spans[n + 1].begin);
            }
            if (n >= 0) s = conv1d_sequence_of(a, n);
            self.template fill<true>(a, s, ids, t);
            self.template walk<true>(a, s, ids, t, stop);
            t = stop;
        }
    }
}

template <scalar S, int V, int Taps, bool Full>
__global__ void __launch_bounds__(conv1d_btc_threads, conv1d_btc_blocks_per_sm(Taps, V, Full))
    conv1d_fwd_btc(const __grid_constant__ conv1d_fwd_args a) {
    const int64_t lines = static_cast<int64_t>(a.strips.d) * a.batch;
    for (uint32_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const conv1d_place at = conv1d_place_of(a.across, block, threadIdx.x, conv1d_btc_threads);
        if (at.line < lines)
            conv1d_btc_strip_body<S, V, Taps, Full>(a, static_cast<uint32_t>(at.line), at.item);
    }
}

} // namespace plait::impl::cuda
