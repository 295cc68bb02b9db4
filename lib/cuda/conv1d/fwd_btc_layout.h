// Layout of conv1d.fwd_btc: channels contiguous, x, y of one type. A thread takes some channels and
// a strip of tokens; threads side by side take channels, then strips, then rows.
#pragma once

#include "lib/cuda/conv1d/fwd_bct_layout.h"

namespace plait::impl {

constexpr int conv1d_btc_threads = 128;

/// Instantiations: widths up to 4, 8, 16, 32. 0: none.
constexpr int conv1d_btc_taps(int64_t width) {
    return width <= 4 ? 4 : width <= 8 ? 8 : width <= 16 ? 16 : width <= 32 ? 32 : 0;
}

/// Tokens of a thread with few taps, all of which are loaded before the first of them is used.
/// Blocks are short, so that those at work at one time share few pages of memory: strips of 128
/// tokens took a tenth longer.
PLAIT_HD constexpr int conv1d_btc_tile(int taps) { return 2 * taps; }
PLAIT_HD constexpr bool conv1d_btc_tiled(int taps, int vector, bool full) {
    return taps == 4 && vector > 1 && !full;
}

/// Threads of single elements: tokens that are loaded before the first of them is used. A multiple
/// of the taps, so that the place of a token in the window is known at compile time.
PLAIT_HD constexpr int conv1d_btc_group(int taps) { return taps < 8 ? 8 : taps; }

/// Tokens of a group that are loaded together, when all of them in the group before are done.
PLAIT_HD constexpr int conv1d_btc_part(int taps) { return conv1d_btc_group(taps) / 2; }

/// Channels of a thread that lie side by side: as many as leave registers for enough threads. 1:
/// there is none.
PLAIT_HD constexpr int conv1d_btc_vector(scalar, int taps) {
    return taps <= 8 ? 4 : taps == 16 ? 2 : 1;
}

/// The ring of threads with vectors: slots of as many tokens as there are taps, then threads, each
/// with a cell of a vector.
PLAIT_HD constexpr int conv1d_btc_cell(scalar s, int taps) {
    return conv1d_btc_vector(s, taps) * (s == scalar::f32 ? 4 : 2);
}
PLAIT_HD constexpr int conv1d_btc_slot(scalar s, int taps) {
    return taps * conv1d_btc_threads * conv1d_btc_cell(s, taps);
}
/// Slots; one of them is read, the others (8 to 16 KiB) are on their way.
PLAIT_HD constexpr int conv1d_btc_slots(scalar s, int taps) {
    const int slot = conv1d_btc_slot(s, taps);
    return slot <= 4096 ? 4 : slot <= 8192 ? 3 : 2;
}

/// Channels of a thread whose accesses are single elements, this far apart.
constexpr int conv1d_btc_stride = 32;
PLAIT_HD constexpr int conv1d_btc_strided(int taps) { return taps == 4 ? 2 : 1; }

/// The first channel of such a thread: 32 threads take `channels` times 32 channels.
PLAIT_HD constexpr int64_t conv1d_btc_strided_channel(uint32_t item, int channels) {
    const int64_t before = item / conv1d_btc_stride * conv1d_btc_stride;
    return before * channels + item % conv1d_btc_stride;
}

/// Threads of a token. `vector`: 1, or conv1d_btc_vector. Those that are too many have no channel.
constexpr int64_t conv1d_btc_groups(int64_t channels, int taps, int vector) {
    if (vector > 1) return channels / vector;
    if (channels <= conv1d_btc_stride || conv1d_btc_strided(taps) == 1) return channels;
    return conv1d_ceil_div(channels, conv1d_btc_stride * conv1d_btc_strided(taps)) *
           conv1d_btc_stride;
}

/// Blocks that registers must leave room for on an SM.
PLAIT_HD constexpr int conv1d_btc_blocks_per_sm(scalar s, int taps, int vector, bool full) {
    if (taps == 4) {
        if (vector == 1) return full ? 5 : 6;
        if (full) return s == scalar::f16 ? 5 : 6;
        return s == scalar::f32 ? 5 : 7; // of tiles
    }
    if (vector > 1) return taps == 8 && !full ? 4 : 3;
    if (taps == 8) return s != scalar::f32 || full ? 4 : 5;
    return taps == 16 ? (full ? 3 : 4) : 2;
}

constexpr int64_t conv1d_btc_most_groups = INT64_C(1) << 23;
/// Strips of wide windows are long: K - 1 samples and all taps are loaded in front of each. Those
/// of single elements and few taps are short, so that blocks at work at one time share few pages of
/// memory.
constexpr int conv1d_btc_longest_strip(scalar s, int taps, int vector) {
    if (taps > 4) return 32 * taps;
    return vector > 1 ? 64 : s == scalar::f32 ? 16 : 32;
}
constexpr int conv1d_btc_shortest_strip = 16;
/// From so many waves on the last one costs little, full or not.
constexpr int64_t conv1d_btc_many_waves = 8;

/// Tokens of a thread: strips as long as they may be, but in whole waves of the `threads` that the
/// device holds.
constexpr int32_t conv1d_btc_strip(int longest, int64_t rows, int64_t length, int64_t groups,
                                   int64_t threads) {
    constexpr int64_t shortest = conv1d_btc_shortest_strip;
    const int64_t lines = rows * groups; // below 2^63 / length: both are a tensor's
    const int64_t waves = conv1d_ceil_div(conv1d_ceil_div(lines * length, threads), longest);
    int64_t strip = longest;
    if (waves < conv1d_btc_many_waves) {
        const int64_t strips = waves * threads / lines; // of a row: no more than fill the waves
        strip = conv1d_ceil_div(length, strips < 1 ? 1 : strips);
    }
    if (strip > longest) strip = longest;
    if (strip < shortest) strip = shortest;
    strip = conv1d_ceil_div(length, conv1d_ceil_div(length, strip)); // the last like the others
    return static_cast<int32_t>(conv1d_ceil_div(strip, shortest) * shortest);
}

/// "bf16.k4.v8", "f32.k32.v1.full".
constexpr conv1d_name conv1d_btc_variant(scalar s, int taps, int vector, bool full) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, taps);
    conv1d_append(name, at, ".v");
    conv1d_append(name, at, vector);
    if (full) conv1d_append(name, at, ".full");
    return name;
}

