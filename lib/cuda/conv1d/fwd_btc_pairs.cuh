// Part of conv1d.fwd_btc, which begins in fwd_btc.cuh:
// variants "even" and "odd": channels contiguous, x, y bf16 or f16, K <= 4, tokens
// that begin at any multiple of 2 bytes. A thread takes two pairs of channels, 64 apart, of a tile
// of 16 tokens, all loaded first, as words of 4 aligned bytes. Even: strides of tokens are even,
// and a word is a pair. Odd: they are odd, and so is every second address of a pair; a lane then
// has half of its own word and half of the next lane's, to load and to store. The last lane
// of a warp then has no channels in its second run, only such a word. The last tiles of the tensor
// test what they load. Bytes: 2 elements an output; samples in front of a tile come from L2. About
// 17 (even) and 20 (odd) issue slots an output. f32 accumulators, one rounding. On an H200 r = 1.10
// even; odd 1.33, 1.28 with a word of two owners at the end of every run, not of every two as now;
// vectors of 16 bytes shifted by shuffles took 1.55. Odd at
// base clocks: L2 79 % busy, issue slots 64 %.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/common_taps.cuh"
#include "lib/cuda/conv1d/fwd_btc_layout.h"

namespace plait::impl::cuda {

/// A pointer that is added to token by token, not each time from where it began.
template <class T> __device__ __forceinline__ T *conv1d_btc_step(T *p, int64_t bytes) {
    p = reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(bytes));
#ifdef __CUDACC__
    asm("" : "+l"(p));
#endif
    return p;
}

/// Taps of channels anywhere; their offsets are of 32 bits.
template <scalar T, int V, int Taps>
__device__ __forceinline__ void
conv1d_btc_taps_at(const conv1d_fwd_args &a, const int (&channel)[V], float (&taps)[V][Taps]) {
    using element = typename stored<T>::bits;
    const element *const w = static_cast<const element *>(a.w);
    const int w_c = static_cast<int>(a.w_c), w_t = static_cast<int>(a.w_t);
    if (a.w_packed) {
        raw_elements<T, 2> raw[V];
#pragma unroll
        for (int i = 0; i < V; ++i)
            raw[i] = __ldg(reinterpret_cast<const raw_elements<T, 2> *>(w + channel[i] * w_c));
#pragma unroll
        for (int i = 0; i < V; ++i) {
            float v[Taps];
            widen_raw<T, 2>(raw[i], v);
#pragma unroll
            for (int j = 0; j < Taps; ++j) taps[i][Taps - 1 - j] = v[j];
        }
        return;
    }
    const int width = static_cast<int>(a.width);
#pragma unroll
    for (int i = 0; i < V; ++i)
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            if (d < width)
                taps[i][d] = widen<T>(__ldg(w + channel[i] * w_c + (width - 1 - d) * w_t));
}

