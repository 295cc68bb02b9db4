// Address maps and launch data of wht.columns_tiled, log_m = 1..12.
//
// Lanes lie on columns, so that every access of a warp is one or more whole runs of a row: one
// element each, or pairs of 16-bit columns. log_m <= 5: all rows in registers (not with pairs).
// More: phase 0 holds the top row bits of a tile, phase 1 the others, one exchange between them.
// Registers hold one or two tiles; the longest columns come in two halves. Runs are 128 bytes, or
// as long as fits.
#pragma once

#include "lib/cuda/wht/columns_layout.h"

namespace plait::impl {

/// 2^log_rows rows of 2^log_run columns in two phases. With log_vec = 1 a thread holds pairs of
/// columns. `wide`: the words are 8 bytes.
PLAIT_HD constexpr tile_layout wht_columns_tiled_tile(int log_rows, int log_run, int log_items,
                                                      int log_vec, bool wide) {
    tile_layout t{};
    const int run = log_run, r = log_items, v = log_vec;
    const uint32_t low = bit_range(0, v);
    t.log_tile = run + log_rows;
    t.log_items = r;
    t.phases = 2;
    t.log_vec_x = t.log_vec_y = v;
    t.phase[0].regs = low | bit_range(t.log_tile - r + v, t.log_tile);
    t.phase[0].reg_stages = bit_range(t.log_tile - r + v, t.log_tile);
    t.phase[1].regs = low | bit_range(run, run + r - v);
    t.phase[1].reg_stages = bit_range(run, t.log_tile - r + v);
    t.phase[1].exchange = tile_exchange::block;
    t.pad_shift[0] = t.pad_shift[1] = 31;
    const int lanes = wide ? 4 : 5; // that one bank cycle serves
    if (v > 0) {                    // lanes start at bit 1, so the bit above counts as bit 0
        t.pad_shift[0] = 5;
        t.pad_words[0] = 1;
        if (run < 6) {
            t.pad_shift[1] = run + r - v;
            t.pad_words[1] = 1;
        }
    } else if (run < lanes) { // in phase 1 bit run + r counts as lane bit `run`
        t.pad_shift[0] = run + r;
        t.pad_words[0] = 1 << run;
    }
    return t;
}

/// What log_m > 5 is compiled with; the results do not depend on it.
struct wht_columns_choice {
    int log_run, log_items, log_vec;
    int log_rounds;
    bool parked, prefetch;
    int blocks_per_sm;
};

PLAIT_HD constexpr wht_columns_config wht_columns_tiled_make(scalar x, scalar y, int log_m,
                                                             bool vector,
                                                             const wht_columns_choice &choice) {
    wht_columns_config c{};
    const bool wide = wht_is_wide(x);
    c.x = x;
    c.y = y;
    c.log_m = log_m;
    c.vector = vector;
    c.log_run = c.log_columns = choice.log_run;
    c.log_rounds = choice.log_rounds;
    c.own_words = choice.log_rounds > 0 && !choice.parked;
    c.parked = choice.parked;
    c.word_wise = wide && choice.parked;
    c.prefetch = choice.prefetch;
    c.blocks_per_sm = choice.blocks_per_sm;
    const int rows = log_m - choice.log_rounds - (choice.parked ? 1 : 0);
    c.tile = wht_columns_tiled_tile(rows, choice.log_run, choice.log_items, choice.log_vec,
                                    wide && !c.word_wise);
    // Element by element the same threads hold the same pairs: alignment changes no bits.
    if (!vector) c.tile.log_vec_x = c.tile.log_vec_y = 0;
    return c;
}

/// Pairs of 16-bit columns in a thread, also where they are accessed one by one: they need a tile
/// of at most 2^8 rows. Fewer rows: columns_shuffle.
PLAIT_HD constexpr bool wht_columns_tiled_pairs(scalar x, scalar y, int log_m) {
    const bool half = (x == scalar::f16 || x == scalar::bf16) && x == y;
    return half && log_m >= 5 && log_m <= 10;
}

PLAIT_HD constexpr wht_columns_choice wht_columns_tiled_choose(scalar x, scalar y, int log_m) {
    wht_columns_choice c{};
    const int k = log_m;
    const bool wide = wht_is_wide(x);
    c.log_items = 5;
    c.log_vec = wht_columns_tiled_pairs(x, y, k) ? 1 : 0;
    c.log_run = (wide ? 4 : 5) + (c.log_vec > 0 || k <= (wht_bytes(x) == 4 ? 9 : 8) ? 1 : 0);
    if (k + c.log_run < 12) c.log_run = 12 - k;
    // 64 KB of words: 2^14 of 4 bytes, or 2^13 of 8 bytes where two blocks fit
    int left = k + c.log_run - 14;
    if (left == 1 && c.log_vec > 0) {
        c.log_items = 6;
        left = 0;
    }
    if (left > 0 && !wide) {
        c.log_rounds = 1;
        --left;
    }
    if (left > 0) {
        c.parked = true;
        --left;
    }
    if (left > 0) {
        c.log_run -= left;
        if (wide) c.log_items = 6; // a tile of 2^11 rows
    }
    const int size = wht_bytes(x);
    const bool alone = k + c.log_run > 14 || (c.log_vec > 0 && k >= 8); // few blocks to overlap
    // Longest columns of f32: what is on its way would not fit the L2 cache beside what is in work.
    c.prefetch = alone && size << c.log_run >= (size == 2 ? 64 : 128);
    const int words = (wide ? 2 : 1) << (c.log_items + c.log_rounds);
    const int registers = words > 64 ? 256 : words > 32 ? 128 : 64;
    const int threads = 1 << (k - c.log_rounds - (c.parked ? 1 : 0) + c.log_run - c.log_items);
    c.blocks_per_sm = 65536 / registers / threads;
    return c;
}

PLAIT_HD constexpr wht_columns_config wht_columns_tiled_config(scalar x, scalar y, int log_m,
                                                               bool vector) {
    if (log_m > 5 || wht_columns_tiled_pairs(x, y, log_m))
        return wht_columns_tiled_make(x, y, log_m, vector, wht_columns_tiled_choose(x, y, log_m));
    wht_columns_config c{};
    const int r = log_m < 4 ? 4 : log_m;
    c.x = x;
    c.y = y;
    c.log_m = log_m;
    c.vector = vector;
    c.log_run = c.log_columns = 7 + r - log_m; // 128 threads
    tile_layout &t = c.tile;
    t.log_tile = c.log_run + log_m;
    t.log_items = r;
    t.phases = 1;
    t.phase[0].regs = bit_range(t.log_tile - r, t.log_tile);
    t.phase[0].reg_stages = bit_range(c.log_run, t.log_tile);
    t.pad_shift[0] = t.pad_shift[1] = 31;
    c.blocks_per_sm = wht_is_wide(x) && r == 5 ? 4 : 8;
    return c;
}

/// The vector variant is instantiated where it differs.
constexpr bool wht_columns_tiled_exists(scalar x, scalar y, int log_m, bool vector) {
    if (!wht_columns_types(x, y) || log_m < 1 || log_m > 12) return false;
    return !vector || wht_columns_tiled_pairs(x, y, log_m);
}

/// False when no such kernel is instantiated or the rows are too short for a tile. `vector`
/// promises that bases and batch strides are multiples of 16 bytes; without it any alignment of a
/// whole element works.
inline bool wht_columns_tiled_launch(scalar x, scalar y, int log_m, int log_inner, bool vector,
                                     wht_launch *out) {
    vector = vector && wht_columns_tiled_pairs(x, y, log_m);
    if (!wht_columns_tiled_exists(x, y, log_m, vector)) return false;
    const wht_columns_config c = wht_columns_tiled_config(x, y, log_m, vector);
    if (log_inner < c.log_columns) return false;
    wht_columns_fill(c, out);
    return true;
}

} // namespace plait::impl
