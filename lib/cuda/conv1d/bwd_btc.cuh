// conv1d.bwd_btc: dx and partial sums of dw and dbias where channels are contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Lanes, channels, tiles, parts, ring: bwd_btc_layout.h. A walk goes from the last token of a part
// to its first with windows of K inputs and K g in registers; tiles are K tokens, so that no window
// moves. x and dy of the next tiles, of the next part too, are on their way into a ring in shared
// memory. A part begins two tiles behind its end: for x, and for g. Only these, tiles at ends of
// rows or with marks that are not full test tokens. f32 sums; one rounding. Bytes: x, dy, dx once
// (r = 1.5), and 2 K tokens of x, K of dy for each part. Measured on an H200 with K = 4 and SiLU, a
// copy of x being 1: 1.77 bf16, 1.63 f32, with all steps (benchmarks/results), 2.32 bf16 of 4093
// channels; x + dy alone 1.45. 29 issue slots an element, 65 % of all: 4 warps a scheduler, by
// registers, do not hide their own latencies.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_btc_token.cuh"

#include <type_traits>

namespace plait::impl::cuda {

/// The next tile, from `tile` down, that has a token whose mark is not full, as far as one word of
/// flags tells; below it all is unknown.
__device__ __forceinline__ int conv1d_btc_stop(const conv1d_btc_args &a, int64_t b, int tile) {
    if (a.marks == nullptr) return -1;
    const uint32_t *const flags =
        reinterpret_cast<const uint32_t *>(static_cast<const char *>(a.marks) + a.flags_at);
    const uint32_t word = __ldg(flags + b * ((a.tiles + 31) >> 5) + (tile >> 5));
    const uint32_t below = word & ~0u >> (31 - (tile & 31));
    return (tile & ~31) - 1 + (below == 0 ? 0 : 32 - __clz(static_cast<int>(below)));
}

/// Copies ahead of a walk.
template <class Case> struct conv1d_btc_ahead {
    conv1d_btc_source<Case> from;
    int part, tile; ///< the next tile
    int begin;      ///< tiles from here on
    unsigned count; ///< are copied without tests, and not the last of a part

    __device__ __forceinline__ void start(const conv1d_btc_lane<Case> &l,
                                          const conv1d_btc_range &r) {
        count = 0;
        if (part >= r.walk.limit) return;
        const conv1d_btc_tiles t = conv1d_btc_tiles_of(l.a, part);
        tile = conv1d_btc_lead_of(l.a, t);
        from.start(l, r.c0, t.row, tile);
        begin = max(l.a.tile_low, t.low + 1);
        count = static_cast<unsigned>(max(l.a.tile_high - begin, 0));
    }
    /// The next tile needs no tests, and is not the last of its part.
    __device__ __forceinline__ bool plain() const {
        return static_cast<unsigned>(tile - begin) < count;
    }
    __device__ __forceinline__ void next(const conv1d_btc_lane<Case> &l, const conv1d_btc_range &r,
                                         int slot) {
        if (part < r.walk.limit) {
            from.fetch_checked(l, slot, tile);
            if (--tile < conv1d_btc_tiles_of(l.a, part).low) {
                part += r.walk.step;
                start(l, r);
            }
        }
    }
};

/// All parts of a walk.
template <class Case>
__device__ __forceinline__ void
conv1d_btc_walk_parts(const conv1d_btc_lane<Case> &l, conv1d_btc_range &range,
                      conv1d_btc_ahead<Case> &ahead, conv1d_btc_sums<Case> &s) {
    constexpr int taps = Case::taps, depth = Case::depth;
    const conv1d_btc_args &a = l.a;
    float x[taps][Case::vec], g[taps][Case::vec];
    int at = 0, before = (depth - 1) * Case::slot;
#pragma unroll 1
    for (; range.walk.first < range.walk.limit; range.walk.first += range.walk.step) {
        const conv1d_btc_tiles tiles = conv1d_btc_tiles_of(a, range.walk.first);
        const int b = tiles.row, low = tiles.low, high = tiles.high;
        const int lead = conv1d_btc_lead_of(a, tiles);
        // of the lead tile, which begins at its last token
        const int64_t at_x = (b * a.vx.b + range.c0) * Case::size + int64_t{lead} * taps * a.x_step;
        const int64_t at_dy = (b * a.vdy.b + range.c0) * Case::size +
                              (int64_t{lead} * taps + Case::history) * a.dy_step;
        conv1d_btc_row<Case> row;
        const uintptr_t bits = Case::cell - 1;
        row.from = static_cast<uint32_t>(
            ((reinterpret_cast<uintptr_t>(a.x) + static_cast<uintptr_t>(at_x)) & bits) |
            ((reinterpret_cast<uintptr_t>(a.dy) + static_cast<uintptr_t>(at_dy)) & bits) << 16);
        row.dx = static_cast<char *>(a.dx) +
                 (b * a.vdx.b + range.c0 + l.lane * Case::vec) * Case::size -
                 (int64_t{lead} * taps - 1) * a.dx_hop;
        // tiles from `first` up to this are plain: their tokens' taps meet tokens of the row
        const int inner = (static_cast<int>(a.length) - Case::history) / taps;
        const int plain = a.dx == nullptr ? 0 : min(inner, high), first = max(low, 1);
        const auto pass = [&] {
            before = at;
            at = at == (depth - 1) * Case::slot ? 0 : at + Case::slot;
        };
        // plain tiles, as long as the next copy needs no tests
        const auto run = [&](auto residual, int &tile, int last) {
#pragma unroll 1
            for (; tile >= last; --tile) {
                const bool copies = ahead.plain();
                if (Case::loose && !copies && ahead.part < range.walk.limit) break;
                async_wait<depth - 2>();
                l.meet();
                if (copies) {
                    ahead.from.fetch(l, before), --ahead.tile;
                } else if (!Case::loose) {
                    ahead.next(l, range, before);
                }
                async_commit();
                conv1d_btc_tile<Case, false, decltype(residual)::value, taps - 1>(
                    l, row, b, tile * taps, true, at, x, g, s);
                pass();
            }
        };
        int tile = lead;
#pragma unroll 1
        while (tile >= low) {
            const int was = tile;
            if (tile >= first && tile < plain) {
                const int last = max(first, conv1d_btc_stop(a, b, tile) + 1);
                if (!a.residual) {
                    run(std::false_type{}, tile, last);
                } else if constexpr (!Case::loose) {
                    run(std::true_type{}, tile, last);
                }
                if (tile != was) continue;
            }
            async_wait<depth - 2>();
            l.meet();
            ahead.next(l, range, before);
            async_commit();
            if (tile == lead) {
                conv1d_btc_lead<Case, taps - 1>(l, row, at, x);
#pragma unroll
                for (int r = 0; r < taps; ++r)
#pragma unroll
                    for (int e = 0; e < Case::vec; ++e) g[r][e] = 0;
            } else if (tile < high && conv1d_btc_is_dead<Case>(a, b, tile * taps)) {
                conv1d_btc_dead<Case, taps - 1>(l, row, at, x, g);
            } else {
                conv1d_btc_tile<Case, true, false, taps - 1>(l, row, b, tile * taps, tile < high,
                                                             at, x, g, s);
            }
            pass();
            --tile;
        }
    }
    async_wait<0>();
}

template <class Case>
__global__ void __launch_bounds__(Case::threads, Case::min_blocks)
    conv1d_bwd_btc(const __grid_constant__ conv1d_btc_args a) {
    extern __shared__ __align__(16) char shared[];
    constexpr int vec = Case::vec, taps = Case::taps;
    const int thread = static_cast<int>(threadIdx.x);
    float(*const sums)[vec][Case::threads] = reinterpret_cast<float(*)[vec][Case::threads]>(shared);
    // rarely read: no registers for it
    conv1d_btc_range *const ranges =
        reinterpret_cast<conv1d_btc_range *>(shared + conv1d_bwd_btc_ranges_at(Case::type, taps));
    const int lanes = 1 << a.log_lanes, walks = Case::threads >> a.log_lanes;
    const int items = static_cast<int>(a.items);
    start_successor();
    for (int item = static_cast<int>(wait_for_predecessor()); item < items;
         item += static_cast<int>(gridDim.x)) {
        // neighbouring blocks read neighbouring channels
        uint32_t number = static_cast<uint32_t>(item);
        uint32_t slot = conv1d_quotient(number, a.groups);
        int64_t c0 = static_cast<int64_t>(number - slot * a.groups.d) * a.group;
        conv1d_btc_lane<Case> l(a, shared, c0);
        conv1d_btc_range &range = ranges[thread];
        l.range = &range;
        if constexpr (Case::loose) {
            uint32_t lane = static_cast<uint32_t>(l.lane);
            conv1d_btc_keep(lane); // nothing of this lives on
            range.alone = conv1d_bwd_btc_alone(static_cast<int>(lane), l.left, vec, 4 / Case::size);
        }
        range.walk =
            conv1d_btc_walk_of(a, static_cast<int64_t>(slot) * walks + (thread >> a.log_lanes));
        range.c0 = c0 + (l.left > 0 ? l.ahead * vec : 0);
        conv1d_btc_ahead<Case> ahead;
        ahead.part = range.walk.first;
        ahead.begin = ahead.tile = 0;
        ahead.start(l, range);
#pragma unroll 1
        for (int i = 0; i < Case::depth - 1; ++i) {
            if (ahead.plain()) {
                ahead.from.fetch(l, i * Case::slot), --ahead.tile;
            } else {
                ahead.next(l, range, i * Case::slot);
            }
            async_commit();
        }
        conv1d_btc_sums<Case> s;
        s.skipped = taps - a.width;
        uint32_t channel = static_cast<uint32_t>(l.lane) * vec;
        conv1d_btc_keep(channel); // nothing of this is computed before
        const int first = static_cast<int>(channel);
        conv1d_btc_load<Case>(first, l.left, range.c0, a.w, a.vw, s.skipped, taps - 1, s.w);
        conv1d_btc_load<Case>(first, l.left, range.c0, a.bias, a.vbias, 0, 0, &s.bias);
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            s.dbias[e] = 0;
#pragma unroll
            for (int k = 0; k < taps; ++k) s.dw[k][e] = 0;
        }
        conv1d_btc_walk_parts<Case>(l, range, ahead, s);
        if (!a.partial) {
            __syncthreads(); // no warp starts on a ring that another still reads
            continue;
        }
        __syncthreads(); // all warps have left their rings
#pragma unroll
        for (int k = 0; k <= taps; ++k)
#pragma unroll
            for (int e = 0; e < vec; ++e)
                sums[k][e][thread] = k == taps ? s.dbias[e] : s.dw[k == taps ? 0 : k][e];
        __syncthreads();         // the sums of all walks are written
        conv1d_btc_keep(number); // computed again: no registers for them in the walk
        slot = conv1d_quotient(number, a.groups);
        c0 = static_cast<int64_t>(number - slot * a.groups.d) * a.group;
        float *const to = static_cast<float *>(a.partial) +
                          static_cast<int64_t>(slot) * (a.width + 1) * a.channels;
        const int columns = lanes << Case::log_vec;
        const int64_t group_left = min(a.channels - c0, int64_t{a.group});
        for (int i = thread; i < (a.width + 1) * columns; i += Case::threads) {
            const int row = i / columns, c = i - row * columns;
            if (c >= group_left) continue;
            float sum = 0;
            for (int walk = 0; walk < walks; ++walk)
                sum = conv1d_add(sum, sums[row + s.skipped][c & (vec - 1)]
                                          [(walk << a.log_lanes) + (c >> Case::log_vec)]);
            to[row * a.channels + c0 + c] = sum;
        }
        __syncthreads(); // the sums are read before the next item's ring
    }
}

} // namespace plait::impl::cuda
