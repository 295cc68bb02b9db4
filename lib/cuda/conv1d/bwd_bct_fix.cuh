// conv1d.bwd_bct_fix: behind conv1d.bwd_bct where ids or packed sequences are in use beside states
// or more than four taps: it takes a row for one sequence without a state. dx again where it met a
// g of a token at a border (conv1d.bwd_marks), or that the gradient of a last state reaches.
// Partial sums of dw and dbias of the tokens at a border, which bwd_bct left out. A block takes 512
// tokens of a row and 128 channels at a time: four tokens a thread, those to be written go to a
// list in shared memory, in order of time, each with its sequence; then a thread an element of dx,
// time innermost, and a thread a channel for the sums, over all chunks of the block's slice. f32
// accumulators, one rounding; x, ids and dy around a token once, in registers, for K <= 8. Bytes:
// about two sectors of x and of dy for each channel and border. Bound: latency of three trips where
// borders are few, else 60 + 2 K K instructions an element (estimated).
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_bct_layout.h"
#include "lib/cuda/conv1d/bwd_window.cuh"

namespace plait::impl::cuda {

/// A token to be mended.
struct conv1d_bct_fix_token {
    int32_t t;
    int32_t row, begin, end; ///< of its sequence; row -1: none
    bool border;
};

/// The tokens of a chunk to `list`, in order; how many. Two barriers.
__device__ __forceinline__ int conv1d_bct_fix_find(const conv1d_bct_fix_args &a, int64_t b,
                                                   int64_t first, conv1d_bct_fix_token *list,
                                                   uint32_t *counts) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t t0 = first + int64_t{threadIdx.x} * conv1d_bct_fix_each;
    const int64_t words = conv1d_border_words(a.length), word = t0 >> 5;
    const uint2 *const row =
        reinterpret_cast<const uint2 *>(static_cast<const char *>(a.marks) + a.borders_at) +
        b * words;
    const uint2 low = word < words ? __ldg(row + word) : make_uint2(0, 0);
    const uint2 high = word + 1 < words ? __ldg(row + word + 1) : make_uint2(0, 0);
    const uint32_t live = ~(low.y >> (t0 & 31));
    uint32_t wanted = conv1d_border_reach(low.x, high.x, t0, a.width) & live;
    conv1d_sequence of[conv1d_bct_fix_each];
#pragma unroll
    for (int j = 0; j < conv1d_bct_fix_each; ++j) {
        of[j] = {-1, 0, 0};
        if (t0 + j >= a.length) {
            wanted &= ~(1u << j);
        } else if ((wanted >> j & 1u) || (a.dstate_out && (live >> j & 1u))) {
            of[j] = conv1d_sequence_of(a, b, t0 + j);
            if (a.dstate_out && of[j].row >= 0 && t0 + j >= of[j].end - a.entries)
                wanted |= 1u << j;
        }
    }
    int at = 0, of_warp = 0;
#pragma unroll
    for (int j = 0; j < conv1d_bct_fix_each; ++j) {
        const unsigned lanes = __ballot_sync(0xffffffffu, static_cast<int>(wanted >> j & 1u));
        at += __popc(lanes & ((1u << lane) - 1));
        of_warp += __popc(lanes);
    }
    if (lane == 0) counts[warp] = static_cast<uint32_t>(of_warp);
    __syncthreads(); // the counts are written
    int all = 0;
#pragma unroll
    for (uint32_t w = 0; w < conv1d_bct_fix_threads / 32; ++w) {
        if (w < warp) at += static_cast<int>(counts[w]);
        all += static_cast<int>(counts[w]);
    }
#pragma unroll
    for (int j = 0; j < conv1d_bct_fix_each; ++j) {
        if (!(wanted >> j & 1u)) continue;
        const int64_t t = t0 + j;
        list[at++] = {static_cast<int32_t>(t), static_cast<int32_t>(of[j].row),
                      static_cast<int32_t>(of[j].begin), static_cast<int32_t>(of[j].end),
                      (low.x >> (t & 31) & 1u) != 0};
    }
    __syncthreads(); // the list is written
    return all;
}

