// conv1d.fwd_bct_tiled: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], time contiguous, x, y bf16,
// f16 or f32, w, bias, states of that type or f32, K <= 32. A thread per 32 bytes of y, with the
// halo in front read again (L1); no shared memory, no barrier. Bytes: 2 elements an output and w,
// bias once. An output takes K FMAs, 2 MUFU and 9 slots of SiLU and about 6 of the rest: 19 at
// K = 4, where 28 (16 bits) or 56 (f32) are free at the copy rate of an H200. f32 accumulators.
// Limits: rows < 2^31, a row <= 2^30 tokens. Where tokens of a tile see several sequences or ids,
// they are computed again one by one (fwd_element.cuh), behind the vector stores.
#pragma once

#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

/// Whether the fast path is right for all tokens first .. last of a tile: they and what their taps
/// reach are one sequence, one id. `*live` false: they are, and their outputs are 0.
__device__ __forceinline__ bool conv1d_tile_is_plain(const conv1d_fwd_args &a, int64_t row,
                                                     int first, int last, bool *live) {
    const int reach = first - (static_cast<int>(a.width) - 1);
    if (a.spans != nullptr) {
        const int64_t n = conv1d_find_sequence(a, last);
        if (n < 0) return false;
        const conv1d_sequence s = conv1d_sequence_of(a, n);
        const bool plain = s.begin <= (s.live ? reach : first) && last < s.end;
        *live = s.live || !plain;
        return plain;
    }
    if (a.seq_idx != nullptr) {
        if (reach < 0 && a.state_in == nullptr) return false;
        const int32_t *ids = a.seq_idx + row * a.ids_b;
        const int32_t id = __ldg(ids + first * a.ids_t);
        bool same = id >= 0;
        for (int p = max(reach, 0); p <= last; ++p) same = same && __ldg(ids + p * a.ids_t) == id;
        // What lies before the row has the id of its first token, which is in reach.
        return same;
    }
    return true;
}

/// Tokens that the fast path got wrong.
__device__ __forceinline__ void conv1d_patch(const conv1d_fwd_args &a, int64_t row, int64_t channel,
                                             int first, int last) {
    int64_t n = a.spans != nullptr ? conv1d_find_sequence(a, first) : row;
    for (int t = first; t <= last; ++t) {
        conv1d_sequence s{0, 0, 0, false};
        if (a.spans != nullptr)
            while (n + 1 < a.sequences && a.spans[n + 1].begin <= t) ++n;
        if (n >= 0) s = conv1d_sequence_of(a, n);
        s.live = s.live && t < s.end;
        if (s.live && a.seq_idx == nullptr && t - s.begin >= a.width - 1) continue;
        conv1d_write_output<float>(a, s, row, channel, t);
    }
}

template <scalar S, int Taps, bool Full>
__device__ __forceinline__ void conv1d_bct_tile_body(const conv1d_fwd_args &a, int64_t row,
                                                     uint32_t tile) {
    using bits = typename stored<S>::bits;
    constexpr int v = conv1d_vector(S), n = conv1d_bct_tile(S), halo = Taps;
    constexpr int piece = halo < v ? halo : v; // of the halo, in elements
    const int length = static_cast<int>(a.length);
    const uint32_t b = conv1d_quotient(static_cast<uint32_t>(row), a.channel_count);
    const uint32_t c = static_cast<uint32_t>(row) - b * a.channel_count.d;
    const bits *x = static_cast<const bits *>(a.x) + b * a.x_stride.b + c * a.x_stride.c;
    bits *y = static_cast<bits *>(a.y) + b * a.y_stride.b + c * a.y_stride.c;
    const auto offset_of = [](const void *p) {
        return static_cast<int>(reinterpret_cast<uintptr_t>(p) / sizeof(bits)) & (v - 1);
    };
    const int offset = offset_of(y);
    const bool together = offset_of(x) == offset;
    const int t0 = conv1d_bct_first(S, tile, offset);
    if (t0 >= length) return;

    uint32_t words[conv1d_words<S, halo + n>];
    if (together && t0 >= halo && t0 + n <= length) {
#pragma unroll
        for (int i = 0; i < halo; i += piece)
            conv1d_load_words<S, piece>(x + (t0 - halo + i), words + conv1d_words<S, 8> * i / 8);
#pragma unroll
        for (int i = 0; i < n; i += v)
            conv1d_load_words<S, v>(x + (t0 + i), words + conv1d_words<S, halo> + 4 * (i / v));
    } else {
#pragma unroll
        for (int i = 0; i < halo + n; i += piece) {
            const int p = t0 - halo + i;
            uint32_t *to = words + conv1d_words<S, 8> * i / 8;
            if (together && p >= 0 && p + piece <= length) {
                conv1d_load_words<S, piece>(x + p, to);
            } else {
                conv1d_gather_words<S, piece>(x, p, length, to);
            }
        }
    }
    float taps[1][Taps], bias[1];
    conv1d_load_taps<S>(a, c, taps, bias);

    const int first = max(t0, 0), last = min(t0 + n, length) - 1;
    bool live = true, plain = true;
    float window[halo + n];
    conv1d_widen_words<S, halo + n>(words, window);
    if constexpr (Full) {
        plain = conv1d_tile_is_plain(a, b, first, last, &live);
        if (a.spans == nullptr) {
            const conv1d_sequence s = conv1d_sequence_of(a, b);
            live = s.live;
            if (t0 < halo && a.state_in != nullptr && live) {
                const int64_t state = s.state * a.state_stride.b + c * a.state_stride.c +
                                      a.entries * a.state_stride.t;
#pragma unroll
                for (int i = 0; i < halo + v - 1; ++i) {
                    const int p = t0 - halo + i;
                    if (p < 0 && p > -static_cast<int>(a.width))
                        window[i] = conv1d_load_as<S>(a.state_in, state + p * a.state_stride.t,
                                                      a.state_wide);
                }
            }
        }
    }
    float out[n];
    conv1d_compute<S, Taps, halo, n>(a, taps[0], bias[0], window, out);
    if constexpr (Full) {
        if (!live) {
#pragma unroll
            for (int j = 0; j < n; ++j) out[j] = 0.0f;
        }
    }
    conv1d_store_tokens<S, n>(y, t0, length, out);
    if constexpr (Full) {
        if (!plain) conv1d_patch(a, b, c, first, last);
    }
}

template <scalar S, int Taps, bool Full>
__global__ void __launch_bounds__(conv1d_bct_threads, conv1d_bct_blocks_per_sm(Taps))
    conv1d_fwd_bct_tiled(const __grid_constant__ conv1d_fwd_args a) {
    const int64_t rows = static_cast<int64_t>(a.channel_count.d) * a.batch;
    for (uint32_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const conv1d_place at = conv1d_place_of(a.across, block, threadIdx.x, conv1d_bct_threads);
        if (at.line < rows) conv1d_bct_tile_body<S, Taps, Full>(a, at.line, at.item);
    }
}

} // namespace plait::impl::cuda
