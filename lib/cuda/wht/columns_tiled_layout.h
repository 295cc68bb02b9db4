// Address maps and launch data of wht.columns_tiled, log_m = 1..12.
//
// Lanes lie on columns, one element each, so every access of a warp is one or more whole runs of a
// row. log_m <= 5: all rows in registers. More: phase 0 holds the top row bits, phase 1 the others,
// one exchange between them. Only the longest columns take runs of less than 64 bytes.
#pragma once

#include "lib/cuda/wht/columns_layout.h"

namespace plait::impl {

PLAIT_HD constexpr wht_columns_config wht_columns_tiled_config(scalar x, scalar y, int log_m) {
    wht_columns_config c{};
    const int k = log_m;
    const bool wide = x == scalar::f64;
    c.x = x;
    c.y = y;
    c.log_m = k;
    tile_layout &t = c.tile;
    t.pad_shift[0] = t.pad_shift[1] = 31;
    if (k <= 5) {
        const int r = k < 4 ? 4 : k;
        c.log_run = 7 + r - k; // 128 threads
        t.log_tile = c.log_run + k;
        t.log_items = r;
        t.phases = 1;
        t.phase[0].regs = bit_range(t.log_tile - r, t.log_tile);
        t.phase[0].reg_stages = bit_range(c.log_run, t.log_tile);
    } else {
        const int limit = wide ? 14 : 15; // 128 KB of accumulators
        int run = wide ? 4 : 5;
        if (k + run < 12) run = 12 - k;
        if (k + run > limit) run = limit - k;
        const int r = k <= 10 ? 5 : 6;
        c.log_run = run;
        t.log_tile = run + k;
        t.log_items = r;
        t.phases = 2;
        t.phase[0].regs = bit_range(t.log_tile - r, t.log_tile);
        t.phase[0].reg_stages = t.phase[0].regs;
        t.phase[1].regs = bit_range(run, run + r);
        t.phase[1].reg_stages = bit_range(run, t.log_tile - r);
        t.phase[1].exchange = tile_exchange::block;
        const int lanes = wide ? 4 : 5; // of one bank cycle
        if (run < lanes) {              // in phase 1 bit run + r counts as lane bit `run`
            t.pad_shift[0] = run + r;
            t.pad_words[0] = 1 << run;
        }
    }
    c.log_columns = c.log_run;
    const int threads = tile_threads(t);
    const int words = (wide ? 2 : 1) << t.log_items;
    c.blocks_per_sm = (words > 64 ? 256 : words > 32 ? 512 : 1024) / threads;
    c.persistent = k >= 9;
    return c;
}

/// Runs below 32 bytes of x or y are not instantiated.
constexpr bool wht_columns_tiled_exists(scalar x, scalar y, int log_m) {
    return wht_columns_types(x, y) && log_m >= 1 && log_m <= (wht_is_half(y) ? 11 : 12);
}

/// False when no such kernel is instantiated or the rows are too short for a tile. Any alignment of
/// a whole element works; `vector` makes no difference here.
inline bool wht_columns_tiled_launch(scalar x, scalar y, int log_m, int log_inner, bool vector,
                                     wht_launch *out) {
    (void)vector;
    if (!wht_columns_tiled_exists(x, y, log_m)) return false;
    const wht_columns_config c = wht_columns_tiled_config(x, y, log_m);
    if (log_inner < c.log_columns) return false;
    wht_columns_fill(c, false, out);
    return true;
}

} // namespace plait::impl
