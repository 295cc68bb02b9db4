// conv1d.fwd_bct_tiled: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], time contiguous, x, y bf16,
// f16 or f32, w, bias of that type or f32, K <= 32; a row is one sequence without a state, and
// conv1d.fwd_bct_fix follows where it is not; variants "masked": with ids or packed sequences
// (conv1d.fwd_masks). A thread takes 4 or 8 vectors of 16 bytes of a row, as far apart as the tile
// has lanes (fwd_bct_layout.h), and loads up to four ahead; samples in front of each are read again
// (L1). No shared memory. Bytes: 2 elements an output, w and bias once a thread. An output takes K
// FMAs, 6 slots of SiLU (16 bits) and about 8 of the rest: 18 at K = 4, where 28 (16 bits) or 56
// (f32) are free at the copy rate of an H200. f32 accumulators, one rounding. Variants "odd": rows
// begin anywhere; vectors that an edge of a row cuts are loaded whole where the row beside it lies
// there. Others, and all where x and y lie differently to 16 bytes, are left out and follow, one a
// thread at a time. Limits: rows < 2^31, a row <= 2^30 tokens.
// Parts: fwd_bct_flat.cuh.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_bct_wide.cuh"

namespace plait::impl::cuda {

/// The samples t - Halo .. t + v - 1 as words, for t >= Halo, or t = a whole number of vectors in a
/// row that begins with one. Before the row: any of it, which conv1d_bct_clear_window makes 0.
/// Odd: t - Halo is in the tensor.
template <scalar S, int Halo, bool Odd>
__device__ __forceinline__ void conv1d_bct_load_window(const typename stored<S>::bits *row, int t,
                                                       uint32_t *words) {
    constexpr int v = conv1d_vector(S), piece = Halo < v ? Halo : v;
    const typename stored<S>::bits *at = row + t;
#ifdef __CUDACC__
    asm("" : "+l"(at)); // one address for all pieces, not a sum for each
#endif
    conv1d_load_words<S, v>(at, words + conv1d_words<S, Halo>);
#pragma unroll
    for (int i = 0; i < Halo / piece; ++i)
        conv1d_load_words<S, piece>(Odd || t >= Halo - i * piece ? at + (i * piece - Halo) : at,
                                    words + i * conv1d_words<S, piece>);
}

/// Apart from the loads: zeros there would be merged with halves of words that are waited for.
template <scalar S, int Halo>
__device__ __forceinline__ void conv1d_bct_clear_window(int t, uint32_t *words) {
    constexpr int v = conv1d_vector(S), piece = Halo < v ? Halo : v;
    constexpr int piece_words = conv1d_words<S, piece>;
#pragma unroll
    for (int i = 0; i < Halo; i += piece) {
        if (t >= Halo - i) continue;
#pragma unroll
        for (int j = 0; j < piece_words; ++j) words[i / piece * piece_words + j] = 0;
    }
}

/// Samples t - Taps .. t + v - 1; 0 outside the row.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_bct_edge_window(const typename stored<S>::bits *x, int t,
                                                       int length, float *window) {
    constexpr int n = Taps + conv1d_vector(S);
    uint32_t words[conv1d_words<S, n>];
    conv1d_gather_words<S, n>(x, t - Taps, length, words);
    conv1d_widen_words<S, n>(words, window);
}

/// Samples in front of the row, which a window of an odd row took along, become 0.
template <int Halo, int N>
__device__ __forceinline__ void conv1d_bct_clear_samples(int t, float (&window)[N]) {
    if (t >= Halo) return;
#pragma unroll
    for (int j = 0; j < N; ++j)
        if (t + j < Halo) window[j] = 0.0f;
}

/// Samples in front of the first token come from a state.
template <scalar S, int N>
__device__ __forceinline__ void conv1d_bct_state_window(const conv1d_fwd_args &a, uint32_t b,
                                                        uint32_t c, float (&window)[N]) {
    const int64_t state = b * a.state_stride.b + c * a.state_stride.c;
#pragma unroll
    for (int d = 1; d < 4; ++d)
        if (d < static_cast<int>(a.width))
            window[4 - d] = conv1d_load_as<S>(
                a.state_in, state + (a.entries - d) * a.state_stride.t, a.state_wide);
}

