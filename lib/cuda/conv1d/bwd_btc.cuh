// conv1d.bwd_btc: dx and partial sums of dw and dbias where channels are contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Threads, channels, tiles, ring: bwd_btc_layout.h. A walk goes from the last token to the first
// with windows of K inputs and K g in registers; tiles are K tokens, so that no window moves. x and
// dy of the next tiles are on their way into a ring in shared memory, of which a thread reads only
// what it copied (bwd_btc_ring.cuh). A part of a row begins one tile behind its end, for g. Only
// the first tile of a walk, tiles at ends of rows or with marks that are not full test tokens.
// Bytes: x, dy, dx once (r = 1.5), and 2 K tokens of x, K of dy for each walk. K = 4, bf16, SiLU
// on an H200: r = 1.76 with DRAM 79 % and issue slots 67 % busy, so that neither is the bound yet.
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
    static constexpr int min_blocks = conv1d_bwd_btc_blocks(S, Taps, Marked);
    static constexpr int depth = conv1d_bwd_btc_depth(S, Taps, Loose);
    static constexpr int cell = conv1d_bwd_btc_cell(S, Taps, Loose);
    static constexpr int slot = conv1d_bwd_btc_slot(S, Taps, Loose);
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

/// Adds to dw what taps of token t read from states.
template <class Case>
__device__ __forceinline__ void conv1d_btc_edge_dw(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                                   int64_t t, const float (&g)[Case::vec],
                                                   conv1d_btc_sums<Case> &s) {
    const conv1d_sequence q = conv1d_sequence_of(a, b, t);
    for (int e = 0; e < Case::vec && c + e < a.channels; ++e)
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

/// A row of a walk as a thread sees it.
template <class Case> struct conv1d_btc_row {
    const conv1d_bwd_args &a;
    int b;
    int64_t c;
    int end;     ///< of the row
    bool own;    ///< the tile is of the walk, not the one behind it
    bool writes; ///< dx
    int left;    ///< channels of the row from the thread's on, or more than it has
};

/// Token t, whose place in its tile is R. x[i] and g[i] are windows over positions modulo taps.
/// Not Checked: the token and all that its taps meet are in the row, the token in the walk.
template <class Case, bool Checked, bool Masked, int R>
__device__ __forceinline__ void
conv1d_btc_token(const conv1d_btc_row<Case> &row, int t, conv1d_mark mark,
                 const float (&dy)[Case::vec], const float (&x)[Case::taps][Case::vec],
                 float (&g)[Case::taps][Case::vec], conv1d_btc_sums<Case> &s,
                 typename Case::bits *dx_at) {
    constexpr int taps = Case::taps, history = Case::history, vec = Case::vec;
    const conv1d_bwd_args &a = row.a;
    float pre[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) pre[e] = s.bias[e];
    const bool silu = Case::act == conv1d_act::silu || (Case::act == conv1d_act::asked && a.silu);
    if (silu) {
#pragma unroll
        for (int k = 0; k < taps; ++k) {
            if (s.skips(k) || (Masked && !(mark.back >> (history - k) & 1u))) continue;
            if (Checked && t < history - k) continue; // a weight may be infinite
#pragma unroll
            for (int e = 0; e < vec; ++e)
                pre[e] = conv1d_fma(s.w[k][e], x[(R + 1 + k) % taps][e], pre[e]);
        }
        if (Masked && (mark.ahead & 1u)) {
            const conv1d_sequence q = conv1d_sequence_of(a, row.b, t);
            for (int e = 0; e < vec && row.c + e < a.channels; ++e)
                conv1d_put(pre, e, conv1d_pre<float>(a, q, row.b, row.c + e, t));
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
#pragma unroll
    for (int e = 0; e < vec; ++e) s.dbias[e] = conv1d_add(s.dbias[e], g[R][e]);
#pragma unroll
    for (int k = 0; k < taps; ++k) {
        if (s.skips(k) || (Masked && !(mark.back >> (history - k) & 1u))) continue;
        if (Checked && t < history - k) continue;
#pragma unroll
        for (int e = 0; e < vec; ++e)
            s.dw[k][e] = conv1d_fma(g[R][e], x[(R + 1 + k) % taps][e], s.dw[k][e]);
    }
    if (Masked && (mark.ahead & 1u) && live) conv1d_btc_edge_dw<Case>(a, row.b, row.c, t, g[R], s);
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
    if (Masked && (mark.ahead & 1u) && live) {
        const conv1d_sequence q = conv1d_sequence_of(a, row.b, t);
        for (int e = 0; e < vec && row.c + e < a.channels; ++e)
            conv1d_put(
                dx, e,
                conv1d_add(conv1d_pick(dx, e), conv1d_tail<float>(a, q, row.b, row.c + e, t)));
    }
    if (Case::marked && a.residual) {
#pragma unroll
        for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], live ? dy[e] : 0.0f);
    }
    if (!row.writes || !there) return;
    if constexpr (Case::loose) {
#pragma unroll
        for (int e = 0; e < vec; ++e)
            if (e == 0 || e < row.left) store_elements<Case::type, 0>(dx_at, e, dx + e, 1.0f);
    } else {
        store_elements<Case::type, Case::log_vec>(dx_at, 0, dx, 1.0f);
    }
}

/// Tokens t0 + R .. t0 of a tile that lies at `slot` of the ring.
template <class Case, bool Checked, bool Masked, int R>
__device__ __forceinline__ void
conv1d_btc_tile(const conv1d_btc_row<Case> &row, const conv1d_btc_source<Case> &from,
                typename Case::bits *dx, int t0, const char *slot, uint32_t marks,
                float (&x)[Case::taps][Case::vec], float (&g)[Case::taps][Case::vec],
                conv1d_btc_sums<Case> &s) {
    float dy[Case::vec];
    from.template read<false>(slot, R, x[(R + 1) % Case::taps]);
    from.template read<true>(slot, R, dy);
    const conv1d_mark mark = {marks >> (8 * (R & 3)) & 15u, marks >> (8 * (R & 3) + 4) & 15u};
    conv1d_btc_token<Case, Checked, Masked, R>(row, t0 + R, mark, dy, x, g, s,
                                               conv1d_btc_off(dx, R, row.a.vdx));
    if constexpr (R > 0)
        conv1d_btc_tile<Case, Checked, Masked, R - 1>(row, from, dx, t0, slot, marks, x, g, s);
}

/// Marks of the tile at t0; of tokens outside the row: 0.
template <class Case>
__device__ __forceinline__ void conv1d_btc_marks(const conv1d_btc_row<Case> &row, int t0,
                                                 uint32_t (&marks)[Case::taps]) {
    if constexpr (Case::marked) {
        const uint8_t *const from = static_cast<const uint8_t *>(row.a.marks) +
                                    static_cast<int64_t>(row.b) * row.a.length + t0;
        const bool all = t0 >= 0 && t0 + Case::taps <= row.end;
#pragma unroll
        for (int r = 0; r < Case::taps; ++r)
            marks[r] = all || (t0 + r >= 0 && t0 + r < row.end) ? __ldg(from + r) : 0u;
    }
}

/// One row of a walk.
template <class Case>
__device__ __forceinline__ void
conv1d_btc_walk_row(conv1d_btc_row<Case> row, conv1d_btc_source<Case> from, typename Case::bits *dx,
                    char *ring, const conv1d_bwd_part &part, conv1d_btc_sums<Case> &s) {
    constexpr int taps = Case::taps, depth = Case::depth;
    const int top = part.tile_end < row.a.tiles ? part.tile_end : part.tile_end - 1;
    float x[taps][Case::vec], g[taps][Case::vec];
    int t0 = top * taps;
    dx += t0 * row.a.vdx.t;
    from.start(t0);
#pragma unroll
    for (int r = 0; r < taps; ++r) {
        from.direct(r, t0, row.end, x[r]);
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) g[r][e] = 0;
    }
    uint32_t marks[taps] = {};
    conv1d_btc_marks<Case>(row, t0, marks);
    int ahead = top; // the next tile to be copied
#pragma unroll 1
    for (int i = 0; i < depth - 1; ++i, --ahead) {
        if (ahead >= part.tile) from.fetch_checked(ring + i * Case::slot, ahead * taps, row.end);
        async_commit();
        from.step();
    }
    row.own = top < part.tile_end;
    int at = 0, before = (depth - 1) * Case::slot;
    bool first = true;
#pragma unroll 1
    for (int tile = top; tile >= part.tile; --tile, --ahead) {
        async_wait<depth - 2>();
        if (ahead > 0 && ahead >= part.tile && !from.careful) {
            from.fetch(ring + before);
        } else if (ahead >= part.tile) {
            from.fetch_checked(ring + before, ahead * taps, row.end);
        }
        async_commit();
        from.step();
        uint32_t now = 0;
        bool plain = !first && tile > 0 && t0 + taps + Case::history <= row.end;
        if constexpr (Case::marked) {
            constexpr conv1d_mark full = conv1d_full_mark(taps);
            constexpr uint32_t one = full.back | full.ahead << 4;
            constexpr uint32_t all = 0x01010101u * one >> (32 - 8 * taps);
#pragma unroll
            for (int r = 0; r < taps; ++r) now |= marks[r] << (8 * r);
            plain = plain && now == all;
            if (tile > part.tile) conv1d_btc_marks<Case>(row, t0 - taps, marks);
        }
        if (plain) {
            conv1d_btc_tile<Case, false, false, taps - 1>(row, from, dx, t0, ring + at, now, x, g,
                                                          s);
        } else {
            conv1d_btc_tile<Case, true, Case::marked, taps - 1>(row, from, dx, t0, ring + at, now,
                                                                x, g, s);
        }
        first = false;
        row.own = true;
        from.passed();
        t0 -= taps;
        dx = conv1d_btc_off(dx, -taps, row.a.vdx);
        before = at;
        at = at == (depth - 1) * Case::slot ? 0 : at + Case::slot;
    }
    async_wait<0>();
}

