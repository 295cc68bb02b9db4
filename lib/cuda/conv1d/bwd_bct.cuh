// conv1d.bwd_bct: dx and partial sums of dw and dbias where time is contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Lanes and tokens: bwd_bct_layout.h. A walk goes from the last tile to the first: x before a tile
// comes from the lanes before and from the next tile, loaded ahead; g behind it from the lanes
// behind and from the tile before, in registers: nothing is computed or read twice.
// Bytes: x, dy, dx once (r = 1.5). Instructions of a full tile, 16 bits, K = 4, SiLU, counted in
// the machine code: 350 for 8 elements, 44 each, 2 of them special functions. A copy leaves about
// 41 on an H200: bound by issue, r = 1.6 at best. f32 has twice the room. 20 warps on an SM, 1 KiB
// each on its way. Not for f64, mixed types of x, dy, dx, or K > 32 (conv1d.bwd_any).
#pragma once

#include "lib/cuda/conv1d/bwd_bct_layout.h"
#include "lib/cuda/conv1d/bwd_edge.cuh"

namespace plait::impl::cuda {

/// An instantiation. Taps beyond the width of the problem, at the front, are skipped.
template <scalar S, int Taps, bool Marked, conv1d_act Act> struct conv1d_bwd_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps;
    static constexpr bool marked = Marked, exact = Taps <= 4, fast = S != scalar::f32;
    static constexpr conv1d_act act = Act;
    using bits = typename stored<S>::bits;
    static constexpr int min_blocks = Taps > 8   ? 2
                                      : Marked   ? (Taps > 4 ? 3 : 4)
                                      : Taps > 4 ? 4
                                                 : 5; // of 128 threads
    static constexpr int log_vec = conv1d_log_vec(S), vec = 1 << log_vec;
    static constexpr int history = Taps - 1;
    static constexpr int per_word = S == scalar::f32 ? 1 : 2;
    /// Words before a lane's own that taps read, and how far away the first is.
    static constexpr int old_words = (history + per_word - 1) / per_word;
    static constexpr int reach = (history + vec - 1) / vec;
};

struct conv1d_words {
    uint32_t w[4];
};

/// 16 bytes from token t on, which is at p; 0 outside of [0, length), and all of it unless `any`.
/// Tokens 0 .. starts - 1 begin 16 aligned bytes of the row, if they begin a lane's.
template <class Case>
__device__ __forceinline__ conv1d_words conv1d_load_words(const typename Case::bits *p, int t,
                                                          uint32_t starts, int length, bool any) {
    conv1d_words out = {{0, 0, 0, 0}};
    if (static_cast<uint32_t>(t) < starts) {
        const uint4 v = __ldcs(reinterpret_cast<const uint4 *>(p));
        out = {{v.x, v.y, v.z, v.w}};
    } else if (any) {
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            if (t + e < 0 || t + e >= length) continue;
            const uint32_t one = p[e];
            out.w[e / Case::per_word] |= e % Case::per_word ? one << 16 : one;
        }
    }
    return out;
}

template <class Case> __device__ __forceinline__ void conv1d_widen_word(uint32_t word, float *out) {
    if constexpr (Case::per_word == 2) {
        widen_pair<Case::type>(word, out[0], out[1]);
    } else {
        out[0] = __uint_as_float(word);
    }
}

template <class Case>
__device__ __forceinline__ void conv1d_store_words(typename Case::bits *p, int t, uint32_t starts,
                                                   int limit, const float (&v)[Case::vec]) {
    if (limit != 0 && static_cast<uint32_t>(t) < starts) {
        store_elements<Case::type, Case::log_vec>(p, 0, v, 1.0f);
    } else {
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            if (t + e < 0 || t + e >= limit) continue;
            if constexpr (Case::per_word == 2) {
                p[e] = round_half<Case::type>(v[e]);
            } else {
                p[e] = __float_as_uint(v[e]);
            }
        }
    }
}

/// A tile of a walk; no more tokens of it are left where `row` is its end.
struct conv1d_place {
    int row, tile;
    int t; ///< the lane's first token
};

