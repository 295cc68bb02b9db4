// Which thread of conv1d.bwd_btc holds which channels and tokens, its ring, and its launch data.
//
// A lane takes 2^log_vec channels side by side, 2^log_lanes lanes a group of channels; the other
// lanes of a block take other walks of that group, which share one partial sum. Tile i of a row is
// tokens i * taps .. i * taps + taps - 1. Rows are divided into parts, of which a walk takes every
// n-th of all rows.
//
// Ring: slot, warp, then taps tokens of x and taps of dy, then the warp's lanes, each with a cell.
// Lanes copy chunks of 16 bytes of several tokens, and read their cells: a warp's copies are its
// own. Loose: channels that lie on no multiple of a cell. Copied are the aligned chunks of a cell's
// size that hold a group's channels, read is across two of them; so that the chunks of 2^log_lanes
// lanes suffice at any offset, the last of them has no channels.
#pragma once

#include "lib/cuda/conv1d/bwd_bct_layout.h"

#include <initializer_list>

namespace plait::impl {

inline constexpr int conv1d_bwd_btc_threads = 128;
inline constexpr int conv1d_bwd_btc_longest = 8; ///< width

/// What conv1d.bwd_btc gets beside what all kernels of the backward get.
struct conv1d_btc_args : conv1d_bwd_args {
    conv1d_divisor groups;       ///< of channels
    int32_t group;               ///< channels of a group
    int32_t head;                ///< tokens at the start of a row that another kernel computes
    conv1d_divisor parts;        ///< of a row
    int32_t part;                ///< tiles of one, but of the last of a row
    int32_t all_parts;           ///< of all rows
    int64_t x_hop, dy_hop;       ///< bytes from a chunk to that of the next copy
    uint32_t from_hops;          ///< loose: the same of x and dy (high half), modulo a cell
    int64_t dx_hop;              ///< bytes from a token to the one before it
    int64_t x_step, dy_step;     ///< bytes from a token to the next
    int32_t tile_low, tile_high; ///< tiles that can be copied without tests
    // conv1d.bwd_btc_fix
    int32_t tails;      ///< tokens at the end of a sequence, which the last state's gradient meets
    int32_t entries_of; ///< entries of a sequence's first state that have a gradient
    int32_t slices;     ///< of the sequences: partial sums of their first tokens
    int32_t blocks;     ///< for one slice
};

/// log2 of the channels of a lane: windows, taps and their sums are in registers for each.
PLAIT_HD constexpr int conv1d_bwd_btc_log_vec(scalar x, int taps) {
    return x == scalar::f32 || taps > 4 ? 1 : 2;
}

/// Bytes of a token in the ring, for a lane.
PLAIT_HD constexpr int conv1d_bwd_btc_cell(scalar x, int taps) {
    return (x == scalar::f32 ? 4 : 2) << conv1d_bwd_btc_log_vec(x, taps);
}

/// Bytes of a copy. A copy's tokens are of one tile.
PLAIT_HD constexpr int conv1d_bwd_btc_chunk(scalar x, int taps, bool loose) {
    const int cell = conv1d_bwd_btc_cell(x, taps);
    return loose || taps % (16 / cell) != 0 ? cell : 16;
}

PLAIT_HD constexpr int conv1d_bwd_btc_slot(scalar x, int taps) {
    return 2 * taps * conv1d_bwd_btc_threads * conv1d_bwd_btc_cell(x, taps);
}

/// What a thread copies, and reads, in each slot.
struct conv1d_btc_spot {
    int lane; ///< of the walk, which has last + 1
    int last;
    int ahead; ///< lanes of the walk in warps before
    int token; ///< of those of a copy
    int chunk; ///< bytes from the group's first channel to the chunk it copies
    int put;   ///< where that goes, of the tile's first copy of x
    int get;   ///< its cell of the first token of x
};

/// Tokens lie 32 cells apart, dy `taps` tokens behind x.
PLAIT_HD constexpr conv1d_btc_spot conv1d_btc_spot_of(int thread, int log_lanes, int taps, int cell,
                                                      int chunk) {
    conv1d_btc_spot s{};
    s.last = (1 << (log_lanes < 5 ? log_lanes : 5)) - 1;
    s.lane = thread & s.last;
    s.ahead = thread & ((1 << log_lanes) - 1) & ~31;
    int log_chunks = log_lanes < 5 ? log_lanes : 5; // of a token; chunk / cell is 1, 2 or 4
    for (int each = chunk / cell; each > 1; each /= 2) --log_chunks;
    s.token = s.lane >> log_chunks;
    s.chunk = (s.lane & ((1 << log_chunks) - 1)) * chunk;
    const int warp = (thread >> 5) * 2 * taps * 32 * cell, first = thread & 31 & ~s.last;
    s.put = warp + s.token * 32 * cell + first * cell + s.chunk;
    s.get = warp + (thread & 31) * cell;
    return s;
}

/// Loose stores: lane i has the chunk that begins h elements before its channels, h < vec. Byte h:
/// bit 0: the chunk is the warp's alone; else of its word w, of `each` elements, bit 1 + 3 w: all
/// are, 2 + 3 w: the lower one, 3 + 3 w: the upper one.
PLAIT_HD constexpr uint32_t conv1d_bwd_btc_alone(int lane, int left, int vec, int each) {
    uint32_t out = 0;
    for (int h = 0; h < vec; ++h) {
        const int first = lane * vec - h;
        uint32_t byte = 0;
        if (first >= 0 && first + vec <= left) {
            byte = 1;
        } else {
            for (int w = 0; w < vec / each; ++w) {
                const int low = first + w * each, high = low + each - 1;
                const bool has_low = low >= 0 && low < left, has_high = high >= 0 && high < left;
                if (has_low && has_high) byte |= 2u << 3 * w;
                if (has_low && !has_high) byte |= 4u << 3 * w;
                if (!has_low && has_high) byte |= 8u << 3 * w;
            }
        }
        out |= byte << (8 * h);
    }
    return out;
}

/// Bytes from a cell to the first channel of token i of a tile that begins with one. Strides are
/// `residue` elements modulo a cell of four.
PLAIT_HD constexpr uint32_t conv1d_btc_from_of(int residue, int i) {
    return 2u * static_cast<uint32_t>((i * residue) & 3);
}

/// Slots: 16 to 24 KiB are on their way into each block.
PLAIT_HD constexpr int conv1d_bwd_btc_depth(scalar x, int taps) {
    return 40960 / conv1d_bwd_btc_slot(x, taps) < 4 ? 40960 / conv1d_bwd_btc_slot(x, taps) : 4;
}

/// Parts of a walk: first, first + step, ... below limit. The kernel counts in first.
struct conv1d_btc_walk {
    int first, step, limit;
};

PLAIT_HD constexpr conv1d_btc_walk conv1d_btc_walk_of(const conv1d_btc_args &a, int64_t walk) {
    if (walk >= a.walks) return {0, 1, 0};
    return {static_cast<int>(walk), static_cast<int>(a.walks), a.all_parts};
}

/// Tiles of a part.
struct conv1d_btc_tiles {
    int row, low, high;
};

PLAIT_HD constexpr conv1d_btc_tiles conv1d_btc_tiles_of(const conv1d_btc_args &a, int part) {
    const int row = static_cast<int>(conv1d_quotient(static_cast<uint32_t>(part), a.parts));
    const int low = (part - row * static_cast<int>(a.parts.d)) * a.part;
    const int tiles = static_cast<int>(a.tiles);
    return {row, low, low + a.part < tiles ? low + a.part : tiles};
}

/// The tile that a part begins with: for x behind the tile that is behind it.
PLAIT_HD constexpr int conv1d_btc_lead_of(const conv1d_btc_args &a, const conv1d_btc_tiles &t) {
    return t.high < a.tiles ? t.high + 1 : static_cast<int>(a.tiles);
}

/// What a thread keeps in shared memory.
struct conv1d_btc_range {
    int64_t c0; ///< the first channel of the warp's
    conv1d_btc_walk walk;
    uint32_t alone; ///< conv1d_bwd_btc_alone
};

/// Behind the ring; the sums of dw and dbias lie where the ring was.
PLAIT_HD constexpr int conv1d_bwd_btc_ranges_at(scalar x, int taps) {
    const int ring = conv1d_bwd_btc_depth(x, taps) * conv1d_bwd_btc_slot(x, taps);
    const int sums = ((taps + 1) * conv1d_bwd_btc_threads << conv1d_bwd_btc_log_vec(x, taps)) * 4;
    return ring > sums ? ring : sums;
}

PLAIT_HD constexpr int conv1d_bwd_btc_smem(scalar x, int taps) {
    return conv1d_bwd_btc_ranges_at(x, taps) +
           conv1d_bwd_btc_threads * static_cast<int>(sizeof(conv1d_btc_range));
}

/// Of a multiprocessor, by registers.
PLAIT_HD constexpr int conv1d_bwd_btc_blocks(scalar x, int taps, bool loose) {
    if (loose && (x == scalar::f32 ? taps > 4 : x == scalar::f16 && taps >= 4)) return 3;
    return conv1d_bwd_btc_log_vec(x, taps) == 2 || taps > 4 || loose ? 4 : 5;
}

/// "bf16.k4.silu.v4": the last part is the number of channels of a lane; .l4 if loose, .r1.l4 with
/// residue 1.
inline conv1d_name conv1d_bwd_btc_variant(scalar x, int taps, bool silu, bool loose,
                                          int residue = 0) {
    conv1d_name name = conv1d_bwd_variant(x, taps, false, silu);
    int at = 0;
    while (name.text[at] != 0) ++at;
    if (taps > 4) conv1d_append(name, at, silu ? ".silu" : ".none");
    if (residue != 0) conv1d_append(name, at, ".r");
    if (residue != 0) conv1d_append(name, at, residue);
    conv1d_append(name, at, loose ? ".l" : ".v");
    conv1d_append(name, at, 1 << conv1d_bwd_btc_log_vec(x, taps));
    return name;
}

/// Whether all vectors of `vec` channels of a tensor lie on multiples of their size.
inline bool conv1d_bwd_btc_aligned(const conv1d_view &v, int64_t vec) {
    return !v.used() || (v.align >= vec * scalar_bytes(v.type) && v.b % vec == 0 && v.t % vec == 0);
}

/// Rows of channels that are no whole vectors of 16 bytes.
inline bool conv1d_bwd_btc_loose(const conv1d_problem &p) {
    const int wide = 16 / scalar_bytes(p.x.type);
    return p.channels % wide != 0 || !conv1d_bwd_btc_aligned(p.x, wide) ||
           !conv1d_bwd_btc_aligned(p.dy, wide) || !conv1d_bwd_btc_aligned(p.dx, wide);
}

/// The residue of a loose problem with an instantiation for it, else 0: odd strides, alike in all
/// tensors, of which every row begins at a multiple of a cell.
inline int conv1d_bwd_btc_residue(const conv1d_problem &p) {
    if (!conv1d_is_half(p.x.type) || p.width != 4 || !p.silu || p.residual) return 0;
    const int residue = static_cast<int>(p.x.t & 3);
    for (const conv1d_view *v : {&p.x, &p.dy, &p.dx})
        if (v->used() && (v->align < 8 || (v->t & 3) != residue || (p.batch > 1 && v->b % 4 != 0)))
            return 0;
    return residue % 2 != 0 ? residue : 0;
}

/// Marks of conv1d.bwd_btc_marks: 16 bits for each token, back in the low half; behind them, for
/// each row, a bit for each tile that is 1 where the mark of one of its tokens is not full.
inline bool conv1d_bwd_btc_reads_marks(const conv1d_problem &p) {
    return p.varlen || p.seq_idx.used();
}
constexpr int64_t conv1d_bwd_btc_flags_at(int64_t batch, int64_t length) {
    return (2 * batch * length + 15) / 16 * 16;
}

inline constexpr int conv1d_bwd_btc_most_mark_threads = 32 * conv1d_bwd_btc_longest;

/// conv1d.bwd_btc_marks: a thread a token of 32 tiles.
inline conv1d_launch conv1d_bwd_btc_mark_launch(int64_t batch, int64_t tiles, int taps) {
    return {"all", 32 * taps, conv1d_grid(batch * conv1d_ceil_div(tiles, 32), 1), 4 * taps};
}

/// conv1d.bwd_btc computes again what states enter: the first tokens of sequences with a first
/// state, the last ones that the gradient of a last state meets, the gradient of the first state.
inline bool conv1d_bwd_btc_fixes(const conv1d_problem &p) {
    return p.sequences > 0 && p.channels > 0 &&
           (p.state_in.used() || p.dstate_out.used() || p.dstate_in.used());
}

/// Slices of the sequences, each a partial sum behind those of the main kernel.
inline int64_t conv1d_bwd_btc_slices(const conv1d_problem &p) {
    if (!p.state_in.used() || p.width < 2 || p.sequences < 1) return 0;
    return p.sequences < 64 ? conv1d_ceil_div(p.sequences, 2) : 32;
}

inline conv1d_launch conv1d_bwd_btc_fix_fill(const conv1d_problem &p, bool sums,
                                             conv1d_btc_args *a) {
    a->head = p.state_in.used() ? static_cast<int32_t>(p.width - 1) : 0;
    const int64_t most = INT32_MAX;
    a->tails = p.dstate_out.used() ? static_cast<int32_t>(p.entries < most ? p.entries : most) : 0;
    a->entries_of =
        p.dstate_in.used() ? static_cast<int32_t>(p.entries < most ? p.entries : most) : 0;
    a->slices = sums ? static_cast<int32_t>(conv1d_bwd_btc_slices(p)) : 0;
    a->blocks = static_cast<int32_t>(conv1d_ceil_div(p.channels, conv1d_bwd_threads));
    const int64_t elements = int64_t{a->head} + a->tails + a->entries_of;
    const int64_t grid = int64_t{a->slices} * a->blocks +
                         conv1d_grid(p.sequences * elements * p.channels, conv1d_bwd_threads);
    conv1d_launch out{
        {}, conv1d_bwd_threads, grid < conv1d_most_blocks ? grid : conv1d_most_blocks, 0};
    const conv1d_name name = conv1d_bwd_fix_variant(p.x.type, conv1d_bwd_fix_taps(p.width));
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

/// `parts` of each row, for `slots` slots.
inline void conv1d_btc_set_walks(conv1d_btc_args *a, int64_t rows, int64_t parts, int64_t slots,
                                 int64_t per_slot) {
    a->part = static_cast<int32_t>(conv1d_ceil_div(a->tiles, parts));
    parts = conv1d_ceil_div(a->tiles, a->part);
    a->parts = conv1d_divisor_of(parts);
    a->all_parts = static_cast<int32_t>(rows * parts);
    a->slots = slots;
    a->walks = slots * per_slot;
}

/// As many blocks as run at a time, or twice as many, or fewer so that no walk is below `least`
/// tiles; and parts of rows, few for each walk. A part costs `more` tiles beside its own, and what
/// blocks that ended earlier leave idle is a share of the last round.
inline void conv1d_bwd_btc_divide(conv1d_btc_args *a, int64_t groups, int64_t rows,
                                  int64_t resident, int64_t per_slot) {
    constexpr int64_t least = 4, most = 8;
    constexpr double more = 2, idle = 0.08;
    const int64_t total = rows * a->tiles;
    double best = 1e300;
    int64_t best_parts = 1, best_slots = 1;
    for (int64_t rounds = 1; rounds <= 2; ++rounds) {
        int64_t slots = rounds * resident / groups;
        if (slots * per_slot * least > total) slots = total / (per_slot * least);
        if (slots < 1) slots = 1;
        const int64_t walks = slots * per_slot;
        for (int64_t i = 1; i <= 2 * most; ++i) {
            // a few for each row, or a few for each walk
            int64_t parts = i <= most ? i : (i - most) * walks / rows;
            if (parts < 1) parts = 1;
            if (parts > a->tiles) parts = a->tiles;
            if (parts > INT32_MAX / rows) parts = INT32_MAX / rows;
            const int64_t part = conv1d_ceil_div(a->tiles, parts);
            const int64_t real = conv1d_ceil_div(a->tiles, part);
            const double blocks = static_cast<double>(conv1d_ceil_div(groups * slots, resident));
            const double time = static_cast<double>(conv1d_ceil_div(rows * real, walks)) *
                                (static_cast<double>(part) + more) * blocks * (1 + idle / blocks);
            if (time < best) best = time, best_parts = parts, best_slots = slots;
        }
    }
    conv1d_btc_set_walks(a, rows, best_parts, best_slots, per_slot);
    a->items = groups * best_slots;
}

inline conv1d_launch conv1d_bwd_btc_fill(const conv1d_problem &p, int sms, conv1d_btc_args *a) {
    const int taps = conv1d_bwd_taps(p.width), size = scalar_bytes(p.x.type);
    const int log_vec = conv1d_bwd_btc_log_vec(p.x.type, taps), vec = 1 << log_vec;
    const bool loose = conv1d_bwd_btc_loose(p);
    const int cell = conv1d_bwd_btc_cell(p.x.type, taps);
    const int chunk = conv1d_bwd_btc_chunk(p.x.type, taps, loose);
    const int spare = loose ? 1 : 0; // lanes without channels
    // loose lanes exchange what they store: walks are whole warps
    a->log_lanes = loose ? 5 : 1;
    while (a->log_lanes < 5 && ((int64_t{1} << a->log_lanes) - spare) * vec < p.channels)
        ++a->log_lanes;
    while ((cell << a->log_lanes) < chunk) ++a->log_lanes;
    a->group = ((1 << a->log_lanes) - spare) * vec;
    const int64_t groups = conv1d_ceil_div(p.channels, a->group);
    a->groups = conv1d_divisor_of(groups);
    a->tile = taps;
    a->tiles = conv1d_ceil_div(p.length, a->tile);
    a->flags_at = conv1d_bwd_btc_flags_at(p.batch, p.length);
    a->head =
        p.state_in.used() && !conv1d_bwd_btc_reads_marks(p) ? static_cast<int32_t>(p.width - 1) : 0;
    a->x_step = p.x.t * size;
    a->dy_step = p.dy.t * size;
    a->x_hop = -(p.x.t * size) * (chunk / cell);
    a->dy_hop = -(p.dy.t * size) * (chunk / cell);
    a->dx_hop = -p.dx.t * size;
    const auto low = [cell](int64_t hop) { return static_cast<uint32_t>(hop & (cell - 1)); };
    a->from_hops = low(-a->x_step) | low(-a->dy_step) << 16;
    conv1d_bwd_reach(p, p.x, &a->x_begin, &a->x_end);
    conv1d_bwd_reach(p, p.dy, &a->dy_begin, &a->dy_end);
    // Loose chunks reach beyond a group's channels, by less than what `margin` tokens take.
    int64_t margin = 0;
    if (loose) {
        const int64_t reach = (cell << a->log_lanes) + 8;
        const int64_t step = a->x_step < a->dy_step ? a->x_step : a->dy_step;
        const bool forward = step > 0 && p.x.b >= 0 && p.dy.b >= 0;
        margin = forward ? conv1d_ceil_div(reach, step) : p.length;
    }
    // tile i reads x from token i * taps - (taps - 1) on, and tokens before i * taps + taps
    a->tile_low = static_cast<int32_t>(conv1d_ceil_div(margin + taps - 1, taps));
    a->tile_high = static_cast<int32_t>(p.length > margin ? (p.length - margin) / taps : 0);
    conv1d_bwd_btc_divide(a, groups, p.batch,
                          int64_t{sms} * conv1d_bwd_btc_blocks(p.x.type, taps, loose),
                          conv1d_bwd_btc_threads >> a->log_lanes);
    conv1d_launch out{{},
                      conv1d_bwd_btc_threads,
                      a->items < conv1d_most_blocks ? a->items : conv1d_most_blocks,
                      conv1d_bwd_btc_smem(p.x.type, taps)};
    const conv1d_name name = conv1d_bwd_btc_variant(p.x.type, taps, p.silu, loose,
                                                    loose ? conv1d_bwd_btc_residue(p) : 0);
    for (int i = 0; i < 32; ++i) out.variant[i] = name.text[i];
    return out;
}

} // namespace plait::impl
