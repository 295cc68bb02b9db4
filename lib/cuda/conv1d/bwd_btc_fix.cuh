// conv1d.bwd_btc_marks: which taps of a token count, for conv1d.bwd_btc, and which tiles have a
// token whose mark is not full. A thread a token, a block a word of flags.
// conv1d.bwd_btc_fix: behind conv1d.bwd_btc, which leaves out what states enter: of sequences with
// a first state the first K-1 tokens (dx, and their part of dw and dbias), dx of the last tokens,
// which the gradient of the last state meets, and the gradient of the first state. Blocks of the
// first kind sum a slice of the sequences for 256 channels, in order; the others take an element a
// thread, neighbouring channels side by side: the 2K-1 positions around it once, into registers,
// then K g of K taps each. f32 accumulators, one rounding, the bits of conv1d.bwd_btc. Bytes: a few
// tokens of a sequence, again. Bound: latency of three trips (span, id, x), then about 60 + 2 K K
// instructions an element.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_btc_layout.h"
#include "lib/cuda/conv1d/bwd_window.cuh"

namespace plait::impl::cuda {

__device__ __forceinline__ conv1d_mark conv1d_btc_mark_of(const conv1d_btc_args &a,
                                                          const conv1d_sequence &s, int64_t b,
                                                          int64_t t) {
    conv1d_mark m = {0, 0};
    // the first tokens of a sequence with a state are left to conv1d.bwd_btc_fix
    if (!conv1d_live(a, s, b, t)) return m;
    if (!a.state_in || t - s.begin >= a.width - 1) {
        m.back = 1;
        for (int j = 1; j < a.width; ++j)
            if (t - j < 0 || (t - j >= s.begin && conv1d_counts(a, s, b, t, t - j)))
                m.back |= 1u << j;
    }
    for (int j = 1; j < a.width; ++j)
        if (t + j >= a.length ||
            (t + j < s.end && (!a.seq_idx || conv1d_id(a, b, t + j) == conv1d_id(a, b, t))))
            m.ahead |= 1u << j;
    return m;
}

__global__ void __launch_bounds__(conv1d_bwd_btc_most_mark_threads)
    conv1d_bwd_btc_marks(const __grid_constant__ conv1d_btc_args a) {
    extern __shared__ __align__(16) char shared[];
    uint32_t *const edges = reinterpret_cast<uint32_t *>(shared); // a bit for each token
    const int taps = static_cast<int>(a.tile);
    const int lane = static_cast<int>(threadIdx.x & 31u), warp = static_cast<int>(threadIdx.x >> 5);
    const int64_t words = (a.tiles + 31) >> 5, all = a.batch * words;
    const conv1d_mark full = conv1d_full_mark(a.width);
    uint16_t *const marks = static_cast<uint16_t *>(a.marks_out);
    uint32_t *const flags =
        reinterpret_cast<uint32_t *>(static_cast<char *>(a.marks_out) + a.flags_at);
    start_successor();
    for (int64_t word = wait_for_predecessor(); word < all; word += gridDim.x) {
        const int64_t b = word / words;
        const int64_t t = ((word - b * words) << 5) * taps + static_cast<int64_t>(threadIdx.x);
        int edge = 0;
        if (t < a.length) {
            const conv1d_mark m = conv1d_btc_mark_of(a, conv1d_sequence_of(a, b, t), b, t);
            marks[b * a.length + t] = static_cast<uint16_t>(m.back | m.ahead << 8);
            edge = m.back != full.back || m.ahead != full.ahead;
        }
        const uint32_t bits = __ballot_sync(0xffffffffu, edge);
        __syncthreads(); // the bits of the last word have been read
        if (lane == 0) edges[warp] = bits;
        __syncthreads(); // the bits are written
        if (warp != 0) continue;
        const int from = lane * taps, at = from >> 5;
        const uint32_t of_tile =
            __funnelshift_r(edges[at], at + 1 < taps ? edges[at + 1] : 0u, from & 31) &
            ((1u << taps) - 1u);
        const uint32_t of_word = __ballot_sync(0xffffffffu, static_cast<int>(of_tile != 0));
        if (lane == 0) flags[word] = of_word;
    }
}

/// Element `which` of a sequence: the first tokens, the last ones, entries of the first state.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_btc_fix_element(const conv1d_btc_args &a, int64_t n,
                                                       int64_t which, int64_t c) {
    constexpr bool fast = S != scalar::f32;
    const conv1d_sequence s = conv1d_sequence_at(a, n);
    const int64_t b = a.packed ? 0 : n;
    conv1d_fix_taps<Taps> taps;
    conv1d_fix_window<S, Taps, Taps> near;
    if (which >= int64_t{a.head} + a.tails) {
        conv1d_put_state<S, Taps>(a, n, which - a.head - a.tails, c);
        return;
    }
    const bool head = which < a.head;
    const int64_t p = head ? s.begin + which : s.end - a.tails + (which - a.head);
    // a token that is among the first ones too is written once
    if (!a.dx || p >= s.end || p < s.begin + (head ? 0 : a.head)) return;
    taps.load(a, c);
    near.load(a, s, b, c, p);
    float dx = 0;
    if (near.live >> near.self & 1u) {
        dx = near.template sum<fast>(a, taps, 0);
        if (a.dstate_out) dx = conv1d_add(dx, conv1d_tail<float>(a, s, b, c, p));
        if (a.residual) dx = conv1d_add(dx, near.dy[0]);
    }
    conv1d_put_element<S>(a.dx, conv1d_at(a.vdx, b, c, p), dx);
}

