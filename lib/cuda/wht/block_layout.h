// Address maps and launch data of wht.block: y[row] = scale * H_n x[row], n = 2^log_n <= 2^16
// (f64, i64: 2^15). Complex rows are rows of twice as many real numbers whose lowest index bit is
// not transformed; `log_n` counts it, `parts` is 1.
//
// n <= 2^(5+r), r = log_items: one phase, lanes on the bits above a 16-byte access, whose
// butterflies go by shuffles; all other bits are in registers.
// Larger n: phase 0 holds the low bits of an access and the top bits, one block-wide exchange gives
// every warp 2^(5+r) elements in a row, phase 1 and 2 exchange them within the warp. Phase 2 stores
// 512 bytes in a row per warp. The largest n take two such tiles in registers, or a tile (two) for
// each half of the row, one half after the other: the first waits in shared memory.
#pragma once

#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

struct wht_block_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= n
    int64_t y_row_stride;
    double scale;
};

struct wht_block_config {
    scalar x, y;
    int log_n;
    int parts; ///< low bits of the index that are not transformed
    bool vector;
    tile_layout tile;
    int log_row;    ///< max(log_n, an access): shorter rows lie packed and are taken together
    int log_rounds; ///< registers hold 2^log_rounds tiles
    bool own_words; ///< each has its own words; else they use the same, one after the other
    bool parked;    ///< they are half of a transform; the first half waits in shared memory
    bool word_wise; ///< f64 goes through shared memory as two 4-byte words, one after the other
    bool pipelined; ///< blocks walk over tiles and load the next one before the current is done
    int blocks_per_sm;
    bool prefetch; ///< asks L2 for the tile that runs after this one
};

PLAIT_HD constexpr int wht_log2_floor(int value) {
    int log = 0;
    while (value > 1) {
        value >>= 1;
        ++log;
    }
    return log;
}

PLAIT_HD constexpr int wht_min(int a, int b) { return a < b ? a : b; }
PLAIT_HD constexpr int wht_max(int a, int b) { return a > b ? a : b; }

/// One phase.
PLAIT_HD constexpr tile_layout wht_block_warp_tile(uint32_t transformed, int log_tile,
                                                   int log_items, int log_vec) {
    tile_layout t{};
    t.log_tile = log_tile;
    t.log_items = log_items;
    t.phases = 1;
    t.phase[0].regs = bit_range(0, log_vec) | bit_range(log_vec + 5, 5 + log_items);
    t.phase[0].reg_stages = t.phase[0].regs & transformed;
    t.phase[0].lane_stages = bit_range(log_vec, log_vec + 5) & transformed;
    t.log_vec_x = t.log_vec_y = log_vec;
    t.pad_shift[0] = t.pad_shift[1] = 31;
    return t;
}

/// Elements of an access of x in three phases: phase 0 must hold every bit above a warp's share.
PLAIT_HD constexpr int wht_block_vec_x(int log_tile, int log_items, int log_vec_x) {
    return wht_min(log_vec_x, 2 * log_items + 5 - log_tile);
}

/// Three phases; log_tile > 5 + log_items. `transformed` are the element bits to transform; phase 0
/// begins with those from `order_from` up.
PLAIT_HD constexpr tile_layout wht_block_tile(int log_tile, int log_items, uint32_t transformed,
                                              int log_vec_x, int log_vec_y, int order_from,
                                              bool wide) {
    const int b = log_tile, r = log_items, vy = log_vec_y;
    const int vx = wht_block_vec_x(b, r, log_vec_x);
    tile_layout t{};
    t.order_from = order_from;
    t.log_tile = b;
    t.log_items = r;
    t.phases = 3;
    t.phase[0].regs = bit_range(0, vx) | bit_range(b - r + vx, b);
    t.phase[0].exchange = tile_exchange::none;
    t.phase[1].regs = bit_range(vy, vy + 5) | bit_range(10, 5 + r);
    t.phase[1].exchange = tile_exchange::block;
    t.phase[2].regs = bit_range(0, vy) | bit_range(vy + 5, 5 + r);
    t.phase[2].exchange = tile_exchange::warp;
    t.phase[0].reg_stages = transformed & (bit_range(0, vx) | bit_range(order_from, b));
    uint32_t left = transformed & ~t.phase[0].reg_stages;
    for (int p = 1; p < 3; ++p) {
        t.phase[p].reg_stages = left & t.phase[p].regs;
        left &= ~t.phase[p].regs;
    }
    t.log_vec_x = vx;
    t.log_vec_y = vy;
    t.pad_shift[0] = 5;
    t.pad_words[0] = 1;
    t.pad_shift[1] = 31;
    if (wide && vy > 0) { // 8-byte words: 16 lanes at a time
        t.pad_shift[0] = 4;
        t.pad_shift[1] = 6;
        t.pad_words[1] = 2;
    }
    return t;
}

