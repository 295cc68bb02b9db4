// Which lane of conv1d.bwd_bct holds which tokens, and its launch data.
//
// 2^log_lanes lanes walk over tiles of 16 bytes a lane. Token of tile, lane and element:
//   tile << (log_lanes + log_vec)  +  lane << log_vec  +  element  -  shift
// with the shift that puts lanes of every row on multiples of 16 bytes. The other lanes of the warp
// take other walks of the same channel.
#pragma once

#include "lib/cuda/conv1d/bwd_marks_layout.h"

namespace plait::impl {

inline constexpr int conv1d_bwd_bct_longest = 32; ///< width

PLAIT_HD constexpr int conv1d_log_vec(scalar s) { return s == scalar::f32 ? 2 : 3; }

/// Elements from the multiple of 16 bytes before a row to its start, for a base on such a multiple.
PLAIT_HD constexpr int32_t conv1d_bwd_bct_shift(const conv1d_view &x, int log_vec, int64_t b,
                                                int64_t c) {
    // the low bits of a product are those of the product of low bits
    const uint32_t low = static_cast<uint32_t>(b) * static_cast<uint32_t>(x.b) +
                         static_cast<uint32_t>(c) * static_cast<uint32_t>(x.c);
    return static_cast<int32_t>(low & ((1u << log_vec) - 1u));
}

/// Taps of the instantiation that computes `width`: 2, 3 and 4 have their own.
PLAIT_HD constexpr int conv1d_bwd_taps(int64_t width) {
    return width >= 2 && width <= 4 ? static_cast<int>(width) : width <= 8 ? 8 : 32;
}

// ---- Shared memory: a ring of tiles for each warp
// ------------------------------------------------

/// Tiles that a warp asks for at once: 2 KiB of x and of dy that follow each other in memory. The
/// ring has two such groups: one that is read, one on its way.
inline constexpr int conv1d_bwd_bct_group = 4, conv1d_bwd_bct_stages = 2 * conv1d_bwd_bct_group;

/// Bytes before the first lane of a row: multiples of 16 that hold what taps reach.
PLAIT_HD constexpr int conv1d_bwd_bct_halo(int taps, int log_vec) {
    return 16 * ((taps - 1 + (1 << log_vec) - 1) >> log_vec);
}

/// Lanes that share a row, at least.
PLAIT_HD constexpr int conv1d_bwd_bct_fewest(int taps, int log_vec) {
    int log = 2;
    while ((1 << (log_vec + log)) < taps - 1 + (1 << log_vec)) ++log;
    return 1 << log;
}

/// Bytes of x, or dy, in a stage: 16 a lane, and a halo for each row.
/// A stage is x and dy; a warp's stages follow each other, then its ledger, then the next warp's.
PLAIT_HD constexpr int conv1d_bwd_bct_part(int taps, int log_vec) {
    return 512 + conv1d_bwd_bct_halo(taps, log_vec) * (32 / conv1d_bwd_bct_fewest(taps, log_vec));
}

/// Up to so many taps marks are fields.
inline constexpr int conv1d_bwd_bct_field_taps = 4;

/// Bytes of a stage, and of all that a warp has.
PLAIT_HD constexpr int conv1d_bwd_bct_stage(int taps, int log_vec) {
    return 2 * conv1d_bwd_bct_part(taps, log_vec);
}
inline constexpr int conv1d_bwd_bct_ledger = 48; ///< bytes
PLAIT_HD constexpr int conv1d_bwd_bct_ring(int taps, int log_vec) {
    return conv1d_bwd_bct_stages * conv1d_bwd_bct_stage(taps, log_vec) + conv1d_bwd_bct_ledger;
}

/// Where a lane has its 16 bytes of x in the first stage.
PLAIT_HD constexpr int conv1d_bwd_bct_slot(int warp, int ring, int halo, int warp_lane,
                                           int log_lanes) {
    return warp * ring + halo * ((warp_lane >> log_lanes) + 1) + 16 * warp_lane;
}

/// "bf16.k4.marks.silu", "f32.k8.marks": up to 4 taps the activation is of the variant.
inline conv1d_name conv1d_bwd_variant(scalar x, int taps, bool marks, bool silu) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(x));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    if (marks) conv1d_append(name, at, ".marks");
    if (taps <= 4) conv1d_append(name, at, silu ? ".silu" : ".none");
    return name;
}