/// dw and dbias of the first tokens of a slice of the sequences.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_btc_fix_sums(const conv1d_btc_args &a, int64_t slice,
                                                    int64_t c) {
    conv1d_fix_taps<Taps> taps;
    taps.load(a, c);
    float dw[Taps] = {}, dbias = 0;
    for (int64_t n = slice; n < a.sequences; n += a.slices) {
        const conv1d_sequence s = conv1d_sequence_at(a, n);
        const int64_t b = a.packed ? 0 : n;
#pragma unroll 1
        for (int64_t t = s.begin; t < min(s.begin + a.head, s.end); ++t) {
            conv1d_fix_window<S, Taps, 1> near;
            near.load(a, s, b, c, t);
            near.template add_sums<S != scalar::f32>(a, taps, dw, dbias);
        }
    }
    float *const to =
        static_cast<float *>(a.partial) + (a.slots + slice) * (a.width + 1) * a.channels + c;
#pragma unroll
    for (int d = 0; d < Taps; ++d)
        if (d < a.width) to[(a.width - 1 - d) * a.channels] = dw[d];
    to[a.width * a.channels] = dbias;
}

template <scalar S, int Taps>
__global__ void __launch_bounds__(conv1d_bwd_threads, Taps <= 4 ? 3 : 1)
    conv1d_bwd_btc_fix(const __grid_constant__ conv1d_btc_args a) {
    const int64_t sums = int64_t{a.slices} * a.blocks;
    const int64_t each = int64_t{a.head} + a.tails + a.entries_of;
    const int64_t all = a.sequences * each * a.channels;
    const int64_t blocks = sums + (all + conv1d_bwd_threads - 1) / conv1d_bwd_threads;
    start_successor();
    for (int64_t block = wait_for_predecessor(); block < blocks; block += gridDim.x) {
        if (block < sums) {
            const int64_t slice = block / a.blocks;
            const int64_t c =
                (block - slice * a.blocks) * conv1d_bwd_threads + static_cast<int64_t>(threadIdx.x);
            if (c < a.channels) conv1d_btc_fix_sums<S, Taps>(a, slice, c);
            continue;
        }
        const int64_t i = (block - sums) * conv1d_bwd_threads + static_cast<int64_t>(threadIdx.x);
        if (i >= all) continue;
        const int64_t row = i / a.channels, n = row / each;
        conv1d_btc_fix_element<S, Taps>(a, n, row - n * each, i - row * a.channels);
    }
}

} // namespace plait::impl::cuda
