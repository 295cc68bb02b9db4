// conv1d.bwd_bct: dx and sums of dw and dbias where time is contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Lanes and tokens: bwd_bct_layout.h. A warp's walk goes from the last tile to the first. Tiles
// come through a ring of asynchronous copies, three on their way, with the K-1 inputs before them;
// g behind a tile comes from the lanes behind and, in registers, from the tile before. Tiles at the
// ends of a row check bounds, others do not: 33 instructions an element (16 bits, K = 4, SiLU), 51
// in f32. The warps of a block share a channel; where a block has all of it, it writes dw itself.
// Bytes: x, dy, dx once (r = 1.5), and K-1 tokens of x, dy for each part of a row.
// Not for f64, mixed types of x, dy, dx, or K > 32 (conv1d.bwd_any).
#pragma once

#include "lib/cuda/conv1d/bwd_bct_row.cuh"

namespace plait::impl::cuda {

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
            dx[e] = !Masked || ((j == 0 ? marks.back(e) : marks.ahead(e) >> j) & 1u) ? sum : dx[e];
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

/// What a lane keeps over a walk.
template <class Case> struct conv1d_bct_sums {
    static constexpr int near = Case::history < Case::vec ? Case::history : Case::vec;
    float w[Case::taps], dw[Case::taps], bias, dbias;
    float behind[near]; ///< g of the tile behind
    bool finite;        ///< w: else taps that meet nothing at the ends of a row must be skipped
};

/// A tile as floats.
template <class Case> struct conv1d_bct_tile {
    static constexpr int vec = Case::vec, history = Case::history;
    float x[vec + history], dy[vec], g[vec + history];
    conv1d_marks<vec, Case::exact> marks;
    uint32_t edges;
    bool full; ///< of all lanes: no mask is needed

    template <bool Plain>
    __device__ __forceinline__ void widen(const conv1d_bct_row<Case> &way,
                                          const conv1d_bct_chunk<Case> &in,
                                          const conv1d_bct_cursor<Case> &here) {
        constexpr int per_word = Case::per_word;
        float old[Case::old_loaded * per_word];
#pragma unroll
        for (int q = 0; q < Case::old_loaded; ++q)
            conv1d_widen_word<Case>(in.old[q], old + q * per_word);
#pragma unroll
        for (int i = 0; i < history; ++i) x[i] = old[Case::old_loaded * per_word - history + i];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            conv1d_widen_word<Case>(in.x[q], x + history + q * per_word);
            conv1d_widen_word<Case>(in.dy[q], dy + q * per_word);
        }
        edges = 0;
        full = true;
        if constexpr (Plain) return;
        const bool checked = way.checked(here.tile);
        const uint32_t length = static_cast<uint32_t>(way.length_of(here));
        if constexpr (Case::marked) {
            if (way.a.marks) {
                const uint64_t bytes = way.mark_bytes(in, here), same = way.full_bytes();
                uint64_t outside = vec == 8 ? 0 : ~uint64_t{0} << 32;
                if (checked) {
#pragma unroll
                    for (int e = 0; e < vec; ++e)
                        if (static_cast<uint32_t>(here.t + e) >= length)
                            outside |= uint64_t{0xff} << (8 * e);
                }
                // 0 outside is not full: behind the end taps meet inputs that may not count
                const bool mine =
                    (((bytes & ~outside) ^ same) & (vec == 8 ? ~uint64_t{0} : 0xffffffffu)) == 0;
                full = __all_sync(conv1d_all_lanes, mine);
                marks.set(way.a, here.row, here.t, static_cast<int>(length), bytes & ~outside);
                if (!full) edges = marks.edges();
            }
        }
        if (checked) {
#pragma unroll
            for (int i = 0; i < vec + history; ++i)
                x[i] = static_cast<uint32_t>(here.t + i - history) < length ? x[i] : 0.0f;
#pragma unroll
            for (int e = 0; e < vec; ++e)
                dy[e] = static_cast<uint32_t>(here.t + e) < length ? dy[e] : 0.0f;
        }
        if (!Case::marked || !way.a.marks) {
            if (here.tile == 0 && way.a.state_in && length != 0) {
                [[maybe_unused]] constexpr int in_flight = Case::exact ? history : 1;
#pragma unroll in_flight
                for (int j = way.first; j < history; ++j) {
                    const int i = j - here.t; // of token j - history
                    if (i >= vec + history) continue;
                    conv1d_put(x, i,
                               conv1d_load<float>(way.a.state_in,
                                                  conv1d_at(way.a.vstate_in, here.row, way.c,
                                                            way.a.entries - history + j),
                                                  way.a.vstate_in.type));
                }
            }
        }
    }

