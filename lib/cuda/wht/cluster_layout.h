// Address maps and launch data of wht.cluster: y[row] = scale * H_n x[row], one row for a cluster
// of C = 2^log_cluster blocks.
//
// Block q loads elements q n/C .. (q+1) n/C - 1, its part, and transforms the bits within a part as
// wht.block does (three phases). Then it sends each unit, 16 bytes of accumulators, to the block
// that owns it: units of a thread go to different blocks, and those of neighbouring warps begin
// with different ones. An owner has the same places of all parts: it transforms the bits of the
// block number, in registers, and stores.
#pragma once

#include "lib/cuda/wht/block_layout.h"

namespace plait::impl {

struct wht_cluster_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= n
    int64_t y_row_stride;
    double scale;
};

struct wht_cluster_config {
    scalar x;
    int log_n;
    int log_cluster;  ///< the bits of n above a part
    tile_layout tile; ///< a part, or half of one
    int log_rounds;   ///< registers hold 2^log_rounds tiles, a part
    bool own_words;   ///< false: tiles use the same words, one after the other
    bool word_wise;   ///< f64 goes through shared memory as two 4-byte words, one after the other
    int log_unit;     ///< elements whose accumulators have 16 bytes
    int log_take;     ///< elements of each part that an owner takes at a time
    int blocks_per_sm;
    bool ahead;    ///< clusters walk over rows and load the next one while they send
    bool prefetch; ///< asks L2 for the row after that, or for the one that a later cluster loads
};

PLAIT_HD constexpr bool wht_cluster_exists(scalar x, int log_n) {
    const int first = x == scalar::f64 ? 15 : 16;
    return (x == scalar::f64 || x == scalar::f32 || x == scalar::f16 || x == scalar::bf16) &&
           log_n >= first && log_n <= first + 3;
}

PLAIT_HD constexpr wht_cluster_config wht_cluster_config_of(scalar x, int log_n) {
    const bool wide = x == scalar::f64;
    wht_cluster_config c{};
    c.x = x;
    c.log_n = log_n;
    // As measured. Parts of 32 KB: four blocks on an SM hide each other's waits, and clusters that
    // come and go are faster than those that walk. Parts of 128 KB: one block has to load ahead.
    const int size = log_n - (wide ? 15 : 16);
    c.log_cluster = size % 2 == 0 ? 3 : 4;
    c.ahead = size >= 2;
    c.prefetch = size <= 2;
    c.log_rounds = wide ? 0 : 1;
    c.word_wise = wide;
    c.log_unit = wide ? 1 : 2;
    // 32 registers beside what is loaded; 64 beside 16-bit elements, which take half as many
    c.log_take = wht_min(c.log_unit, (wide ? 4 : x == scalar::f32 ? 5 : 6) - c.log_cluster);
    const int tile = log_n - c.log_cluster - c.log_rounds, r = 5;
    const int vx = wht_block_vec_x(tile, r, wht_log_vec(x));
    c.tile = wht_block_tile(tile, r, bit_range(0, tile), vx, c.log_unit, tile - r + vx, false);
    c.tile.rounds_last = true;
    c.blocks_per_sm = 512 / tile_threads(c.tile); // 128 registers
    return c;
}

PLAIT_HD constexpr int wht_cluster_blocks(const wht_cluster_config &c) {
    return 1 << c.log_cluster;
}
PLAIT_HD constexpr int wht_cluster_log_part(const wht_cluster_config &c) {
    return c.log_n - c.log_cluster;
}
PLAIT_HD constexpr int wht_cluster_log_threads(const wht_cluster_config &c) {
    return c.tile.log_tile - c.tile.log_items;
}
/// Units of a thread: those of its first tile, then those of the second.
PLAIT_HD constexpr int wht_cluster_units(const wht_cluster_config &c) {
    return 1 << (c.tile.log_items + c.log_rounds - c.log_unit);
}

