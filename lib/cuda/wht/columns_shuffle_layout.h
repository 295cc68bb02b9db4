// Address maps and launch data of wht.columns_shuffle, log_m = 1..5, no shared memory.
//
// A lane holds 16 bytes of columns; 8 (log_m = 1: 16) lanes take a run, the others the lowest one
// or two row bits, by shuffles. The remaining rows are in registers. A warp is on its own.
#pragma once

#include "lib/cuda/wht/columns_layout.h"

namespace plait::impl {

PLAIT_HD constexpr wht_columns_config wht_columns_shuffle_config(scalar x, scalar y, int log_m) {
    wht_columns_config c{};
    const int k = log_m;
    const int v = wht_log_vec(x) < wht_log_vec(y) ? wht_log_vec(x) : wht_log_vec(y);
    const int shuffled = k < 2 ? k : 2;
    int loads = 2; // log2 of the accesses of a thread
    if (k - shuffled > loads) loads = k - shuffled;
    c.x = x;
    c.y = y;
    c.log_m = k;
    c.vector = true;
    c.log_run = v + 5 - shuffled;
    tile_layout &t = c.tile;
    t.log_items = v + loads;
    t.log_tile = t.log_items + 7; // 128 threads
    t.phases = 1;
    t.phase[0].regs = bit_range(0, v) | bit_range(v + 5, v + 5 + loads);
    t.phase[0].reg_stages = bit_range(v + 5, v + 5 + k - shuffled);
    t.phase[0].lane_stages = bit_range(v + 5 - shuffled, v + 5);
    t.log_vec_x = t.log_vec_y = v;
    t.pad_shift[0] = t.pad_shift[1] = 31;
    c.log_columns = t.log_tile - k;
    const int words = (wht_is_wide(x) ? 2 : 1) << t.log_items;
    // 128, 80 or 64 registers
    c.blocks_per_sm = (words > 32 ? 512 : words > 16 ? 768 : 1024) / tile_threads(t);
    return c;
}

constexpr bool wht_columns_shuffle_exists(scalar x, scalar y, int log_m) {
    return wht_columns_types(x, y) && log_m >= 1 && log_m <= 5;
}

/// False when no such kernel is instantiated, the rows are too short for a tile, or 16-byte
/// accesses are not promised (bases and batch strides).
inline bool wht_columns_shuffle_launch(scalar x, scalar y, int log_m, int log_inner, bool vector,
                                       wht_launch *out) {
    if (!vector || !wht_columns_shuffle_exists(x, y, log_m)) return false;
    const wht_columns_config c = wht_columns_shuffle_config(x, y, log_m);
    if (log_inner < c.log_columns) return false;
    wht_columns_fill(c, out);
    return true;
}

} // namespace plait::impl
