// conv1d.bwd_btc: dx and partial sums of dw and dbias where channels are contiguous.
//   g = dy * silu'(pre);  dx[p] = sum_j w[K-1-j] g[p+j];  dw[k] = sum g[t] x[t-(K-1)+k]
// Lanes, channels, tiles, ring: bwd_btc_layout.h. A walk goes from the last token to the first
// with windows of K inputs and K g in registers; tiles are K tokens, so that no window moves. x and
// dy of the next tiles, of the next rows too, are on their way into a ring in shared memory. A part
// of a row begins two tiles behind its end: for x, and for g. Only these, tiles at ends of rows or
// with marks that are not full test tokens.
// Bytes: x, dy, dx once (r = 1.5), and 2 K tokens of x, K of dy for each walk.
#pragma once

#include "lib/cuda/conv1d/bwd_btc_ring.cuh"
#include "lib/cuda/conv1d/bwd_edge.cuh"

#include <type_traits>

namespace plait::impl::cuda {

template <scalar S, int Taps, bool Loose, conv1d_act Act> struct conv1d_btc_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps, history = Taps - 1;
    static constexpr bool loose = Loose, fast = S != scalar::f32;
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
__device__ __forceinline__ void conv1d_btc_taps_of(const conv1d_btc_lane<Case> &l, int64_t c0,
                                                   const void *base, const conv1d_view &v,
                                                   int skipped, int last, float (*out)[Case::vec]) {
    using bits = typename stored<T>::bits;
    const bits *const from = static_cast<const bits *>(base) + (c0 + l.lane * Case::vec) * v.c;
    bits raw[Case::taps][Case::vec];
#pragma unroll
    for (int k = 0; k < Case::taps; ++k)
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) {
            raw[k][e] = 0;
            if (k >= skipped && k <= last && l.lane * Case::vec + e < l.left)
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
__device__ __forceinline__ void conv1d_btc_load(const conv1d_btc_lane<Case> &l, int64_t c0,
                                                const void *base, const conv1d_view &v, int skipped,
                                                int last, float (*out)[Case::vec]) {
    if (base == nullptr) {
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) out[0][e] = 0.0f;
    } else if (v.type == scalar::f32) {
        conv1d_btc_taps_of<scalar::f32>(l, c0, base, v, skipped, last, out);
    } else if (v.type == scalar::bf16) {
        conv1d_btc_taps_of<scalar::bf16>(l, c0, base, v, skipped, last, out);
    } else {
        conv1d_btc_taps_of<scalar::f16>(l, c0, base, v, skipped, last, out);
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
    if (!Checked || (a.dx != nullptr && t < end)) conv1d_btc_store<Case>(l, dx_at, dx);
}

/// Bytes of the group's first channel in its chunk, of a row's token.
template <class Case, bool Dy>
__device__ __forceinline__ uint32_t conv1d_btc_from(const conv1d_btc_lane<Case> &l, uint32_t row,
                                                    int t) {
    if constexpr (!Case::loose) return 0;
    const int step = Dy ? l.a.dy_step : l.a.x_step;
    return (row + static_cast<uint32_t>(t) * static_cast<uint32_t>(step)) &
           static_cast<uint32_t>(Case::cell - 1);
}

/// A row as its tiles need it.
template <class Case> struct conv1d_btc_row {
    uint32_t x, dy; ///< loose: low bits of the address of the group's first channel, of token 0
    char *dx;       ///< of the next token, the lane's channels
};

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
    conv1d_btc_read<Case, false>(l, slot, R,
                                 conv1d_btc_from<Case, false>(l, row.x, t0 + R - Case::history),
                                 x[(R + 1) % Case::taps]);
    conv1d_btc_read<Case, true>(l, slot, R, conv1d_btc_from<Case, true>(l, row.dy, t0 + R), dy);
    conv1d_btc_token<Case, Checked, Residual, R>(l, t0 + R, own, mark, dy, x, g, s, row.dx);
    row.dx = conv1d_btc_on(row.dx, l.a.dx_hop);
    if constexpr (R > 0)
        conv1d_btc_tile<Case, Checked, Residual, R - 1>(l, row, b, t0, own, slot, x, g, s);
}

/// x of tokens behind the first tile of a walk.
template <class Case, int R>
__device__ __forceinline__ void conv1d_btc_lead(const conv1d_btc_lane<Case> &l,
                                                const conv1d_btc_row<Case> &row, int t0, int slot,
                                                float (&x)[Case::taps][Case::vec]) {
    conv1d_btc_read<Case, false>(l, slot, R,
                                 conv1d_btc_from<Case, false>(l, row.x, t0 + R - Case::history),
                                 x[(R + 1) % Case::taps]);
    if constexpr (R > 0) conv1d_btc_lead<Case, R - 1>(l, row, t0, slot, x);
}

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

template <class Case>
__device__ __forceinline__ conv1d_btc_range conv1d_btc_range_of(const conv1d_btc_args &a,
                                                                int64_t walk) {
    const conv1d_btc_walk w = conv1d_btc_walk_of(a, walk);
    conv1d_btc_range r;
    r.tiles = static_cast<int>(a.tiles);
    if (w.end <= w.begin) {
        r.row = 0, r.row_end = -1, r.begin = r.end = 0;
        return r;
    }
    const uint64_t first = static_cast<uint64_t>(w.begin), last = static_cast<uint64_t>(w.end - 1);
    const uint64_t tiles = static_cast<uint64_t>(a.tiles);
    uint64_t row, row_end;
    if (last >> 32 == 0) {
        row = static_cast<uint32_t>(first) / static_cast<uint32_t>(tiles);
        row_end = static_cast<uint32_t>(last) / static_cast<uint32_t>(tiles);
    } else {
        row = first / tiles;
        row_end = last / tiles;
    }
    r.row = static_cast<int>(row);
    r.row_end = static_cast<int>(row_end);
    r.begin = static_cast<int>(first - row * tiles);
    r.end = static_cast<int>(last - row_end * tiles) + 1;
    return r;
}

/// Copies ahead of a walk.
template <class Case> struct conv1d_btc_ahead {
    conv1d_btc_source<Case> from;
    int b, tile;    ///< the next tile
    int begin;      ///< tiles from here on
    unsigned count; ///< are copied without tests, and not the last of a row

    __device__ __forceinline__ void row(const conv1d_btc_lane<Case> &l, const conv1d_btc_range &r) {
        count = 0;
        if (b > r.row_end) return;
        tile = r.lead(b);
        from.start(l, r.c0, b, tile);
        begin = max(l.a.tile_low, r.low(b) + 1);
        count = static_cast<unsigned>(max(l.a.tile_high - begin, 0));
    }
    /// The next tile needs no tests, and is not the last of its row's part.
    __device__ __forceinline__ bool plain() const {
        return static_cast<unsigned>(tile - begin) < count;
    }
    __device__ __forceinline__ void next(const conv1d_btc_lane<Case> &l, const conv1d_btc_range &r,
                                         int slot) {
        if (b <= r.row_end) {
            from.fetch_checked(l, slot, tile);
            if (--tile < r.low(b)) ++b, row(l, r);
        }
        async_commit();
    }
};

/// All rows of a walk.
template <class Case>
__device__ __forceinline__ void
conv1d_btc_walk_rows(const conv1d_btc_lane<Case> &l, const conv1d_btc_range &range,
                     conv1d_btc_ahead<Case> &ahead, conv1d_btc_sums<Case> &s) {
    constexpr int taps = Case::taps, depth = Case::depth;
    const conv1d_btc_args &a = l.a;
    float x[taps][Case::vec], g[taps][Case::vec];
    int at = 0, before = (depth - 1) * Case::slot;
#pragma unroll 1
    for (int b = range.row; b <= range.row_end; ++b) {
        const int low = range.low(b), high = range.high(b), lead = range.lead(b);
        const int64_t at_x = (b * a.vx.b + range.c0) * Case::size;
        const int64_t at_dy = (b * a.vdy.b + range.c0) * Case::size;
        conv1d_btc_row<Case> row;
        row.x =
            static_cast<uint32_t>(reinterpret_cast<uintptr_t>(a.x)) + static_cast<uint32_t>(at_x);
        row.dy =
            static_cast<uint32_t>(reinterpret_cast<uintptr_t>(a.dy)) + static_cast<uint32_t>(at_dy);
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
                if (!copies && ahead.b <= range.row_end) break;
                async_wait<depth - 2>();
                __syncwarp(l.mask); // copies of all lanes are there, the slot before is read
                if (copies) ahead.from.fetch(l, before), --ahead.tile;
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
            __syncwarp(l.mask); // copies of all lanes are there, the slot before is read
            ahead.next(l, range, before);
            if (tile == lead) {
                conv1d_btc_lead<Case, taps - 1>(l, row, lead * taps, at, x);
#pragma unroll
                for (int r = 0; r < taps; ++r)
#pragma unroll
                    for (int e = 0; e < Case::vec; ++e) g[r][e] = 0;
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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    for (int item = static_cast<int>(blockIdx.x); item < items;
         item += static_cast<int>(gridDim.x)) {
        // neighbouring blocks read neighbouring channels
        uint32_t number = static_cast<uint32_t>(item);
        uint32_t slot = conv1d_quotient(number, a.groups);
        int64_t c0 = static_cast<int64_t>(number - slot * a.groups.d) * a.group;
        const conv1d_btc_lane<Case> l(a, shared, c0);
        conv1d_btc_range &range = ranges[thread];
        range = conv1d_btc_range_of<Case>(a, static_cast<int64_t>(slot) * walks +
                                                 (thread >> a.log_lanes));
        range.c0 = c0 + (l.left > 0 ? l.ahead * vec : 0);
        conv1d_btc_ahead<Case> ahead;
        ahead.b = range.row;
        ahead.begin = ahead.tile = 0;
        ahead.row(l, range);
#pragma unroll 1
        for (int i = 0; i < Case::depth - 1; ++i) ahead.next(l, range, i * Case::slot);
        conv1d_btc_sums<Case> s;
        s.skipped = taps - a.width;
        conv1d_btc_load<Case>(l, range.c0, a.w, a.vw, s.skipped, taps - 1, s.w);
        conv1d_btc_load<Case>(l, range.c0, a.bias, a.vbias, 0, 0, &s.bias);
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            s.dbias[e] = 0;
#pragma unroll
            for (int k = 0; k < taps; ++k) s.dw[k][e] = 0;
        }
        conv1d_btc_walk_rows<Case>(l, range, ahead, s);
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
