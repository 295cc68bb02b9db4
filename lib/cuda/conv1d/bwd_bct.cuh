// conv1d.bwd_bct: dx and sums of dw and dbias where time is contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Lanes, tokens and who walks what: bwd_bct_layout.h. A warp's walk goes from the last tile of a
// row to the first, through rows, channels and items without a break: tiles come through a ring of
// asynchronous copies, a group of them asked for at once; g behind a tile comes from the lanes
// behind and, in registers, from the tile before. Tiles are plain, at an edge (zeros behind a row
// by the copy, masks in front of it), masked (some tap does not count) or special (unaligned
// tensors, weights that are not finite, borders). Ids and packed sequences: up to four taps fields
// of conv1d.bwd_marks say which taps count, and flags which tiles have such: the others are plain,
// those without a live token are not computed. Beyond four taps, and with states, tokens at a
// border add nothing to dw, and conv1d.bwd_bct_fix writes what they make wrong. Sums of dw meet in
// shared memory; where a channel is one item its block writes dw, else conv1d.bwd_reduce follows.
// f32 sums, one rounding. Bytes: x, dy, dx once (r = 1.5 copies), a byte of fields a token from L1
// in masked tiles. Instructions of a tile (8 of bf16 a lane, K = 4, SiLU): 224, masked about 310,
// and 15 for its share of a group. Measured on an H200, time against a copy: 1.66 (rows of 4096:
// 79 % of DRAM's cycles, L2 88 %, 76 % of the issue slots; f32 1.60), 2.06 (2047), 2.7 (511: 68 %
// of the issue slots, L2 67 %), 1.85 with states, 2.20 with ids, 2.24 with packed sequences (74 %
// of the issue slots when every tile read its fields). Not for f64, mixed types of x, dy, dx, or K
// > 32 (conv1d.bwd_any).
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_bct_tile.cuh"