/// Fields of the v tokens from t on, ones behind them. Odd: they may begin in the middle of a word.
template <scalar S, int Taps, bool Odd = true>
__device__ __forceinline__ void
conv1d_bct_load_masks(const uint32_t *row, int t, uint32_t (&masks)[conv1d_mask_words<S, Taps>]) {
    constexpr int n = conv1d_mask_words<S, Taps>, bits = conv1d_vector(S) * Taps;
    const conv1d_mask_place at = conv1d_mask_place_of(t, Taps);
    row += at.word;
    uint32_t low = __ldg(row);
    if constexpr (!Odd && bits <= 32) {
        masks[0] = low >> at.bit;
    } else {
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const uint32_t high = Taps == 32 && i + 1 == n ? 0 : __ldg(row + i + 1);
            masks[i] = __funnelshift_r(low, high, static_cast<unsigned>(at.bit));
            low = high;
        }
    }
    if constexpr (bits < 32) masks[0] |= ~0u << bits;
}

/// 1: all taps of all tokens count; 2: all tokens are dead; 0: neither.
template <scalar S, int Taps>
__device__ __forceinline__ unsigned
conv1d_bct_mask_kind(const uint32_t (&masks)[conv1d_mask_words<S, Taps>]) {
    uint32_t common = ~0u, any = 0;
#pragma unroll
    for (int i = 0; i < conv1d_mask_words<S, Taps>; ++i) {
        common &= masks[i];
        any |= masks[i];
    }
    // Behind the fields of four tokens of four taps there are ones.
    constexpr uint32_t fields = ~0u >> (conv1d_vector(S) * Taps < 32 ? 16 : 0);
    return common == ~0u ? 1 : (any & fields) == 0 ? 2 : 0;
}

