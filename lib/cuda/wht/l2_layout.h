// Address maps, tickets and launch data of wht.l2: n = 2^log_n = 2^log_tile * 2^log_m.
//
// A row is 2^log_m tiles. Pass 1 transforms the log_tile low bits, its tile is contiguous; pass 2
// the log_m bits above, its tile is 2^log_m runs of contiguous elements, one in each tile of
// pass 1. Between the passes and between phases everything moves as chunks of 16 bytes; a thread
// holds 16 of them, so that a phase transforms four bits of the chunk's number. Pass 1: top bits
// and those within a chunk, a block-wide exchange, the lowest four, an exchange within the warp,
// the others. Pass 2: row bits from the top, with a block-wide exchange where there are more than
// four.
#pragma once

#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

struct wht_l2_args {
    const void *x;
    void *y;              ///< may equal x; then the row strides are equal
    uint32_t *counters;   ///< wht_l2_counters of them, zero at the start
    void *mid;            ///< what pass 1 leaves for pass 2; null: y
    int64_t x_row_stride; ///< elements, multiples of 16 bytes
    int64_t y_row_stride;
    int32_t rows;
    int32_t slots; ///< rows of mid; row r has slot r % slots
    int32_t lead;  ///< tickets of pass 1 before the first of pass 2, see wht_l2_lead
    double scale;
};

struct wht_l2_reset_args {
    uint32_t *counters;
    int64_t count;
};

constexpr int wht_l2_reset_threads = 256;

struct wht_l2_pass {
    tile_layout tile;
    int log_run; ///< contiguous elements of a tile
};

struct wht_l2_config {
    scalar x;   ///< and y
    scalar mid; ///< between the passes: the accumulator's type, so that only the end rounds
    int log_n, log_tile, log_m;
    wht_l2_pass pass[2];
    int blocks_per_sm;
};

PLAIT_HD constexpr wht_l2_pass wht_l2_pass_of(scalar mid, int log_tile, int log_m, int pass) {
    const int v = wht_log_vec(mid), t = log_tile;
    const uint32_t low = bit_range(0, v);
    wht_l2_pass p{};
    p.log_run = pass == 0 ? t : t - log_m;
    p.tile.log_tile = t;
    p.tile.log_items = v + 4;
    p.tile.log_vec_x = p.tile.log_vec_y = v;
    // a chunk for every 16: lanes on chunk bits 4, 5, 6 reach all banks, as those on 0, 1, 2 do
    p.tile.pad_shift[0] = v + 4;
    p.tile.pad_words[0] = 1 << v;
    p.tile.pad_shift[1] = 31;
    tile_phase *phase = p.tile.phase;
    phase[0].regs = low | bit_range(t - 4, t);
    if (pass == 0) {
        p.tile.phases = 3;
        p.tile.order_from = t - 4;
        phase[0].reg_stages = phase[0].regs;
        phase[1].regs = low | bit_range(v, v + 4);
        phase[1].reg_stages = bit_range(v, v + 4);
        phase[1].exchange = tile_exchange::block;
        phase[2].regs = low | bit_range(v + 4, v + 8);
        phase[2].reg_stages = bit_range(v + 4, t - 4);
        phase[2].exchange = tile_exchange::warp;
    } else {
        const uint32_t rows = bit_range(t - log_m, t);
        p.tile.phases = log_m > 4 ? 2 : 1;
        phase[0].reg_stages = phase[0].regs & rows;
        phase[1].regs = low | bit_range(t - 8, t - 4);
        phase[1].reg_stages = phase[1].regs & rows;
        phase[1].exchange = tile_exchange::block;
    }
    return p;
}

/// 2^18 to 2^24 bytes of accumulators that no block holds.
constexpr bool wht_l2_exists(scalar x, int log_n) {
    if (x == scalar::f64) return log_n >= 16 && log_n <= 21;
    if (x == scalar::f32) return log_n >= 16 && log_n <= 22;
    return wht_is_half(x) && log_n >= 17 && log_n <= 21;
}

PLAIT_HD constexpr wht_l2_config wht_l2_config_of(scalar x, int log_n) {
    wht_l2_config c{};
    const bool wide = x == scalar::f64;
    c.x = x;
    c.mid = wide ? scalar::f64 : scalar::f32;
    c.log_n = log_n;
    const int log_bytes = log_n + (wide ? 3 : 2);
    const int log_tile_bytes = log_bytes > 23 ? 16 : 15; // at most 2^8 runs of 128 bytes or more
    c.log_tile = log_tile_bytes - (wide ? 3 : 2);
    c.log_m = log_n - c.log_tile;
    for (int p = 0; p < 2; ++p) c.pass[p] = wht_l2_pass_of(c.mid, c.log_tile, c.log_m, p);
    c.blocks_per_sm = log_tile_bytes == 16 ? 2
                      : c.x == c.mid       ? 4
                                           : 3; // 96 registers, a ring takes more
    return c;
}

