// Part of conv1d.fwd_btc, which begins in fwd_btc.cuh:
// variants "shift": y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], K = 4, channels
// contiguous, x, y bf16 or f16, strides of tokens odd, both tensors at multiples of 16 bytes and
// alike behind them. A warp takes vectors of 16 bytes at multiples of 16 bytes of a strip of 16
// tokens (fwd_btc_shift_layout.h); eight channels of a lane begin `shift` elements behind its
// vector: words come from the lane behind, and go to it, by shuffles, halves by funnel shifts, all
// by constants. No sample is kept: three sums of each channel wait for samples to come, each from
// the oldest on. Four tokens are on their way. Bytes: 2 elements an output, 3 / 16 of x from L2
// again. About 14 issue slots an output, where 28 are free at the copy rate of an H200 (estimated:
// bound by memory). f32 accumulators, one rounding.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_btc_pairs.cuh"
#include "lib/cuda/conv1d/fwd_btc_shift_layout.h"
#include "lib/cuda/conv1d/fwd_element.cuh"

namespace plait::impl::cuda {

constexpr unsigned conv1d_shift_lanes = ~0u;

/// Elements shift .. shift + 7 of a lane's vector and of the next lane's.
__device__ __forceinline__ void conv1d_shift_in(const uint32_t (&w)[4], int shift,
                                                uint32_t (&out)[4]) {
    uint32_t all[8] = {w[0], w[1], w[2], w[3], 0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (2 * k < shift) all[4 + k] = __shfl_down_sync(conv1d_shift_lanes, w[k], 1);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int at = k + shift / 2;
        out[k] = shift % 2 != 0 ? __funnelshift_r(all[at], all[at + 1], 16) : all[at];
    }
}

/// The inverse: elements -shift .. 7 - shift of a lane's eight, those before it of the lane before.
__device__ __forceinline__ void conv1d_shift_out(const uint32_t (&w)[4], int shift,
                                                 uint32_t (&out)[4]) {
    uint32_t all[8] = {0, 0, 0, 0, w[0], w[1], w[2], w[3]};
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (8 - 2 * k <= shift + 1) all[k] = __shfl_up_sync(conv1d_shift_lanes, w[k], 1);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int at = 4 + k - (shift + 1) / 2;
        out[k] = shift % 2 != 0 ? __funnelshift_r(all[at], all[at + 1], 16) : all[at];
    }
}

