// What a lane of conv1d.bwd_btc does with a token and with a tile.
#pragma once

#include "lib/cuda/conv1d/bwd_btc_ring.cuh"
#include "lib/cuda/conv1d/bwd_edge.cuh"
#include "lib/cuda/conv1d/bwd_math.cuh"

namespace plait::impl::cuda {

/// Residue: 0, or loose tokens of whose channels the first lies at a multiple of a cell in every
/// fourth token, by constants.
template <scalar S, int Taps, bool Loose, conv1d_act Act, int Residue = 0> struct conv1d_btc_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps, history = Taps - 1;
    static constexpr bool loose = Loose, fast = S != scalar::f32;
    static constexpr int residue = Residue;
    static_assert(Residue == 0 || (Loose && Taps == 4 && S != scalar::f32), "cells of four");
    static constexpr int log_vec = conv1d_bwd_btc_log_vec(S, Taps), vec = 1 << log_vec;
    static constexpr conv1d_act act = Act;
    static constexpr int threads = conv1d_bwd_btc_threads;
    static constexpr int min_blocks = conv1d_bwd_btc_blocks(S, Taps, Loose);
    static constexpr int depth = conv1d_bwd_btc_depth(S, Taps);
    static constexpr int cell = conv1d_bwd_btc_cell(S, Taps);
    static constexpr int chunk = conv1d_bwd_btc_chunk(S, Taps, Loose);
    static constexpr int slot = conv1d_bwd_btc_slot(S, Taps);
    /// Fewer taps than the instantiation has: the oldest are skipped.
    static constexpr bool shorter = Taps > 4;
    using bits = typename stored<S>::bits;
    static constexpr int size = static_cast<int>(sizeof(bits));
};

/// Everything that a lane keeps over a walk.
template <class Case> struct conv1d_btc_sums {
    float w[Case::taps][Case::vec], dw[Case::taps][Case::vec];
    float bias[Case::vec], dbias[Case::vec];
    int skipped; ///< taps

    __device__ __forceinline__ bool skips(int k) const {
        return Case::shorter && k < 3 && k < skipped;
    }
};

/// Elements of a small tensor, all on their way before the first is converted.
template <scalar T, class Case>
__device__ __forceinline__ void conv1d_btc_taps_of(int channel, int left, int64_t c0,
                                                   const void *base, const conv1d_view &v,
                                                   int skipped, int last, float (*out)[Case::vec]) {
    using bits = typename stored<T>::bits;
    const bits *const from = static_cast<const bits *>(base) + (c0 + channel) * v.c;
    bits raw[Case::taps][Case::vec];
#pragma unroll
    for (int k = 0; k < Case::taps; ++k)
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            raw[k][e] = 0;
            if (k >= skipped && k <= last && channel + e < left)
                raw[k][e] = __ldg(from + e * v.c + (k - skipped) * v.t);
        }
#pragma unroll
    for (int k = 0; k < Case::taps; ++k)
#pragma unroll
        for (int e = 0; e < Case::vec; ++e)
            if (k <= last) out[k][e] = static_cast<float>(widen<T>(raw[k][e]));
}

/// Rows `skipped` to `last` of a small tensor whose type is known at run time; zeros if it is null.
template <class Case>
__device__ __forceinline__ void conv1d_btc_load(int channel, int left, int64_t c0, const void *base,
                                                const conv1d_view &v, int skipped, int last,
                                                float (*out)[Case::vec]) {
    if (base == nullptr) {
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) out[0][e] = 0.0f;
    } else if (v.type == scalar::f32) {
        conv1d_btc_taps_of<scalar::f32, Case>(channel, left, c0, base, v, skipped, last, out);
    } else if (v.type == scalar::bf16) {
        conv1d_btc_taps_of<scalar::bf16, Case>(channel, left, c0, base, v, skipped, last, out);
    } else {
        conv1d_btc_taps_of<scalar::f16, Case>(channel, left, c0, base, v, skipped, last, out);
    }
}

