// conv1d.fwd_bct_tiled and conv1d.fwd_bct: rows of contiguous time, x, y of one type.
//
// bct_tiled: a row of y is cut into vectors of 16 bytes that begin at addresses divisible by 16,
// the first and the last of which may be partial. `lanes` threads side by side take a tile of
// 4 or 8 times as many vectors: each one vector, then the one `lanes` further on, and so forth, so
// that a warp accesses contiguous bytes. Threads of all tiles of all rows are numbered one after
// the other. bct: a block takes a row, 16 bytes a thread at a time. bct_fix: a block takes 512
// tokens of a row and up to 128 channels; a thread looks at four tokens next to one another.
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

constexpr int64_t conv1d_fwd_most_width = 32;

/// Instantiations: widths up to 4, 8, 32. 0: none.
constexpr int conv1d_fwd_taps(int64_t width) {
    return width <= 4 ? 4 : width <= 8 ? 8 : width <= 32 ? 32 : 0;
}

/// Of bct_tiled: widths up to 4, 8, 16, 32.
constexpr int conv1d_fwd_bct_taps(int64_t width) {
    return width > 8 && width <= 16 ? 16 : conv1d_fwd_taps(width);
}

/// Vectors of a thread whose loads are issued before the first of them is used.
PLAIT_HD constexpr int conv1d_bct_batch(scalar s, int taps, bool masked) {
    const bool room = s != scalar::f32 && !masked; // for more words, at as many blocks on an SM
    return taps == 4 ? 4 : taps == 8 ? (room ? 4 : 2) : taps == 16 && room ? 2 : 1;
}

/// Blocks that registers must leave room for on an SM.
PLAIT_HD constexpr int conv1d_bct_blocks_per_sm(scalar s, int taps, bool odd, bool masked) {
    if (masked) return taps == 4 ? (odd ? 5 : 6) : taps == 32 ? 3 : 4;
    return taps == 4 ? 7 : taps == 16 || (taps == 8 && s == scalar::f32) ? 5 : 4;
}

// Aligned rows of more than 4 taps (fwd_bct_wide.cuh): a tile's vectors in units of `near` adjacent
// ones; thread after thread takes a unit, then the one behind all of them.

PLAIT_HD constexpr bool conv1d_bct_is_wide(int taps) { return taps > 4; }
PLAIT_HD constexpr int conv1d_bct_near(int taps) { return taps <= 8 ? 1 : 2; }
/// Units of a thread under way.
PLAIT_HD constexpr int conv1d_bct_units(int taps) { return taps <= 8 ? 2 : 1; }
PLAIT_HD constexpr int conv1d_bct_wide_blocks_per_sm(int taps) {
    return taps == 8 ? 5 : taps == 16 ? 4 : 3;
}

/// Whether there is a body for SiLU alone; without it where its registers are not there.
PLAIT_HD constexpr bool conv1d_bct_wide_silu(scalar s, int taps) {
    return taps == 16 || (taps == 32 && s != scalar::f16);
}

/// First token of a thread's first unit, and how far behind it there are units.
PLAIT_HD constexpr int32_t conv1d_bct_wide_first(scalar s, uint32_t tile, uint32_t lanes,
                                                 uint32_t lane, int32_t vectors, int near) {
    return static_cast<int32_t>(tile * static_cast<uint32_t>(vectors) * lanes +
                                lane * static_cast<uint32_t>(near)) *
           conv1d_vector(s);
}
PLAIT_HD constexpr int32_t conv1d_bct_wide_end(int32_t vectors, int near, int32_t stride) {
    return vectors / near * stride;
}

/// How a row is cut.
struct conv1d_bct_cut {
    int64_t tiles;
    int32_t lanes;   ///< of a tile
    int32_t vectors; ///< of a thread
};

/// `aligned`: rows all begin at a multiple of 16 bytes. Tiles of up to 128 lanes, all of one size,
/// so that rows of any length leave few threads idle.
constexpr conv1d_bct_cut conv1d_bct_cut_of(scalar s, int64_t rows, int64_t length, bool aligned) {
    const int64_t v = conv1d_vector(s);
    const int64_t vectors = conv1d_ceil_div(length + (aligned ? 0 : v - 1), v);
    const bool more =
        vectors >= conv1d_bct_long_row && rows >= conv1d_ceil_div(conv1d_bct_plenty, vectors);
    const int64_t each = more ? 2 * conv1d_bct_vectors : conv1d_bct_vectors;
    const int64_t tiles = conv1d_ceil_div(vectors, each * conv1d_bct_threads);
    const int64_t lanes = conv1d_ceil_div(vectors, each * tiles);
    return {tiles, static_cast<int32_t>(lanes), static_cast<int32_t>(each)};
}

