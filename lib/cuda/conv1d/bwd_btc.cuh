// conv1d.bwd_btc: dx and partial sums of dw and dbias where channels are contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Threads, channels, tiles: bwd_btc_layout.h. A walk goes from the last token to the first with
// windows of K inputs and K g in registers. What is loaded replaces, a tile ahead, what was used:
// a tile is K tokens, so that no window moves. A part of a row begins one tile behind its end, for
// g. Bytes: x, dy, dx once (r = 1.5), and 2 K tokens of x, K of dy for each walk (about 100
// tokens). Instructions, 16 bits, K = 4, SiLU, counted in the machine code: 561 for 16 elements, 35
// each, 2 of them special functions; a copy leaves about 41 on an H200: r = 1.55. K = 2..4.
#pragma once

#include "lib/cuda/conv1d/bwd_btc_layout.h"
#include "lib/cuda/conv1d/bwd_edge.cuh"

namespace plait::impl::cuda {

template <scalar S, int Taps, int LogVec, bool Marked, conv1d_act Act> struct conv1d_btc_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps, history = Taps - 1;
    static constexpr int log_vec = LogVec, vec = 1 << LogVec;
    static constexpr bool marked = Marked, fast = S != scalar::f32;
    static constexpr conv1d_act act = Act;
    static constexpr int threads = conv1d_bwd_btc_threads(Marked);
    static constexpr int min_blocks = Marked ? 3 : 2;
    using bits = typename stored<S>::bits;
};

/// Registers of one access of a thread: elements of 32 bits by themselves are not in raw_access.
template <class Case> struct conv1d_btc_raw {
    static constexpr int bytes = static_cast<int>(sizeof(typename Case::bits)) << Case::log_vec;
    typename raw_access<bytes>::type v;

    /// Zeros unless `there`.
    __device__ __forceinline__ void load(const typename Case::bits *p, bool there) {
        v = {};
        if (there) v = __ldcs(reinterpret_cast<const typename raw_access<bytes>::type *>(p));
    }
    __device__ __forceinline__ void widen_to(float (&out)[Case::vec]) const {
        widen_raw<Case::type, Case::log_vec>(v, out);
    }
};

/// Everything that a thread keeps over a walk.
template <class Case> struct conv1d_btc_sums {
    float w[Case::taps][Case::vec], dw[Case::taps][Case::vec];
    float bias[Case::vec], dbias[Case::vec];
};

/// Adds to dw what taps of token t read from states, and puts pre right before that.
template <class Case>
__device__ __forceinline__ void conv1d_btc_edge_dw(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                                   int64_t t, const float (&g)[Case::vec],
                                                   conv1d_btc_sums<Case> &s) {
    const conv1d_sequence q = conv1d_sequence_of(a, b, t);
    for (int e = 0; e < Case::vec; ++e)
        for (int k = 0; k < a.width; ++k) {
            const int64_t p = t - (a.width - 1) + k;
            if (p >= q.begin || !conv1d_counts(a, q, b, t, p)) continue;
            const float x = conv1d_input<float>(a, q, b, c + e, p), ge = conv1d_pick(g, e);
#pragma unroll
            for (int i = 0; i < Case::taps; ++i)
#pragma unroll
                for (int f = 0; f < Case::vec; ++f)
                    if (i == k && f == e) s.dw[i][f] = conv1d_fma(ge, x, s.dw[i][f]);
        }
}