template <class Case> struct conv1d_bct_walk {
    using bits = typename Case::bits;
    const conv1d_bwd_args &a;
    int64_t c;
    const bits *x, *dy; ///< of the channel's row 0
    bits *dx;
    conv1d_bwd_part part;
    int lane; ///< of those that share the row
    int top;  ///< lane's first token in the last tile of the walk, without the shift
    uint32_t x_starts, dy_starts, dx_starts;

    /// Lanes that begin on 16 bytes of x do so in v, if both have the same distances to them.
    __device__ __forceinline__ uint32_t starts_of(const void *base, const conv1d_view &v) const {
        const bool same = reinterpret_cast<uintptr_t>(base) % 16 == 0 &&
                          (v.b - a.vx.b) % Case::vec == 0 && (v.c - a.vx.c) % Case::vec == 0;
        return same && a.length >= Case::vec ? static_cast<uint32_t>(a.length) - Case::vec + 1 : 0;
    }

    __device__ __forceinline__ bool inside(conv1d_place at) const {
        return at.row < part.row_end && at.tile >= part.tile;
    }
    __device__ __forceinline__ conv1d_place last_tile(int row) const {
        return {row, part.tile_end - 1, top - conv1d_bwd_bct_shift(a.vx, Case::log_vec, row, c)};
    }
    /// The tile that follows, which lies before it. A part of a row is followed by what its taps
    /// reach, then by nothing.
    __device__ __forceinline__ conv1d_place after(conv1d_place at) const {
        if (part.tile == 0 && at.tile == 0) {
            at = last_tile(at.row + 1);
            if (at.row >= part.row_end) at.t = nowhere;
        } else {
            at.t = at.tile < part.tile ? nowhere : at.t - static_cast<int>(a.tile);
            at.tile -= 1;
        }
        return at;
    }
    static constexpr int nowhere = -(1 << 30);
    template <class T>
    __device__ __forceinline__ static T *address(T *p, const conv1d_view &v, conv1d_place at) {
        return p + (static_cast<uint32_t>(at.row) * v.b + at.t);
    }
    __device__ __forceinline__ conv1d_words x_words(conv1d_place at) const {
        const bool any = at.row < part.row_end && at.tile >= 0 && at.tile >= part.tile - 1;
        return conv1d_load_words<Case>(address(x, a.vx, at), at.t, x_starts,
                                       static_cast<int>(a.length), any);
    }
    __device__ __forceinline__ conv1d_words dy_words(conv1d_place at) const {
        return conv1d_load_words<Case>(address(dy, a.vdy, at), at.t, dy_starts,
                                       static_cast<int>(a.length), inside(at));
    }
    __device__ __forceinline__ int limit(conv1d_place at) const {
        return inside(at) ? static_cast<int>(a.length) : 0;
    }
};

/// pre[e] += the taps of element e, oldest first. x[i] is the input i - history tokens after the
/// first element.
template <class Case, bool Masked, class Marks>
__device__ __forceinline__ void
conv1d_bct_taps(const float (&w)[Case::taps], const float (&x)[Case::vec + Case::history],
                const Marks &marks, int first, float (&pre)[Case::vec]) {
#pragma unroll
    for (int k = 0; k < Case::taps; ++k) {
        if (!Case::exact && k < first) continue;
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            const float sum = conv1d_fma(w[k], x[e + k], pre[e]);
            pre[e] = !Masked || (marks.back(e) >> (Case::history - k) & 1u) ? sum : pre[e];
        }
    }
}

template <class Case>
__device__ __forceinline__ float conv1d_bct_g(const conv1d_bwd_args &a, float dy, float pre) {
    if constexpr (Case::act == conv1d_act::none) return dy;
    if (Case::act == conv1d_act::asked && !a.silu) return dy;
    return conv1d_silu_gradient<Case::fast>(dy, pre);
}

/// dx of the elements: g[i] belongs to the token i after the first.
template <class Case, bool Masked, class Marks>
__device__ __forceinline__ void
conv1d_bct_dx(const float (&w)[Case::taps], const float (&g)[Case::vec + Case::history],
              const Marks &marks, int first, float (&dx)[Case::vec]) {
#pragma unroll
    for (int j = 0; j < Case::taps; ++j) {
        if (!Case::exact && j > Case::history - first) continue;
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            const float sum = conv1d_fma(w[Case::history - j], g[e + j], dx[e]);
            const bool counts = j == 0 ? marks.back(e) & 1u : marks.ahead(e) >> j & 1u;
            dx[e] = !Masked || counts ? sum : dx[e];
        }
    }
}