/// Which (x, y) are instantiated, and for which n.
constexpr bool wht_block_exists(scalar x, scalar y, int log_n, int parts = 0) {
    if (log_n < parts || log_n > 16) return false;
    if (parts > 0 && (x != y || (x != scalar::f32 && x != scalar::f64))) return false;
    if (wht_is_wide(x)) return y == x && log_n <= 15;
    if (x == y) return x == scalar::f32 || x == scalar::i32 || wht_is_half(x);
    return wht_is_half(x) && y == scalar::f32 && log_n >= 10 && log_n <= 15;
}

/// What a size is compiled with; the results do not depend on it.
struct wht_block_choice {
    int log_items;
    int log_tile; ///< without rounds and halves
    int log_rounds;
    bool parked, pipelined, prefetch;
    int blocks_per_sm;
};

/// Registers: 64 a thread hold 32 f32 items, 128 hold 64 of them or 32 of f64; more where a
/// thread also computes the places of many rows.
PLAIT_HD constexpr wht_block_choice wht_block_choose(scalar x, int log_n, bool vector) {
    const bool wide = wht_is_wide(x), half = x == scalar::f16 || x == scalar::bf16;
    wht_block_choice c{};
    int registers = 64;
    if (log_n <= 9) {
        const bool places = wide || !vector;
        c.log_items = 4;
        c.log_tile = c.log_items + (half || places ? 7 : 8);
        c.prefetch = vector && (!half || log_n >= 7);
        if (places) registers = 96;
    } else if (log_n == 10) {
        c.log_items = 5;
        c.log_tile = 12;
        c.prefetch = vector;
        if (!half && vector) registers = 128;
        if (!vector) registers = 80;
    } else if (wide) {
        c.log_items = 5;
        c.log_tile = wht_min(wht_max(log_n, 12), 14);
        c.parked = log_n == 15;
        c.prefetch = vector || log_n >= 14;
    } else if (log_n == 16) {
        c.log_items = 5;
        c.log_tile = 14;
        c.log_rounds = 1;
        c.parked = c.prefetch = true;
    } else if (log_n >= 14 && (vector || half)) { // two: additions of one beside words of the other
        c.log_items = 5;
        c.log_tile = log_n - 1;
        c.log_rounds = 1;
        c.pipelined = vector && half && log_n == 15;
        c.prefetch = !c.pipelined;
    } else {
        c.log_items = log_n >= (half ? 13 : 14) ? 6 : 5;
        c.log_tile = wht_max(log_n, 11);
        c.prefetch = half || vector || log_n == 15;
        // with fewer the compiler delays loads, whatever the number of blocks
        if (half != vector && c.log_items == 5) registers = 128;
    }
    if ((wide ? 2 : 1) << (c.log_items + c.log_rounds) > 32) registers = 128;
    c.blocks_per_sm = 65536 / registers >> (c.log_tile - c.log_items);
    return c;
}

/// Sizes whose element-wise variant holds what the vector variant holds: the accesses of 16-bit
/// elements are slow either way, and another distribution could not keep the order.
PLAIT_HD constexpr bool wht_block_as_vector(scalar x, int log_n) {
    return (x == scalar::f16 || x == scalar::bf16) && log_n >= 14;
}

/// The lowest bit that phase 0 of the vector variant holds beside those of an access.
PLAIT_HD constexpr int wht_block_order_from(scalar x, int log_n) {
    const wht_block_choice c = wht_block_choose(x, log_n, true);
    return c.log_tile - c.log_items + wht_block_vec_x(c.log_tile, c.log_items, wht_log_vec(x));
}

PLAIT_HD constexpr wht_block_config wht_block_make(scalar x, scalar y, int log_n, bool vector,
                                                   const wht_block_choice &choice, int parts = 0) {
    wht_block_config c{};
    const bool wide = wht_is_wide(x);
    const bool as_vector = vector || wht_block_as_vector(x, log_n);
    const int vx = as_vector ? wht_log_vec(x) : 0;
    const int r = choice.log_items;
    // f32 n = 2^15, 2^16: bits 0 and 1 before the others in both variants, hence both in phase 0
    const int narrow = wht_block_vec_x(choice.log_tile, r, wht_log_vec(x));
    const int vy = !as_vector        ? 0
                   : !wht_is_half(x) ? wht_min(wht_log_vec(y), narrow)
                                     : wht_log_vec(y);
    c.x = x;
    c.y = y;
    c.log_n = log_n;
    c.parts = parts;
    c.vector = vector;
    c.log_row = wht_max(log_n, wht_min(vx, vy));
    c.log_rounds = choice.log_rounds;
    c.own_words = choice.log_rounds > 0 && !choice.parked;
    c.parked = choice.parked;
    c.word_wise = wide && choice.parked;
    c.pipelined = choice.pipelined;
    c.prefetch = choice.prefetch;
    c.blocks_per_sm = choice.blocks_per_sm;
    if (log_n <= 5 + r) {
        c.tile = wht_block_warp_tile(bit_range(parts, log_n), choice.log_tile, r, wht_min(vx, vy));
    } else {
        c.tile =
            wht_block_tile(choice.log_tile, r, bit_range(parts, wht_min(log_n, choice.log_tile)),
                           vx, vy, wht_block_order_from(x, log_n), wide && !c.word_wise);
        if (!vector) c.tile.log_vec_x = c.tile.log_vec_y = 0;
        // one tile may start while the other is on its way, where the variants agree anyway
        c.tile.rounds_last = wht_block_as_vector(x, log_n);
    }
    return c;
}