template <scalar S, int Residue> struct conv1d_btc_shift_thread {
    using bits = typename stored<S>::bits;
    static constexpr int v = conv1d_shift_vector, n = conv1d_shift_round, taps_of = 4;
    static constexpr int ahead = conv1d_shift_ahead;

    int channel; ///< the first
    int channels, length;
    float taps[v][taps_of], bias[v];
    float sums[taps_of - 1][v]; ///< of the tokens to come, which lack 1, 2 and 3 samples
    uint32_t words[ahead][4];   ///< of the next tokens

    /// Dense: taps, and biases, of all channels lie side by side, 16 bytes in an access.
    __device__ __forceinline__ void load_dense_taps(const conv1d_fwd_args &a) {
        const uint4 *const w = static_cast<const uint4 *>(a.w) + channel / 2;
        uint4 raw[v / 2], raw_bias = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < v / 2; ++i) raw[i] = __ldg(w + i);
        if (a.bias != nullptr) raw_bias = __ldg(static_cast<const uint4 *>(a.bias) + channel / v);
#pragma unroll
        for (int i = 0; i < v / 2; ++i) {
            float both[2 * taps_of];
            widen_raw<S, 3>(raw[i], both);
#pragma unroll
            for (int d = 0; d < taps_of; ++d) {
                taps[2 * i][d] = both[taps_of - 1 - d];
                taps[2 * i + 1][d] = both[2 * taps_of - 1 - d];
            }
        }
        widen_raw<S, 3>(raw_bias, bias);
    }

    /// Half of the channels at a time: registers for all in flight are not there.
    __device__ __forceinline__ void load_taps(const conv1d_fwd_args &a) {
        constexpr int half = v / 2;
        const bool wide_bias = a.bias_wide;
        const int bias_c = static_cast<int>(a.bias_c);
#pragma unroll
        for (int h = 0; h < v; h += half) {
            int at[half];
            uint32_t raw[half] = {};
            float some[half][taps_of];
#pragma unroll
            for (int i = 0; i < half; ++i) {
                at[i] = min(channel + h + i, channels - 1); // of no use behind it
                if (a.bias == nullptr) continue;
                raw[i] = wide_bias ? __ldg(static_cast<const uint32_t *>(a.bias) + at[i] * bias_c)
                                   : __ldg(static_cast<const uint16_t *>(a.bias) + at[i] * bias_c);
            }
            if (a.w_wide) {
                conv1d_btc_taps_at<scalar::f32>(a, at, some);
            } else {
                conv1d_btc_taps_at<S>(a, at, some);
            }
#pragma unroll
            for (int i = 0; i < half; ++i) {
                bias[h + i] =
                    wide_bias ? __uint_as_float(raw[i]) : widen<S>(static_cast<bits>(raw[i]));
#pragma unroll
                for (int d = 0; d < taps_of; ++d) taps[h + i][d] = some[i][d];
            }
        }
    }

    /// The vector at `p`, which is the tensor's if `there`.
    __device__ __forceinline__ void load(const bits *p, bool there, uint32_t (&w)[4]) const {
        uint4 r = make_uint4(0, 0, 0, 0);
        if (there) r = __ldg(reinterpret_cast<const uint4 *>(p));
        w[0] = r.x, w[1] = r.y, w[2] = r.z, w[3] = r.w;
    }

    /// One more sample of each channel; what is complete then to `out`.
    __device__ __forceinline__ void add(const uint32_t (&now)[4], float (&x)[v], float (&out)[v]) {
        widen_raw<S, 3>(make_uint4(now[0], now[1], now[2], now[3]), x);
#pragma unroll
        for (int i = 0; i < v; ++i) {
            out[i] = __fmaf_rn(taps[i][0], x[i], sums[0][i]);
            sums[0][i] = __fmaf_rn(taps[i][1], x[i], sums[1][i]);
            sums[1][i] = __fmaf_rn(taps[i][2], x[i], sums[2][i]);
            sums[2][i] = __fmaf_rn(taps[i][3], x[i], bias[i]);
        }
    }

    __device__ __forceinline__ void store(bits *p, const uint32_t (&w)[4], bool whole, bool edge,
                                          int shift) const {
        if (whole) {
            __stcs(reinterpret_cast<uint4 *>(p), make_uint4(w[0], w[1], w[2], w[3]));
        } else if (edge) {
            const int lane = static_cast<int>(threadIdx.x % 32);
            const conv1d_shift_part part = conv1d_shift_part_of(lane, channel, channels, shift);
#pragma unroll 1
            for (int j = part.from; j < part.to; ++j) {
                const uint32_t two = j & 4 ? (j & 2 ? w[3] : w[2]) : (j & 2 ? w[1] : w[0]);
                p[j] = static_cast<bits>(two >> (j & 1) * 16);
            }
        }
    }

    /// A sample more of each channel, before the first output: sums that no output of the strip has
    /// are left out. D: tokens before it.
    template <int D> __device__ __forceinline__ void add_before(const uint32_t (&now)[4]) {
        float x[v];
        widen_raw<S, 3>(make_uint4(now[0], now[1], now[2], now[3]), x);
#pragma unroll
        for (int i = 0; i < v; ++i) {
            if constexpr (D == 1) sums[0][i] = __fmaf_rn(taps[i][1], x[i], sums[1][i]);
            if constexpr (D <= 2) sums[1][i] = __fmaf_rn(taps[i][2], x[i], sums[2][i]);
            sums[2][i] = __fmaf_rn(taps[i][3], x[i], bias[i]);
        }
    }

    /// Tokens t0 .. end - 1, and none before 0. x, y: the lane's first channel of token t0. Inner:
    /// all tokens of the strip, and those before it, are of a row, and all the warp's channels.
    template <bool Inner>
    __device__ __forceinline__ void strip(const conv1d_fwd_args &a, const bits *x, bits *y, int t0,
                                          int end, bool last_row) {
        const int64_t x_step = a.x_stride.t * static_cast<int64_t>(sizeof(bits));
        const int64_t y_step = a.y_stride.t * static_cast<int64_t>(sizeof(bits));
        const int lane = static_cast<int>(threadIdx.x % 32);
        // Vectors with a channel in them; those behind them are not the tensor's behind its end.
        const auto there = [&](int t, int shift) {
            if constexpr (Inner) return true;
            const int behind = last_row && t + 1 == length ? v : 1;
            return t >= 0 && t < end && channel - shift + behind <= channels;
        };
        if constexpr (!Inner) load_taps(a); // few do: no registers for loads of both kinds
        uint32_t before[taps_of - 1][4], now[4];
        const bits *from = x;
#pragma unroll
        for (int d = 1; d < taps_of; ++d) {
            const int shift = conv1d_shift_of(Residue, -d);
            from = conv1d_btc_step(from, -x_step);
            load(from - shift, there(t0 - d, shift), before[d - 1]);
        }
        from = x;
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const int shift = conv1d_shift_of(Residue, i);
            load(from - shift, there(t0 + i, shift), words[i]);
            from = conv1d_btc_step(from, x_step);
        }
        if constexpr (Inner) load_dense_taps(a);
        conv1d_shift_in(before[2], conv1d_shift_of(Residue, -3), now);
        add_before<3>(now);
        conv1d_shift_in(before[1], conv1d_shift_of(Residue, -2), now);
        add_before<2>(now);
        conv1d_shift_in(before[0], conv1d_shift_of(Residue, -1), now);
        add_before<1>(now);
        const bool inside = channel + v <= channels && lane < 31 && (lane > 0 || channel == 0);
        const bool edge = channel == 0 || channel + v > channels;
