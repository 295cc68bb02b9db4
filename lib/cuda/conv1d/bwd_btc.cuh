// conv1d.bwd_btc: dx and partial sums of dw and dbias where channels are contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Threads, channels, tiles, ring: bwd_btc_layout.h. A walk goes from the last token to the first
// with windows of K inputs and K g in registers; tiles are K tokens, so that no window moves. x and
// dy of the next tiles are on their way into a ring in shared memory, of which a thread reads only
// what it copied (bwd_btc_ring.cuh). A part of a row begins one tile behind its end, for g. Only
// the first tile of a walk, tiles at ends of rows or with marks that are not full test tokens.
// Bytes: x, dy, dx once (r = 1.5), and 2 K tokens of x, K of dy for each walk. Loose stores: lanes
// exchange elements. Precision: f32, one rounding. Bound: DRAM up to K = 4, then arithmetic.
#pragma once

#include "lib/cuda/conv1d/bwd_btc_token.cuh"

namespace plait::impl::cuda {

/// Marks of the tile at t0, a byte for each token; of tokens outside the row: 0.
template <class Case>
__device__ __forceinline__ uint32_t conv1d_btc_marks(const conv1d_btc_row<Case> &row, int t0) {
    const int64_t at = static_cast<int64_t>(row.b) * row.a.length + t0;
    const uint32_t *const from = static_cast<const uint32_t *>(row.a.marks) + (at >> 2);
    const int tokens = row.end - t0 < Case::taps ? row.end - t0 : Case::taps;
    if (tokens <= 0) return 0;
    return conv1d_btc_shift(__ldg(from), __ldg(from + 1), 8u * static_cast<uint32_t>(at)) &
           (tokens >= 4 ? ~0u : (1u << (8 * tokens)) - 1u);
}

/// The same where no token has a sequence of its own: only states and ends of rows matter.
template <class Case>
__device__ __forceinline__ uint32_t conv1d_btc_row_marks(const conv1d_btc_row<Case> &row, int t0) {
    constexpr conv1d_mark full = conv1d_full_mark(Case::taps);
    uint32_t out = 0;
#pragma unroll
    for (int r = 0; r < Case::taps; ++r) {
        const int t = t0 + r;
        conv1d_mark m = full;
        if (row.a.state_in && t < Case::history) {
            m.back = (2u << t) - 1u;
            m.ahead |= 1u;
        }
        if (row.a.dstate_out && t + row.a.entries >= row.end) m.ahead |= 1u;
        if (t < row.end) out |= (m.back | m.ahead << 4) << (8 * (r & 3));
    }
    return out;
}

/// One row of a walk.
template <class Case>
__device__ __forceinline__ void
conv1d_btc_walk_row(conv1d_btc_row<Case> row, conv1d_btc_source<Case> from, char *dx,
                    const conv1d_bwd_part &part, conv1d_btc_sums<Case> &s) {
    constexpr int taps = Case::taps, depth = Case::depth;
    const conv1d_btc_spot ring = row.ring;
    const int top = part.tile_end < row.a.tiles ? part.tile_end : part.tile_end - 1;
    float x[taps][Case::vec], g[taps][Case::vec];
    int t0 = top * taps;
    dx = conv1d_btc_on(dx, -row.a.dx_step * (t0 + Case::history));
    from.start(t0);
#pragma unroll
    for (int r = 0; r < taps; ++r) {
        from.direct(r, t0, row.end, x[r]);
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) g[r][e] = 0;
    }
    int ahead = top; // the next tile to be copied
#pragma unroll 1
    for (int i = 0; i < depth - 1; ++i, --ahead) {
        if (ahead >= part.tile) {
            from.fetch_checked(ring + i * Case::slot, ahead * taps, row.end);
        } else {
            from.pass();
        }
        conv1d_btc_commit();
    }
    row.own = top < part.tile_end;
    // the last place of a tile that, with the tokens behind it, is in the row, and not at states
    int inner = row.end - Case::history - taps;
    const bool marks = Case::marked && row.a.marks;
    uint32_t next = 0;
    if constexpr (Case::marked) {
        if (!marks && row.a.dstate_out && row.a.entries > Case::history)
            inner = row.a.entries < row.end ? static_cast<int>(row.end - row.a.entries) - taps : -1;
        if (marks) next = conv1d_btc_marks<Case>(row, t0);
    }
    // tiles from 1 on whose first tokens are less than this are plain; the first is not
    unsigned limit = row.writes && inner >= taps ? static_cast<unsigned>(inner - taps) + 1u : 0u;
    conv1d_btc_keep(limit);
    unsigned plain_below = 0;
    conv1d_btc_spot at = ring, before = ring + (depth - 1) * Case::slot;
#pragma unroll 1
    for (int tile = top; tile >= part.tile; --tile, --ahead) {
        conv1d_btc_wait<depth - 2>();
        if (ahead > 0 && ahead >= part.tile && !from.careful) {
            from.fetch(before);
        } else if (ahead >= part.tile) {
            from.fetch_checked(before, ahead * taps, row.end);
        }
        conv1d_btc_commit();
        bool plain = static_cast<unsigned>(t0 - taps) < plain_below;
        uint32_t now = next;
        if constexpr (Case::marked) {
            constexpr conv1d_mark full = conv1d_full_mark(taps);
            constexpr uint32_t one = full.back | full.ahead << 4;
            constexpr uint32_t all = 0x01010101u * one >> (32 - 8 * taps);
            if (marks) {
                plain = plain && now == all;
                if (tile > part.tile) next = conv1d_btc_marks<Case>(row, t0 - taps);
            } else if (!plain) {
                now = conv1d_btc_row_marks<Case>(row, t0);
            }
        }
        if (plain) {
            conv1d_btc_tile<Case, false, false>(row, from, dx, t0, at, now, x, g, s);
        } else {
            if constexpr (Case::stash) conv1d_btc_move<Case, true>(ring, s);
            conv1d_btc_tile<Case, true, Case::marked>(row, from, dx, t0, at, now, x, g, s);
            if constexpr (Case::stash) conv1d_btc_move<Case, false>(ring, s);
        }
        plain_below = limit;
        row.own = true;
        t0 -= taps;
        before = at;
        at = at == ring + (depth - 1) * Case::slot ? ring : at + Case::slot;
    }
    conv1d_btc_wait<0>();
}

template <class Case>
__global__ void __launch_bounds__(Case::threads, Case::min_blocks)
    conv1d_bwd_btc(const __grid_constant__ conv1d_btc_args a) {
    extern __shared__ __align__(16) char shared[];
    constexpr int vec = Case::vec;
    const int thread = static_cast<int>(threadIdx.x);
    const conv1d_btc_spot ring = conv1d_btc_spot_of(shared + thread * Case::cell);
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
        // lanes without channels go along where lanes meet
        const bool active = c < a.channels || (Case::loose && lanes == 32);
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
                a,
                static_cast<int>(b),
                c,
                static_cast<int>(a.length),
                false,
                a.dx != nullptr,
                ring,
                lanes == 32,
                lanes == 32 ? conv1d_bwd_btc_alone(lane, from.left, vec)
                            : (2u << (from.left < vec ? from.left : vec)) - 2u};
            conv1d_btc_walk_row<Case>(
                row, from,
                reinterpret_cast<char *>(static_cast<typename Case::bits *>(a.dx) + b * a.vdx.b +
                                         c),
                part, s);
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
        if constexpr (Case::stash) __syncthreads(); // the sums, which lie in the stash, are read
    }
}

} // namespace plait::impl::cuda
