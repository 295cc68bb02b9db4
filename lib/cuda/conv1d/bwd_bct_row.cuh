// Rows of conv1d.bwd_bct: a warp's walk over the tiles of its rows, what a lane loads of a tile and
// how it stores. Tiles in the middle of a row are read and written without a look at bounds, if x,
// dy and dx have the same distances to multiples of 16 bytes. At the ends of a row, 16 bytes that
// hold elements of the neighbours are read whole as long as they lie inside the tensor.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_layout.h"
#include "lib/cuda/conv1d/bwd_edge.cuh"

namespace plait::impl::cuda {

inline constexpr unsigned conv1d_all_lanes = 0xffffffffu;

/// An instantiation. Taps beyond the width of the problem, at the front, are skipped.
template <scalar S, int Taps, bool Marked, conv1d_act Act> struct conv1d_bwd_case {
    static constexpr scalar type = S;
    static constexpr int taps = Taps;
    static constexpr bool marked = Marked, exact = Taps <= 4, fast = S != scalar::f32;
    static constexpr conv1d_act act = Act;
    using bits = typename stored<S>::bits;
    static constexpr bool wide = Taps > 4 || (Taps == 4 && fast && Act != conv1d_act::none);
    static constexpr int min_blocks = Taps > 8 ? 2 : Marked ? 3 : wide ? 4 : 5; // of 128 threads
    static constexpr int log_vec = conv1d_log_vec(S), vec = 1 << log_vec;
    static constexpr int history = Taps - 1;
    static constexpr int per_word = S == scalar::f32 ? 1 : 2;
    /// Words before a lane's own that taps read, and how many are loaded: 1, 2 or 16 bytes each.
    static constexpr int old_words = (history + per_word - 1) / per_word;
    static constexpr int old_loaded = old_words <= 2 ? old_words : (old_words + 3) / 4 * 4;
    static constexpr bool ahead = Taps <= 8; ///< they are loaded with the tile's
    /// Two steps in the loop, so that registers need not move.
    static constexpr bool two = Taps <= 4 || (Taps <= 8 && !Marked);
};

/// The value is computed here: the compiler neither moves it to its use nor computes it again.
__device__ __forceinline__ void conv1d_pin(float &v) {
#ifdef __CUDACC__
    asm volatile("" : "+f"(v));
#else
    (void)v;
#endif
}
__device__ __forceinline__ void conv1d_pin(int &v) {
#ifdef __CUDACC__
    asm volatile("" : "+r"(v));
#else
    (void)v;
#endif
}

template <class Case> __device__ __forceinline__ void conv1d_widen_word(uint32_t word, float *out) {
    if constexpr (Case::per_word == 2) {
        widen_pair<Case::type>(word, out[0], out[1]);
    } else {
        out[0] = __uint_as_float(word);
    }
}

template <int N> __device__ __forceinline__ void conv1d_load_words(const void *p, uint32_t *out) {
    if constexpr (N == 1) {
        out[0] = __ldg(static_cast<const uint32_t *>(p));
    } else if constexpr (N == 2) {
        const uint2 v = __ldg(static_cast<const uint2 *>(p));
        out[0] = v.x, out[1] = v.y;
    } else {
        const uint4 v = __ldg(static_cast<const uint4 *>(p));
        out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
    }
}

/// What a lane reads of a tile.
template <class Case> struct conv1d_bct_chunk {
    uint32_t x[4], dy[4];
    uint32_t old[Case::old_loaded]; ///< x before
    uint64_t low, high;             ///< marks: 16 bytes that hold those of the lane
};

template <class Case> struct conv1d_bct_cursor {
    const typename Case::bits *x, *dy; ///< token 0 of the lane's row
    typename Case::bits *dx;
    int row;  ///< the lane's
    int tile; ///< of all lanes
    int t;    ///< the lane's first token
};

template <class Case> struct conv1d_bct_row {
    using bits = typename Case::bits;
    static constexpr int vec = Case::vec;
    const conv1d_bwd_args &a;
    int64_t c;
    int first;       ///< tap that the width has
    int lane, lanes; ///< of those that share a row
    int tiles, tile_begin, tile_end, steps;
    int whole;        ///< tiles that end before the row does, whatever its shift
    int row, row_end; ///< the lane's
    bool aligned;     ///< x, dy, dx alike
    bool always;      ///< every tile checks
    bool shifted;

    __device__ __forceinline__ bool like_x(const void *base, const conv1d_view &v) const {
        return reinterpret_cast<uintptr_t>(base) % 16 == 0 && (v.b - a.vx.b) % vec == 0 &&
               (v.c - a.vx.c) % vec == 0;
    }

    __device__ __forceinline__ conv1d_bct_row(const conv1d_bwd_args &args, int64_t channel, int tap,
                                              int warp, int warp_lane)
        : a(args), c(channel), first(tap) {
        lanes = 1 << a.log_lanes;
        lane = warp_lane & (lanes - 1);
        conv1d_pin(lane);
        tiles = static_cast<int>(a.tiles);
        const int per_warp = 32 >> a.log_lanes, rows = static_cast<int>(a.rows_per_walk);
        const int batch = static_cast<int>(a.batch);
        if (a.parts == 1) {
            // of the first walk of the warp: the others have as many rows or fewer
            const int64_t from = static_cast<int64_t>(warp) * per_warp * rows;
            const int64_t mine = from + static_cast<int64_t>(warp_lane >> a.log_lanes) * rows;
            tile_begin = 0;
            tile_end = tiles;
            row = static_cast<int>(mine < batch ? mine : batch);
            row_end = rows < batch - row ? row + rows : batch;
            const int64_t here = from < batch ? batch - from : 0;
            steps = static_cast<int>(here < rows ? here : rows) * tiles;
            always = here < static_cast<int64_t>(per_warp) * rows && per_warp > 1;
        } else {
            const uint32_t parts = static_cast<uint32_t>(a.parts);
            const uint32_t walk = static_cast<uint32_t>(warp);
            const int per_walk = static_cast<int>(a.tiles_per_walk);
            row = static_cast<int>(walk / parts);
            tile_begin = static_cast<int>(walk % parts) * per_walk;
            tile_end = per_walk < tiles - tile_begin ? tile_begin + per_walk : tiles;
            const bool some = warp < a.walks;
            steps = some ? tile_end - tile_begin : 0;
            row_end = some ? row + 1 : row;
            always = false;
        }
        shifted = ((a.vx.b | a.vx.c) & (vec - 1)) != 0;
        whole = static_cast<int>(a.length) >> (a.log_lanes + Case::log_vec);
        aligned = like_x(a.x, a.vx) && like_x(a.dy, a.vdy) && (!a.dx || like_x(a.dx, a.vdx));
        always = always || !aligned;
    }

    __device__ __forceinline__ bool checked(int tile) const {
        return always || (tile == 0 && shifted) || tile >= whole;
    }
    __device__ __forceinline__ int length_of(const conv1d_bct_cursor<Case> &at) const {
        return at.row < row_end ? static_cast<int>(a.length) : 0;
    }
    __device__ __forceinline__ void last_tile(conv1d_bct_cursor<Case> &at) const {
        at.tile = tile_end - 1;
        at.t = static_cast<int>(a.tile) * at.tile + (lane << Case::log_vec);
        if (shifted) at.t -= conv1d_bwd_bct_shift(a.vx, Case::log_vec, at.row, c);
    }
    __device__ __forceinline__ void begin(conv1d_bct_cursor<Case> &at) const {
        at.row = row;
        at.x = static_cast<const bits *>(a.x) + row * a.vx.b + c * a.vx.c;
        at.dy = static_cast<const bits *>(a.dy) + row * a.vdy.b + c * a.vdy.c;
        at.dx = static_cast<bits *>(a.dx) + row * a.vdx.b + c * a.vdx.c;
        last_tile(at);
    }
    /// The tile that follows lies before.
    __device__ __forceinline__ void advance(conv1d_bct_cursor<Case> &at) const {
        if (at.tile > tile_begin) {
            at.tile -= 1;
            at.t -= static_cast<int>(a.tile);
        } else {
            at.row += 1;
            at.x += a.vx.b;
            at.dy += a.vdy.b;
            at.dx += a.vdx.b;
            last_tile(at);
        }
    }

    /// Words from token t on; any value at tokens outside of the row.
    template <int N>
    __device__ __forceinline__ void load_checked(const bits *p, int t, int length, const void *base,
                                                 int64_t begin, int64_t end, uint32_t *out) const {
        constexpr int n = N * Case::per_word;
#pragma unroll
        for (int q = 0; q < N; ++q) out[q] = 0;
        if (t >= length || t + n <= 0) return;
        const int64_t from = p + t - static_cast<const bits *>(base);
        if (aligned && from >= begin && from + n <= end) {
            conv1d_load_words<N>(p + t, out);
            return;
        }
        // the last element first, each moves up those behind it
#pragma unroll 1
        for (int e = n - 1; e >= 0; --e) {
            const uint32_t one = t + e < 0 || t + e >= length ? 0 : p[t + e];
#pragma unroll
            for (int q = N - 1; q >= 0; --q) {
                if constexpr (Case::per_word == 2) {
                    out[q] = out[q] << 16 | (q > 0 ? out[q - 1] >> 16 : one);
                } else {
                    out[q] = q > 0 ? out[q - 1] : one;
                }
            }
        }
    }
    __device__ __forceinline__ void load_old(conv1d_bct_chunk<Case> &in,
                                             const conv1d_bct_cursor<Case> &at) const {
        constexpr int each = Case::old_loaded < 4 ? Case::old_loaded : 4;
        const bool check = checked(at.tile);
#pragma unroll
        for (int q = 0; q < Case::old_loaded; q += each) {
            const int t = at.t - (Case::old_loaded - q) * Case::per_word;
            if (check) {
                load_checked<each>(at.x, t, length_of(at), a.x, a.x_begin, a.x_end, in.old + q);
            } else if (at.tile != 0 || t >= 0) {
                conv1d_load_words<each>(at.x + t, in.old + q);
            } else {
#pragma unroll
                for (int i = 0; i < each; ++i) in.old[q + i] = 0;
            }
        }
    }
    __device__ __forceinline__ void load(conv1d_bct_chunk<Case> &in,
                                         const conv1d_bct_cursor<Case> &at) const {
        if constexpr (Case::ahead) load_old(in, at);
        if (checked(at.tile)) {
            const int length = length_of(at);
            load_checked<4>(at.x, at.t, length, a.x, a.x_begin, a.x_end, in.x);
            load_checked<4>(at.dy, at.t, length, a.dy, a.dy_begin, a.dy_end, in.dy);
        } else {
            conv1d_load_words<4>(at.x + at.t, in.x);
            const uint4 v = __ldcs(reinterpret_cast<const uint4 *>(at.dy + at.t));
            in.dy[0] = v.x, in.dy[1] = v.y, in.dy[2] = v.z, in.dy[3] = v.w;
        }
        if constexpr (Case::marked) {
            in.low = in.high = 0;
            if (a.marks) {
                const int64_t n = at.row * a.length + at.t, tokens = a.batch * a.length;
                const int64_t from = n & ~int64_t{7};
                const char *const p =
                    static_cast<const char *>(a.marks) + from + (Case::exact ? 0 : 8 * tokens);
                if (from >= 0 && from < tokens)
                    in.low = __ldg(reinterpret_cast<const uint64_t *>(p));
                if (from + 8 < tokens && from + 8 >= 0 && from + 8 < n + vec)
                    in.high = __ldg(reinterpret_cast<const uint64_t *>(p + 8));
            }
        }
    }
    __device__ __forceinline__ uint64_t mark_bytes(const conv1d_bct_chunk<Case> &in,
                                                   const conv1d_bct_cursor<Case> &at) const {
        const int by = static_cast<int>((at.row * a.length + at.t) & 7) * 8;
        return by == 0 ? in.low : in.low >> by | in.high << (64 - by);
    }
    /// Marks where every tap counts; longer taps have a byte that says so.
    __device__ __forceinline__ uint64_t full_bytes() const {
        uint32_t one = 1;
        if constexpr (Case::exact) {
            constexpr conv1d_mark m = conv1d_full_mark(Case::taps);
            one = m.back | m.ahead << 4;
        }
        return one * (vec == 8 ? 0x0101010101010101u : uint64_t{0x01010101u});
    }

    __device__ __forceinline__ void store(const conv1d_bct_cursor<Case> &at,
                                          const float (&v)[vec]) const {
        bits *const p = at.dx + at.t;
        if (!checked(at.tile)) {
            store_elements<Case::type, Case::log_vec>(p, 0, v, 1.0f);
            return;
        }
        const int length = length_of(at);
        if (aligned && at.t >= 0 && at.t + vec <= length) {
            store_elements<Case::type, Case::log_vec>(p, 0, v, 1.0f);
            return;
        }
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            if (at.t + e < 0 || at.t + e >= length) continue;
            if constexpr (Case::per_word == 2) {
                p[e] = round_half<Case::type>(v[e]);
            } else {
                p[e] = __float_as_uint(v[e]);
            }
        }
    }
};

} // namespace plait::impl::cuda