    /// g of the lane's own elements.
    template <bool Plain>
    __device__ __forceinline__ void gradient(const conv1d_bct_row<Case> &way,
                                             const conv1d_bct_sums<Case> &s,
                                             const conv1d_bct_cursor<Case> &here) {
        const bool silu =
            Case::act == conv1d_act::silu || (Case::act == conv1d_act::asked && way.a.silu);
        if (silu) {
            float pre[vec];
#pragma unroll
            for (int e = 0; e < vec; ++e) pre[e] = s.bias;
            if (!Plain && Case::marked && !full) {
                conv1d_bct_taps<Case, true>(s.w, x, marks, way.first, pre);
            } else {
                conv1d_bct_taps<Case, false>(s.w, x, marks, way.first, pre);
                if (!Plain && !s.finite && here.t < history && !way.a.state_in) {
#pragma unroll 1
                    for (int e = 0; e < vec; ++e) {
                        float sum = s.bias;
#pragma unroll 1
                        for (int k = way.first; k < Case::taps; ++k)
                            if (here.t + e - history + k >= 0)
                                sum = conv1d_fma(conv1d_pick(s.w, k), conv1d_pick(x, e + k), sum);
                        conv1d_put(pre, e, sum);
                    }
                }
            }
            if constexpr (!Plain && Case::marked)
                conv1d_edge_pre(way.a, here.row, way.c, here.t, edges, pre);
#pragma unroll
            for (int e = 0; e < vec; ++e) g[e] = conv1d_silu_gradient<Case::fast>(dy[e], pre[e]);
        } else {
#pragma unroll
            for (int e = 0; e < vec; ++e) g[e] = dy[e];
        }
        if constexpr (Plain) return;
        if (way.checked(here.tile)) {
            const uint32_t length = static_cast<uint32_t>(way.length_of(here));
#pragma unroll
            for (int e = 0; e < vec; ++e)
                g[e] = static_cast<uint32_t>(here.t + e) < length ? g[e] : 0.0f;
        }
        if (Case::marked && !full) {
#pragma unroll
            for (int e = 0; e < vec; ++e) {
                g[e] = marks.back(e) & 1u ? g[e] : 0.0f;
                dy[e] = marks.back(e) & 1u ? dy[e] : 0.0f;
            }
        }
    }
};

