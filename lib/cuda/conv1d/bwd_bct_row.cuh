// Rows of conv1d.bwd_bct: a warp's walk over the tiles of its rows, its ring of tiles on their way
// from global to shared memory, and how a lane stores. Tiles in the middle of a row are copied and
// written without a look at bounds, if x, dy and dx have the same distances to multiples of 16
// bytes. At the ends of a row, 16 bytes that hold elements of the neighbours are copied whole as
// long as they lie inside the tensor.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_ring.cuh"
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
    static constexpr int min_blocks = conv1d_bwd_bct_blocks(Taps, Marked);
    static constexpr int log_vec = conv1d_log_vec(S), vec = 1 << log_vec;
    static constexpr int history = Taps - 1;
    static constexpr int per_word = S == scalar::f32 ? 1 : 2;
    /// Words before a lane's own that taps read, and how many are loaded: 1, 2 or 16 bytes each.
    static constexpr int old_words = (history + per_word - 1) / per_word;
    static constexpr int old_loaded = old_words <= 2 ? old_words : (old_words + 3) / 4 * 4;
    /// Bytes of a stage of a warp's ring: x behind the tokens before it, dy, marks.
    static constexpr int halo = conv1d_bwd_bct_halo(Taps, log_vec);
    static constexpr int part = conv1d_bwd_bct_part(Taps, log_vec);
    static constexpr int stage = part * (Marked ? 3 : 2);
    static constexpr int ring = stage * conv1d_bwd_bct_stages;
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

