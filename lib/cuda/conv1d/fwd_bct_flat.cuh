// Part of conv1d.fwd_bct_tiled, which begins in fwd_bct_tiled.cuh:
// variants "flat": y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x], K = 4,
// time contiguous, rows without gaps between them, x, y bf16, f16 or f32, w and bias without gaps
// either. Rows may begin at any element: all are one row of aligned vectors
// (fwd_bct_flat_layout.h), of which a thread takes four, all loaded first; the row of each by a
// product. A vector at the end of one row and the beginning of the next is summed with the taps of
// both. Bytes: 2 elements an output, w and bias once a vector from L1. An output takes about 22
// issue slots (16 bits), a vector with an end of a row 60 more for its warp, where 28 are free at
// the copy rate of an H200. Measured there: r = 1.05 in rows of 4099, 1.09 in rows of 511. Masks
// looked up that way took longer than by row. f32 accumulators, one rounding. Limits: rows < 2^31,
// a row from a vector to 2^30 tokens.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_bct_flat_layout.h"
#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

template <scalar S> struct conv1d_flat_thread {
    using bits = typename stored<S>::bits;
    static constexpr int v = conv1d_vector(S), taps_of = conv1d_flat_taps, halo = taps_of;
    static constexpr int n = conv1d_flat_vectors, window_words = conv1d_words<S, halo + v>;

    /// Where a vector begins.
    struct place {
        uint32_t row, b, c;
        int t;
    };

    const conv1d_fwd_args &a;
    uint32_t rows;
    int length;

    __device__ __forceinline__ explicit conv1d_flat_thread(const conv1d_fwd_args &args)
        : a(args), rows(args.channel_count.d * static_cast<uint32_t>(args.batch)),
          length(static_cast<int>(args.length)) {}

    __device__ __forceinline__ place place_of(const conv1d_flat_row &block, uint32_t from) const {
        const uint32_t n_of = block.rest + from, rows_on = conv1d_quotient(n_of, a.of_row);
        place at;
        at.row = static_cast<uint32_t>(block.row) + rows_on;
        at.t = static_cast<int>(n_of - rows_on * a.of_row.d);
        at.b = conv1d_quotient(at.row, a.channel_count);
        at.c = at.row - at.b * a.channel_count.d;
        return at;
    }

    /// All elements are the tensor's.
    __device__ __forceinline__ bool whole(const place &at) const {
        return at.row + 1 < rows || (at.row < rows && at.t + v <= length);
    }

    struct taps_bits {
        uint4 w;
        uint32_t bias;
    };

    /// Fast: taps and bias are of the type of x, SiLU follows, and no residual.
    template <bool Fast> __device__ __forceinline__ taps_bits load_taps(uint32_t c) const {
        taps_bits r{make_uint4(0, 0, 0, 0), 0};
        if (S == scalar::f32 || (!Fast && a.w_wide)) {
            r.w = __ldg(static_cast<const uint4 *>(a.w) + c);
        } else {
            const uint2 two = __ldg(static_cast<const uint2 *>(a.w) + c);
            r.w.x = two.x, r.w.y = two.y;
        }
        if (a.bias != nullptr)
            r.bias = S == scalar::f32 || (!Fast && a.bias_wide)
                         ? __ldg(static_cast<const uint32_t *>(a.bias) + c)
                         : __ldg(static_cast<const uint16_t *>(a.bias) + c);
        return r;
    }

    template <bool Fast>
    __device__ __forceinline__ void widen_taps(const taps_bits &r, float (&taps)[taps_of],
                                               float &bias) const {
        float w[taps_of];
        if (S == scalar::f32 || (!Fast && a.w_wide)) {
            w[0] = __uint_as_float(r.w.x), w[1] = __uint_as_float(r.w.y);
            w[2] = __uint_as_float(r.w.z), w[3] = __uint_as_float(r.w.w);
        } else if constexpr (S != scalar::f32) {
            widen_raw<S, 2>(make_uint2(r.w.x, r.w.y), w);
        }
#pragma unroll
        for (int d = 0; d < taps_of; ++d) taps[d] = w[taps_of - 1 - d];
        bias = S == scalar::f32 || (!Fast && a.bias_wide) ? __uint_as_float(r.bias)
                                                          : widen<S>(static_cast<bits>(r.bias));
    }

    __device__ __forceinline__ static void sum(const float (&taps)[taps_of], float bias,
                                               const float *window, float *acc) {
#pragma unroll
        for (int j = 0; j < v; ++j) acc[j] = bias;
#pragma unroll
        for (int d = taps_of - 1; d >= 0; --d) {
#pragma unroll
            for (int j = 0; j < v; ++j) acc[j] = __fmaf_rn(taps[d], window[halo + j - d], acc[j]);
        }
    }

    /// Outputs from `from` on belong to the next row, before which there are zeros.
    template <bool Fast>
    __device__ __forceinline__ void next_row(uint32_t c, int from, const float *window,
                                             float *acc) const {
        float taps[taps_of], bias, samples[halo + v], other[v];
        widen_taps<Fast>(load_taps<Fast>(c), taps, bias);
#pragma unroll
        for (int j = 0; j < halo + v; ++j) samples[j] = j - halo >= from ? window[j] : 0.0f;
        sum(taps, bias, samples, other);
#pragma unroll
        for (int j = 1; j < v; ++j) acc[j] = j >= from ? other[j] : acc[j];
    }

    template <bool Fast>
    __device__ __forceinline__ void vector(uint32_t c, int t, const uint32_t *words,
                                           const taps_bits &raw, bits *y) const {
        float taps[taps_of], bias, window[halo + v], acc[v];
        widen_taps<Fast>(raw, taps, bias);
        conv1d_widen_words<S, halo + v>(words, window);
        if (t < halo) {
#pragma unroll
            for (int j = 0; j < halo; ++j) window[j] = t + j < halo ? 0.0f : window[j];
        }
        sum(taps, bias, window, acc);
        if (t + v > length)
            next_row<Fast>(c + 1 == a.channel_count.d ? 0 : c + 1, length - t, window, acc);
        if constexpr (Fast) {
#pragma unroll
            for (int j = 0; j < v; ++j) acc[j] = conv1d_silu<S != scalar::f32>(acc[j]);
        } else {
            conv1d_activate<S, v>(a, window + halo, acc);
        }
        store_elements<S, v == 8 ? 3 : 2>(y, 0, acc, 1.0f);
    }

    template <bool Fast> __device__ __forceinline__ void block(uint32_t number) const {
        const uint64_t first = static_cast<uint64_t>(number) * conv1d_flat_elements(S);
        const conv1d_flat_row begin =
            conv1d_flat_row_of(first, __umul64hi(first, a.row_inverse), a.length);
        const uint32_t mine = conv1d_flat_first(S, threadIdx.x, 0);
        const bits *const x = static_cast<const bits *>(a.x) + first + mine;
        bits *const y = static_cast<bits *>(a.y) + first + mine;
        uint32_t words[n][window_words], c[n];
        int t[n];
        unsigned whole_ones = 0; // bit i: vector i
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const uint32_t from = conv1d_flat_first(S, threadIdx.x, i);
            const place at = place_of(begin, from);
            c[i] = at.row < rows ? at.c : 0;
            t[i] = at.t;
            if (!whole(at)) continue;
            whole_ones |= 1u << i;
            const bits *const p = x + (from - mine);
            conv1d_load_words<S, v>(p, words[i] + conv1d_words<S, halo>);
            // in front of the tensor there is nothing
            conv1d_load_words<S, halo>(first + from == 0 ? p : p - halo, words[i]);
        }
        taps_bits next = load_taps<Fast>(c[0]);
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const taps_bits now = next;
            if (i + 1 < n) next = load_taps<Fast>(c[i + 1]);
            if (whole_ones >> i & 1u)
                vector<Fast>(c[i], t[i], words[i], now,
                             y + (conv1d_flat_first(S, threadIdx.x, i) - mine));
        }
        // The last vector of the tensor may end behind it.
        if (number + 1 < a.blocks || whole_ones == (1u << n) - 1) return;
#pragma unroll 1
        for (int i = 0; i < n; ++i) {
            const place at = place_of(begin, conv1d_flat_first(S, threadIdx.x, i));
            if (at.row >= rows || whole(at)) continue;
            for (int p = at.t; p < length; ++p)
                conv1d_write_output<float>(a, {0, a.length, at.b, true}, at.b, at.c, p);
        }
    }
};

template <scalar S>
__global__ void __launch_bounds__(conv1d_bct_threads, conv1d_flat_blocks_per_sm)
    conv1d_fwd_bct_flat(const __grid_constant__ conv1d_fwd_args a) {
    start_successor();
    const conv1d_flat_thread<S> self(a);
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        if (a.silu && !a.residual && (S == scalar::f32 || (!a.w_wide && !a.bias_wide))) {
            self.template block<true>(block);
        } else {
            self.template block<false>(block);
        }
    }
}

} // namespace plait::impl::cuda