/// The elements' terms of dw.
template <class Case, bool Masked, class Marks>
__device__ __forceinline__ void conv1d_bct_dw(const float (&x)[Case::vec + Case::history],
                                              const float (&g)[Case::vec + Case::history],
                                              const Marks &marks, int first,
                                              float (&dw)[Case::taps]) {
#pragma unroll
    for (int k = 0; k < Case::taps; ++k) {
        if (!Case::exact && k < first) continue;
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            const float sum = conv1d_fma(g[e], x[e + k], dw[k]);
            dw[k] = !Masked || (marks.back(e) >> (Case::history - k) & 1u) ? sum : dw[k];
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(conv1d_bwd_bct_threads, Case::min_blocks)
    conv1d_bwd_bct(const __grid_constant__ conv1d_bwd_args a) {
    constexpr int vec = Case::vec, history = Case::history, per_word = Case::per_word;
    constexpr unsigned all = 0xffffffffu;
    const int warp_lane = static_cast<int>(threadIdx.x % 32);
    const int lanes = 1 << a.log_lanes, lane = warp_lane & (lanes - 1);
    const int first = Case::exact ? 0 : Case::taps - a.width;
    const int64_t warps = static_cast<int64_t>(gridDim.x) * (conv1d_bwd_bct_threads / 32);
    for (int64_t item =
             static_cast<int64_t>(blockIdx.x) * (conv1d_bwd_bct_threads / 32) + threadIdx.x / 32;
         item < a.items; item += warps) {
        // neighbouring warps read neighbouring rows
        const int64_t c = item % a.channels, slot = item / a.channels;
        const int64_t walk = (slot << (5 - a.log_lanes)) + (warp_lane >> a.log_lanes);
        using bits = typename Case::bits;
        conv1d_bct_walk<Case> way = {a,
                                     c,
                                     static_cast<const bits *>(a.x) + c * a.vx.c,
                                     static_cast<const bits *>(a.dy) + c * a.vdy.c,
                                     static_cast<bits *>(a.dx) + c * a.vdx.c,
                                     conv1d_bwd_part_of(a, walk, a.batch),
                                     lane,
                                     0,
                                     0,
                                     0,
                                     0};
        way.top = static_cast<int>(a.tile) * (way.part.tile_end - 1) + (lane << Case::log_vec);
        way.x_starts = way.starts_of(a.x, a.vx);
        way.dy_starts = way.starts_of(a.dy, a.vdy);
        way.dx_starts = way.starts_of(a.dx, a.vdx);

        float w[Case::taps], dw[Case::taps], dbias = 0;
#pragma unroll
        for (int k = 0; k < Case::taps; ++k) {
            dw[k] = 0;
            w[k] = Case::exact || k >= first
                       ? conv1d_load<float>(a.w, c * a.vw.c + (k - first) * a.vw.t, a.vw.type)
                       : 0.0f;
        }
        const float bias = a.bias ? conv1d_load<float>(a.bias, c * a.vbias.c, a.vbias.type) : 0.0f;

        conv1d_place here = way.last_tile(way.part.row);
        if (!way.inside(here)) here.t = way.nowhere;
        conv1d_place next = way.after(here), second = way.after(next);
        conv1d_words x_here = way.x_words(here), x_next = way.x_words(next);
        conv1d_words dy_here = way.dy_words(here);
        float behind[vec]; // g of the tile that was before
#pragma unroll
        for (int e = 0; e < vec; ++e) behind[e] = 0;
        // A part of a row begins where g behind it is not known.
        if (way.inside(here) && here.tile + 1 < a.tiles) {
            const int t = here.t + static_cast<int>(a.tile);
            for (int e = 0; e < vec && (lane << Case::log_vec) + e < a.width - 1; ++e)
                conv1d_put(behind, e, conv1d_edge_g<Case::fast>(a, here.row, c, t + e));
        }
        while (__any_sync(all, way.inside(here))) {
            const conv1d_words x_second = way.x_words(second), dy_next = way.dy_words(next);
            const int t = here.t, limit = way.limit(here);
            const bool row_start = here.tile == 0, row_end = here.tile + 1 == a.tiles;
            conv1d_marks<vec, Case::exact> marks;
            uint32_t edges = 0;
            bool full = true;
            if constexpr (Case::marked) {
                marks.load(a, here.row, t, limit);
                full = marks.full(a.width);
                if (!full) edges = marks.edges();
            }

            float x[vec + history], dy[vec], g[vec + history];
            {
                // whole words, so that an odd history begins inside one
                constexpr int extra = Case::old_words * per_word - history;
                float wide[Case::old_words * per_word + vec];
#pragma unroll
                for (int q = 0; q < Case::old_words; ++q) {
                    const int back = Case::old_words - q; // words
                    const int far = (back + 3) / 4;       // lanes
                    const uint32_t before = row_start ? 0u : x_next.w[4 * far - back];
                    const uint32_t mine = lane >= lanes - far ? before : x_here.w[4 * far - back];
                    conv1d_widen_word<Case>(
                        __shfl_sync(all, mine, (lane - far) & (lanes - 1), lanes),
                        wide + q * per_word);
                }
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    conv1d_widen_word<Case>(x_here.w[q], wide + (Case::old_words + q) * per_word);
                    conv1d_widen_word<Case>(dy_here.w[q], dy + q * per_word);
                }
#pragma unroll
                for (int i = 0; i < vec + history; ++i) x[i] = wide[extra + i];
            }

            float pre[vec];
#pragma unroll
            for (int e = 0; e < vec; ++e) pre[e] = bias;
            if constexpr (Case::act != conv1d_act::none) {
                if (Case::marked && !full) {
                    conv1d_bct_taps<Case, true>(w, x, marks, first, pre);
                } else {
                    conv1d_bct_taps<Case, false>(w, x, marks, first, pre);
                }
                if constexpr (Case::marked) conv1d_edge_pre(a, here.row, c, t, edges, pre);
            }
#pragma unroll
            for (int e = 0; e < vec; ++e) g[e] = conv1d_bct_g<Case>(a, dy[e], pre[e]);
            if (t < 0 || t + vec > limit || (Case::marked && !full)) {
#pragma unroll
                for (int e = 0; e < vec; ++e) {
                    const bool live =
                        t + e >= 0 && t + e < limit && (!Case::marked || (marks.back(e) & 1u));
                    g[e] = live ? g[e] : 0.0f;
                    dy[e] = live ? dy[e] : 0.0f;
                }
            }
#pragma unroll
            for (int e = 0; e < vec; ++e) dbias = conv1d_add(dbias, g[e]);
            if (Case::marked && !full) {
                conv1d_bct_dw<Case, true>(x, g, marks, first, dw);
            } else {
                conv1d_bct_dw<Case, false>(x, g, marks, first, dw);
            }
            if constexpr (Case::marked) conv1d_edge_dw(a, here.row, c, t, edges, g, first, dw);
#pragma unroll
            for (int i = 0; i < history; ++i) {
                const int far = i / vec + 1, e = i % vec;
                const float mine = lane < far ? (row_end ? 0.0f : behind[e]) : g[e];
                g[vec + i] = __shfl_sync(all, mine, (lane + far) & (lanes - 1), lanes);
            }
#pragma unroll
            for (int e = 0; e < vec; ++e) behind[e] = g[e];

            float dx[vec];
#pragma unroll
            for (int e = 0; e < vec; ++e) dx[e] = 0;
            if (Case::marked && !full) {
                conv1d_bct_dx<Case, true>(w, g, marks, first, dx);
            } else {
                conv1d_bct_dx<Case, false>(w, g, marks, first, dx);
            }
            if constexpr (Case::marked) {
                conv1d_edge_dx(a, here.row, c, t, edges, dx);
                if (a.residual) {
#pragma unroll
                    for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], dy[e]);
                }
            }
            if (a.dx)
                conv1d_store_words<Case>(way.address(way.dx, a.vdx, here), t, way.dx_starts, limit,
                                         dx);

            x_here = x_next;
            x_next = x_second;
            dy_here = dy_next;
            here = next;
            next = second;
            second = way.after(second);
        }

        if (!a.partial) continue;
        float *const to = static_cast<float *>(a.partial) + slot * (a.width + 1) * a.channels + c;
#pragma unroll
        for (int k = 0; k <= Case::taps; ++k) {
            float sum = k == Case::taps ? dbias : dw[k == Case::taps ? 0 : k];
            for (int by = 16; by > 0; by /= 2) sum = conv1d_add(sum, __shfl_xor_sync(all, sum, by));
            if (warp_lane == 0 && k >= first) to[(k - first) * a.channels] = sum;
        }
    }
}

} // namespace plait::impl::cuda