/// "bf16.k8.exact": the width is 8, with SiLU and without marks.
inline conv1d_name conv1d_bwd_bct_variant(scalar x, int taps, bool marks, bool exact, bool silu) {
    conv1d_name name = conv1d_bwd_variant(x, taps, marks, silu);
    int at = 0;
    while (name.text[at] != 0) ++at;
    if (exact && taps > 4) conv1d_append(name, at, ".exact");
    return name;
}

/// Kernels without marks know no masks and no residual; states they do.
inline bool conv1d_bwd_bct_reads_marks(const conv1d_problem &p) {
    return p.varlen || p.seq_idx.used();
}
inline bool conv1d_bwd_bct_marked(const conv1d_problem &p) {
    return conv1d_bwd_bct_reads_marks(p) || p.residual;
}
/// The instantiation has room for fields: of the marked ones those of few taps.
PLAIT_HD constexpr bool conv1d_bwd_bct_takes_fields(bool marked, int taps) {
    return marked && taps <= conv1d_bwd_bct_field_taps;
}
inline bool conv1d_bwd_bct_has_fields(const conv1d_problem &p) {
    return conv1d_bwd_bct_takes_fields(conv1d_bwd_bct_reads_marks(p), conv1d_bwd_taps(p.width));
}
/// conv1d.bwd_bct_fix follows: what fields do not say, and states beside marks.
inline bool conv1d_bwd_bct_fixes(const conv1d_problem &p) {
    return conv1d_bwd_bct_reads_marks(p) &&
           (!conv1d_bwd_bct_has_fields(p) || p.state_in.used() || p.dstate_out.used());
}
/// Pairs for all lanes of all tiles of all rows, those that are not there too: one in front of the
/// row, where a lane's first token may be, and one behind the last lane's.
inline void conv1d_bwd_bct_fill_marks(const conv1d_problem &p, conv1d_bwd_args *a) {
    a->fields = 0;
    a->field_pairs = 0;
    a->field_rows = 0;
    a->borders_at = 0;
    a->flags_at = 0;
    if (!conv1d_bwd_bct_has_fields(p)) return;
    a->fields = 1 << conv1d_log_vec(p.x.type);
    a->field_pairs = static_cast<int32_t>((a->tiles << a->log_lanes) + 2);
    a->field_rows = a->parts << (5 - a->log_lanes);
    const int64_t fields = a->field_rows * a->field_pairs * 8;
    const bool fixes = conv1d_bwd_bct_fixes(p);
    a->borders_at = fixes ? fields : -1;
    a->flags_at = fields + (fixes ? conv1d_border_bytes(p.batch, p.length) : 0);
}
inline int64_t conv1d_bwd_bct_marks_bytes(const conv1d_problem &p, const conv1d_bwd_args &a) {
    return a.fields ? a.flags_at + conv1d_mark_flags(a) : conv1d_border_bytes(p.batch, p.length);
}
/// Blocks of conv1d.bwd_marks.
inline int64_t conv1d_bwd_bct_mark_grid(const conv1d_problem &p, const conv1d_bwd_args &a) {
    return conv1d_grid(32 * ((a.fields ? a.field_rows : p.batch) *
                                 conv1d_mark_pieces(p.length, a.fields, a.field_pairs) +
                             conv1d_mark_flags(a)),
                       conv1d_bwd_threads);
}

// ---- Who walks what
// --------------------------------------------------------------------------------
//
// The tiles of a channel are numbered as they are walked: groups of rows that share a warp, in each
// the last tile first. a.slots items divide them, a.tiles_per_walk tiles each; an item has one sum
// of dw, and where a channel is one item no partial sums are needed. A pass is a block's run of
// items; its warps share the tiles evenly, whatever rows, items and channels they are of.