/// `vector`: 1, or conv1d_btc_vector of the type and width. rows * strips < 2^31.
constexpr conv1d_launch conv1d_fwd_btc_launch(conv1d_fwd_args &a, int vector, int32_t strip,
                                              bool full) {
    const int taps = conv1d_btc_taps(a.width);
    const int64_t groups = conv1d_btc_groups(a.channels, taps, vector);
    const int64_t strips = conv1d_ceil_div(a.length, strip);
    const int64_t blocks = conv1d_ceil_div(a.batch * strips * groups, conv1d_btc_threads);
    a.across = conv1d_divisor_of(groups);
    a.strips = conv1d_divisor_of(strips);
    a.strip = strip;
    a.blocks = static_cast<uint32_t>(blocks);
    const bool ring = vector > 1 && !conv1d_btc_tiled(taps, vector, full);
    return conv1d_fwd_launch(
        conv1d_btc_variant(a.x_type, taps, vector, full), conv1d_btc_threads, blocks,
        ring ? conv1d_btc_slots(a.x_type, taps) * conv1d_btc_slot(a.x_type, taps) : 0);
}

// ---- Variants "even", "odd": words of two channels of 16 bits (fwd_btc_pairs.cuh) ---------------

constexpr int conv1d_btc_runs = 2;        ///< pairs of a thread
constexpr int conv1d_btc_pairs_tile = 16; ///< tokens of a thread
PLAIT_HD constexpr int conv1d_btc_pairs_blocks_per_sm(scalar s, bool odd) {
    return s == scalar::f16 && odd ? 3 : 4;
}
/// With fewer channels most lanes would be idle.
constexpr int64_t conv1d_btc_pairs_least = 48;

constexpr int conv1d_btc_run = 64; ///< channels of a run: a pair a lane

/// Channels of a warp. The last lane of the last run has none where words lie across two lanes.
PLAIT_HD constexpr int conv1d_btc_warp_channels(bool odd) {
    return conv1d_btc_runs * conv1d_btc_run - (odd ? 2 : 0);
}

constexpr int64_t conv1d_btc_pairs_groups(int64_t channels, bool odd) {
    return conv1d_ceil_div(channels, conv1d_btc_warp_channels(odd)) * 32;
}

struct conv1d_btc_pair {
    int lane, channel; ///< of its warp; the first channel of its pair of the first run
};

PLAIT_HD constexpr conv1d_btc_pair conv1d_btc_pair_of(uint32_t item, bool odd) {
    const int lane = static_cast<int>(item % 32), warp = static_cast<int>(item / 32);
    return {lane, warp * conv1d_btc_warp_channels(odd) + 2 * lane};
}

/// What a lane stores of run r. Bit 0: of tokens at even places, whose word is its pair. Bit 1: of
/// others, whose word is the channel before its pair and the first of it.
struct conv1d_btc_words {
    unsigned full, half; ///< half: the upper one in the first lane of others, else the lower one
};

PLAIT_HD constexpr conv1d_btc_words conv1d_btc_words_of(const conv1d_btc_pair &at, int r,
                                                        int channels, bool odd) {
    const int c = at.channel + r * conv1d_btc_run;
    const bool first = at.lane == 0 && r == 0;
    const bool spare = odd && at.lane == 31 && r == conv1d_btc_runs - 1;
    conv1d_btc_words w{0, 0};
    if (!spare && c + 1 < channels) w.full |= 1;
    if (!spare && c + 1 == channels) w.half |= 1;
    if (!odd) return w;
    const bool lower = !first && c - 1 < channels, upper = !spare && c < channels;
    if (lower && upper) w.full |= 2;
    if (lower != upper) w.half |= 2;
    return w;
}

/// "bf16.k4.odd".
constexpr conv1d_name conv1d_btc_pairs_variant(scalar s, bool odd) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, odd ? ".k4.odd" : ".k4.even");
    return name;
}

/// Rows are not shorter than a tile; conv1d_btc_pairs_groups <= conv1d_btc_most_groups.
constexpr conv1d_launch conv1d_fwd_btc_pairs_launch(conv1d_fwd_args &a, bool odd) {
    const int64_t groups = conv1d_btc_pairs_groups(a.channels, odd);
    const int64_t strips = conv1d_ceil_div(a.length, conv1d_btc_pairs_tile);
    const int64_t blocks = conv1d_ceil_div(a.batch * strips * groups, conv1d_btc_threads);
    a.across = conv1d_divisor_of(groups);
    a.strips = conv1d_divisor_of(strips);
    // Tokens at the end of the tensor, from which words of lanes without channels reach behind it.
    a.strip =
        static_cast<int32_t>(1 + conv1d_ceil_div(conv1d_btc_runs * conv1d_btc_run + 2, a.channels));
    a.blocks = static_cast<uint32_t>(blocks);
    return conv1d_fwd_launch(conv1d_btc_pairs_variant(a.x_type, odd), conv1d_btc_threads, blocks,
                             0);
}

} // namespace plait::impl