/// A thread's vectors. Odd: rows of x, y lie alike, but not all at multiples of 16 bytes.
template <scalar S, int Taps, bool Odd, bool Masked, bool State>
__device__ __forceinline__ void conv1d_bct_tile_body(const conv1d_fwd_args &a,
                                                     const conv1d_bct_self &self) {
    using bits = typename stored<S>::bits;
    constexpr int v = conv1d_vector(S), halo = Taps, batch = conv1d_bct_batch(S, Taps, Masked);
    constexpr int window_words = conv1d_words<S, halo + v>;
    const int length = static_cast<int>(a.length);
    const bits *x = static_cast<const bits *>(a.x) + self.b * a.x_stride.b + self.c * a.x_stride.c;
    bits *y = static_cast<bits *>(a.y) + self.b * a.y_stride.b + self.c * a.y_stride.c;
    const auto offset_of = [](const void *p) {
        return static_cast<int>(reinterpret_cast<uintptr_t>(p) / sizeof(bits)) & (v - 1);
    };
    const int offset = Odd ? offset_of(y) : 0, stride = static_cast<int>(self.lanes) * v;
    int first = conv1d_bct_first(S, self.tile, self.lanes, self.lane, a.vectors, offset);
    if (first >= length) return;

    // Plain vectors begin in least .. most.
    conv1d_bct_range range{0, length - v};
    if constexpr (Odd)
        range = conv1d_bct_odd_range(S, halo, self.b * static_cast<int64_t>(a.channels) + self.c,
                                     a.batch * a.channels, length, offset_of(x) == offset,
                                     a.rows_packed);

    const uint32_t *masks_row = nullptr;
    if constexpr (Masked) masks_row = a.masks + self.b * conv1d_masks_words(a.length, Taps);
    float taps[1][Taps], bias[1];
    unsigned done = 0; // bit i: vector i is written
#pragma unroll 1
    for (int i0 = 0; i0 < a.vectors; i0 += batch, first += batch * stride) {
        uint32_t words[batch][window_words];
        uint32_t masks[batch][conv1d_mask_words<S, Taps>];
        unsigned plain = 0;
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            const int t = first + i * stride;
            const bool now = t >= range.least && t <= range.most;
            if (now) plain |= 1u << i;
            if (now) conv1d_bct_load_window<S, halo, Odd>(x, t, words[i]);
            if constexpr (Masked && Odd)
                if (now) conv1d_bct_load_masks<S, Taps, Odd>(masks_row, t, masks[i]);
        }
        if (i0 == 0) conv1d_load_taps_by<S, Taps <= (Odd ? 8 : 16)>(a, self.c, taps, bias);
        if constexpr (!Masked || Taps == 4) done |= plain << i0;
#pragma unroll
        for (int i = 0; i < batch; ++i) {
            if ((plain >> i & 1u) == 0) continue;
            unsigned kind = 1;
            if constexpr (Masked && Taps > 4) {
                kind = conv1d_bct_mask_kind<S, Taps>(masks[i]);
                if (kind == 0) continue;
                done |= 1u << (i0 + i);
            }
            if constexpr (Masked && !Odd) // from L1: no registers for them before
                conv1d_bct_load_masks<S, Taps, Odd>(masks_row, first + i * stride, masks[i]);
            float window[halo + v], out[v];
            if constexpr (!Odd) conv1d_bct_clear_window<S, halo>(first + i * stride, words[i]);
            conv1d_widen_words<S, halo + v>(words[i], window);
            if constexpr (State)
                if (i == 0 && first == 0) conv1d_bct_state_window<S>(a, self.b, self.c, window);
            if constexpr (Masked && Taps == 4) {
                // samples in front of the row do not count
                conv1d_compute_fields<S, v>(a, taps[0], bias[0], window, masks[i][0], out);
            } else {
                if constexpr (Odd) conv1d_bct_clear_samples<halo>(first + i * stride, window);
                conv1d_compute<S, Taps, halo, v>(a, taps[0], bias[0], window, out);
            }
            if constexpr (Masked && Taps > 4) {
#pragma unroll
                for (int j = 0; j < v; ++j) out[j] = kind == 1 ? out[j] : 0.0f;
            }
            if constexpr (Odd) {
                conv1d_store_tokens<S, v>(y, first + i * stride, length, out);
            } else {
                store_elements<S, v == 8 ? 3 : 2>(y, first + i * stride, out, 1.0f);
            }
        }
    }
    if (done == (1u << a.vectors) - 1) return;
    // Those of the others that the row has.
    const int t0 = first - a.vectors * stride;
    const int last = min(a.vectors - 1, (length - 1 - t0) / stride);
    unsigned left = ~done & ((2u << last) - 1);
    while (left != 0) {
        const int t = t0 + (__ffs(static_cast<int>(left)) - 1) * stride;
        left &= left - 1;
        float window[halo + v], out[v];
        if (Masked && Taps > 4 && t >= range.least && t <= range.most) {
            uint32_t words[window_words];
            conv1d_bct_load_window<S, halo, true>(x, t, words);
            conv1d_widen_words<S, halo + v>(words, window);
            conv1d_bct_clear_samples<halo>(t, window);
        } else {
            conv1d_bct_edge_window<S, Taps>(x, t, length, window);
        }
        if constexpr (Masked) {
            uint32_t masks[conv1d_mask_words<S, Taps>];
            conv1d_bct_load_masks<S, Taps>(masks_row, t, masks);
            conv1d_compute_masked<S, Taps, halo, v>(a, taps[0], bias[0], window, masks, out);
        } else {
            conv1d_compute<S, Taps, halo, v>(a, taps[0], bias[0], window, out);
        }
        conv1d_store_tokens<S, v>(y, t, length, out);
    }
}

/// Masked: of rows with ids, masks say which taps count. State: aligned rows have first states.
template <scalar S, int Taps, bool Odd, bool Masked, bool State = false>
__global__ void __launch_bounds__(conv1d_bct_threads,
                                  conv1d_bct_is_wide(Taps) && !Odd
                                      ? conv1d_bct_wide_blocks_per_sm(Taps)
                                      : conv1d_bct_blocks_per_sm(S, Taps, Odd, Masked))
    conv1d_fwd_bct_tiled(const __grid_constant__ conv1d_fwd_args a) {
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const conv1d_bct_place at = conv1d_bct_place_of(a.across, block, threadIdx.x);
        if (at.line >= a.channel_count.d * static_cast<uint32_t>(a.batch)) continue;
        if constexpr (conv1d_bct_is_wide(Taps) && !Odd) {
            const conv1d_bct_self self = conv1d_bct_self_of(a, at);
            if (conv1d_bct_wide_silu(S, Taps) && a.width == Taps && a.silu && !a.residual) {
                conv1d_bct_wide_body<S, Taps, conv1d_bct_wide_silu(S, Taps)>(a, self);
            } else {
                conv1d_bct_wide_body<S, Taps, false>(a, self);
            }
        } else {
            conv1d_bct_tile_body<S, Taps, Odd, Masked, State>(a, conv1d_bct_self_of(a, at));
        }
    }
}

} // namespace plait::impl::cuda