// ---- Places ------------------------------------------------------------------------------------

/// Of an element of a tile, counted from the tile's first; additive over disjoint bits.
PLAIT_HD constexpr int64_t wht_l2_offset(const wht_l2_config &c, int pass, uint32_t element) {
    const int run = c.pass[pass].log_run;
    return (static_cast<int64_t>(element >> run) << c.log_tile) + (element & bit_range(0, run));
}

/// Of a tile of a row, counted from the row's first element.
PLAIT_HD constexpr int64_t wht_l2_tile_offset(const wht_l2_config &c, int pass, int32_t tile) {
    return static_cast<int64_t>(tile & ((1 << c.log_m) - 1)) << c.pass[pass].log_run;
}

// ---- Tickets -----------------------------------------------------------------------------------

struct wht_l2_job {
    int32_t pass; ///< 0 or 1
    int32_t tile; ///< counted over all rows
};

/// What a ticket stands for. The first `lead` are tiles of pass 1, then the passes take turns, so
/// that memory and the L2 cache are busy at the same time. A tile of pass 2 needs all of pass 1 of
/// its row, which has smaller tickets: lead is at least a row, or all there is.
PLAIT_HD constexpr wht_l2_job wht_l2_job_of(int32_t ticket, int32_t lead, int32_t tiles) {
    if (ticket < lead) return {0, ticket};
    const int32_t after = ticket - lead, turns = tiles - lead;
    if (after >= 2 * turns) return {1, after - turns};
    if (after & 1) return {1, after >> 1};
    return {0, lead + (after >> 1)};
}

/// Tiles that are in work are behind the last ticket, the slowest by more than those that run at a
/// time: a row and 3/4 of them (large tiles 1/2; all of them for a ring, where pass 1 waits too),
/// and few blocks wait. More than that takes space in the cache, until it writes back what pass 2
/// needs.
constexpr int64_t wht_l2_lead(const wht_l2_config &c, int64_t rows, int64_t resident) {
    const int64_t behind = c.x != c.mid ? resident : resident * (c.blocks_per_sm > 2 ? 3 : 2) / 4;
    const int64_t lead = (int64_t{1} << c.log_m) + behind;
    return lead < rows << c.log_m ? lead : rows << c.log_m;
}

/// Rows of mid in the workspace: those that pass 1 is ahead, and one so that it need not wait.
constexpr int64_t wht_l2_slots(const wht_l2_config &c, int64_t rows, int64_t resident) {
    const int64_t lead = wht_l2_lead(c, rows, resident);
    const int64_t slots = ((lead - 1) >> c.log_m) + 3;
    return slots < rows ? slots : rows;
}

/// The next ticket, then for each row how many tiles of pass 1 are done, then the same for pass 2.
PLAIT_HD constexpr int64_t wht_l2_counters(int64_t rows) { return 1 + 2 * rows; }

/// Tickets are 31 bits.
constexpr bool wht_l2_rows_fit(const wht_l2_config &c, int64_t rows) {
    return rows < (int64_t{1} << (29 - c.log_m));
}

/// A warp beside those of a tile takes tickets.
PLAIT_HD constexpr int wht_l2_threads(const wht_l2_config &c) {
    return tile_threads(c.pass[0].tile) + 32;
}

constexpr int wht_l2_smem_bytes(const wht_l2_config &c) {
    return tile_words(c.pass[0].tile) * wht_accumulate_bytes(c.x);
}

/// False when no such kernel is instantiated. It needs bases and strides of whole 16 bytes.
inline bool wht_l2_launch(scalar x, scalar y, int log_n, wht_launch *out) {
    if (x != y || !wht_l2_exists(x, log_n)) return false;
    const wht_l2_config c = wht_l2_config_of(x, log_n);
    const variant_name name = wht_variant(x, y, ".n", log_n, true);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = wht_l2_threads(c);
    out->smem_bytes = wht_l2_smem_bytes(c);
    out->min_blocks_per_sm = c.blocks_per_sm;
    out->persistent = true;
    return true;
}

} // namespace plait::impl