template <class Case>
__global__ void __launch_bounds__(Case::threads, Case::min_blocks)
    conv1d_bwd_btc(const __grid_constant__ conv1d_bwd_args a) {
    extern __shared__ __align__(16) char shared[];
    constexpr int vec = Case::vec;
    const int thread = static_cast<int>(threadIdx.x);
    char *const ring = shared + thread * Case::cell;
    float(*const sums)[Case::threads] =
        reinterpret_cast<float(*)[Case::threads]>(shared + Case::depth * Case::slot);
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
        s.skipped = Case::taps - a.width;
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            const bool real = c + e < a.channels;
            s.dbias[e] = 0;
            s.bias[e] = real && a.bias
                            ? conv1d_load<float>(a.bias, (c + e) * a.vbias.c, a.vbias.type)
                            : 0.0f;
#pragma unroll
            for (int k = 0; k < Case::taps; ++k) {
                s.dw[k][e] = 0;
                s.w[k][e] = real && k >= s.skipped
                                ? conv1d_load<float>(
                                      a.w, (c + e) * a.vw.c + (k - s.skipped) * a.vw.t, a.vw.type)
                                : 0.0f;
            }
        }
#pragma unroll 1
        for (int64_t b = part.row; active && b < part.row_end; ++b) {
            const conv1d_btc_source<Case> from(a, b, c);
            const conv1d_btc_row<Case> row = {
                a,     static_cast<int>(b), c,        static_cast<int>(a.length),
                false, a.dx != nullptr,     from.left};
            conv1d_btc_walk_row<Case>(row, from,
                                      static_cast<typename Case::bits *>(a.dx) + b * a.vdx.b + c,
                                      ring, part, s);
        }
        if (!a.partial) continue;
        float *const to = static_cast<float *>(a.partial) + slot * (a.width + 1) * a.channels;
#pragma unroll
        for (int k = 0; k <= Case::taps; ++k) {
            if (k < s.skipped) continue;
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
                to[(k - s.skipped) * a.channels + c0 + i] = sum;
            }
        }
    }
}

} // namespace plait::impl::cuda