/// Token t, whose place in its tile is R. x[i] and g[i] are windows over positions modulo taps.
/// Not Checked: all that its taps meet counts, and the token is of the walk.
template <class Case, bool Checked, bool Residual, int R>
__device__ __forceinline__ void
conv1d_btc_token(const conv1d_btc_lane<Case> &l, int t, bool own, conv1d_mark mark,
                 const float (&dy)[Case::vec], const float (&x)[Case::taps][Case::vec],
                 float (&g)[Case::taps][Case::vec], conv1d_btc_sums<Case> &s, char *dx_at) {
    constexpr int taps = Case::taps, history = Case::history, vec = Case::vec;
    const conv1d_btc_args &a = l.a;
    const int end = static_cast<int>(a.length);
    // a tap that does not count is skipped: its weight may be infinite, what it meets NaN
    const auto counts = [&](int k) {
        return !Checked || (t >= history - k && (mark.back >> (history - k) & 1u));
    };
    float pre[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) pre[e] = s.bias[e];
    const bool silu = Case::act == conv1d_act::silu || (Case::act == conv1d_act::asked && a.silu);
    if (silu) {
#pragma unroll
        for (int k = 0; k < taps; ++k) {
            if (s.skips(k) || !counts(k)) continue;
#pragma unroll
            for (int e = 0; e < vec; ++e)
                pre[e] = conv1d_fma(s.w[k][e], x[(R + 1 + k) % taps][e], pre[e]);
        }
    }
    const bool live = !Checked || (t >= a.head && t < end && (mark.back & 1u));
#pragma unroll
    for (int e = 0; e < vec; ++e) {
        const float one = silu ? conv1d_silu_gradient<Case::fast>(dy[e], pre[e]) : dy[e];
        g[R][e] = live ? one : 0.0f;
    }
    if (Checked && !own) return;
#pragma unroll
    for (int e = 0; e < vec; ++e) s.dbias[e] = conv1d_add(s.dbias[e], g[R][e]);
#pragma unroll
    for (int k = 0; k < taps; ++k) {
        if (s.skips(k) || !live || !counts(k)) continue;
#pragma unroll
        for (int e = 0; e < vec; ++e)
            s.dw[k][e] = conv1d_fma(g[R][e], x[(R + 1 + k) % taps][e], s.dw[k][e]);
    }
    float dx[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) dx[e] = 0;
#pragma unroll
    for (int j = 0; j < taps; ++j) {
        if (s.skips(history - j)) continue;
        if (Checked && (t + j >= end || !((j == 0 ? mark.back : mark.ahead >> j) & 1u))) continue;
#pragma unroll
        for (int e = 0; e < vec; ++e)
            dx[e] = conv1d_fma(s.w[history - j][e], g[(R + j) % taps][e], dx[e]);
    }
    if (Residual || (Checked && a.residual)) {
#pragma unroll
        for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], live ? dy[e] : 0.0f);
    }
    if (!Checked || (a.dx != nullptr && t < end)) conv1d_btc_store<Case, R>(l, dx_at, dx);
}

/// A row as its tiles need it.
template <class Case> struct conv1d_btc_row {
    uint32_t from; ///< loose: of the next tokens of x (low half) and dy (high half): bytes from an
                   ///< aligned chunk to the warp's first channel
    char *dx;      ///< of the next token, the lane's channels
};

/// Where the next token's channels begin in their first chunk; its place in its tile is R.
template <class Case, bool Dy, int R>
__device__ __forceinline__ uint32_t conv1d_btc_from(const conv1d_btc_lane<Case> &l,
                                                    conv1d_btc_row<Case> &row) {
    if constexpr (!Case::loose) return 0;
    if constexpr (Case::residue != 0)
        return conv1d_btc_from_of(Case::residue, Dy ? R : R - Case::history);
    const uint32_t from = Dy ? row.from >> 16 : row.from & 0xffffu;
    // x and dy are read in turn; neither half runs over
    if constexpr (Dy) row.from = (row.from + l.a.from_hops) & (0x10001u * (Case::cell - 1));
    return from;
}