namespace plait::impl::cuda {

/// The tile at `here`, which `in` holds.
template <class Case, conv1d_bct_kind Kind>
__device__ __forceinline__ void conv1d_bct_step(conv1d_bct_row<Case> &way, conv1d_bct_sums<Case> &s,
                                                const conv1d_bct_chunk<Case> &in,
                                                conv1d_bct_cursor<Case, 0> &here) {
    constexpr int vec = Case::vec, history = Case::history;
    conv1d_bct_tile<Case> tile;
    constexpr bool masked = Kind == conv1d_bct_kind::masked;
    tile.template widen<Kind>(way, in, here);
    tile.template gradient<Kind>(way, s, here);
    if ((Kind == conv1d_bct_kind::special || masked) && way.lead) {
#pragma unroll
        for (int e = 0; e < conv1d_bct_sums<Case>::near; ++e) s.behind[e] = tile.g[e];
        return;
    }
    if constexpr (masked) {
        if (tile.dead) {
            conv1d_bct_masked_dw<Case, true>(tile.x, tile.g, tile.fields.x, s.dw, s.dbias);
        } else {
            conv1d_bct_masked_dw<Case, false>(tile.x, tile.g, tile.fields.x, s.dw, s.dbias);
        }
    } else if (Kind == conv1d_bct_kind::special && Case::borders && way.masked()) {
        conv1d_bct_dw<Case, true>(tile.x, tile.g, tile.borders.x, way.first, s.dw, s.dbias);
    } else {
        conv1d_bct_dw<Case, false>(tile.x, tile.g, 0, way.first, s.dw, s.dbias);
    }
#pragma unroll
    for (int i = 0; i < history; ++i) {
        const int far = i / vec + 1, e = i % vec;
        const float mine = way.lane < far ? s.behind[e] : tile.g[e];
        tile.g[vec + i] = far == 1 ? __shfl_sync(conv1d_all_lanes, mine, way.source)
                                   : __shfl_sync(conv1d_all_lanes, mine,
                                                 (way.lane + far) & (way.lanes() - 1), way.lanes());
    }
#pragma unroll
    for (int e = 0; e < conv1d_bct_sums<Case>::near; ++e) s.behind[e] = tile.g[e];

    float dx[vec];
#pragma unroll
    for (int e = 0; e < vec; ++e) dx[e] = 0;
    if constexpr (masked) {
        conv1d_bct_masked_dx<Case>(s.w, tile.g, tile.fields.x, tile.fields.y, dx);
    } else {
        conv1d_bct_dx<Case>(s.w, tile.g, way.first, dx);
    }
    if (Kind == conv1d_bct_kind::special && !s.finite && here.t + vec + history > way.a.length) {
#pragma unroll 1
        for (int e = 0; e < vec; ++e) {
            float sum = 0;
#pragma unroll 1
            for (int j = 0; j <= history - way.first && here.t + e + j < way.a.length; ++j)
                sum = conv1d_fma(conv1d_pick(s.w, history - j), conv1d_pick(tile.g, e + j), sum);
            conv1d_put(dx, e, sum);
        }
    }
    if constexpr (Case::marked) {
        if (way.a.residual) {
#pragma unroll
            for (int e = 0; e < vec; ++e) dx[e] = conv1d_add(dx[e], tile.dy[e]);
        }
    }
    if (Kind != conv1d_bct_kind::plain && !masked && way.a.dstate_out && !way.a.marks) {
        // entries at the end of the row have the gradient of the last state
        const int length = way.length_of(here);
        const int64_t from = way.a.length - way.a.entries;
        if (here.t + vec > from && here.t < length) {
            const conv1d_view &v = way.a.vdstate_out;
            const int64_t at = conv1d_at(v, here.row, way.channel(), here.t - from);
#pragma unroll
            for (int e = 0; e < vec; ++e)
                if (here.t + e >= from && here.t + e >= 0 && here.t + e < length)
                    dx[e] = conv1d_add(dx[e],
                                       conv1d_load<float>(way.a.dstate_out, at + e * v.t, v.type));
        }
    }
    if (masked && tile.dead) {
        conv1d_pin(tile.fields.x);
#pragma unroll
        for (int e = 0; e < vec; ++e)
            dx[e] = conv1d_bct_counts<Case>(tile.fields.x, e, 0) ? dx[e] : 0.0f;
    }
    if (Kind == conv1d_bct_kind::special && Case::borders && way.masked()) {
#pragma unroll
        for (int e = 0; e < vec; ++e) dx[e] = tile.borders.y >> e & 1u ? 0.0f : dx[e];
    }
    if (way.a.dx) way.template store<Kind>(here, dx);
}

/// N elements from `index` on, those from `first` on; the loads before the first use.
template <int N>
__device__ __forceinline__ void conv1d_bct_load_row(const void *base, int64_t index, int64_t step,
                                                    scalar type, int first, float (&out)[N]) {
    if (type == scalar::f32) {
        const float *const p = static_cast<const float *>(base) + index;
#pragma unroll
        for (int i = 0; i < N; ++i) out[i] = i >= first ? __ldg(p + (i - first) * step) : 0.0f;
        return;
    }
    const uint16_t *const p = static_cast<const uint16_t *>(base) + index;
    uint16_t bits[N];
#pragma unroll
    for (int i = 0; i < N; ++i) bits[i] = i >= first ? __ldg(p + (i - first) * step) : uint16_t{0};
#pragma unroll
    for (int i = 0; i < N; ++i)
        out[i] = type == scalar::bf16 ? widen<scalar::bf16>(bits[i]) : widen<scalar::f16>(bits[i]);
}

/// Weights of the channel, and sums from 0.
template <class Case>
__device__ __forceinline__ void conv1d_bct_channel(conv1d_bct_row<Case> &way,
                                                   conv1d_bct_sums<Case> &s) {
    const conv1d_bwd_args &a = way.a;
    const int64_t c = way.channel();
    float bias[1] = {0};
    if (a.bias) conv1d_bct_load_row(a.bias, c * a.vbias.c, 0, a.vbias.type, 0, bias);
    conv1d_bct_load_row(a.w, c * a.vw.c, a.vw.t, a.vw.type, way.first, s.w);
    s.bias = bias[0];
    s.dbias = 0;
    s.finite = true;
#pragma unroll
    for (int k = 0; k < Case::taps; ++k) {
        s.dw[k] = 0;
        s.finite = s.finite && (__float_as_uint(s.w[k]) & 0x7f800000u) != 0x7f800000u;
    }
    way.set_plain(s.finite);
}

/// The warp's sums to out[0 .. taps].
template <class Case>
__device__ __forceinline__ void conv1d_bct_flush(const conv1d_bct_sums<Case> &s, int lane,
                                                 float *out) {
#pragma unroll
    for (int k = 0; k <= Case::taps; ++k) {
        float sum = k == Case::taps ? s.dbias : s.dw[k == Case::taps ? 0 : k];
#pragma unroll
        for (int by = 16; by > 0; by /= 2)
            sum = conv1d_add(sum, __shfl_xor_sync(conv1d_all_lanes, sum, by));
        if (lane == 0) out[k] = sum;
    }
}

/// Behind a tile: one that was there for its g only is followed by the warp's own.
template <class Case>
__device__ __forceinline__ void conv1d_bct_settle(conv1d_bct_row<Case> &way,
                                                  const conv1d_bct_sums<Case> &s) {
    if (!way.lead) return;
    way.lead = false;
    way.set_plain(s.finite);
}

/// Plain tiles, as many as follow each other in the group. Returns how many.
template <class Case>
__device__ __forceinline__ int conv1d_bct_plain(conv1d_bct_row<Case> &way, conv1d_bct_sums<Case> &s,
                                                conv1d_bct_cursor<Case, 0> &here) {
    const int all = way.plain_run(here), tokens = static_cast<int>(way.a.tile);
#pragma unroll 1
    for (int n = 0; n < all; ++n) {
        conv1d_bct_chunk<Case> in;
        way.read(in);
        conv1d_bct_step<Case, conv1d_bct_kind::plain>(way, s, in, here);
        here.t -= tokens;
        way.slot = way.slot + Case::stage;
    }
    return all;
}

/// A tile of another kind.
template <class Case>
__device__ __forceinline__ void conv1d_bct_other(conv1d_bct_row<Case> &way,
                                                 conv1d_bct_sums<Case> &s,
                                                 conv1d_bct_cursor<Case, 0> &here) {
    conv1d_bct_chunk<Case> in;
    way.read(in);
    const conv1d_bct_kind kind = way.kind();
    if (Case::fields && kind == conv1d_bct_kind::masked) {
        if constexpr (Case::fields) {
            in.fields = way.fields(here);
            if (way.in_plain(here.tile) && way.dead(in)) {
                if (way.a.dx) way.store_zeros(here);
#pragma unroll
                for (float &one : s.behind) one = 0.0f;
            } else {
                conv1d_bct_step<Case, conv1d_bct_kind::masked>(way, s, in, here);
            }
        }
        conv1d_bct_settle(way, s);
    } else if (!Case::fields && kind == conv1d_bct_kind::edge) {
        conv1d_bct_step<Case, conv1d_bct_kind::edge>(way, s, in, here);
    } else {
        conv1d_bct_step<Case, conv1d_bct_kind::special>(way, s, in, here);
        conv1d_bct_settle(way, s);
    }
    here.t -= static_cast<int>(way.a.tile);
    way.slot = way.slot + Case::stage;
}

/// A warp's share of a pass.
template <class Case>
__device__ __forceinline__ void conv1d_bct_walk(conv1d_bct_row<Case> &way, int from) {
    conv1d_bct_cursor<Case, 0> here;
    conv1d_bct_cursor<Case, 1> next;
    if (!way.begin(here, from)) return;
    way.begin(next, from);
    way.phase = 0;
    async_wait<0>();
    __syncwarp(); // the ring of the last pass has been read
    way.ask(next);
    conv1d_bct_sums<Case> s;
#pragma unroll
    for (float &one : s.behind) one = 0;
    conv1d_bct_channel(way, s);
#pragma unroll 1
    while (true) {
        if (way.phase == 0) {
            async_wait<0>();
            __syncwarp(); // the group is there for all lanes; all have read the one before
            way.turn(next);
        }
        int done = conv1d_bct_plain(way, s, here);
        if (done == 0) {
            conv1d_bct_other(way, s, here);
            done = 1;
        }
        way.phase = (way.phase + done) & (Case::group - 1);
        here.tile -= done;
        here.run -= done;
        if (here.run > 0) continue;
        if (here.rest > 0) {
            way.next_row(here);
        } else {
            conv1d_bct_flush(s, way.warp_lane,
                             conv1d_bct_sums_of<Case>()[threadIdx.x / 32 + way.ledger().item[0]]);
            if (!way.next_item(here)) break;
            conv1d_bct_channel(way, s);
        }
        if (here.tile == way.tiles() - 1) {
#pragma unroll
            for (float &one : s.behind) one = 0.0f; // g behind a row
        }
    }
}

/// The sums of the items of pass n.
template <class Case>
__device__ __forceinline__ void conv1d_bct_finish(const conv1d_bwd_args &a, int n, int first) {
    const conv1d_bwd_pass pass = conv1d_bwd_bct_pass(a, n);
    const int share = conv1d_bct_share(a, pass);
    const auto *const sums = conv1d_bct_sums_of<Case>();
    const int width = Case::taps - first, per_item = static_cast<int>(a.tiles_per_walk);
    const int count = pass.items * (width + 1);
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
        const int k = i / pass.items, item = i - k * pass.items;
        const int64_t c = (pass.item + item) / a.slots, slot = pass.item + item - c * a.slots;
        const int64_t left = conv1d_bwd_bct_channel_tiles(a) - slot * per_item;
        const int begin = item * per_item;
        const int last = begin + static_cast<int>(left < per_item ? left : per_item) - 1;
        float sum = sums[begin / share + item][k + first];
        for (int warp = begin / share + 1; warp <= last / share; ++warp)
            sum = conv1d_add(sum, sums[warp + item][k + first]);
        if (a.partial) {
            static_cast<float *>(a.partial)[(slot * (width + 1) + k) * a.channels + c] = sum;
        } else if (k == width) {
            if (a.dbias) conv1d_store(a.dbias, c * a.vdbias.c, a.vdbias.type, sum);
        } else if (a.dw) {
            conv1d_store(a.dw, c * a.vdw.c + k * a.vdw.t, a.vdw.type, sum);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(Case::threads, 1)
    conv1d_bwd_bct(const __grid_constant__ conv1d_bwd_args a) {
    extern __shared__ __align__(16) char shared[];
    // from lane 0, so that what depends on it is known to be one value for the warp
    const int warp = __shfl_sync(conv1d_all_lanes, static_cast<int>(threadIdx.x / 32), 0);
    const int lane = threadIdx.x % 32;
    const int first = Case::exact ? 0 : Case::taps - a.width;
    start_successor();
    const int block = static_cast<int>(wait_for_predecessor());
    conv1d_bct_row<Case> way(a, shared, first, warp, lane);
    for (int n = block; n < a.walks; n += static_cast<int>(gridDim.x)) {
        conv1d_bct_walk(way, way.open(n));
        if (!a.partial && !a.dw && !a.dbias) continue;
        __syncthreads(); // the sums of all warps are written
        conv1d_bct_finish<Case>(a, n, first);
        __syncthreads(); // the sums are read
    }
}

} // namespace plait::impl::cuda
