// conv1d.fwd_bct_tiled, variants "flat": rows of contiguous time that lie behind one another
// without gaps, x and y alike (fwd_bct_flat.cuh). All rows together are one row of vectors of 16
// bytes: a warp takes 128 of them, 32 at a time, so that it accesses whole pieces of 512 bytes
// wherever rows begin. A vector lies in a row, or at the end of one and the beginning of the next:
// rows are not shorter than a vector.
#pragma once

#include "lib/cuda/conv1d/fwd_bct_layout.h"

namespace plait::impl {

constexpr int conv1d_flat_vectors = 4; ///< of a thread
constexpr int conv1d_flat_taps = 4;
constexpr int conv1d_flat_blocks_per_sm = 6;

/// Elements of a block.
PLAIT_HD constexpr int conv1d_flat_elements(scalar s) {
    return conv1d_bct_threads * conv1d_flat_vectors * conv1d_vector(s);
}

/// First element of vector `i` of a thread, from the block's first one on.
PLAIT_HD constexpr uint32_t conv1d_flat_first(scalar s, uint32_t thread, int i) {
    const uint32_t vector =
        thread / 32 * (32 * conv1d_flat_vectors) + static_cast<uint32_t>(i) * 32 + thread % 32;
    return vector * static_cast<uint32_t>(conv1d_vector(s));
}

constexpr uint64_t conv1d_inverse_of(int64_t d) { return ~uint64_t{0} / static_cast<uint64_t>(d); }

/// The row of an element, and its place there.
struct conv1d_flat_row {
    int64_t row;
    uint32_t rest;
};

/// n < 2^63, high = the upper word of n * conv1d_inverse_of(length), which is the row or one less.
PLAIT_HD constexpr conv1d_flat_row conv1d_flat_row_of(uint64_t n, uint64_t high, int64_t length) {
    const uint64_t d = static_cast<uint64_t>(length), rest = n - high * d;
    const bool less = rest >= d;
    return {static_cast<int64_t>(high + (less ? 1 : 0)),
            static_cast<uint32_t>(less ? rest - d : rest)};
}

/// "bf16.k4.flat".
constexpr conv1d_name conv1d_fwd_flat_variant(scalar s) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k4.flat");
    return name;
}

constexpr int64_t conv1d_flat_blocks(scalar s, int64_t elements) {
    return conv1d_ceil_div(elements, conv1d_flat_elements(s));
}

constexpr conv1d_launch conv1d_fwd_bct_flat_launch(conv1d_fwd_args &a) {
    const int64_t blocks = conv1d_flat_blocks(a.x_type, a.batch * a.channels * a.length);
    a.of_row = conv1d_divisor_of(a.length);
    a.row_inverse = conv1d_inverse_of(a.length);
    a.channel_count = conv1d_divisor_of(a.channels);
    a.blocks = static_cast<uint32_t>(blocks);
    return conv1d_fwd_launch(conv1d_fwd_flat_variant(a.x_type), conv1d_bct_threads, blocks, 0);
}

} // namespace plait::impl