/// Token t, whose place in its tile is R. x[i] and g[i] are windows over positions modulo taps.
template <class Case, bool Masked, int R>
__device__ __forceinline__ void
conv1d_btc_token(const conv1d_bwd_args &a, int64_t b, int64_t c, int t, bool own, bool there,
                 conv1d_mark mark, const float (&dy)[Case::vec],
                 const float (&x)[Case::taps][Case::vec], float (&g)[Case::taps][Case::vec],
                 conv1d_btc_sums<Case> &s, typename Case::bits *dx_at) {
    constexpr int taps = Case::taps, history = Case::history, vec = Case::vec;
    float pre[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) pre[e] = s.bias[e];
    const bool silu = Case::act == conv1d_act::silu || (Case::act == conv1d_act::asked && a.silu);
    if (silu) {
#pragma unroll
        for (int k = 0; k < taps; ++k) {
            if (Masked && !(mark.back >> (history - k) & 1u)) continue;
#pragma unroll
            for (int e = 0; e < vec; ++e)
                pre[e] = conv1d_fma(s.w[k][e], x[(R + 1 + k) % taps][e], pre[e]);
        }
        if (Masked && (mark.ahead & 1u)) {
            const conv1d_sequence q = conv1d_sequence_of(a, b, t);
            for (int e = 0; e < vec; ++e) conv1d_put(pre, e, conv1d_pre<float>(a, q, b, c + e, t));
        }
    }
    const bool live = there && (!Masked || (mark.back & 1u));
#pragma unroll
    for (int e = 0; e < vec; ++e) {
        const float one = silu ? conv1d_silu_gradient<Case::fast>(dy[e], pre[e]) : dy[e];
        g[R][e] = live ? one : 0.0f;
    }
    if (!own) return;
#pragma unroll
    for (int e = 0; e < vec; ++e) s.dbias[e] = conv1d_add(s.dbias[e], g[R][e]);
#pragma unroll
    for (int k = 0; k < taps; ++k) {
        if (Masked && !(mark.back >> (history - k) & 1u)) continue;
#pragma unroll
        for (int e = 0; e < vec; ++e)
            s.dw[k][e] = conv1d_fma(g[R][e], x[(R + 1 + k) % taps][e], s.dw[k][e]);
    }
    if (Masked && (mark.ahead & 1u) && live) conv1d_btc_edge_dw<Case>(a, b, c, t, g[R], s);
    float dx[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) dx[e] = 0;
#pragma unroll
    for (int j = 0; j < taps; ++j) {
        if (Masked && !((j == 0 ? mark.back : mark.ahead >> j) & 1u)) continue;
#pragma unroll
        for (int e = 0; e < vec; ++e)
            dx[e] = conv1d_fma(s.w[history - j][e], g[(R + j) % taps][e], dx[e]);
    }
    if (Masked && (mark.ahead & 1u) && live) {
        const conv1d_sequence q = conv1d_sequence_of(a, b, t);
        for (int e = 0; e < vec; ++e)
            conv1d_put(dx, e,
                       conv1d_add(conv1d_pick(dx, e), conv1d_tail<float>(a, q, b, c + e, t)));
    }
    if (Case::marked && a.residual) {
#pragma unroll
        for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], live ? dy[e] : 0.0f);
    }
    if (a.dx && there) store_elements<Case::type, Case::log_vec>(dx_at, 0, dx, 1.0f);
}

/// What is on its way for a tile: inputs history tokens before its tokens, dy, marks.
template <class Case> struct conv1d_btc_ahead {
    conv1d_btc_raw<Case> x[Case::taps], dy[Case::taps];
    uint32_t mark[Case::taps];
};

template <class Case> struct conv1d_btc_row {
    const conv1d_bwd_args &a;
    int64_t b, c;
    const typename Case::bits *x, *dy;
    typename Case::bits *dx; ///< of the tile's first token
    int low;                 ///< first token of the walk
    int end;                 ///< of the row; 0 for threads without channels

    __device__ __forceinline__ bool reads_x(int p) const {
        return p >= 0 && p >= low - Case::history && p < end;
    }
    __device__ __forceinline__ bool reads(int t) const { return t >= low && t < end; }
    /// Strides fit 32 bits, so that an address is one instruction away from the tile's.
    template <class T>
    __device__ __forceinline__ static T *off(T *p, int tokens, const conv1d_view &v) {
        return p + static_cast<int64_t>(tokens) * static_cast<int32_t>(v.t);
    }
    /// What token `by + r` of the tile at token t0 needs.
    __device__ __forceinline__ void fetch(conv1d_btc_ahead<Case> &n, int r, int t0, int by) const {
        const int t = t0 + by + r;
        n.x[r].load(off(x, by + r - Case::history, a.vx), reads_x(t - Case::history));
        n.dy[r].load(off(dy, by + r, a.vdy), reads(t));
        if constexpr (Case::marked)
            n.mark[r] = reads(t) ? static_cast<const uint8_t *>(a.marks)[b * a.length + t] : 0u;
    }
    __device__ __forceinline__ static conv1d_mark mark_of(const conv1d_btc_ahead<Case> &n, int r) {
        if constexpr (!Case::marked) return conv1d_full_mark(Case::taps);
        return {n.mark[r] & 15u, n.mark[r] >> 4};
    }
};

template <class Case, int R>
__device__ __forceinline__ void
conv1d_btc_tile(const conv1d_btc_row<Case> &row, int t0, bool own, conv1d_btc_ahead<Case> &n,
                float (&x)[Case::taps][Case::vec], float (&g)[Case::taps][Case::vec],
                conv1d_btc_sums<Case> &s) {
    const int t = t0 + R;
    float dy[Case::vec];
    n.x[R].widen_to(x[(R + 1) % Case::taps]);
    n.dy[R].widen_to(dy);
    const conv1d_mark mark = row.mark_of(n, R);
    row.fetch(n, R, t0, -Case::taps);
    typename Case::bits *const dx = row.off(row.dx, R, row.a.vdx);
    const bool there = t < row.end;
    if constexpr (Case::marked) {
        const conv1d_mark full = conv1d_full_mark(row.a.width);
        if (mark.back == full.back && mark.ahead == full.ahead) {
            conv1d_btc_token<Case, false, R>(row.a, row.b, row.c, t, own, there, mark, dy, x, g, s,
                                             dx);
        } else {
            conv1d_btc_token<Case, true, R>(row.a, row.b, row.c, t, own, there, mark, dy, x, g, s,
                                            dx);
        }
    } else {
        conv1d_btc_token<Case, false, R>(row.a, row.b, row.c, t, own, there, mark, dy, x, g, s, dx);
    }
    if constexpr (R > 0) conv1d_btc_tile<Case, R - 1>(row, t0, own, n, x, g, s);
}