/// The tile at `here`, which `in` holds.
template <class Case, bool Plain>
__device__ __forceinline__ void
conv1d_bct_step(const conv1d_bct_row<Case> &way, conv1d_bct_sums<Case> &s,
                const conv1d_bct_chunk<Case> &in, conv1d_bct_cursor<Case> &here) {
    constexpr int vec = Case::vec, history = Case::history;
    conv1d_bct_tile<Case> tile;
    tile.template widen<Plain>(way, in, here);
    tile.template gradient<Plain>(way, s, here);
    if (!Plain && here.tile == way.tile_end) { // behind a part of a row: for its g only
#pragma unroll
        for (int e = 0; e < conv1d_bct_sums<Case>::near; ++e) s.behind[e] = tile.g[e];
        return;
    }
#pragma unroll
    for (int e = 0; e < vec; ++e) s.dbias = conv1d_add(s.dbias, tile.g[e]);
    if (!Plain && Case::marked && !tile.full) {
        conv1d_bct_dw<Case, true>(tile.x, tile.g, tile.marks, way.first, s.dw);
        conv1d_edge_dw(way.a, here.row, way.c, here.t, tile.edges, tile.g, way.first, s.dw);
    } else {
        conv1d_bct_dw<Case, false>(tile.x, tile.g, tile.marks, way.first, s.dw);
    }
#pragma unroll
    for (int i = 0; i < history; ++i) {
        const int far = i / vec + 1, e = i % vec;
        const float mine = way.lane < far ? s.behind[e] : tile.g[e];
        tile.g[vec + i] = far == 1 ? __shfl_sync(conv1d_all_lanes, mine, way.source)
                                   : __shfl_sync(conv1d_all_lanes, mine,
                                                 (way.lane + far) & (way.lanes - 1), way.lanes);
    }
#pragma unroll
    for (int e = 0; e < conv1d_bct_sums<Case>::near; ++e) s.behind[e] = tile.g[e];

    float dx[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) dx[e] = 0;
    if (!Plain && Case::marked && !tile.full) {
        conv1d_bct_dx<Case, true>(s.w, tile.g, tile.marks, way.first, dx);
        conv1d_edge_dx(way.a, here.row, way.c, here.t, tile.edges, dx);
    } else {
        conv1d_bct_dx<Case, false>(s.w, tile.g, tile.marks, way.first, dx);
        if (!Plain && !s.finite && here.t + vec + history > way.a.length) {
#pragma unroll 1
            for (int e = 0; e < vec; ++e) {
                float sum = 0;
#pragma unroll 1
                for (int j = 0; j <= history - way.first && here.t + e + j < way.a.length; ++j)
                    sum =
                        conv1d_fma(conv1d_pick(s.w, history - j), conv1d_pick(tile.g, e + j), sum);
                conv1d_put(dx, e, sum);
            }
        }
    }
    if constexpr (Case::marked) {
        if (way.a.residual) {
#pragma unroll
            for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], tile.dy[e]);
        }
    }
    if (!Plain && (!Case::marked || !way.a.marks)) {
        // entries at the end of the row have the gradient of the last state
        const int64_t from = way.a.length - way.a.entries;
        if (way.a.dstate_out && (here.tile + 1) * way.a.tile > from && way.length_of(here) != 0) {
#pragma unroll 1
            for (int e = 0; e < vec; ++e) {
                const int t = here.t + e;
                if (t < 0 || t >= way.a.length || t < from) continue;
                const float tail = conv1d_load<float>(
                    way.a.dstate_out, conv1d_at(way.a.vdstate_out, here.row, way.c, t - from),
                    way.a.vdstate_out.type);
                conv1d_put(dx, e, conv1d_add(conv1d_pick(dx, e), tail));
            }
        }
    }
    if (way.a.dx) way.template store<Plain>(here, dx);
}

__device__ __forceinline__ void conv1d_bct_item(const conv1d_bwd_args &a, int64_t item, int64_t *c,
                                                int64_t *slot) {
    if (a.items <= UINT32_MAX) {
        *slot = static_cast<uint32_t>(item) / static_cast<uint32_t>(a.channels);
        *c = static_cast<uint32_t>(item) % static_cast<uint32_t>(a.channels);
    } else {
        *slot = item / a.channels;
        *c = item % a.channels;
    }
}