/// The width is that of the instantiation, whose activation is known at compile time.
inline bool conv1d_bwd_bct_exact(const conv1d_problem &p) {
    return !conv1d_bwd_bct_marked(p) &&
           (conv1d_bwd_taps(p.width) == p.width && (p.width <= 4 || (p.width == 8 && p.silu)));
}

/// Warps of a block, one of which fills an SM, as registers allow.
PLAIT_HD constexpr int conv1d_bwd_bct_warps(int taps) { return taps > 8 ? 8 : taps > 4 ? 16 : 20; }
inline constexpr int conv1d_bwd_bct_small_warps = 4;
inline constexpr int conv1d_bwd_bct_most_items = 64; ///< of a pass
/// Tiles of an item, at most, so that those of a pass are counted in 32 bits.
inline constexpr int64_t conv1d_bwd_bct_most_tiles = 1 << 20;
/// Tiles that an SM moves while conv1d.bwd_reduce is launched and runs, and those whose time an
/// item takes beside its own.
inline constexpr int conv1d_bwd_bct_reduce_tiles = 52, conv1d_bwd_bct_item_tiles = 2;

/// Items of a pass.
struct conv1d_bwd_pass {
    int64_t item; ///< the first
    int32_t items;
};

PLAIT_HD constexpr conv1d_bwd_pass conv1d_bwd_bct_pass(const conv1d_bwd_args &a, int64_t pass) {
    if (pass < a.large) return {pass * a.rows_per_walk, static_cast<int32_t>(a.rows_per_walk)};
    // the first of the others have one more where these do not divide the rest
    const int64_t from = a.large * a.rows_per_walk, n = pass - a.large;
    const int64_t each = (a.items - from) / (a.walks - a.large);
    const int64_t more = a.items - from - each * (a.walks - a.large);
    return {from + n * each + (n < more ? n : more),
            static_cast<int32_t>(each + (n < more ? 1 : 0))};
}

/// Tiles of a channel.
PLAIT_HD constexpr int64_t conv1d_bwd_bct_channel_tiles(const conv1d_bwd_args &a) {
    return a.parts * a.tiles;
}

/// Shared memory of a block: its rings, behind them sums of warps in items: a warp and an item meet
/// at the sum warp + item, which no other two do that meet.
PLAIT_HD constexpr int conv1d_bwd_bct_sums(int warps, int items) { return warps + items - 1; }
PLAIT_HD constexpr int conv1d_bwd_bct_smem_bytes(int warps, int ring, int taps) {
    return warps * ring + conv1d_bwd_bct_sums(warps, conv1d_bwd_bct_most_items) * (taps + 1) * 4;
}

/// Divides the tiles of channels into items: as few as fill `sms` blocks evenly.
inline void conv1d_bwd_bct_divide(conv1d_bwd_args *a, int64_t sms) {
    const int64_t tiles = conv1d_bwd_bct_channel_tiles(*a);
    double best = 1e300;
    // many channels: the last of them are dealt out evenly enough
    const int64_t most_slots = a->channels >= 16 * sms ? 1 : 2 * sms;
    for (int64_t s = 1; s <= most_slots; ++s) {
        const int64_t each = conv1d_ceil_div(tiles, s);
        if (s > 1 && each < 8) break;
        const int64_t most =
            conv1d_ceil_div(a->channels * conv1d_ceil_div(tiles, each), sms); // of a block
        const double cost =
            static_cast<double>(most) * static_cast<double>(each + conv1d_bwd_bct_item_tiles) +
            (s > 1 ? conv1d_bwd_bct_reduce_tiles + static_cast<double>(s) / 4 : 0.0);
        if (cost < best) best = cost, a->tiles_per_walk = each;
    }
    if (a->tiles_per_walk > conv1d_bwd_bct_most_tiles)
        a->tiles_per_walk = conv1d_bwd_bct_most_tiles;
    a->slots = conv1d_ceil_div(tiles, a->tiles_per_walk);
    a->items = a->channels * a->slots;
}

