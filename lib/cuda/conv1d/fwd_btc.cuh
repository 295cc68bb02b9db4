// conv1d.fwd_btc: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], channels contiguous, x, y bf16,
// f16 or f32, w, bias, states of that type or f32, K <= 32. A thread holds a vector of 4 channels
// (2 for K > 8; single ones, 32 apart, where they are not aligned or K > 16) with taps and window
// in registers; of 16 bits and K <= 4 that are not aligned: fwd_btc_pairs.cuh. K <= 4: a tile of 8
// tokens, all loaded first. Else, and with states, ids or packed sequences, a strip of tokens,
// which come by a ring of asynchronous copies. Bytes: 2 elements an output; samples in front of a
// tile come from L2. An output takes 18 (tiles) or 5 + K + 6 of SiLU (strips, 16 bits) slots, where
// 28 (16 bits) or 56 (f32) are free at the copy rate of an H200. f32 accumulators, one rounding.
// Measured there: r = 1.04 to 1.06 at K = 4, 1.20 at K = 8, 1.55 at K = 16, 2.4 at K = 32. Tiles at
// K = 8 (1.44), sums of several tokens side by side at K = 16 and 32 (no change), and sums of the
// tokens to come in the place of a window (1.68, 2.58) were tried.
// Strips are computed as if a row were one sequence with zeros before it; then the thread writes
// the first tokens of other sequences and of runs of equal ids again, one by one.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_btc_thread.cuh"

namespace plait::impl::cuda {

/// Tile `line` of all rows, which are not shorter. The last one of a row ends with it, and shares
/// outputs with the one before.
template <scalar S, int V, int Taps>
__device__ __forceinline__ void conv1d_btc_tile_body(const conv1d_fwd_args &a, uint32_t line,
                                                     uint32_t item) {
    using bits = typename stored<S>::bits;
    constexpr int n = conv1d_btc_tile(Taps);
    const uint32_t b = conv1d_quotient(line, a.strips);
    const int t = min(static_cast<int>(line - b * a.strips.d) * n, static_cast<int>(a.length) - n);
    conv1d_btc_thread<S, V, Taps, false> self;
    self.own = conv1d_btc_lane<S, V, false>(a, item);
    self.x = static_cast<const bits *>(a.x) + b * a.x_stride.b + self.own.channel;
    self.y = static_cast<bits *>(a.y) + b * a.y_stride.b + self.own.channel;
    typename decltype(self)::tile_samples samples;
    self.load_tile(a, t, samples);
    self.own.load_taps(a, self.taps, self.bias);
    if (a.width != Taps) {
        self.template tile<conv1d_btc_walk::masked>(a, t, samples);
    } else if (a.silu && !a.residual) {
        self.template tile<conv1d_btc_walk::silu>(a, t, samples);
    } else {
        self.template tile<conv1d_btc_walk::exact>(a, t, samples);
    }
}

template <scalar S, int V, int Taps, bool Strided, bool Full>
__device__ __forceinline__ void conv1d_btc_strip_body(const conv1d_fwd_args &a, uint32_t line,
                                                      uint32_t item) {
    using bits = typename stored<S>::bits;
    const int length = static_cast<int>(a.length);
    const uint32_t b = conv1d_quotient(line, a.strips);
    int t = static_cast<int>(line - b * a.strips.d) * a.strip;
    const int end = min(t + a.strip, length);
    conv1d_btc_thread<S, V, Taps, Strided> self;
    self.own = conv1d_btc_lane<S, V, Strided>(a, item);
    if (self.own.channel >= a.channels) return;
    self.x = static_cast<const bits *>(a.x) + b * a.x_stride.b + self.own.channel;
    self.y = static_cast<bits *>(a.y) + b * a.y_stride.b + self.own.channel;
    if constexpr (!Strided) {
        extern __shared__ __align__(16) char shared[];
        self.ring = shared + static_cast<int>(threadIdx.x) * decltype(self.own)::cell;
    }
    self.own.load_taps(a, self.taps, self.bias);
    self.row(a, t, end);
    if constexpr (Full) {
        const int32_t *ids = a.seq_idx == nullptr ? nullptr : a.seq_idx + b * a.ids_b;
        int64_t n = a.spans == nullptr ? static_cast<int64_t>(b) : conv1d_find_sequence(a, t);
        while (t < end) {
            // From one sequence's first token to the next one's.
            int stop = end, live = t;
            if (a.spans != nullptr) {
                while (n + 1 < a.sequences && a.spans[n + 1].begin <= t) ++n;
                if (n + 1 < a.sequences && a.spans[n + 1].begin < stop)
                    stop = static_cast<int>(a.spans[n + 1].begin);
            }
            if (n >= 0) {
                const conv1d_sequence s = conv1d_sequence_of(a, n);
                if (s.live && s.end > t) live = s.end < stop ? static_cast<int>(s.end) : stop;
                self.sequence(a, s, ids, t, live);
            }
            self.zeros(a, live, stop);
            t = stop;
        }
    }
}

/// V channels side by side, Strided: 32 apart.
template <scalar S, int V, int Taps, bool Strided, bool Full>
__global__ void __launch_bounds__(conv1d_btc_threads,
                                  conv1d_btc_blocks_per_sm(S, Taps, Strided ? 1 : V, Full))
    conv1d_fwd_btc(const __grid_constant__ conv1d_fwd_args a) {
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const conv1d_place at = conv1d_place_of(a.across, block, threadIdx.x, conv1d_btc_threads);
        // The product is not kept: its registers are those that the tile lacks.
        if (at.line >= static_cast<int64_t>(a.strips.d) * a.batch) continue;
        const uint32_t line = static_cast<uint32_t>(at.line);
        if constexpr (conv1d_btc_tiled(Taps, Strided ? 1 : V, Full)) {
            conv1d_btc_tile_body<S, V, Taps>(a, line, at.item);
        } else {
            conv1d_btc_strip_body<S, V, Taps, Strided, Full>(a, line, at.item);
        }
    }
}

} // namespace plait::impl::cuda
