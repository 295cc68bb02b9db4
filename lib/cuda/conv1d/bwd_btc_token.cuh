// conv1d.bwd_btc's tokens: what a thread keeps over a walk, g, dw and dx of a token, and its
// stores.
#pragma once

#include "lib/cuda/conv1d/bwd_btc_ring.cuh"
#include "lib/cuda/conv1d/bwd_edge.cuh"

namespace plait::impl::cuda {

template <scalar S, int Taps, bool Loose, bool Marked, conv1d_act Act> struct conv1d_btc_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps, history = Taps - 1;
    static constexpr bool loose = Loose, marked = Marked, fast = S != scalar::f32;
    static constexpr int log_vec = conv1d_bwd_btc_log_vec(S, Taps), vec = 1 << log_vec;
    static constexpr conv1d_act act = Act;
    static constexpr int threads = conv1d_bwd_btc_threads;
    static constexpr int min_blocks = conv1d_bwd_btc_blocks(S, Taps, Marked, Loose);
    static constexpr int depth = conv1d_bwd_btc_depth(S, Taps, Loose);
    static constexpr int cell = conv1d_bwd_btc_cell(S, Taps, Loose);
    static constexpr int slot = conv1d_bwd_btc_slot(S, Taps, Loose);
    /// Masks and states take registers: where they are met, sums of dw and dbias are in shared
    /// memory.
    static constexpr bool stash = conv1d_bwd_btc_stash(S, Taps, Marked, Loose) > 0;
    /// Fewer taps than the instantiation has: the oldest are skipped.
    static constexpr bool shorter = Taps > 4;
    using bits = typename stored<S>::bits;
};

/// Everything that a thread keeps over a walk.
template <class Case> struct conv1d_btc_sums {
    float w[Case::taps][Case::vec], dw[Case::taps][Case::vec];
    float bias[Case::vec], dbias[Case::vec];
    int skipped; ///< taps

    __device__ __forceinline__ bool skips(int k) const {
        return Case::shorter && k < 3 && k < skipped;
    }
};

/// What taps of a token at an edge read: entries of the state of its sequence.
template <class Case> struct conv1d_btc_state {
    int64_t row;
    int begin; ///< taps that meet tokens before it read the state; INT32_MIN: none does

    __device__ __forceinline__ void of(const conv1d_bwd_args &a, int b, int t) {
        const conv1d_sequence q = conv1d_sequence_of(a, b, t);
        row = q.row;
        begin = a.state_in && conv1d_counts(a, q, b, t, -1) ? static_cast<int>(q.begin) : INT32_MIN;
    }
    /// Of position p < begin.
    __device__ __forceinline__ float input(const conv1d_bwd_args &a, int64_t c, int p) const {
        if (c >= a.channels) return 0.0f;
        return conv1d_load<float>(a.state_in, conv1d_at(a.vstate_in, row, c, p - begin + a.entries),
                                  a.vstate_in.type);
    }
};

/// Sum `At` of dw, [tap][channel], and behind them of dbias, in a stash at the thread's `spot`.
template <class Case, int At>
constexpr int conv1d_btc_stashed =
    Case::depth *Case::slot +
    At / (Case::cell / 4) * (Case::threads * Case::cell) + At % (Case::cell / 4) * 4;

template <class Case, bool Out, int At = 0>
__device__ __forceinline__ void conv1d_btc_move(conv1d_btc_spot spot, conv1d_btc_sums<Case> &s) {
    constexpr int row = At / Case::vec, e = At % Case::vec;
    float &v = row == Case::taps ? s.dbias[e] : s.dw[row == Case::taps ? 0 : row][e];
    constexpr int at = conv1d_btc_stashed<Case, At>;
    if constexpr (Out) {
        conv1d_btc_put<at>(spot, v);
    } else {
        uint32_t w[1];
        conv1d_btc_read<1, at>(spot, w);
        v = __uint_as_float(w[0]);
    }
    if constexpr (At + 1 < (Case::taps + 1) * Case::vec)
        conv1d_btc_move<Case, Out, At + 1>(spot, s);
}

/// Adds g * x to the stashed sums of a tap, or g to those of dbias.
template <class Case, int Row, int E = 0>
__device__ __forceinline__ void conv1d_btc_stash_add(conv1d_btc_spot spot,
                                                     const float (&g)[Case::vec],
                                                     const float (&x)[Case::vec]) {
    constexpr int at = conv1d_btc_stashed<Case, Row * Case::vec + E>;
    uint32_t w[1];
    conv1d_btc_read<1, at>(spot, w);
    const float sum = __uint_as_float(w[0]);
    conv1d_btc_put<at>(spot,
                       Row == Case::taps ? conv1d_add(sum, g[E]) : conv1d_fma(g[E], x[E], sum));
    if constexpr (E + 1 < Case::vec) conv1d_btc_stash_add<Case, Row, E + 1>(spot, g, x);
}