template <scalar S, bool Odd> struct conv1d_btc_pairs_thread {
    using bits = typename stored<S>::bits;
    static constexpr int taps_of = 4, tokens = conv1d_btc_pairs_tile;
    static constexpr int runs = conv1d_btc_runs, run = conv1d_btc_run, vec = 2 * runs;

    int channel; ///< the first of the first pair, which may lie behind the row
    int length;  ///< channels of a row
    bool first;  ///< lane of its warp
    bool spare;  ///< lane without channels, the last one
    unsigned
        full; ///< bit 2 r + 1: the odd words of run r are of the warp's, bit 2 r: the even ones
    unsigned half; ///< the same where only one element of a word is
    float taps[vec][taps_of], bias[vec];
    uint32_t before[taps_of - 1][runs], now[tokens][runs];

    __device__ __forceinline__ conv1d_btc_pairs_thread(const conv1d_fwd_args &a, uint32_t item)
        : channel(conv1d_btc_pair_of(item, Odd).channel), length(static_cast<int>(a.channels)) {}

    __device__ __forceinline__ void find_words() {
        const conv1d_btc_pair at{static_cast<int>(threadIdx.x % 32), channel};
        spare = Odd && at.lane == 31;
        first = at.lane == 0;
        full = half = 0;
#pragma unroll
        for (int r = 0; r < runs; ++r) {
            const conv1d_btc_words words = conv1d_btc_words_of(at, r, length, Odd);
            full |= words.full << 2 * r;
            half |= words.half << 2 * r;
        }
    }

    __device__ __forceinline__ void load_taps(const conv1d_fwd_args &a) {
        int at[vec];
#pragma unroll
        for (int i = 0; i < vec; ++i)
            at[i] = min(channel + i / 2 * run + i % 2, length - 1); // of no use behind the row
        const bool wide_bias = a.bias_wide;
        const int bias_c = static_cast<int>(a.bias_c);
        uint32_t raw[vec] = {};
        if (a.bias != nullptr) {
#pragma unroll
            for (int i = 0; i < vec; ++i)
                raw[i] = wide_bias ? __ldg(static_cast<const uint32_t *>(a.bias) + at[i] * bias_c)
                                   : __ldg(static_cast<const uint16_t *>(a.bias) + at[i] * bias_c);
        }
        if (a.w_wide) {
            conv1d_btc_taps_at<scalar::f32>(a, at, taps);
        } else {
            conv1d_btc_taps_at<S>(a, at, taps);
        }
#pragma unroll
        for (int i = 0; i < vec; ++i)
            bias[i] = wide_bias ? __uint_as_float(raw[i]) : widen<S>(static_cast<bits>(raw[i]));
    }

    /// The words of a token, the thread's first channel of which is at `at`; Second: not at a
    /// multiple of 4 bytes. Checked: the tensor has `left` elements from the token's first channel
    /// on. Words of no use are others instead.
    template <bool Second, bool Checked>
    __device__ __forceinline__ void load(const bits *at, [[maybe_unused]] int64_t left,
                                         uint32_t (&words)[runs]) const {
        constexpr int front = Second ? 1 : 0;
#pragma unroll
        for (int r = 0; r < runs; ++r) {
            int c = r * run - front;
            if constexpr (Checked)
                if (channel + c + 2 > left) c = -channel - front;
            words[r] = __ldg(reinterpret_cast<const uint32_t *>(at + c));
        }
    }

    /// Of tokens at and before `x`, of which token t is at an odd place if P is 1.
    template <int P, bool Checked>
    __device__ __forceinline__ void load_tile(const conv1d_fwd_args &a, const bits *x, int t) {
        constexpr bool same = Odd && P == 1, other = Odd && P == 0;
        const int64_t step = a.x_stride.t, bytes = step * static_cast<int64_t>(sizeof(bits));
        const bits *from = x, *back = x;
        int64_t left = Checked ? (static_cast<int>(a.length) - 1 - t) * step + length : 0;
#pragma unroll
        for (int d = 1; d < taps_of; ++d) {
            back = conv1d_btc_step(back, -bytes);
#pragma unroll
            for (int r = 0; r < runs; ++r) before[d - 1][r] = 0;
            if (t - d < 0) continue;
            if (d % 2 == 1) {
                load<other, Checked>(back, left + d * step, before[d - 1]);
            } else {
                load<same, Checked>(back, left + d * step, before[d - 1]);
            }
        }
#pragma unroll
        for (int u = 0; u < tokens; ++u) {
            if (u % 2 == 1) {
                load<other, Checked>(from, left, now[u]);
            } else {
                load<same, Checked>(from, left, now[u]);
            }
            if (u + 1 < tokens) from = conv1d_btc_step(from, bytes), left -= step;
        }
        if constexpr (Checked) {
            // The last element of the tensor may be the first half of a word.
            static_assert(tokens % 2 == 0);
#pragma unroll
            for (int r = 0; r < runs; ++r) {
                const int c = r * run - (other ? 1 : 0);
                if (channel + c + 1 == length) now[tokens - 1][r] = __ldg(from + c);
            }
        }
    }

    /// Of the words of all runs, side by side, the one `by` lanes on, 1 or -1. The last lane's, or
    /// the first one's, is not used.
    __device__ __forceinline__ static void neighbours(const uint32_t (&words)[runs], int by,
                                                      uint32_t (&out)[runs]) {
        const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
        for (int r = 0; r < runs; ++r) {
            const bool turns = by > 0 ? lane == 0 && r + 1 < runs : lane == 31 && r > 0;
            const uint32_t from =
                turns ? words[by > 0 ? (r + 1) % runs : (r + runs - 1) % runs] : words[r];
            out[r] = __shfl_sync(~0u, from, (lane + by) & 31);
        }
    }

    template <bool Second>
    __device__ __forceinline__ void widen_words(const uint32_t (&words)[runs],
                                                float (&out)[vec]) const {
        uint32_t next[runs];
        if constexpr (Second) neighbours(words, 1, next);
#pragma unroll
        for (int r = 0; r < runs; ++r)
            widen_pair<S>(Second ? __funnelshift_r(words[r], next[r], 16) : words[r], out[2 * r],
                          out[2 * r + 1]);
    }

    /// Whole: all pairs of the warp are channels.
    template <bool Second, bool Whole>
    __device__ __forceinline__ void store(bits *at, const float (&out)[vec]) const {
        constexpr int bit = Second ? 1 : 0;
        uint32_t words[runs], previous[runs];
#pragma unroll
        for (int r = 0; r < runs; ++r) words[r] = round_pair<S>(out[2 * r], out[2 * r + 1]);
        if constexpr (Second) neighbours(words, -1, previous);
#pragma unroll
        for (int r = 0; r < runs; ++r) {
            constexpr int last = runs - 1;
            bits *const to = at + (r * run - bit);
            const uint32_t w = Second ? __funnelshift_r(previous[r], words[r], 16) : words[r];
            const bool ends = (r == 0 && Second && first) || (r == last && spare);
            // Not streaming: sectors at both ends of a warp's channels are written in two pieces.
            if (Whole ? !ends : (full >> (2 * r + bit) & 1u) != 0)
                __stwb(reinterpret_cast<uint32_t *>(to), w);
            const bool some = Whole || (half >> (2 * r + bit) & 1u) != 0;
            if (Second && r == 0 && first && some) __stwb(to + 1, static_cast<bits>(w >> 16));
            if constexpr (Whole) {
                if (Second && r == last && spare) __stwb(to, static_cast<bits>(w));
            } else {
                if (some && !(Second && r == 0 && first)) __stwb(to, static_cast<bits>(w));
            }
        }
    }

    /// One token, which is window[U % 4]. Fast: K = 4, SiLU, no residual, whole warps.
    template <bool Fast, bool Second, int U>
    __device__ __forceinline__ void token(const conv1d_fwd_args &a, bits *row,
                                          float (&window)[taps_of][vec]) const {
        widen_words<Second>(now[U], window[U % taps_of]);
        float out[vec];
#pragma unroll
        for (int i = 0; i < vec; ++i) out[i] = bias[i];
#pragma unroll
        for (int d = taps_of - 1; d >= 0; --d) {
            if (!Fast && d >= static_cast<int>(a.width)) continue;
#pragma unroll
            for (int i = 0; i < vec; ++i)
                out[i] = __fmaf_rn(taps[i][d], window[(U - d + taps_of) % taps_of][i], out[i]);
        }
        if (Fast || a.silu) {
#pragma unroll
            for (int i = 0; i < vec; ++i) out[i] = conv1d_silu<true>(out[i]);
        }
        if (!Fast && a.residual) {
#pragma unroll
            for (int i = 0; i < vec; ++i) out[i] = __fadd_rn(out[i], window[U % taps_of][i]);
        }
        store<Second, Fast>(row, out);
    }

    template <bool Fast, int P, int U = 0>
    __device__ __forceinline__ void tile(const conv1d_fwd_args &a, bits *row,
                                         float (&window)[taps_of][vec]) const {
        if constexpr (U == 0) {
            widen_words<Odd && P == 0>(before[0], window[3]);
            widen_words<Odd && P == 1>(before[1], window[2]);
            widen_words<Odd && P == 0>(before[2], window[1]);
        }
        token<Fast, Odd && (P + U) % 2 == 1, U>(a, row, window);
        if constexpr (U + 1 < tokens) {
            row = conv1d_btc_step(row, a.y_stride.t * static_cast<int64_t>(sizeof(bits)));
            tile<Fast, P, U + 1>(a, row, window);
        }
    }

    template <int P>
    __device__ __forceinline__ void run_tile(const conv1d_fwd_args &a, const bits *x, bits *y,
                                             int t, bool checked) {
        if (checked) {
            load_tile<P, true>(a, x, t);
        } else {
            load_tile<P, false>(a, x, t);
        }
        load_taps(a);
        find_words();
        float window[taps_of][vec];
        // Of the last warps of a row there are few.
        const bool whole =
            channel - 2 * static_cast<int>(threadIdx.x % 32) + conv1d_btc_warp_channels(Odd) <=
            length;
        if (whole && a.width == 4 && a.silu && !a.residual) {
            tile<true, P>(a, y, window);
        } else {
            tile<false, P>(a, y, window);
        }
    }
};