/// The place of a unit within the part, when the tiles are transformed.
PLAIT_HD constexpr uint32_t wht_cluster_unit_place(const wht_cluster_config &c, uint32_t thread,
                                                   uint32_t unit) {
    const int log_each = c.tile.log_items - c.log_unit;
    return unit >> log_each << c.tile.log_tile |
           tile_element(c.tile, 2, thread, (unit & bit_range(0, log_each)) << c.log_unit);
}

/// Which block owns a unit of a thread, phase 2 of the tile.
PLAIT_HD constexpr uint32_t wht_cluster_owner(const wht_cluster_config &c, uint32_t thread,
                                              uint32_t unit) {
    return (unit ^ thread >> 5) & bit_range(0, c.log_cluster);
}

/// Where the owner keeps it, a sum in which a unit is a constant: words of a part are in a row, the
/// parts one after the other.
PLAIT_HD constexpr uint32_t wht_cluster_word(const wht_cluster_config &c, uint32_t part,
                                             uint32_t thread, uint32_t unit) {
    return (part << (wht_cluster_log_part(c) - c.log_cluster)) + (thread << c.log_unit) +
           (unit >> c.log_cluster << (wht_cluster_log_threads(c) + c.log_unit));
}

/// How often an owner takes elements of all parts.
PLAIT_HD constexpr int wht_cluster_rounds(const wht_cluster_config &c) {
    return 1 << (c.tile.log_items + c.log_rounds - c.log_cluster - c.log_take);
}

/// The word of part 0 that begins what a thread takes in this round.
PLAIT_HD constexpr uint32_t wht_cluster_take(const wht_cluster_config &c, uint32_t thread,
                                             uint32_t round) {
    return (round << (wht_cluster_log_threads(c) + c.log_take)) + (thread << c.log_take);
}

/// The place within its part of a word of part 0 at this owner.
PLAIT_HD constexpr uint32_t wht_cluster_element(const wht_cluster_config &c, uint32_t owner,
                                                uint32_t word) {
    const int log_threads = wht_cluster_log_threads(c);
    const uint32_t thread = word >> c.log_unit & bit_range(0, log_threads);
    const uint32_t unit = word >> (c.log_unit + log_threads) << c.log_cluster |
                          ((owner ^ thread >> 5) & bit_range(0, c.log_cluster));
    return wht_cluster_unit_place(c, thread, unit) | (word & bit_range(0, c.log_unit));
}

// ---- Shared memory: words of the exchanges, what others send, the counter of its bytes
// -----------

/// Bytes that a block is sent for each row.
PLAIT_HD constexpr int wht_cluster_kept_bytes(const wht_cluster_config &c) {
    return (c.x == scalar::f64 ? 8 : 4) << wht_cluster_log_part(c);
}
PLAIT_HD constexpr int wht_cluster_kept_at(const wht_cluster_config &c) {
    return (4 * tile_words(c.tile) + 127) / 128 * 128;
}
PLAIT_HD constexpr int wht_cluster_counter_at(const wht_cluster_config &c) {
    return wht_cluster_kept_at(c) + wht_cluster_kept_bytes(c);
}
constexpr int wht_cluster_smem_bytes(const wht_cluster_config &c) {
    return wht_cluster_counter_at(c) + 16;
}

/// False when no such kernel is instantiated. Bases and row strides are multiples of 16 bytes.
inline bool wht_cluster_launch(scalar x, int log_n, wht_launch *out) {
    if (!wht_cluster_exists(x, log_n)) return false;
    const wht_cluster_config c = wht_cluster_config_of(x, log_n);
    const variant_name name = wht_variant(x, x, ".n", log_n, true);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = tile_threads(c.tile);
    out->smem_bytes = wht_cluster_smem_bytes(c);
    out->min_blocks_per_sm = c.blocks_per_sm;
    out->rows_per_tile = 1;
    out->cluster = wht_cluster_blocks(c);
    out->persistent = c.ahead;
    return true;
}

/// Blocks to launch for rows >= 1: a cluster for each, or as many as a grid can have.
inline int wht_cluster_grid(const wht_launch &launch, int64_t rows) {
    const int64_t most = INT32_MAX / launch.cluster;
    return static_cast<int>((rows < most ? rows : most) * launch.cluster);
}

} // namespace plait::impl