#pragma unroll 1
        for (int t = t0; t < end; t += n) {
            const bool more = t + n < end; // of the whole warp, as all that is decided of tokens
#pragma unroll
            for (int i = 0; i < n; ++i) {
                const int shift = conv1d_shift_of(Residue, i);
                float sample[v], out[v];
                conv1d_shift_in(words[i % ahead], shift, now);
                add(now, sample, out);
                const int next = conv1d_shift_of(Residue, i + ahead);
                load(from - next, (i + ahead < n || more) && there(t + i + ahead, next),
                     words[i % ahead]);
                from = conv1d_btc_step(from, x_step);
#pragma unroll
                for (int j = 0; j < v; ++j)
                    out[j] = Inner ? conv1d_silu<true>(out[j])
                                   : conv1d_finish<true>(out[j], a.silu, a.residual, sample[j]);
                uint32_t pairs[4], shifted[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) pairs[k] = round_pair<S>(out[2 * k], out[2 * k + 1]);
                conv1d_shift_out(pairs, shift, shifted);
                if constexpr (Inner) {
                    if (inside)
                        __stcs(reinterpret_cast<uint4 *>(y - shift),
                               make_uint4(shifted[0], shifted[1], shifted[2], shifted[3]));
                } else if (t + i >= 0 && t + i < end) {
                    store(y - shift, shifted, inside && (shift == 0 || channel > 0), edge, shift);
                }
                y = conv1d_btc_step(y, y_step);
            }
        }
    }
};

template <scalar S, int Residue>
__global__ void __launch_bounds__(conv1d_btc_threads, conv1d_shift_blocks_per_sm)
    conv1d_fwd_btc_shift(const __grid_constant__ conv1d_fwd_args a) {
    using bits = typename stored<S>::bits;
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const conv1d_place at = conv1d_place_of(a.across, block, threadIdx.x, conv1d_btc_threads);
        // Of whole warps: a row's threads are.
        if (at.line >= static_cast<int64_t>(a.strips.d) * a.batch) continue;
        const uint32_t line = static_cast<uint32_t>(at.line);
        const uint32_t b = conv1d_quotient(line, a.strips);
        const int length = static_cast<int>(a.length);
        const int t = static_cast<int>(line - b * a.strips.d) * conv1d_shift_strip -
                      conv1d_shift_back(Residue, b * a.x_stride.b);
        if (t >= length) continue;
        conv1d_btc_shift_thread<S, Residue> self;
        self.channel = static_cast<int>(at.item / 32) * conv1d_shift_channels +
                       static_cast<int>(at.item % 32) * conv1d_shift_vector;
        self.channels = static_cast<int>(a.channels);
        self.length = length;
        const int end = min(t + conv1d_shift_strip, length);
        const bits *const x =
            static_cast<const bits *>(a.x) + b * a.x_stride.b + t * a.x_stride.t + self.channel;
        bits *const y =
            static_cast<bits *>(a.y) + b * a.y_stride.b + t * a.y_stride.t + self.channel;
        const bool last_row = b + 1 == a.batch;
        // One value for the warp, as the compiler sees it too.
        const int first =
            __shfl_sync(conv1d_shift_lanes,
                        self.channel - static_cast<int>(threadIdx.x % 32) * conv1d_shift_vector, 0);
        const int t_of_warp = __shfl_sync(conv1d_shift_lanes, t, 0);
        if (a.w_dense && a.silu && !a.residual && first > 0 &&
            first + 32 * conv1d_shift_vector <= self.channels && t_of_warp >= 3 &&
            t_of_warp + conv1d_shift_strip < length) {
            self.template strip<true>(a, x, y, t_of_warp, t_of_warp + conv1d_shift_strip, last_row);
        } else {
            self.template strip<false>(a, x, y, t, end, last_row);
        }
        // The vector that reaches behind the tensor was not loaded.
        if (!last_row || end != length) continue;
        const int shift = conv1d_shift_of(Residue, length - 1 - t);
        const conv1d_shift_part part = conv1d_shift_part_of(static_cast<int>(threadIdx.x % 32),
                                                            self.channel, self.channels, shift);
        if (self.channel - shift + conv1d_shift_vector <= self.channels) continue;
        for (int j = part.from; j < part.to; ++j)
            conv1d_write_output<float>(a, {0, a.length, static_cast<int64_t>(b), true}, b,
                                       self.channel - shift + j, a.length - 1);
    }
}

} // namespace plait::impl::cuda