template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_bct_fix_dx(const conv1d_bct_fix_args &a, int64_t b,
                                                  int64_t c, const conv1d_bct_fix_token &token) {
    constexpr bool fast = S != scalar::f32;
    const conv1d_sequence s = {token.row, token.begin, token.end};
    float dx = 0;
    if (conv1d_live(a, s, b, token.t)) {
        if constexpr (Taps <= 8) {
            conv1d_fix_taps<Taps> taps;
            conv1d_fix_window<S, Taps, Taps> near;
            taps.load(a, c);
            near.load(a, s, b, c, token.t);
            dx = near.template sum<fast>(a, taps, 0);
        } else {
            for (int j = 0; j < a.width; ++j) {
                const int64_t t = token.t + int64_t{j};
                if (t >= s.end || !conv1d_live(a, s, b, t) || !conv1d_counts(a, s, b, t, token.t))
                    continue;
                const float w =
                    conv1d_load<float>(a.w, c * a.vw.c + (a.width - 1 - j) * a.vw.t, a.vw.type);
                dx = conv1d_fma(w, conv1d_fix_g<fast>(a, s, b, c, t), dx);
            }
        }
        dx = conv1d_add(dx, conv1d_tail<float>(a, s, b, c, token.t));
        if (a.residual)
            dx = conv1d_add(dx, conv1d_element<S>(a.dy, conv1d_at(a.vdy, b, c, token.t)));
    }
    conv1d_put_element<S>(a.dx, conv1d_at(a.vdx, b, c, token.t), dx);
}

/// Sums of a channel over the chunks of a slice: dw[d] by distance.
template <scalar S, int Taps> struct conv1d_bct_fix_sums {
    float dw[Taps] = {}, dbias = 0;

    __device__ __forceinline__ void add(const conv1d_bct_fix_args &a, int64_t b, int64_t c,
                                        const conv1d_fix_taps<Taps <= 8 ? Taps : 1> &taps,
                                        const conv1d_bct_fix_token &token) {
        constexpr bool fast = S != scalar::f32;
        const conv1d_sequence s = {token.row, token.begin, token.end};
        if constexpr (Taps <= 8) {
            conv1d_fix_window<S, Taps, 1> near;
            near.load(a, s, b, c, token.t);
            near.template add_sums<fast>(a, taps, dw, dbias);
        } else {
            if (!conv1d_live(a, s, b, token.t)) return;
            const float g = conv1d_fix_g<fast>(a, s, b, c, token.t);
            dbias = conv1d_add(dbias, g);
#pragma unroll
            for (int d = 0; d < Taps; ++d) {
                const int64_t p = token.t - int64_t{d};
                if (d < a.width && conv1d_counts(a, s, b, token.t, p))
                    dw[d] = conv1d_fma(g, conv1d_input<float>(a, s, b, c, p), dw[d]);
            }
        }
    }

    __device__ __forceinline__ void put(const conv1d_bct_fix_args &a, int64_t slice,
                                        int64_t c) const {
        float *const to =
            static_cast<float *>(a.partial) + (a.slots + slice) * (a.width + 1) * a.channels + c;
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            if (d < a.width) to[(a.width - 1 - d) * a.channels] = dw[d];
        to[a.width * a.channels] = dbias;
    }
};

template <scalar S, int Taps>
__global__ void __launch_bounds__(conv1d_bct_fix_threads, Taps <= 4 ? 6 : 3)
    conv1d_bwd_bct_fix(const __grid_constant__ conv1d_bct_fix_args a) {
    __shared__ conv1d_bct_fix_token list[conv1d_bct_fix_tokens];
    __shared__ uint32_t counts[conv1d_bct_fix_threads / 32];
    const int64_t all = a.batch * a.chunks, blocks = a.slices * a.groups;
    start_successor();
    for (int64_t block = wait_for_predecessor(); block < blocks; block += gridDim.x) {
        const int64_t slice = block / a.groups;
        const int64_t c0 = (block - slice * a.groups) * conv1d_bct_fix_threads;
        const int channels =
            static_cast<int>(min(a.channels - c0, int64_t{conv1d_bct_fix_threads}));
        const bool sums = a.partial && static_cast<int>(threadIdx.x) < channels;
        conv1d_fix_taps<Taps <= 8 ? Taps : 1> taps;
        if (Taps <= 8 && sums) taps.load(a, c0 + threadIdx.x);
        conv1d_bct_fix_sums<S, Taps> mine;
        for (int64_t chunk = slice; chunk < all; chunk += a.slices) {
            const int64_t b = chunk / a.chunks;
            const int64_t first = (chunk - b * a.chunks) * conv1d_bct_fix_tokens;
            const int found = conv1d_bct_fix_find(a, b, first, list, counts);
            if (a.dx) {
                for (int i = static_cast<int>(threadIdx.x); i < found * channels;
                     i += conv1d_bct_fix_threads) {
                    const int c = i / found;
                    conv1d_bct_fix_dx<S, Taps>(a, b, c0 + c, list[i - c * found]);
                }
            }
            if (sums) {
#pragma unroll 1
                for (int i = 0; i < found; ++i)
                    if (list[i].border) mine.add(a, b, c0 + threadIdx.x, taps, list[i]);
            }
            __syncthreads(); // list and counts are read before the next chunk's replace them
        }
        if (sums) mine.put(a, slice, c0 + threadIdx.x);
    }
}

} // namespace plait::impl::cuda
