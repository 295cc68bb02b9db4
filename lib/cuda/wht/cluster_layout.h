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
    tile_layout tile; ///< a part
    int log_unit;     ///< elements whose accumulators have 16 bytes
    int log_take;     ///< elements of each part that an owner takes at a time
    int blocks_per_sm;
    bool own_words, word_wise; ///< as in wht_block_config; false
};

/// What a size is compiled with.
struct wht_cluster_choice {
    int log_cluster, log_items, log_take, blocks_per_sm;
};

constexpr int wht_cluster_first = 15, wht_cluster_last = 19;

PLAIT_HD constexpr bool wht_cluster_exists(scalar x, int log_n) {
    if (x == scalar::f64) return log_n >= 15 && log_n <= 18;
    if (x == scalar::f32) return log_n >= 16 && log_n <= 19;
    return (x == scalar::f16 || x == scalar::bf16) && log_n >= 16 && log_n <= 19;
}

PLAIT_HD constexpr wht_cluster_choice wht_cluster_choose(scalar x, int log_n) {
    const bool wide = x == scalar::f64;
    // log2 of the part's 4-byte words
    const int words = log_n + (wide ? 1 : 0);
    wht_cluster_choice c{};
    c.log_cluster = words <= 16 ? 3 : 4;
    const int log_part = words - c.log_cluster;
    c.log_items = wide ? 5 : log_part == 13 && c.log_cluster == 3 ? 5 : 6;
    c.log_take = wide ? 1 : 2;
    const int threads = 1 << (log_n - c.log_cluster - c.log_items);
    c.blocks_per_sm = 65536 / ((wide ? 2 : 1) << c.log_items <= 32 ? 64 : 128) / threads;
    return c;
}

PLAIT_HD constexpr wht_cluster_config wht_cluster_config_of(scalar x, int log_n) {
    const wht_cluster_choice choice = wht_cluster_choose(x, log_n);
    const int part = log_n - choice.log_cluster, r = choice.log_items;
    const bool wide = x == scalar::f64;
    wht_cluster_config c{};
    c.x = x;
    c.log_n = log_n;
    c.log_cluster = choice.log_cluster;
    c.log_unit = wide ? 1 : 2;
    c.log_take = choice.log_take;
    c.blocks_per_sm = choice.blocks_per_sm;
    const int vx = wht_block_vec_x(part, r, wht_log_vec(x));
    c.tile = wht_block_tile(part, r, bit_range(0, part), vx, c.log_unit, part - r + vx, wide);
    return c;
}

PLAIT_HD constexpr int wht_cluster_blocks(const wht_cluster_config &c) {
    return 1 << c.log_cluster;
}

/// Which block owns a unit of a thread, phase 2 of the tile.
PLAIT_HD constexpr uint32_t wht_cluster_owner(const wht_cluster_config &c, uint32_t thread,
                                              uint32_t unit) {
    return (unit ^ thread >> 5) & bit_range(0, c.log_cluster);
}

/// Where the owner keeps it: words of a part are in a row, the parts one after the other.
PLAIT_HD constexpr uint32_t wht_cluster_word(const wht_cluster_config &c, uint32_t part,
                                             uint32_t thread, uint32_t unit) {
    return part << (c.tile.log_tile - c.log_cluster) |
           (unit >> c.log_cluster) << (c.tile.log_tile - c.tile.log_items + c.log_unit) |
           thread << c.log_unit;
}

/// How often an owner takes elements of all parts.
PLAIT_HD constexpr int wht_cluster_rounds(const wht_cluster_config &c) {
    return 1 << (c.tile.log_items - c.log_cluster - c.log_take);
}

/// The word of part 0 that begins what a thread takes in this round.
PLAIT_HD constexpr uint32_t wht_cluster_take(const wht_cluster_config &c, uint32_t thread,
                                             uint32_t round) {
    return (round << (c.tile.log_tile - c.tile.log_items) | thread) << c.log_take;
}

/// The place within its part of a word of part 0 at this owner.
PLAIT_HD constexpr uint32_t wht_cluster_element(const wht_cluster_config &c, uint32_t owner,
                                                uint32_t word) {
    const int log_threads = c.tile.log_tile - c.tile.log_items;
    const uint32_t unit = word >> c.log_unit;
    const uint32_t thread = unit & bit_range(0, log_threads);
    const uint32_t item = unit >> log_threads << c.log_cluster |
                          ((owner ^ thread >> 5) & bit_range(0, c.log_cluster));
    return tile_element(c.tile, 2, thread, item << c.log_unit) | (word & bit_range(0, c.log_unit));
}

constexpr int wht_cluster_smem_bytes(const wht_cluster_config &c) {
    const int word = c.x == scalar::f64 ? 8 : 4;
    return (word * wht_max(tile_words(c.tile), 1 << c.tile.log_tile) + 15) / 16 * 16;
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
    return true;
}

/// Blocks to launch for rows >= 1: a cluster for each, or as many as a grid can have.
inline int wht_cluster_grid(const wht_launch &launch, int64_t rows) {
    const int64_t most = INT32_MAX / launch.cluster;
    return static_cast<int>((rows < most ? rows : most) * launch.cluster);
}

} // namespace plait::impl
