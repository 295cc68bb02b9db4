// How a warp of conv1d.bwd_bct walks over the tiles of its rows, its ring of tiles on their way
// from global to shared memory, and how a lane stores. Tiles in the middle of a row are copied and
// written without a look at bounds, if x, dy and dx have the same distances to multiples of 16
// bytes. At the ends of a row, 16 bytes that hold elements of the row before it are copied whole,
// and zeros in place of what lies behind it.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_case.cuh"
#include "lib/cuda/conv1d/store_part.cuh"

namespace plait::impl::cuda {

template <class Case> struct conv1d_bct_row {
    using bits = typename Case::bits;
    static constexpr int vec = Case::vec;
    const conv1d_bwd_args &a;
    int first; ///< tap that the width has
    int warp_lane;
    int lane;                   ///< of those that share a row
    bool aligned;               ///< x, dy, dx alike
    bool edges;                 ///< tiles that are not plain may be of the kind edge
    bool lead;                  ///< the next tile is behind those of the warp: for its g only
    int copied_from, copied_to; ///< tiles that are copied without a look at bounds
    int plain_from, plain_to;   ///< tiles that nothing is special about
    int source;                 ///< the lane behind, of the warp
    uint32_t marked;            ///< bit i: the tile that was copied i tiles ago has marks
    shared_at slot, free; ///< of the ring, the lane's: stage to read, first stage of those to fill
    shared_at low;        ///< first stage of the ring
    int phase;            ///< stages of the group that have been read

    // From constants, instead of registers
    __device__ __forceinline__ int lanes() const { return 1 << a.log_lanes; }          ///< of a row
    __device__ __forceinline__ int tiles() const { return static_cast<int>(a.tiles); } ///< of a row
    __device__ __forceinline__ int per_item() const { return static_cast<int>(a.tiles_per_walk); }
    __device__ __forceinline__ bool shifted() const {
        return ((static_cast<int>(a.vx.b) | static_cast<int>(a.vx.c)) & (vec - 1)) != 0;
    }
    /// Tiles that end before the row does, whatever its shift.
    __device__ __forceinline__ int whole() const {
        return static_cast<int>(a.length) >> (a.log_lanes + Case::log_vec);
    }
    /// Every tile checks: also where the last lanes of some warps have no row.
    __device__ __forceinline__ bool always() const {
        return !aligned || (static_cast<int>(a.batch) & ((32 >> a.log_lanes) - 1)) != 0;
    }
    /// No row begins in front of a tensor's base.
    __device__ __forceinline__ bool simple() const {
        return aligned && (a.x_begin | a.dy_begin) == 0;
    }

    __device__ __forceinline__ bool like_x(const void *base, const conv1d_view &v) const {
        return reinterpret_cast<uintptr_t>(base) % 16 == 0 && (v.b - a.vx.b) % vec == 0 &&
               (v.c - a.vx.c) % vec == 0;
    }

    __device__ __forceinline__ conv1d_bct_row(const conv1d_bwd_args &args, char *shared, int tap,
                                              int warp, int lane_of_warp)
        : a(args), first(tap), warp_lane(lane_of_warp) {
        lane = warp_lane & (lanes() - 1);
        conv1d_pin(lane);
        aligned = like_x(a.x, a.vx) && like_x(a.dy, a.vdy) && (!a.dx || like_x(a.dx, a.vdx));
        // what lies in front of a row is the row before, but in front of a base that is none
        copied_from = shifted() && !simple();
        copied_to = always() ? 0 : whole();
        conv1d_pin(copied_from);
        conv1d_pin(copied_to);
        plain_from = shifted() || (a.state_in && !a.marks) ? 1 : 0;
        conv1d_pin(plain_from);
        source = (warp_lane - lane) | ((lane + 1) & (lanes() - 1));
        conv1d_pin(source);
        slot = shared_at_of(
            shared + conv1d_bwd_bct_slot(warp, Case::ring, Case::halo, warp_lane, a.log_lanes));
        free = slot;
        low = slot;
        phase = 0;
    }

    /// For weights of the channel; tiles behind the warp's share are not plain.
    __device__ __forceinline__ void set_plain(bool finite) {
        plain_to = finite && !lead ? copied_to : 0;
        if (a.dstate_out && !a.marks) {
            // tiles whose tokens are all before the last state's
            const int64_t from = (a.length - a.entries) >> (a.log_lanes + Case::log_vec);
            if (from < plain_to) plain_to = static_cast<int>(from);
        }
        conv1d_pin(plain_to);
        edges = !Case::fields && finite && simple() && !lead;
    }

    static __device__ __forceinline__ conv1d_bct_ledger &ledger() {
        extern __shared__ __align__(16) char shared[];
        return *reinterpret_cast<conv1d_bct_ledger *>(shared + (threadIdx.x / 32 + 1) * Case::ring -
                                                      conv1d_bwd_bct_ledger);
    }
    /// Of the tile that is computed.
    static __device__ __forceinline__ int64_t channel() { return ledger().channel[0]; }

    /// Takes the warp's share of pass n, and says where that begins.
    __device__ __forceinline__ int open(int n) const {
        const conv1d_bwd_pass pass = conv1d_bwd_bct_pass(a, n);
        const int warp = static_cast<int>(threadIdx.x / 32), share = conv1d_bct_share(a, pass);
        const int tiles = pass.items * per_item();
        __syncwarp(); // the last pass has been read
        if (warp_lane == 0) {
            ledger().first = pass.item;
            ledger().items = pass.items;
            ledger().end = tiles - warp * share < share ? tiles : (warp + 1) * share;
        }
        __syncwarp(); // the share is written
        return __shfl_sync(conv1d_all_lanes, warp * share, 0);
    }

    /// Tile `tile` of the item, if that is in the warp's share.
    template <int Number>
    __device__ __forceinline__ bool seek(conv1d_bct_cursor<Case, Number> &at, int item,
                                         int tile) const {
        conv1d_bct_ledger &l = ledger();
        int left = l.end - (item * per_item() + tile);
        if (item >= l.items || left <= 0) return false;
        if (left > per_item() - tile) left = per_item() - tile;
        int64_t c = l.first + item;
        int group = 0, back = tile;
        if (a.slots > 1) {
            const int64_t slot = c % a.slots, now = slot * per_item() + tile;
            const int64_t most = conv1d_bwd_bct_channel_tiles(a) - now;
            if (most <= 0) return false;
            if (left > most) left = static_cast<int>(most);
            c /= a.slots;
            group = static_cast<int>(now / tiles());
            back = static_cast<int>(now - static_cast<int64_t>(group) * tiles());
        } else if (tile != 0) {
            group = tile / tiles();
            back = tile - group * tiles();
        }
        __syncwarp(); // the ledger has been read
        if (warp_lane == 0) {
            l.item[Number] = item;
            l.channel[Number] = c;
        }
        __syncwarp(); // the ledger is written
        at.row = (group << (5 - a.log_lanes)) + (warp_lane >> a.log_lanes);
        at.x = static_cast<const bits *>(a.x) + at.row * a.vx.b + c * a.vx.c;
        at.dy = static_cast<const bits *>(a.dy) + at.row * a.vdy.b + c * a.vdy.c;
        at.dx = static_cast<bits *>(a.dx) + at.row * a.vdx.b + c * a.vdx.c;
        go_to(at, tiles() - 1 - back);
        at.rest = left;
        take_run(at);
        return true;
    }
    template <int Number>
    __device__ __forceinline__ bool next_item(conv1d_bct_cursor<Case, Number> &at) const {
        return seek(at, ledger().item[Number] + 1, 0);
    }
    /// The first tile of the warp: with the one behind it where g behind is not known.
    template <int Number>
    __device__ __forceinline__ bool begin(conv1d_bct_cursor<Case, Number> &at, int from) {
        lead = false;
        const int item = from / per_item();
        if (!seek(at, item, from - item * per_item()) && !seek(at, item + 1, 0)) return false;
        if (at.tile == tiles() - 1) return true;
        lead = true;
        at.tile += 1;
        at.run += 1;
        at.t += static_cast<int>(a.tile);
        return true;
    }
    template <class Cursor> __device__ __forceinline__ void take_run(Cursor &at) const {
        at.run = at.rest < at.tile + 1 ? at.rest : at.tile + 1;
        at.rest -= at.run;
    }
    template <class Cursor> __device__ __forceinline__ void go_to(Cursor &at, int tile) const {
        at.tile = tile;
        at.t = (tile << (a.log_lanes + Case::log_vec)) + (lane << Case::log_vec);
        // the low bits of the distance to the base, as conv1d_bwd_bct_shift has them
        if (shifted()) at.t -= static_cast<int>(at.x - static_cast<const bits *>(a.x)) & (vec - 1);
    }
    template <class Cursor> __device__ __forceinline__ void next_row(Cursor &at) const {
        const int by = 32 >> a.log_lanes;
        at.row += by;
        at.x += by * a.vx.b;
        at.dy += by * a.vdy.b;
        at.dx += by * a.vdx.b;
        go_to(at, tiles() - 1);
        take_run(at);
    }

    __device__ __forceinline__ bool checked(int tile) const {
        return always() || (tile == 0 && shifted()) || tile >= whole();
    }
    template <class Cursor> __device__ __forceinline__ int length_of(const Cursor &at) const {
        return at.row < a.batch ? static_cast<int>(a.length) : 0;
    }

    /// 16 bytes from token t on; any value at tokens outside of the row.
    __device__ __forceinline__ void copy_checked(shared_at to, const bits *p, int t, int length,
                                                 const void *base, int64_t begin,
                                                 int64_t end) const {
        const int64_t from = p + t - static_cast<const bits *>(base);
        if (t < length && t + vec > 0 && aligned && from >= begin && from + vec <= end) {
            async_copy<16>(to, p + t);
            return;
        }
#pragma unroll 1
        for (int e = 0; e < vec; ++e)
            store_shared(to + e * static_cast<int>(sizeof(bits)),
                         t + e < 0 || t + e >= length ? bits{0} : p[t + e]);
    }
    /// Elements of the 16 bytes at token t that lie before the row's end; of a chunk that ends
    /// before the row, or is of a row that is not there, none.
    template <class Cursor> __device__ __forceinline__ int in_front(const Cursor &at, int t) const {
        const int64_t row = at.row;
        const int left = row < a.batch && t + vec > 0 ? static_cast<int>(a.length) - t : 0;
        return left < 0 ? 0 : left < vec ? left : vec;
    }
    /// 16 bytes from token t on of a tensor that ends at `end`; zeros behind the row.
    template <class Cursor>
    __device__ __forceinline__ void copy_front(shared_at to, const Cursor &at, const bits *p, int t,
                                               const bits *end) const {
        async_copy_front(to, p + t, in_front(at, t) * static_cast<int>(sizeof(bits)),
                         p + t + vec <= end);
    }
    /// Tiles from `at` on of the group and the run that are plain, whatever fields say.
    template <class Cursor> __device__ __forceinline__ int plain_run(const Cursor &at) const {
        if (!in_plain(at.tile)) return 0;
        if (Case::borders && a.marks) return masked() ? 0 : 1;
        int n = Case::group - phase;
        if (Case::fields && a.marks) {
            const int before = __clz(static_cast<int>(marked << (32 - 2 * Case::group + phase)));
            if (n > before) n = before;
        }
        if (n > at.run) n = at.run;
        return n > at.tile - plain_from + 1 ? at.tile - plain_from + 1 : n;
    }
    /// The group that `free` has is there now, and the other one is filled. Not before all lanes
    /// have read that.
    template <class Cursor> __device__ __forceinline__ void turn(Cursor &next) {
        slot = free;
        free = free == low ? low + Case::group * Case::stage : low;
        ask(next);
    }
    /// Fills a group.
    template <class Cursor> __device__ __forceinline__ void ask(Cursor &next) {
        shared_at to = free;
        const bool whole = !(Case::borders && a.marks) && next.run >= Case::group &&
                           next.tile < copied_to && next.tile - (Case::group - 1) >= copied_from;
        if (whole) {
            ask_whole(next, to);
            if (Case::fields && a.marks) {
                // the first tile in the highest of the new bits
                const int back = Case::group - 1 - (warp_lane & (Case::group - 1));
                const uint32_t lanes = __ballot_sync(
                    conv1d_all_lanes, static_cast<int>(flagged(next, next.tile - back)));
                marked = marked << Case::group | (lanes & ((1u << Case::group) - 1));
            }
            advance(next, Case::group);
        } else {
#pragma unroll 1
            for (int i = 0; i < Case::group; ++i) {
                copy(next, to);
                advance(next, 1);
                to = to + Case::stage;
            }
        }
        async_commit();
    }
    /// Tiles without a look at bounds.
    template <class Cursor>
    __device__ __forceinline__ void ask_whole(const Cursor &at, shared_at to) const {
        constexpr int before = Case::halo / static_cast<int>(sizeof(bits));
        const int tokens = static_cast<int>(a.tile);
        const bool asked = lane < Case::halo / 16;
        const bits *x = at.x + at.t, *dy = at.dy + at.t;
#pragma unroll
        for (int i = 0; i < Case::group; ++i, x -= tokens) {
            async_copy<16>(to + i * Case::stage, x);
            async_copy<16>(to + i * Case::stage - Case::halo, x - before, at.tile != i, asked);
        }
#pragma unroll
        for (int i = 0; i < Case::group; ++i, dy -= tokens)
            async_copy<16>(to + i * Case::stage + Case::part, dy);
    }
    /// Whether a tile of the rows of `at` has a field that is not full, or meets one.
    template <class Cursor>
    __device__ __forceinline__ bool flagged(const Cursor &at, int tile) const {
        const int part = at.row >> (5 - a.log_lanes); // one for the warp
        const auto *const flags = static_cast<const uint8_t *>(a.marks) + a.flags_at;
        return __ldg(flags + (int64_t{part} * tiles() + tile)) != 0;
    }
    /// The lane's pair of words of fields.
    template <class Cursor>
    __device__ __forceinline__ const uint2 *field_words(const Cursor &at) const {
        return static_cast<const uint2 *>(a.marks) + int64_t{at.row} * a.field_pairs +
               ((at.t >> Case::log_vec) + 1);
    }
    /// The tile at `at` goes to the stage at `to`. Behind the last tile of the warp nothing is
    /// copied.
    template <class Cursor> __device__ __forceinline__ void copy(const Cursor &at, shared_at to) {
        constexpr int before = Case::halo / static_cast<int>(sizeof(bits));
        const bool asked = lane < Case::halo / 16;
        if (at.tile >= copied_from && at.tile < copied_to) {
            async_copy<16>(to, at.x + at.t);
            async_copy<16>(to - Case::halo, at.x + at.t - before, at.tile != 0, asked);
            async_copy<16>(to + Case::part, at.dy + at.t);
        } else if (at.run > 0 && simple()) {
            const bits *const x_end = static_cast<const bits *>(a.x) + a.x_end;
            const bits *const dy_end = static_cast<const bits *>(a.dy) + a.dy_end;
            copy_front(to, at, at.x, at.t, x_end);
            if (asked) copy_front(to - Case::halo, at, at.x, at.t - before, x_end);
            copy_front(to + Case::part, at, at.dy, at.t, dy_end);
        } else if (at.run > 0) {
            const int length = length_of(at);
            copy_checked(to, at.x, at.t, length, a.x, a.x_begin, a.x_end);
            if (asked)
                copy_checked(to - Case::halo, at.x, at.t - before, length, a.x, a.x_begin, a.x_end);
            copy_checked(to + Case::part, at.dy, at.t, length, a.dy, a.dy_begin, a.dy_end);
        }
        if constexpr (Case::fields) {
            if (a.marks) marked = marked << 1 | (at.run > 0 && flagged(at, at.tile) ? 1u : 0u);
        }
        if constexpr (Case::borders) {
            const bool mine = a.marks && at.run > 0 && near_border(at);
            marked = marked << 1 | (__any_sync(conv1d_all_lanes, static_cast<int>(mine)) ? 1u : 0u);
        }
    }
    /// To the tile that follows `tiles` of the run.
    template <class Cursor> __device__ __forceinline__ void advance(Cursor &at, int tiles) const {
        at.tile -= tiles;
        at.t -= tiles * static_cast<int>(a.tile);
        at.run -= tiles;
        if (at.run > 0) return;
        if (at.rest > 0) {
            next_row(at);
        } else if (at.run < 0 || !next_item(at)) {
            at.run = 0;
            at.tile = -1; // nothing is copied
        }
    }
    /// Words of the lane's row: bits of tokens at a border, and of those of nothing.
    template <class Cursor>
    __device__ __forceinline__ uint2 border_word(const Cursor &at, int number) const {
        const int words = static_cast<int>(conv1d_border_words(a.length));
        if (number < 0 || number >= words || at.row >= a.batch) return make_uint2(0, 0);
        return __ldg(
            reinterpret_cast<const uint2 *>(static_cast<const char *>(a.marks) + a.borders_at) +
            int64_t{at.row} * words + number);
    }
    /// A token near the lane's, or those that its taps reach, is at a border: behind the end of a
    /// row g is 0, but what it meets may be padding that is not finite.
    template <class Cursor> __device__ __forceinline__ bool near_border(const Cursor &at) const {
        uint32_t bits = border_word(at, (at.t + vec - 1) >> 5).x;
        bits |= border_word(at, (at.t - Case::history) >> 5).x;
        if constexpr (Case::history + vec > 32) bits |= border_word(at, at.t >> 5).x;
        return bits != 0;
    }
    /// Bit e: element e is at a border or outside of the row; and is of nothing.
    template <class Cursor> __device__ __forceinline__ uint2 borders(const Cursor &at) const {
        const uint2 low = border_word(at, at.t >> 5), high = border_word(at, (at.t >> 5) + 1);
        const uint32_t by = static_cast<uint32_t>(at.t) & 31u;
        uint2 bits =
            make_uint2(__funnelshift_r(low.x, high.x, by), __funnelshift_r(low.y, high.y, by));
        const uint32_t length = static_cast<uint32_t>(length_of(at));
#pragma unroll
        for (int e = 0; e < vec; ++e)
            if (static_cast<uint32_t>(at.t + e) >= length) bits.x |= 1u << e;
        return bits;
    }
    __device__ __forceinline__ void read(conv1d_bct_chunk<Case> &in) const {
        constexpr int each = Case::old_loaded < 4 ? Case::old_loaded : 4;
        load_words<4>(slot, in.x);
        load_words<4>(slot + Case::part, in.dy);
#pragma unroll
        for (int q = 0; q < Case::old_loaded; q += each)
            load_words<each>(slot - 4 * (Case::old_loaded - q), in.old + q);
    }
    /// No element of the warp's is live.
    static __device__ __forceinline__ bool dead(const conv1d_bct_chunk<Case> &in) {
        return __all_sync(conv1d_all_lanes, static_cast<int>((in.fields.x & Case::live) == 0)) != 0;
    }
    /// Fields of the lane's tokens, and of as many behind them.
    template <class Cursor> __device__ __forceinline__ uint2 fields(const Cursor &at) const {
        const uint2 *const from = field_words(at);
        uint2 pair = __ldg(from);
        if (shifted()) {
            const uint32_t by = static_cast<uint32_t>((at.t & (vec - 1)) * Case::field_bits);
            const uint32_t behind = __ldg(from + 1).y;
            pair.x = __funnelshift_r(pair.x, pair.y, by);
            pair.y = __funnelshift_r(pair.y, behind, by);
        }
        return pair;
    }
    __device__ __forceinline__ bool in_plain(int tile) const {
        return tile >= plain_from && tile < plain_to;
    }
    __device__ __forceinline__ bool masked() const {
        return Case::borders && (marked >> (2 * Case::group - 1 - phase) & 1u) != 0;
    }
    /// Of a tile that is not plain.
    __device__ __forceinline__ conv1d_bct_kind kind() const {
        if (Case::fields && a.marks) return conv1d_bct_kind::masked;
        return edges && !masked() ? conv1d_bct_kind::edge : conv1d_bct_kind::special;
    }
    /// Bits of the elements that are inside the row.
    template <class Cursor> __device__ __forceinline__ uint32_t inside(const Cursor &at) const {
        constexpr uint32_t all = (1u << vec) - 1u;
        int before = -at.t, left = length_of(at) - at.t;
        before = before < 0 ? 0 : before < vec ? before : vec;
        left = left < 0 ? 0 : left < vec ? left : vec;
        return (all << before) & ~(all << left) & all;
    }

    /// dx of a whole tile without a token.
    template <class Cursor> __device__ __forceinline__ void store_zeros(const Cursor &at) const {
        *reinterpret_cast<uint4 *>(at.dx + at.t) = make_uint4(0, 0, 0, 0);
    }
    template <conv1d_bct_kind Kind, class Cursor>
    __device__ __forceinline__ void store(const Cursor &at, const float (&v)[vec]) const {
        bits *const p = at.dx + at.t;
        const bool whole_tile = Kind == conv1d_bct_kind::plain    ? true
                                : Kind == conv1d_bct_kind::edge   ? false
                                : Kind == conv1d_bct_kind::masked ? in_plain(at.tile)
                                                                  : !checked(at.tile);
        if (whole_tile) {
            store_elements<Case::type, Case::log_vec>(p, 0, v, 1.0f);
            return;
        }
        if (Kind == conv1d_bct_kind::edge || aligned) {
            conv1d_store_part<Case::type>(p, inside(at), v);
        } else if constexpr (Kind != conv1d_bct_kind::edge) {
            const int length = length_of(at);
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
    }
};

} // namespace plait::impl::cuda