/// Blocks and their passes. One block for each SM, which shares out its items once: the least work.
/// But SMs are not equally fast; where there are many items, small blocks that an SM takes when one
/// of its blocks is done gain more than their beginnings and ends cost. Returns warps of a block.
inline int conv1d_bwd_bct_deal(conv1d_bwd_args *a, const conv1d_problem &p, int64_t sms,
                               int warps) {
    constexpr int small = conv1d_bwd_bct_small_warps;
    const int64_t at_once = sms * (warps / small);
    int64_t items = conv1d_ceil_div(96, a->tiles_per_walk); // of a pass
    if (items > conv1d_bwd_bct_most_items) items = conv1d_bwd_bct_most_items;
    a->large = 0;
    a->rows_per_walk = 0;
    if (conv1d_bwd_taps(p.width) <= 4 && a->slots == 1) {
        if (a->items / items >= 5 * at_once) {
            a->walks = conv1d_ceil_div(a->items, items);
            return small;
        }
        if (a->log_lanes <= 3 && a->tiles_per_walk >= 64 && a->items >= 5 * at_once &&
            a->items <= 2 * at_once * conv1d_bwd_bct_most_items) {
            // half of the items in large passes
            a->rows_per_walk = a->items / (2 * at_once);
            a->large = at_once;
            a->walks = a->large + a->items - a->large * a->rows_per_walk;
            return small;
        }
    }
    const int64_t passes = conv1d_ceil_div(a->items, sms * conv1d_bwd_bct_most_items) * sms;
    a->walks = passes < a->items ? passes : a->items;
    const int64_t tiles = conv1d_ceil_div(a->items, a->walks) * a->tiles_per_walk;
    return warps < tiles ? warps : static_cast<int>(tiles);
}

/// Elements from the lowest to behind the highest of a tensor, from its base.
inline void conv1d_bwd_reach(const conv1d_problem &p, const conv1d_view &v, int64_t *begin,
                             int64_t *end) {
    *begin = 0;
    *end = 1;
    const int64_t far[] = {(p.batch - 1) * v.b, (p.channels - 1) * v.c, (p.length - 1) * v.t};
    for (const int64_t one : far) *(one < 0 ? begin : end) += one;
}