/// A row of a walk as a thread sees it.
template <class Case> struct conv1d_btc_row {
    const conv1d_btc_args &a;
    int b;
    int64_t c;
    int end;              ///< of the row
    bool own;             ///< the tile is of the walk, not the one behind it
    bool writes;          ///< dx
    conv1d_btc_spot ring; ///< the thread's place
    bool warp;            ///< loose: the lanes of the warp are in one walk
    uint32_t alone;       ///< loose: see conv1d_bwd_btc_alone
};

/// Stores dx of a token. Loose: a chunk of the size of the vector that lies on a multiple of it is
/// made of the last elements of the lane before and the thread's first.
template <class Case>
__device__ __forceinline__ void conv1d_btc_store(const conv1d_btc_row<Case> &row, char *at,
                                                 const float (&dx)[Case::vec]) {
    using bits = typename Case::bits;
    if constexpr (!Case::loose) {
        store_elements<Case::type, Case::log_vec>(at, 0, dx, 1.0f);
    } else {
        constexpr int vec = Case::vec, words = vec * static_cast<int>(sizeof(bits)) / 4;
        constexpr uint32_t size = 4 * words;
        const uint32_t low = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at));
        uint32_t w[words], alone = row.alone;
#pragma unroll
        for (int i = 0; i < words; ++i) {
            if constexpr (sizeof(bits) == 2) {
                w[i] = round_pair<Case::type>(dx[2 * i], dx[2 * i + 1]);
            } else {
                w[i] = __float_as_uint(dx[i]);
            }
        }
        if (row.warp) {
            uint32_t v[words];
            if constexpr (sizeof(bits) == 2) {
                const uint32_t before = __shfl_up_sync(~0u, w[words - 1], 1);
#pragma unroll
                for (int i = 0; i < words; ++i)
                    v[i] =
                        conv1d_btc_shift_up(i == 0 ? before : w[i == 0 ? 0 : i - 1], w[i], 8 * low);
            } else {
#pragma unroll
                for (int i = 0; i < words; ++i) v[i] = w[i];
            }
            alone >>= (low & (size - 1)) * (8 / static_cast<uint32_t>(sizeof(bits)));
            char *const chunk = at - (low & (size - 1));
            if constexpr (words == 1) {
                if (alone & 1u) __stcs(reinterpret_cast<uint32_t *>(chunk), v[0]);
            } else {
                const uint32_t before = __shfl_up_sync(~0u, v[1], 1);
                const uint2 both = low & 4u ? uint2{before, v[0]} : uint2{v[0], v[1]};
                if (alone & 1u) __stcs(reinterpret_cast<uint2 *>(chunk), both);
            }
        }
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            if (!(alone >> (e + 1) & 1u)) continue;
            if constexpr (sizeof(bits) == 2) {
                __stcs(reinterpret_cast<uint16_t *>(at) + e,
                       static_cast<uint16_t>(w[e / 2] >> (16 * (e % 2))));
            } else {
                __stcs(reinterpret_cast<uint32_t *>(at) + e, w[e]);
            }
        }
    }
}

/// Adds a token's part of dw to the stash.
template <class Case, int R, int K = 0>
__device__ __forceinline__ void
conv1d_btc_masked_dw(const conv1d_btc_row<Case> &row, int t, conv1d_mark mark, bool edge,
                     const conv1d_btc_state<Case> &state, const float (&x)[Case::taps][Case::vec],
                     const float (&g)[Case::vec]) {
    constexpr int back = Case::history - K;
    if (mark.back >> back & 1u) {
        if (t >= back) conv1d_btc_stash_add<Case, K>(row.ring, g, x[(R + 1 + K) % Case::taps]);
    } else if (edge && t - back < state.begin) {
        float from_state[Case::vec];
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) from_state[e] = state.input(row.a, row.c + e, t - back);
        conv1d_btc_stash_add<Case, K>(row.ring, g, from_state);
    }
    if constexpr (K + 1 < Case::taps)
        conv1d_btc_masked_dw<Case, R, K + 1>(row, t, mark, edge, state, x, g);
}