/// Blocks of rows cut that way.
constexpr int64_t conv1d_bct_blocks(const conv1d_bct_cut &cut, int64_t batch, int64_t channels) {
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

/// First tokens of the vectors that are loaded whole, with `halo` samples in front: least .. most.
struct conv1d_bct_range {
    int32_t least, most;
};

/// Of a row of variants "odd". `alike`: x and y lie alike to 16 bytes. `packed`: rows of x lie
/// behind one another, and loads may reach into the rows beside this one.
PLAIT_HD constexpr conv1d_bct_range conv1d_bct_odd_range(scalar s, int halo, int64_t row,
                                                         int64_t rows, int32_t length, bool alike,
                                                         bool packed) {
    const int v = conv1d_vector(s);
    conv1d_bct_range range{alike ? halo : length, length - v};
    if (alike && packed) {
        const int64_t in_front = row * length, behind = (rows - 1 - row) * length;
        range.least -= in_front < halo + v ? static_cast<int32_t>(in_front) : halo + v;
        range.most = behind < v ? range.most + static_cast<int32_t>(behind) : length - 1;
    }
    return range;
}

/// "bf16.k4", "bf16.k4.odd": rows begin anywhere; "bf16.k4.masked": that, and with masks;
/// "bf16.k4.masked.aligned": up to 4 taps; "bf16.k4.state": aligned, with first states.
enum class conv1d_bct_rows { aligned, odd, masked, masked_aligned, state };

constexpr conv1d_name conv1d_fwd_variant(scalar s, int taps, conv1d_bct_rows rows) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    if (rows == conv1d_bct_rows::odd) conv1d_append(name, at, ".odd");
    if (rows == conv1d_bct_rows::masked) conv1d_append(name, at, ".masked");
    if (rows == conv1d_bct_rows::masked_aligned) conv1d_append(name, at, ".masked.aligned");
    if (rows == conv1d_bct_rows::state) conv1d_append(name, at, ".state");
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

/// Fills the fields of the tiles; conv1d_bct_blocks < 2^31. `aligned`: rows of x and y. `state`: it
/// reads the first states of aligned rows.
constexpr conv1d_launch conv1d_fwd_bct_tiled_launch(conv1d_fwd_args &a, bool aligned, bool masked,
                                                    bool state = false) {
    const conv1d_bct_cut cut = conv1d_bct_cut_of(a.x_type, a.batch * a.channels, a.length, aligned);
    const int64_t blocks = conv1d_bct_blocks(cut, a.batch, a.channels);
    a.across = conv1d_divisor_of(cut.tiles * cut.lanes);
    a.strips = conv1d_divisor_of(cut.lanes);
    a.vectors = cut.vectors;
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(blocks);
    const bool few = conv1d_fwd_bct_taps(a.width) == 4;
    const conv1d_bct_rows rows = masked && aligned && few ? conv1d_bct_rows::masked_aligned
                                 : masked                 ? conv1d_bct_rows::masked
                                 : !aligned               ? conv1d_bct_rows::odd
                                 : state                  ? conv1d_bct_rows::state
                                                          : conv1d_bct_rows::aligned;
    return conv1d_fwd_launch(conv1d_fwd_variant(a.x_type, conv1d_fwd_bct_taps(a.width), rows),
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

constexpr int conv1d_fix_threads = 128;
constexpr int conv1d_fix_each = 4; ///< tokens that a thread looks at
constexpr int conv1d_fix_tokens = conv1d_fix_threads * conv1d_fix_each; ///< of a block
constexpr int64_t conv1d_fix_channels = 128;                            ///< of a block
constexpr int64_t conv1d_fix_most_sequences = INT32_MAX;

/// How a row is cut: pieces of time and of channels.
struct conv1d_fix_cut {
    int64_t chunks, groups;
};

/// `everywhere`: slots, packed sequences or ids; else only beginnings of rows are to be written.
constexpr conv1d_fix_cut conv1d_fix_cut_of(int64_t length, int64_t channels, bool everywhere) {
    return {everywhere ? conv1d_ceil_div(length, conv1d_fix_tokens) : 1,
            conv1d_ceil_div(channels, conv1d_fix_channels)};
}

/// Fills the fields of the pieces; their number < 2^31.
constexpr conv1d_launch conv1d_fwd_bct_fix_launch(conv1d_fwd_args &a, bool everywhere) {
    const conv1d_fix_cut cut = conv1d_fix_cut_of(a.length, a.channels, everywhere);
    const int64_t blocks = a.batch * cut.groups * cut.chunks;
    a.across = conv1d_divisor_of(cut.chunks);
    a.strips = conv1d_divisor_of(cut.groups);
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(blocks);
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(a.x_type));
    return conv1d_fwd_launch(name, conv1d_fix_threads, blocks, 0);
}

/// The piece of a block.
struct conv1d_fix_place {
    uint32_t row, channel, channels; ///< the first one, and how many
    uint32_t token;                  ///< the first one
};

PLAIT_HD constexpr conv1d_fix_place conv1d_fix_place_of(const conv1d_fwd_args &a, uint32_t block) {
    const uint32_t line = conv1d_quotient(block, a.across);
    const uint32_t row = conv1d_quotient(line, a.strips);
    const uint32_t most = static_cast<uint32_t>(conv1d_fix_channels);
    const uint32_t channel = (line - row * a.strips.d) * most;
    const uint32_t left = a.channel_count.d - channel;
    return {row, channel, left < most ? left : most,
            (block - line * a.across.d) * static_cast<uint32_t>(conv1d_fix_tokens)};
}

/// fwd_bct: the last 4 samples of each thread, and of the chunk before, twice.
constexpr int conv1d_fwd_bct_smem_bytes = 2 * (conv1d_bct_threads + 1) * 16;
constexpr int64_t conv1d_fwd_bct_most_width = 4;

constexpr conv1d_launch conv1d_fwd_bct_launch(conv1d_fwd_args &a) {
    const int64_t rows = a.batch * a.channels;
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(rows);
    return conv1d_fwd_launch(conv1d_fwd_variant(a.x_type, 4, conv1d_bct_rows::aligned),
                             conv1d_bct_threads, rows, conv1d_fwd_bct_smem_bytes);
}

} // namespace plait::impl
