// conv1d.fwd_bct_tiled and conv1d.fwd_bct: rows of contiguous time, x, y of one type.
//
// bct_tiled: a row of y is cut into vectors of 16 bytes that begin at addresses divisible by 16,
// the first and the last of which may be partial. `lanes` threads side by side take a tile of
// 4 or 8 times as many vectors: each one vector, then the one `lanes` further on, and so forth, so
// that a warp accesses contiguous bytes. Threads of all tiles of all rows are numbered one after
// the other. Where sequences or ids are to be looked at a tile has 32 lanes, and the four warps of
// a block take the same tile of four channels: each warp looks at a quarter of the tile for all of
// them. bct: a block takes a row, 16 bytes a thread at a time.
#pragma once

#include "lib/cuda/conv1d/fwd_layout.h"

namespace plait::impl {

constexpr int conv1d_bct_threads = 128;

/// Elements of 16 bytes.
PLAIT_HD constexpr int conv1d_vector(scalar s) { return s == scalar::f32 ? 4 : 8; }

/// Vectors of a thread of bct_tiled: 4, or 8 where rows are long and there are plenty, so that what
/// is done once a thread weighs less.
constexpr int conv1d_bct_vectors = 4;
constexpr int64_t conv1d_bct_long_row = 256;   ///< vectors
constexpr int64_t conv1d_bct_plenty = 1 << 21; ///< vectors of all rows: 2000 blocks
constexpr int conv1d_bct_warps = conv1d_bct_threads / 32;

/// Instantiations: widths up to 4, 8, 32. 0: none.
constexpr int conv1d_fwd_taps(int64_t width) {
    return width <= 4 ? 4 : width <= 8 ? 8 : width <= 32 ? 32 : 0;
}

/// Of bct_tiled: widths up to 4, 8, 16, 32.
constexpr int conv1d_fwd_bct_taps(int64_t width) {
    return width > 8 && width <= 16 ? 16 : conv1d_fwd_taps(width);
}

/// Vectors of a thread whose loads are issued before the first of them is used.
PLAIT_HD constexpr int conv1d_bct_batch(scalar s, int taps) {
    return taps == 4 ? 4 : taps == 8 ? (s == scalar::f32 ? 2 : 4) : 1;
}

/// Blocks that registers must leave room for on an SM.
PLAIT_HD constexpr int conv1d_bct_blocks_per_sm(int taps, bool full) {
    if (full) return taps == 32 ? 3 : 4;
    return taps == 4 ? 7 : taps == 32 ? 4 : 5;
}

/// How a row is cut.
struct conv1d_bct_cut {
    int64_t tiles;
    int32_t lanes;   ///< of a tile
    int32_t vectors; ///< of a thread
};

/// `aligned`: rows all begin at a multiple of 16 bytes. `shared`: see above. Else tiles of up to
/// 128 lanes, all of one size, so that rows of any length leave few threads idle.
constexpr conv1d_bct_cut conv1d_bct_cut_of(scalar s, int64_t rows, int64_t length, bool aligned,
                                           bool shared) {
    const int64_t v = conv1d_vector(s);
    const int64_t vectors = conv1d_ceil_div(length + (aligned ? 0 : v - 1), v);
    const bool more = !shared && vectors >= conv1d_bct_long_row &&
                      rows >= conv1d_ceil_div(conv1d_bct_plenty, vectors);
    const int64_t each = more ? 2 * conv1d_bct_vectors : conv1d_bct_vectors;
    const int64_t tiles = conv1d_ceil_div(vectors, each * (shared ? 32 : conv1d_bct_threads));
    const int64_t lanes = shared ? 32 : conv1d_ceil_div(vectors, each * tiles);
    return {tiles, static_cast<int32_t>(lanes), static_cast<int32_t>(each)};
}

/// Blocks of rows cut that way.
constexpr int64_t conv1d_bct_blocks(const conv1d_bct_cut &cut, int64_t batch, int64_t channels,
                                    bool shared) {
    if (shared) return batch * conv1d_ceil_div(channels, conv1d_bct_warps) * cut.tiles;
    return conv1d_ceil_div(batch * channels * cut.tiles * cut.lanes, conv1d_bct_threads);
}

/// Largest numbers that 32-bit arithmetic inside the kernel takes.
constexpr int64_t conv1d_bct_most_lanes = INT64_C(1) << 23; ///< of a row
constexpr int64_t conv1d_fwd_most_length = INT64_C(1) << 30;
constexpr int64_t conv1d_bct_most_rows = INT32_MAX;

/// conv1d_place_of where lines are below 2^31, of 32 bits.
struct conv1d_bct_place {
    uint32_t line, item;
};

PLAIT_HD constexpr conv1d_bct_place conv1d_bct_place_of(const conv1d_divisor &by, uint32_t block,
                                                        uint32_t thread) {
    const uint32_t rounds = conv1d_quotient(block, by);
    const uint32_t n = (block - rounds * by.d) * conv1d_bct_threads + thread;
    const uint32_t lines = conv1d_quotient(n, by);
    return {rounds * conv1d_bct_threads + lines, n - lines * by.d};
}

/// First token of a thread's first vector, in a row that begins `offset` elements behind a multiple
/// of 16 bytes; the others follow `lanes` vectors apart.
PLAIT_HD constexpr int32_t conv1d_bct_first(scalar s, uint32_t tile, uint32_t lanes, uint32_t lane,
                                            int32_t vectors, int32_t offset) {
    return static_cast<int32_t>(tile * static_cast<uint32_t>(vectors) * lanes + lane) *
               conv1d_vector(s) -
           offset;
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

/// Fills the fields of the tiles; conv1d_bct_blocks < 2^31. `shared`: sequences or ids are in use.
constexpr conv1d_launch conv1d_fwd_bct_tiled_launch(conv1d_fwd_args &a, bool aligned, bool full,
                                                    bool shared) {
    const conv1d_bct_cut cut =
        conv1d_bct_cut_of(a.x_type, a.batch * a.channels, a.length, aligned, shared);
    const int64_t blocks = conv1d_bct_blocks(cut, a.batch, a.channels, shared);
    a.across = conv1d_divisor_of(shared ? cut.tiles : cut.tiles * cut.lanes);
    a.strips =
        conv1d_divisor_of(shared ? conv1d_ceil_div(a.channels, conv1d_bct_warps) : cut.lanes);
    a.vectors = cut.vectors;
    a.strip = aligned ? 0 : conv1d_vector(a.x_type) - 1;
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(blocks);
    return conv1d_fwd_launch(conv1d_fwd_variant(a.x_type, conv1d_fwd_bct_taps(a.width), full),
                             conv1d_bct_threads, blocks, 0);
}

/// The vectors that a thread of bct_tiled takes.
struct conv1d_bct_self {
    uint32_t b, c, tile, lane, lanes;
};

PLAIT_HD constexpr conv1d_bct_self conv1d_bct_self_of(const conv1d_fwd_args &a,
                                                      const conv1d_bct_place &at) {
    const uint32_t b = conv1d_quotient(at.line, a.channel_count);
    const uint32_t tile = conv1d_quotient(at.item, a.strips);
    return {b, at.line - b * a.channel_count.d, tile, at.item - tile * a.strips.d, a.strips.d};
}

/// Where four warps share a tile; channels from a.channels on do not exist.
PLAIT_HD constexpr conv1d_bct_self conv1d_bct_shared_self(const conv1d_fwd_args &a, uint32_t block,
                                                          uint32_t thread) {
    const uint32_t line = conv1d_quotient(block, a.across);
    const uint32_t b = conv1d_quotient(line, a.strips);
    const uint32_t c = (line - b * a.strips.d) * conv1d_bct_warps + thread / 32;
    return {b, c, block - line * a.across.d, thread % 32, 32};
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