/// The mark of a token; without marks all taps count.
template <class Case>
__device__ __forceinline__ conv1d_mark conv1d_btc_mark(const conv1d_btc_args &a, int64_t b, int t) {
    if (a.marks == nullptr) return conv1d_full_mark(Case::taps);
    if (t >= a.length) return {0, 0};
    const uint32_t m = __ldg(static_cast<const uint16_t *>(a.marks) + (b * a.length + t));
    return {m & 0xffu, m >> 8};
}

/// Tokens t0 + R .. t0 of a tile that lies at `slot` of the ring.
template <class Case, bool Checked, bool Residual, int R>
__device__ __forceinline__ void
conv1d_btc_tile(const conv1d_btc_lane<Case> &l, conv1d_btc_row<Case> &row, int b, int t0, bool own,
                int slot, float (&x)[Case::taps][Case::vec], float (&g)[Case::taps][Case::vec],
                conv1d_btc_sums<Case> &s) {
    float dy[Case::vec];
    conv1d_mark mark = {0, 0};
    if constexpr (Checked) mark = conv1d_btc_mark<Case>(l.a, b, t0 + R);
    conv1d_btc_read<Case, false>(l, slot, R, conv1d_btc_from<Case, false, R>(l, row),
                                 x[(R + 1) % Case::taps]);
    conv1d_btc_read<Case, true>(l, slot, R, conv1d_btc_from<Case, true, R>(l, row), dy);
    conv1d_btc_token<Case, Checked, Residual, R>(l, t0 + R, own, mark, dy, x, g, s, row.dx);
    row.dx = conv1d_btc_on(row.dx, l.a.dx_hop);
    if constexpr (R > 0)
        conv1d_btc_tile<Case, Checked, Residual, R - 1>(l, row, b, t0, own, slot, x, g, s);
}

/// A tile of which no token is live: x for the tokens before it, dx is 0.
template <class Case, int R>
__device__ __forceinline__ void
conv1d_btc_dead(const conv1d_btc_lane<Case> &l, conv1d_btc_row<Case> &row, int slot,
                float (&x)[Case::taps][Case::vec], float (&g)[Case::taps][Case::vec]) {
    conv1d_btc_read<Case, false>(l, slot, R, conv1d_btc_from<Case, false, R>(l, row),
                                 x[(R + 1) % Case::taps]);
    conv1d_btc_from<Case, true, R>(l, row); // dy is not read
#pragma unroll
    for (int e = 0; e < Case::vec; ++e) g[R][e] = 0.0f;
    if (l.a.dx != nullptr) conv1d_btc_store<Case, R>(l, row.dx, g[R]);
    row.dx = conv1d_btc_on(row.dx, l.a.dx_hop);
    if constexpr (R > 0) conv1d_btc_dead<Case, R - 1>(l, row, slot, x, g);
}

/// Whether that is so.
template <class Case>
__device__ __forceinline__ bool conv1d_btc_is_dead(const conv1d_btc_args &a, int64_t b, int t0) {
    if (a.marks == nullptr || t0 + Case::taps > a.length) return false;
    const uint16_t *const marks = static_cast<const uint16_t *>(a.marks) + (b * a.length + t0);
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < Case::taps; ++i) any |= __ldg(marks + i);
    return any == 0;
}

/// x of tokens behind the first tile of a walk.
template <class Case, int R>
__device__ __forceinline__ void conv1d_btc_lead(const conv1d_btc_lane<Case> &l,
                                                conv1d_btc_row<Case> &row, int slot,
                                                float (&x)[Case::taps][Case::vec]) {
    conv1d_btc_read<Case, false>(l, slot, R, conv1d_btc_from<Case, false, R>(l, row),
                                 x[(R + 1) % Case::taps]);
    conv1d_btc_from<Case, true, R>(l, row); // dy of the tile is not read
    if constexpr (R > 0) conv1d_btc_lead<Case, R - 1>(l, row, slot, x);
}

} // namespace plait::impl::cuda