/// One row of a walk.
template <class Case>
__device__ __forceinline__ void conv1d_btc_walk_row(conv1d_btc_row<Case> row,
                                                    const conv1d_bwd_part &part,
                                                    conv1d_btc_sums<Case> &s) {
    constexpr int taps = Case::taps;
    const int top = part.tile_end < row.a.tiles ? part.tile_end : part.tile_end - 1;
    float x[taps][Case::vec], g[taps][Case::vec];
    conv1d_btc_ahead<Case> n;
    int t0 = top * taps;
    row.x += t0 * row.a.vx.t;
    row.dy += t0 * row.a.vdy.t;
    row.dx += t0 * row.a.vdx.t;
#pragma unroll
    for (int r = 0; r < taps; ++r) {
        conv1d_btc_raw<Case> raw;
        raw.load(row.off(row.x, r, row.a.vx), r > 0 && row.reads_x(t0 + r));
        raw.widen_to(x[r]);
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) g[r][e] = 0;
        row.fetch(n, r, t0, 0);
    }
#pragma unroll 1
    for (int tile = top; tile >= part.tile; --tile) {
        conv1d_btc_tile<Case, taps - 1>(row, t0, tile < part.tile_end, n, x, g, s);
        t0 -= taps;
        row.x = row.off(row.x, -taps, row.a.vx);
        row.dy = row.off(row.dy, -taps, row.a.vdy);
        row.dx = row.off(row.dx, -taps, row.a.vdx);
    }
}

template <class Case>
__global__ void __launch_bounds__(Case::threads, Case::min_blocks)
    conv1d_bwd_btc(const __grid_constant__ conv1d_bwd_args a) {
    extern __shared__ __align__(16) char shared[];
    float(*const sums)[Case::threads] = reinterpret_cast<float(*)[Case::threads]>(shared);
    constexpr int vec = Case::vec;
    const int thread = static_cast<int>(threadIdx.x);
    const int lanes = 1 << a.log_lanes, lane = thread & (lanes - 1);
    const int walks = Case::threads >> a.log_lanes;
    const int64_t vectors = (a.channels + vec - 1) >> Case::log_vec;
    const int64_t groups = (vectors + lanes - 1) >> a.log_lanes;
    for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
        // neighbouring blocks read neighbouring channels
        const int64_t slot = item / groups, c0 = (item % groups) << (a.log_lanes + Case::log_vec);
        const int64_t c = c0 + (lane << Case::log_vec);
        const bool active = c < a.channels;
        const conv1d_bwd_part part =
            conv1d_bwd_part_of(a, slot * walks + (thread >> a.log_lanes), a.batch);
        conv1d_btc_sums<Case> s;
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            s.dbias[e] = 0;
            s.bias[e] = active && a.bias
                            ? conv1d_load<float>(a.bias, (c + e) * a.vbias.c, a.vbias.type)
                            : 0.0f;
#pragma unroll
            for (int k = 0; k < Case::taps; ++k) {
                s.dw[k][e] = 0;
                s.w[k][e] = active
                                ? conv1d_load<float>(a.w, (c + e) * a.vw.c + k * a.vw.t, a.vw.type)
                                : 0.0f;
            }
        }
#pragma unroll 1
        for (int64_t b = part.row; active && b < part.row_end; ++b) {
            using bits = typename Case::bits;
            conv1d_btc_walk_row<Case>({a, b, c, static_cast<const bits *>(a.x) + b * a.vx.b + c,
                                       static_cast<const bits *>(a.dy) + b * a.vdy.b + c,
                                       static_cast<bits *>(a.dx) + b * a.vdx.b + c,
                                       part.tile * Case::taps, static_cast<int>(a.length)},
                                      part, s);
        }
        if (!a.partial) continue;
        float *const to = static_cast<float *>(a.partial) + slot * (a.width + 1) * a.channels;
#pragma unroll
        for (int k = 0; k <= Case::taps; ++k) {
            __syncthreads(); // the last tap's sums are read
#pragma unroll
            for (int e = 0; e < vec; ++e)
                sums[e][thread] = k == Case::taps ? s.dbias[e] : s.dw[k == Case::taps ? 0 : k][e];
            __syncthreads(); // the sums of all walks are written
            for (int i = thread; i < lanes << Case::log_vec; i += Case::threads) {
                if (c0 + i >= a.channels) continue;
                float sum = 0;
                for (int walk = 0; walk < walks; ++walk)
                    sum = conv1d_add(
                        sum, sums[i & (vec - 1)][(walk << a.log_lanes) + (i >> Case::log_vec)]);
                to[k * a.channels + c0 + i] = sum;
            }
        }
    }
}

} // namespace plait::impl::cuda