template <scalar S, bool Odd>
__global__ void __launch_bounds__(conv1d_btc_threads, conv1d_btc_pairs_blocks_per_sm(S, Odd))
    conv1d_fwd_btc_pairs(const __grid_constant__ conv1d_fwd_args a) {
    using bits = typename stored<S>::bits;
    constexpr int n = conv1d_btc_pairs_tile;
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const conv1d_place at = conv1d_place_of(a.across, block, threadIdx.x, conv1d_btc_threads);
        // Of whole warps: a row's threads are.
        if (at.line >= static_cast<int64_t>(a.strips.d) * a.batch) continue;
        const uint32_t line = static_cast<uint32_t>(at.line);
        const uint32_t b = conv1d_quotient(line, a.strips);
        const int length = static_cast<int>(a.length);
        const int t = min(static_cast<int>(line - b * a.strips.d) * n, length - n);
        conv1d_btc_pairs_thread<S, Odd> self(a, at.item);
        const bits *const x = static_cast<const bits *>(a.x) + b * a.x_stride.b + t * a.x_stride.t;
        bits *const y = static_cast<bits *>(a.y) + b * a.y_stride.b + t * a.y_stride.t;
        // Where words, also of lanes without channels, may lie behind the tensor. None lies in
        // front of it: that begins at a multiple of 4 bytes.
        const bool checked = b + 1 == a.batch && t + n > length - a.strip;
        if (Odd && (reinterpret_cast<uintptr_t>(x) & 2) != 0) {
            self.template run_tile<Odd ? 1 : 0>(a, x + self.channel, y + self.channel, t, checked);
        } else {
            self.template run_tile<0>(a, x + self.channel, y + self.channel, t, checked);
        }
    }
}

} // namespace plait::impl::cuda