template <class Case>
__global__ void __launch_bounds__(conv1d_bwd_bct_threads, Case::min_blocks)
    conv1d_bwd_bct(const __grid_constant__ conv1d_bwd_args a) {
    __shared__ float sums[conv1d_bwd_bct_threads / 32][Case::taps + 1];
    __shared__ __align__(16) char ring[conv1d_bwd_bct_threads / 32 * Case::ring];
    constexpr unsigned all = conv1d_all_lanes;
    // from lane 0, so that what depends on it is known to be one value for the warp
    const int warp = __shfl_sync(all, static_cast<int>(threadIdx.x / 32), 0);
    const int warps = static_cast<int>(blockDim.x / 32), warp_lane = threadIdx.x % 32;
    const int first = Case::exact ? 0 : Case::taps - a.width;
    for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
        int64_t c, slot;
        conv1d_bct_item(a, item, &c, &slot);
        conv1d_bct_sums<Case> s;
        s.dbias = 0;
#pragma unroll
        for (int k = 0; k < Case::taps; ++k) {
            s.dw[k] = 0;
            s.w[k] = Case::exact || k >= first
                         ? conv1d_load<float>(a.w, c * a.vw.c + (k - first) * a.vw.t, a.vw.type)
                         : 0.0f;
        }
        s.finite = true;
#pragma unroll
        for (int k = 0; k < Case::taps; ++k)
            s.finite = s.finite && (__float_as_uint(s.w[k]) & 0x7f800000u) != 0x7f800000u;
        s.bias = a.bias ? conv1d_load<float>(a.bias, c * a.vbias.c, a.vbias.type) : 0.0f;
#pragma unroll
        for (float &one : s.behind) one = 0;

        conv1d_bct_row<Case> way(a, c, ring, first, static_cast<int>(slot) * warps + warp, warp,
                                 warp_lane, s.finite);
        if (way.rows > 0) {
            conv1d_bct_cursor<Case> here, next;
            int left = way.rows, coming = left;
            way.begin(here);
            if (way.tile_end < way.tiles) {
                // a part of a row begins where g behind it is not known
                here.tile += 1;
                here.t += static_cast<int>(a.tile);
            }
            next = here;
            __syncwarp(); // the ring of the last item has been read
#pragma unroll 1
            for (int i = 1; i < conv1d_bwd_bct_stages; ++i) {
                way.load(way.free, next, coming);
                way.free = way.behind(way.free);
            }
#pragma unroll 1
            while (true) {
                conv1d_bct_chunk<Case> in;
                conv1d_bct_wait<conv1d_bwd_bct_stages - 2>();
                __syncwarp(); // the tile is there for all lanes; all have read the one before
                way.read(in);
                way.load(way.free, next, coming);
                way.free = way.slot;
                way.slot = way.behind(way.slot);
                if (way.plain(in, here)) {
                    conv1d_bct_step<Case, true>(way, s, in, here);
                } else {
                    conv1d_bct_step<Case, false>(way, s, in, here);
                }
                here.tile -= 1;
                here.t -= static_cast<int>(a.tile);
                if (here.tile < way.tile_begin) {
                    if (--left == 0) break;
                    way.next_row(here);
#pragma unroll
                    for (float &one : s.behind) one = 0.0f; // g behind a row
                }
            }
        }

        if (!a.partial && !a.dw && !a.dbias) continue;
        conv1d_pin(item); // c and slot are computed again: the loop needs their registers
        conv1d_bct_item(a, item, &c, &slot);
#pragma unroll
        for (int k = 0; k <= Case::taps; ++k) {
            float sum = k == Case::taps ? s.dbias : s.dw[k == Case::taps ? 0 : k];
#pragma unroll
            for (int by = 16; by > 0; by /= 2) sum = conv1d_add(sum, __shfl_xor_sync(all, sum, by));
            if (warp_lane == 0) sums[warp][k] = sum;
        }
        __syncthreads(); // the sums of all warps are written
        for (int k = first + static_cast<int>(threadIdx.x); k <= Case::taps;
             k += static_cast<int>(blockDim.x)) {
            float sum = sums[0][k];
            for (int i = 1; i < warps; ++i) sum = conv1d_add(sum, sums[i][k]);
            if (a.partial) {
                static_cast<float *>(
                    a.partial)[(slot * (a.width + 1) + k - first) * a.channels + c] = sum;
            } else if (k == Case::taps) {
                if (a.dbias) conv1d_store(a.dbias, c * a.vdbias.c, a.vdbias.type, sum);
            } else if (a.dw) {
                conv1d_store(a.dw, c * a.vdw.c + (k - first) * a.vdw.t, a.vdw.type, sum);
            }
        }
        __syncthreads(); // the sums are read
    }
}

} // namespace plait::impl::cuda
