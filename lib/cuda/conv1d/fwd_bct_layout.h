// conv1d.fwd_bct_tiled and conv1d.fwd_bct: rows of contiguous time, x, y of one type.
//
// bct_tiled: a row of y is cut into tiles of 32 bytes that begin at addresses divisible by 16, so
// stores are aligned wherever the row begins; the tile in front of the first token and the one
// behind the last are partial. Tiles of all rows are numbered one after the other.
// bct: a block takes a row, 16 bytes a thread at a time.
#pragma once

#include "lib/cuda/conv1d/fwd_layout.h"

namespace plait::impl {

constexpr int conv1d_bct_threads = 128;

/// Elements of 16 bytes.
PLAIT_HD constexpr int conv1d_vector(scalar s) { return s == scalar::f32 ? 4 : 8; }

/// Elements of a tile of bct_tiled.
PLAIT_HD constexpr int conv1d_bct_tile(scalar s) { return 2 * conv1d_vector(s); }

/// Instantiations: widths up to 4, 8, 32. 0: none.
constexpr int conv1d_fwd_taps(int64_t width) {
    return width <= 4 ? 4 : width <= 8 ? 8 : width <= 32 ? 32 : 0;
}

/// Blocks that registers must leave room for on an SM.
PLAIT_HD constexpr int conv1d_bct_blocks_per_sm(int taps) {
    return taps == 4 ? 8 : taps == 8 ? 6 : 3;
}

/// Tiles of a row: `aligned` rows all begin at a multiple of 16 bytes.
constexpr int64_t conv1d_bct_tiles(scalar s, int64_t length, bool aligned) {
    const int64_t tile = conv1d_bct_tile(s);
    return conv1d_ceil_div(length + (aligned ? 0 : conv1d_vector(s) - 1), tile);
}

/// Largest numbers that 32-bit arithmetic inside the kernel takes.
constexpr int64_t conv1d_bct_most_tiles = INT64_C(1) << 23; ///< of a row
constexpr int64_t conv1d_fwd_most_length = INT64_C(1) << 30;
constexpr int64_t conv1d_bct_most_rows = INT32_MAX;

/// First token of a tile in a row that begins `offset` elements behind a multiple of 16 bytes.
PLAIT_HD constexpr int32_t conv1d_bct_first(scalar s, uint32_t tile, int32_t offset) {
    return static_cast<int32_t>(tile) * conv1d_bct_tile(s) - offset;
}

/// "bf16.k4", "bf16.k4.full": with states, slots, packed sequences, ids.
constexpr conv1d_name conv1d_fwd_variant(scalar s, int taps, bool full) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    if (full) conv1d_append(name, at, ".full");
    return name;
}

constexpr conv1d_launch conv1d_fwd_launch(const conv1d_name &name, int threads, int64_t blocks,
                                          int smem_bytes) {
    conv1d_launch l{};
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = threads;
    l.grid = blocks;
    l.smem_bytes = smem_bytes;
    return l;
}

/// Fills the fields of the tiles; rows * tiles / threads < 2^31.
constexpr conv1d_launch conv1d_fwd_bct_tiled_launch(conv1d_fwd_args &a, bool aligned, bool full) {
    const int64_t tiles = conv1d_bct_tiles(a.x_type, a.length, aligned);
    const int64_t blocks = conv1d_ceil_div(a.batch * a.channels * tiles, conv1d_bct_threads);
    a.across = conv1d_divisor_of(tiles);
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(blocks);
    return conv1d_fwd_launch(conv1d_fwd_variant(a.x_type, conv1d_fwd_taps(a.width), full),
                             conv1d_bct_threads, blocks, 0);
}

/// fwd_bct: the last 4 samples of each thread, and of the chunk before, twice.
constexpr int conv1d_fwd_bct_smem_bytes = 2 * (conv1d_bct_threads + 1) * 16;
constexpr int64_t conv1d_fwd_bct_most_width = 4;

constexpr conv1d_launch conv1d_fwd_bct_launch(conv1d_fwd_args &a) {
    const int64_t rows = a.batch * a.channels;
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(rows);
    return conv1d_fwd_launch(conv1d_fwd_variant(a.x_type, 4, false), conv1d_bct_threads, rows,
                             conv1d_fwd_bct_smem_bytes);
}

} // namespace plait::impl