__device__ __forceinline__ void conv1d_pin(int64_t &v) {
#ifdef __CUDACC__
    asm volatile("" : "+l"(v));
#else
    (void)v;
#endif
}
template <class T> __device__ __forceinline__ void conv1d_pin(T *&v) {
#ifdef __CUDACC__
    asm volatile("" : "+l"(v));
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
    int first;                             ///< tap that the width has
    int lane, lanes;                       ///< of those that share a row
    int tiles, tile_begin, tile_end, rows; ///< rows: of the warp
    int whole;        ///< tiles that end before the row does, whatever its shift
    int row, row_end; ///< the lane's
    bool aligned;     ///< x, dy, dx alike
    bool always;      ///< every tile checks
    bool shifted;
    int copied_from, copied_to;     ///< tiles that are copied without a look at bounds
    int plain_from, plain_to;       ///< tiles that nothing is special about
    int source;                     ///< the lane behind, of the warp
    conv1d_shared slot, free, last; ///< of the ring, the lane's: to read, to fill; the last stage

    __device__ __forceinline__ bool like_x(const void *base, const conv1d_view &v) const {
        return reinterpret_cast<uintptr_t>(base) % 16 == 0 && (v.b - a.vx.b) % vec == 0 &&
               (v.c - a.vx.c) % vec == 0;
    }

    __device__ __forceinline__ conv1d_bct_row(const conv1d_bwd_args &args, int64_t channel,
                                              char *shared, int tap, int warp, int block_warp,
                                              int warp_lane, bool finite)
        : a(args), c(channel), first(tap) {
        lanes = 1 << a.log_lanes;
        lane = warp_lane & (lanes - 1);
        conv1d_pin(lane);
        tiles = static_cast<int>(a.tiles);
        const int per_warp = 32 >> a.log_lanes, each = static_cast<int>(a.rows_per_walk);
        const int batch = static_cast<int>(a.batch);
        if (a.parts == 1) {
            // of the first walk of the warp: the others have as many rows or fewer
            const int64_t from = static_cast<int64_t>(warp) * per_warp * each;
            const int64_t mine = from + static_cast<int64_t>(warp_lane >> a.log_lanes) * each;
            tile_begin = 0;
            tile_end = tiles;
            row = static_cast<int>(mine < batch ? mine : batch);
            row_end = each < batch - row ? row + each : batch;
            const int64_t here = from < batch ? batch - from : 0;
            rows = static_cast<int>(here < each ? here : each);
            always = here < static_cast<int64_t>(per_warp) * each && per_warp > 1;
        } else {
            const uint32_t parts = static_cast<uint32_t>(a.parts);
            const uint32_t walk = static_cast<uint32_t>(warp);
            const int per_walk = static_cast<int>(a.tiles_per_walk);
            row = static_cast<int>(walk / parts);
            tile_begin = static_cast<int>(walk % parts) * per_walk;
            tile_end = per_walk < tiles - tile_begin ? tile_begin + per_walk : tiles;
            const bool some = warp < a.walks;
            rows = some;
            row_end = some ? row + 1 : row;
            always = false;
        }
        shifted = ((a.vx.b | a.vx.c) & (vec - 1)) != 0;
        whole = static_cast<int>(a.length) >> (a.log_lanes + Case::log_vec);
        aligned = like_x(a.x, a.vx) && like_x(a.dy, a.vdy) && (!a.dx || like_x(a.dx, a.vdx));
        always = always || !aligned;
        copied_from = shifted;
        copied_to = always ? 0 : whole;
        conv1d_pin(copied_from);
        conv1d_pin(copied_to);
        plain_from = shifted || a.state_in ? 1 : 0;
        plain_to = finite ? copied_to : 0;
        if (plain_to > tile_end) plain_to = tile_end;
        if (a.dstate_out) {
            // tiles whose tokens are all before the last state's
            const int64_t from = (a.length - a.entries) / a.tile;
            if (from < plain_to) plain_to = static_cast<int>(from);
        }
        conv1d_pin(plain_from);
        conv1d_pin(plain_to);
        source = (warp_lane - lane) | ((lane + 1) & (lanes - 1));
        conv1d_pin(source);
        slot = conv1d_shared_of(shared + conv1d_bwd_bct_slot(block_warp, Case::ring, Case::halo,
                                                             warp_lane, a.log_lanes));
        last = slot + Case::stage * (conv1d_bwd_bct_stages - 1);
        free = slot;
    }

    __device__ __forceinline__ conv1d_shared behind(conv1d_shared at) const {
        return at == last ? at - Case::stage * (conv1d_bwd_bct_stages - 1) : at + Case::stage;
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
    __device__ __forceinline__ void next_row(conv1d_bct_cursor<Case> &at) const {
        at.row += 1;
        at.x += a.vx.b;
        at.dy += a.vdy.b;
        at.dx += a.vdx.b;
        last_tile(at);
    }

    /// 16 bytes from token t on; any value at tokens outside of the row.
    __device__ __forceinline__ void copy_checked(conv1d_shared to, const bits *p, int t, int length,
                                                 const void *base, int64_t begin,
                                                 int64_t end) const {
        const int64_t from = p + t - static_cast<const bits *>(base);
        if (t < length && t + vec > 0 && aligned && from >= begin && from + vec <= end) {
            conv1d_bct_copy<16>(to, p + t);
            return;
        }
#pragma unroll 1
        for (int e = 0; e < vec; ++e)
            conv1d_bct_put(to + e * static_cast<int>(sizeof(bits)),
                           t + e < 0 || t + e >= length ? bits{0} : p[t + e]);
    }
    /// The tile at `at` goes to the stage `to`; `at` to the tile that follows, which is before.
    /// Behind the last row of the warp nothing is copied: `left` rows are to come.
    __device__ __forceinline__ void load(conv1d_shared to, conv1d_bct_cursor<Case> &at,
                                         int &left) const {
        constexpr int before = Case::halo / static_cast<int>(sizeof(bits));
        const bool asked = lane < Case::halo / 16;
        conv1d_pin(at.x);
        conv1d_pin(at.dy);
        if (at.tile >= copied_from && at.tile < copied_to) {
            conv1d_bct_copy<16>(to, at.x + at.t);
            conv1d_bct_copy(to - Case::halo, at.x + at.t - before, asked, at.tile != 0);
            conv1d_bct_copy<16>(to + Case::part, at.dy + at.t);
        } else {
            const int length = length_of(at);
            copy_checked(to, at.x, at.t, length, a.x, a.x_begin, a.x_end);
            if (asked)
                copy_checked(to - Case::halo, at.x, at.t - before, length, a.x, a.x_begin, a.x_end);
            copy_checked(to + Case::part, at.dy, at.t, length, a.dy, a.dy_begin, a.dy_end);
        }
        if constexpr (Case::marked) {
            if (a.marks) load_marks(to + 2 * Case::part, at);
        }
        conv1d_bct_commit();
        at.tile -= 1;
        at.t -= static_cast<int>(a.tile);
        if (at.tile < tile_begin) {
            next_row(at);
            if (--left <= 0) at.row = row_end, at.tile = tiles + conv1d_bwd_bct_stages;
        }
    }
    __device__ __forceinline__ void load_marks(conv1d_shared to,
                                               const conv1d_bct_cursor<Case> &at) const {
        const int64_t n = at.row * a.length + at.t, tokens = a.batch * a.length;
        const int64_t from = n & ~int64_t{7};
        const char *const p =
            static_cast<const char *>(a.marks) + from + (Case::exact ? 0 : 8 * tokens);
        for (int i = 0; i < 16; i += 8) {
            if (from + i >= 0 && from + i < tokens && from + i < n + vec) {
                conv1d_bct_copy<8>(to + i, p + i);
            } else {
                conv1d_bct_put(to + i, uint32_t{0});
                conv1d_bct_put(to + i + 4, uint32_t{0});
            }
        }
    }
    __device__ __forceinline__ void read(conv1d_bct_chunk<Case> &in) const {
        constexpr int each = Case::old_loaded < 4 ? Case::old_loaded : 4;
        conv1d_load_words<4>(slot, in.x);
        conv1d_load_words<4>(slot + Case::part, in.dy);
#pragma unroll
        for (int q = 0; q < Case::old_loaded; q += each)
            conv1d_load_words<each>(slot - 4 * (Case::old_loaded - q), in.old + q);
        if constexpr (Case::marked) {
            if (a.marks) {
                uint32_t m[4];
                conv1d_load_words<4>(slot + 2 * Case::part, m);
                in.low = m[0] | static_cast<uint64_t>(m[1]) << 32;
                in.high = m[2] | static_cast<uint64_t>(m[3]) << 32;
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

    /// Nothing is special about the tile at `at`, which `in` holds.
    __device__ __forceinline__ bool plain(const conv1d_bct_chunk<Case> &in,
                                          const conv1d_bct_cursor<Case> &at) const {
        if (at.tile < plain_from || at.tile >= plain_to) return false;
        if constexpr (Case::marked) {
            constexpr uint64_t all = vec == 8 ? ~uint64_t{0} : 0xffffffffu;
            if (a.marks)
                return __all_sync(conv1d_all_lanes,
                                  ((mark_bytes(in, at) ^ full_bytes()) & all) == 0);
        }
        return true;
    }

    template <bool Plain>
    __device__ __forceinline__ void store(const conv1d_bct_cursor<Case> &at,
                                          const float (&v)[vec]) const {
        bits *const p = at.dx + at.t;
        if (Plain || !checked(at.tile)) {
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