/// Token t, whose place in its tile is R. x[i] and g[i] are windows over positions modulo taps.
/// Not Checked: the token and all that its taps meet are in the row, the token in the walk, and dx
/// is wanted.
template <class Case, bool Checked, bool Masked, int R>
__device__ __forceinline__ void
conv1d_btc_token(const conv1d_btc_row<Case> &row, int t, conv1d_mark mark,
                 const float (&dy)[Case::vec], const float (&x)[Case::taps][Case::vec],
                 float (&g)[Case::taps][Case::vec], conv1d_btc_sums<Case> &s, char *dx_at) {
    constexpr int taps = Case::taps, history = Case::history, vec = Case::vec;
    const conv1d_btc_args &a = row.a;
    const bool edge = Masked && (mark.ahead & 1u);
    conv1d_btc_state<Case> state;
    if (edge) state.of(a, row.b, t);
    float pre[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) pre[e] = s.bias[e];
    const bool silu = Case::act == conv1d_act::silu || (Case::act == conv1d_act::asked && a.silu);
    if (silu) {
#pragma unroll
        for (int k = 0; k < taps; ++k) {
            if (s.skips(k)) continue;
            if (Masked && !(mark.back >> (history - k) & 1u)) {
                if (edge && t - (history - k) < state.begin)
#pragma unroll
                    for (int e = 0; e < vec; ++e)
                        pre[e] = conv1d_fma(s.w[k][e], state.input(a, row.c + e, t - (history - k)),
                                            pre[e]);
                continue;
            }
            if (Checked && t < history - k) continue; // a weight may be infinite
#pragma unroll
            for (int e = 0; e < vec; ++e)
                pre[e] = conv1d_fma(s.w[k][e], x[(R + 1 + k) % taps][e], pre[e]);
        }
    }
    const bool there = !Checked || t < row.end;
    const bool live = there && (!Masked || (mark.back & 1u));
#pragma unroll
    for (int e = 0; e < vec; ++e) {
        const float one = silu ? conv1d_silu_gradient<Case::fast>(dy[e], pre[e]) : dy[e];
        g[R][e] = live ? one : 0.0f;
    }
    if (Checked && !row.own) return;
    if constexpr (Masked && Case::stash) {
        conv1d_btc_stash_add<Case, taps>(row.ring, g[R], dy);
        conv1d_btc_masked_dw<Case, R>(row, t, mark, edge, state, x, g[R]);
    } else {
#pragma unroll
        for (int e = 0; e < vec; ++e) s.dbias[e] = conv1d_add(s.dbias[e], g[R][e]);
#pragma unroll
        for (int k = 0; k < taps; ++k) {
            if (s.skips(k)) continue;
            if (Masked && !(mark.back >> (history - k) & 1u)) {
                if (edge && t - (history - k) < state.begin)
#pragma unroll
                    for (int e = 0; e < vec; ++e)
                        s.dw[k][e] = conv1d_fma(
                            g[R][e], state.input(a, row.c + e, t - (history - k)), s.dw[k][e]);
                continue;
            }
            if (Checked && t < history - k) continue;
#pragma unroll
            for (int e = 0; e < vec; ++e)
                s.dw[k][e] = conv1d_fma(g[R][e], x[(R + 1 + k) % taps][e], s.dw[k][e]);
        }
    }
    if (Checked && (!row.writes || !there)) return;
    float dx[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) dx[e] = 0;
#pragma unroll
    for (int j = 0; j < taps; ++j) {
        if (s.skips(history - j)) continue;
        if (Masked && !((j == 0 ? mark.back : mark.ahead >> j) & 1u)) continue;
        if (Checked && t + j >= row.end) continue;
#pragma unroll
        for (int e = 0; e < vec; ++e)
            dx[e] = conv1d_fma(s.w[history - j][e], g[(R + j) % taps][e], dx[e]);
    }
    if (edge && a.dstate_out) {
        const conv1d_sequence q = conv1d_sequence_of(a, row.b, t);
#pragma unroll
        for (int e = 0; e < vec; ++e)
            if (row.c + e < a.channels)
                dx[e] = conv1d_add(dx[e], conv1d_tail<float>(a, q, row.b, row.c + e, t));
    }
    if (Case::marked && a.residual) {
#pragma unroll
        for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], live ? dy[e] : 0.0f);
    }
    conv1d_btc_store<Case>(row, dx_at, dx);
}

/// Tokens t0 + R .. t0 of a tile that lies at `slot` of the ring; dx: of the first of them.
template <class Case, bool Checked, bool Masked, int R = Case::taps - 1>
__device__ __forceinline__ void
conv1d_btc_tile(const conv1d_btc_row<Case> &row, conv1d_btc_source<Case> &from, char *&dx, int t0,
                conv1d_btc_spot slot, uint32_t marks, float (&x)[Case::taps][Case::vec],
                float (&g)[Case::taps][Case::vec], conv1d_btc_sums<Case> &s) {
    float dy[Case::vec];
    from.template read<false, R>(slot, x[(R + 1) % Case::taps]);
    from.template read<true, R>(slot, dy);
    const conv1d_mark mark = {marks >> (8 * (R & 3)) & 15u, marks >> (8 * (R & 3) + 4) & 15u};
    conv1d_btc_token<Case, Checked, Masked, R>(row, t0 + R, mark, dy, x, g, s, dx);
    dx = conv1d_btc_on(dx, row.a.dx_step);
    if constexpr (R > 0) {
        conv1d_btc_tile<Case, Checked, Masked, R - 1>(row, from, dx, t0, slot, marks, x, g, s);
    } else {
        conv1d_btc_keep(dx);
    }
}

} // namespace plait::impl::cuda
