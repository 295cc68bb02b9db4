// conv1d.fwd_bct_tiled: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], time contiguous, x, y bf16,
// f16 or f32, w, bias, states of that type or f32, K <= 32. A thread takes 4 or 8 vectors of 16
// bytes of a row, as far apart as the tile has lanes (fwd_bct_layout.h), and loads up to four
// ahead; samples in front of each are read again (L1). Shared memory: four words, where sequences
// or ids are in use. Bytes: 2 elements an output, w and bias once a thread, ids once for four
// channels. An output takes K FMAs, 6 slots of SiLU (16 bits) and about 8 of the rest: 18 at K = 4,
// where 28 (16 bits) or 56 (f32) are free at the copy rate of an H200. f32 accumulators, one
// rounding. Vectors that an edge of a row, a state, a begin of a sequence or a change of ids
// touches, and all where x and y lie differently to 16 bytes, are left out and follow, one a thread
// at a time (fwd_bct_edge.cuh). Limits: rows < 2^31, a row <= 2^30 tokens.
#pragma once

#include "lib/cuda/conv1d/fwd_bct_edge.cuh"

namespace plait::impl::cuda {

/// The samples t - Halo .. t + v - 1 as words, for t >= Halo, or t = a whole number of vectors in a
/// row that begins with one: what lies before the row is 0.
template <scalar S, int Halo>
__device__ __forceinline__ void conv1d_bct_load_window(const typename stored<S>::bits *row, int t,
                                                       uint32_t *words) {
    constexpr int v = conv1d_vector(S), piece = Halo < v ? Halo : v;
    constexpr int piece_words = conv1d_words<S, piece>;
    const typename stored<S>::bits *at = row + t;
#ifdef __CUDACC__
    asm("" : "+l"(at)); // one address for all pieces, not a sum for each
#endif
    conv1d_load_words<S, v>(at, words + conv1d_words<S, Halo>);
#pragma unroll
    for (int i = 0; i < Halo / piece; ++i) {
        if (t >= Halo - i * piece) {
            conv1d_load_words<S, piece>(at + (i * piece - Halo), words + i * piece_words);
        } else {
#pragma unroll
            for (int j = 0; j < piece_words; ++j) words[i * piece_words + j] = 0;
        }
    }
}

/// A thread's vectors. `shared`: with a barrier of the block; what is loaded before it may be of no
/// use. `again`: the block has been here before.
template <scalar S, int Taps, bool Full>
__device__ __forceinline__ void conv1d_bct_tile_body(const conv1d_fwd_args &a,
                                                     const conv1d_bct_self &self, bool shared,
                                                     bool again) {
    using bits = typename stored<S>::bits;
    constexpr int v = conv1d_vector(S), halo = Taps, batch = conv1d_bct_batch(S, Taps);
    const int length = static_cast<int>(a.length);
    const uint32_t b = self.b, c = min(self.c, a.channel_count.d - 1);
    const bits *x = static_cast<const bits *>(a.x) + b * a.x_stride.b + c * a.x_stride.c;
    bits *y = static_cast<bits *>(a.y) + b * a.y_stride.b + c * a.y_stride.c;
    const auto offset_of = [](const void *p) {
        return static_cast<int>(reinterpret_cast<uintptr_t>(p) / sizeof(bits)) & (v - 1);
    };
    const int offset = offset_of(y), stride = static_cast<int>(self.lanes) * v;
    const int t0 = conv1d_bct_first(S, self.tile, self.lanes, self.lane, a.vectors, offset);
    const bool exists = t0 < length && self.c < a.channel_count.d;
    if (!shared && !exists) return;

    // Plain vectors begin in least .. most.
    int least = offset == 0 ? 0 : halo;
    if (offset_of(x) != offset || !exists) least = length;
    if constexpr (Full) {
        if (!shared) {
            if (!conv1d_sequence_of(a, b).live) least = length;
            if (a.state_in != nullptr) least = max(least, static_cast<int>(a.width) - 1);
        }
    }
    const int most = length - v;

    float taps[1][Taps], bias[1];
    unsigned done = 0; // bit i: vector i was plain
    [[maybe_unused]] unsigned touched = 0;
#pragma unroll 1
    for (int i0 = 0, first = t0; i0 < a.vectors; i0 += batch, first += batch * stride) {
        uint32_t words[batch][conv1d_words<S, halo + v>];
        unsigned plain = 0;
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            const int t = first + i * stride;
            const bool now = t >= least && t <= most;
            if (now) plain |= 1u << i;
            if (now) conv1d_bct_load_window<S, halo>(x, t, words[i]);
        }
        if (i0 == 0) conv1d_load_taps<S>(a, c, taps, bias);
        if constexpr (Full) {
            if (shared && i0 == 0) touched = conv1d_bct_touched<S>(a, self, again);
            plain &= ~(touched >> i0);
        }
        done |= plain << i0;
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            if ((plain >> i & 1u) == 0) continue;
            float window[halo + v], out[v];
            conv1d_widen_words<S, halo + v>(words[i], window);
            conv1d_compute<S, Taps, halo, v>(a, taps[0], bias[0], window, out);
            store_elements<S, v == 8 ? 3 : 2>(y, first + i * stride, out, 1.0f);
        }
    }
    if (!exists || done == (1u << a.vectors) - 1) return;
    // Those of the others that the row has.
    const int last = min(a.vectors - 1, (length - 1 - t0) / stride);
    unsigned left = ~done & ((2u << last) - 1);
    while (left != 0) {
        const int t = t0 + (__ffs(static_cast<int>(left)) - 1) * stride;
        left &= left - 1;
        float out[v];
        if constexpr (Full) {
            if (a.seq_idx != nullptr) {
                conv1d_bct_edge_ids<S, Taps>(a, b, c, x, t, taps[0], bias[0], out);
            } else {
                conv1d_bct_edge_sequences<S, Taps>(a, b, c, x, t, taps[0], bias[0], out);
            }
        } else {
            float window[halo + v];
            conv1d_bct_edge_window<S, Taps>(x, t, length, window);
            conv1d_compute<S, Taps, halo, v>(a, taps[0], bias[0], window, out);
        }
        conv1d_store_tokens<S, v>(y, t, length, out);
    }
}

template <scalar S, int Taps, bool Full>
__global__ void __launch_bounds__(conv1d_bct_threads, conv1d_bct_blocks_per_sm(Taps, Full))
    conv1d_fwd_bct_tiled(const __grid_constant__ conv1d_fwd_args a) {
    for (uint32_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        conv1d_bct_self self;
        const bool shared = Full && (a.spans != nullptr || a.seq_idx != nullptr);
        if (shared) {
            self = conv1d_bct_shared_self(a, block, threadIdx.x);
        } else {
            const conv1d_bct_place at = conv1d_bct_place_of(a.across, block, threadIdx.x);
            if (at.line >= a.channel_count.d * static_cast<uint32_t>(a.batch)) continue;
            self = conv1d_bct_self_of(a, at);
        }
        conv1d_bct_tile_body<S, Taps, Full>(a, self, shared, block != blockIdx.x);
    }
}

} // namespace plait::impl::cuda