PLAIT_HD constexpr wht_block_config wht_block_config_of(scalar x, scalar y, int log_n, bool vector,
                                                        int parts = 0) {
    return wht_block_make(x, y, log_n, vector, wht_block_choose(x, log_n, vector), parts);
}

/// Pairs: "f32.f32.pairs12.v", the number of pairs.
constexpr variant_name wht_block_variant(scalar x, scalar y, int log_n, bool vector, int parts) {
    return wht_variant(x, y, parts > 0 ? ".pairs" : ".n", log_n - parts, vector);
}

/// Bytes of the first half of a transform, in front of the words of the exchanges.
PLAIT_HD constexpr int wht_block_parked_bytes(const wht_block_config &c) {
    return c.parked ? (wht_is_wide(c.x) ? 8 : 4) << (c.tile.log_tile + c.log_rounds) : 0;
}

constexpr int wht_block_smem_bytes(const wht_block_config &c) {
    const int word = wht_is_wide(c.x) && !c.word_wise ? 8 : 4;
    return wht_block_parked_bytes(c) +
           word * (tile_words(c.tile) << (c.own_words ? c.log_rounds : 0));
}

PLAIT_HD constexpr int wht_block_rows_per_tile(const wht_block_config &c) {
    const int log_tile = c.tile.log_tile + c.log_rounds + (c.parked ? 1 : 0);
    return 1 << (log_tile - c.log_n);
}

/// Row stride of packed groups of short rows, else the caller's.
PLAIT_HD constexpr int64_t wht_block_stride(const wht_block_config &c, int64_t row_stride) {
    return c.log_row > c.log_n ? int64_t(1) << c.log_row : row_stride;
}

/// Place of an element, counted from the first row of its tile; additive over disjoint bits.
PLAIT_HD constexpr int64_t wht_block_offset(const wht_block_config &c, uint32_t element,
                                            int64_t stride) {
    return static_cast<int64_t>(element >> c.log_row) * stride +
           (element & bit_range(0, c.log_row));
}

/// Rows of a tile that exist. Where rows are shorter than an access, groups of packed rows that
/// fill one count as a row; `tail` are the elements of the last, partial group.
struct wht_block_rows {
    int64_t first;
    int full;
    int tail;
};

PLAIT_HD constexpr wht_block_rows wht_block_tile_rows(const wht_block_config &c, int64_t tile,
                                                      int64_t rows) {
    const int per_tile = c.log_row > c.tile.log_tile ? 1 : 1 << (c.tile.log_tile - c.log_row);
    const int log_group = c.log_row - c.log_n;
    const int64_t first = tile * per_tile;
    const int64_t left = (rows >> log_group) - first;
    const int partial = static_cast<int>(rows & ((1 << log_group) - 1)) << c.log_n;
    return {first, left < per_tile ? static_cast<int>(left) : per_tile, partial};
}

/// How many elements of the access that begins with this one exist.
PLAIT_HD constexpr int wht_block_present(const wht_block_config &c, const wht_block_rows &rows,
                                         uint32_t element, int log_vec) {
    if (c.tile.log_tile <= c.log_row) return 1 << log_vec; // one row, which exists
    const int row = static_cast<int>(element >> c.log_row);
    if (row < rows.full) return 1 << log_vec;
    return c.log_row > c.log_n && row == rows.full ? rows.tail : 0;
}

/// Of every kernel in this tiling.
inline wht_launch wht_block_launch_of(const wht_block_config &c, const variant_name &name) {
    wht_launch launch{};
    for (int i = 0; i < 48; ++i) launch.variant[i] = name.text[i];
    launch.threads = tile_threads(c.tile);
    launch.smem_bytes = wht_block_smem_bytes(c);
    launch.min_blocks_per_sm = c.blocks_per_sm;
    launch.rows_per_tile = wht_block_rows_per_tile(c);
    return launch;
}

/// False when no such kernel is instantiated. `vector` promises that bases are multiples of 16
/// bytes, and that row strides are too or, where n elements have less than 16 bytes, that the rows
/// lie packed (stride n). Without it any whole-element alignment and any stride works.
inline bool wht_block_launch(scalar x, scalar y, int log_n, bool vector, wht_launch *out,
                             int parts = 0) {
    if (!wht_block_exists(x, y, log_n, parts)) return false;
    const wht_block_config c = wht_block_config_of(x, y, log_n, vector, parts);
    const variant_name name = wht_block_variant(x, y, log_n, vector, parts);
    *out = wht_block_launch_of(c, name);
    out->persistent = c.pipelined;
    return true;
}

/// Blocks to launch for rows >= 1.
inline int wht_block_grid(const wht_launch &launch, int64_t rows, int sms) {
    const int64_t tiles = (rows - 1) / launch.rows_per_tile + 1;
    return wht_grid(launch, tiles, sms);
}

} // namespace plait::impl