inline conv1d_launch conv1d_bwd_bct_fill(const conv1d_problem &p, int sms, int64_t smem_per_block,
                                         conv1d_bwd_args *a) {
    const int log_vec = conv1d_log_vec(p.x.type), vec = 1 << log_vec;
    const int taps = conv1d_bwd_taps(p.width);
    const bool even = p.x.b % vec == 0 && p.x.c % vec == 0;
    const int64_t tokens = p.length + (even ? 0 : vec - 1);
    // Few lanes for a row leave few of them idle at its end and have several rows' ends in a tile;
    // many read longer pieces of memory. At least as many as taps reach over, and 8 for 128 bytes;
    // all where the batch has no rows for the others. Fitted to an H200: an end costs 0.6 tiles
    // where rows begin anywhere, 0.25 for both where they are aligned.
    int least = 3;
    while ((vec << least) < taps - 1 + vec) ++least;
    while (least > 2 && (vec << (least - 1)) >= tokens && (vec << (least - 1)) >= taps - 1 + vec)
        --least;
    a->log_lanes = 5;
    double best = 1e300;
    constexpr double shares[] = {1, 1, 1.5, 1.14, 1.07, 1};
    for (int log = 5; log >= least; --log) {
        if (p.batch < 32 >> log) break;
        const int64_t tile = int64_t{vec} << log;
        const double tiles =
            static_cast<double>(conv1d_ceil_div(tokens, tile)) + (even ? 0.25 : 1.2);
        // rows that are not there, in the last group, make all tests of bounds needed
        const double work = tiles * static_cast<double>(tile) * shares[log] *
                            (p.batch % (32 >> log) != 0 ? 1.5 : 1.0);
        if (work < best) best = work, a->log_lanes = log;
    }
    a->tile = int64_t{vec} << a->log_lanes;
    a->tiles = conv1d_ceil_div(tokens, a->tile);
    a->parts = conv1d_ceil_div(p.batch, 32 >> a->log_lanes);
    const bool marked = conv1d_bwd_bct_marked(p);
    conv1d_bwd_bct_divide(a, sms);
    int warps = conv1d_bwd_bct_deal(a, p, sms, conv1d_bwd_bct_warps(taps));
    conv1d_bwd_bct_fill_marks(p, a);
    const int ring = conv1d_bwd_bct_ring(taps, log_vec);
    while (warps > 1 && conv1d_bwd_bct_smem_bytes(warps, ring, taps) > smem_per_block) --warps;
    conv1d_bwd_reach(p, p.x, &a->x_begin, &a->x_end);
    conv1d_bwd_reach(p, p.dy, &a->dy_begin, &a->dy_end);
    // small blocks walk one pass each
    const int64_t most = warps == conv1d_bwd_bct_small_warps ? conv1d_most_blocks : sms;
    conv1d_launch out{{},
                      32 * warps,
                      a->walks < most ? a->walks : most,
                      conv1d_bwd_bct_smem_bytes(warps, ring, taps)};
    const conv1d_name name =
        conv1d_bwd_bct_variant(p.x.type, taps, marked, conv1d_bwd_bct_exact(p), p.silu);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

// ---- conv1d.bwd_bct_fix
// --------------------------------------------------------------------------

inline constexpr int conv1d_bct_fix_threads = 128; ///< and channels of a block
inline constexpr int conv1d_bct_fix_each = 4;      ///< tokens that a thread looks at
inline constexpr int conv1d_bct_fix_tokens = conv1d_bct_fix_threads * conv1d_bct_fix_each;

struct conv1d_bct_fix_args : conv1d_bwd_args {
    int64_t chunks; ///< pieces of conv1d_bct_fix_tokens tokens, of a row
    int64_t groups; ///< of channels
    int64_t slices; ///< of the chunks of all rows: partial sums behind those of conv1d.bwd_bct
};

/// Slices: as few as fill a device with blocks, so that there are few sums; depends on the problem
/// alone.
inline int64_t conv1d_bwd_bct_slices(const conv1d_problem &p) {
    const int64_t chunks = p.batch * conv1d_ceil_div(p.length, conv1d_bct_fix_tokens);
    const int64_t wanted =
        conv1d_ceil_div(1024, conv1d_ceil_div(p.channels, conv1d_bct_fix_threads));
    return chunks < wanted ? chunks : wanted;
}

/// Taps of the instantiation: up to 4 and up to 8 in registers.
PLAIT_HD constexpr int conv1d_bwd_fix_taps(int64_t width) {
    return width <= 4 ? 4 : width <= 8 ? 8 : 32;
}

/// "bf16.k4".
inline conv1d_name conv1d_bwd_fix_variant(scalar x, int taps) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(x));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    return name;
}

inline conv1d_launch conv1d_bwd_bct_fix_fill(const conv1d_problem &p, conv1d_bct_fix_args *a) {
    a->chunks = conv1d_ceil_div(p.length, conv1d_bct_fix_tokens);
    a->groups = conv1d_ceil_div(p.channels, conv1d_bct_fix_threads);
    a->slices = conv1d_bwd_bct_slices(p);
    const int64_t blocks = a->slices * a->groups;
    conv1d_launch out{
        {}, conv1d_bct_fix_threads, blocks < conv1d_most_blocks ? blocks : conv1d_most_blocks, 0};
    const conv1d_name name = conv1d_bwd_fix_variant(p.x.type, conv1d_bwd_fix_taps(p.width));
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
