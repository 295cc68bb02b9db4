// Geometry that wht.kron_tf32 and wht.kron_int8 share: H_n = H_a (x) H_b, so that a row of n = a b
// elements, read as a matrix X of a rows and b columns, becomes H_a X H_b.
//
// A block holds a tile of one or more rows: matrix rows of b elements, one after the other in
// padded shared memory. A warp has 2^10 elements of each product. Product 1: lines, that is whole
// columns of a elements, eight beside each other; H_a is the A operand, the lines are B. Product 2:
// whole matrix rows, eight below each other; H_b is the A operand, the rows are B, so that D holds
// the result transposed and a lane stores what it has without another exchange.
//
// The order of the inner index and of the rows of D is free. Their bits are laid so that those of
// the lane in A's row and in A's column are the same bits of the index: the sign of an A operand is
// then a parity of the lane number, the same for all operands, and a sign that is constant.
#pragma once

#include "lib/cuda/common/mma_layout.h"
#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

struct wht_kron_config {
    int log_n;
    int log_a, log_b; ///< factors
    int log_tile;     ///< elements of a block
};

constexpr int wht_kron_log_share = 10; ///< elements that a warp makes in each product

PLAIT_HD constexpr wht_kron_config wht_kron_config_of(int log_n) {
    wht_kron_config c{};
    c.log_n = log_n;
    c.log_b = (log_n + 1) / 2 < 5 ? 5 : (log_n + 1) / 2;
    c.log_a = log_n - c.log_b;
    c.log_tile = log_n < 12 ? 12 : log_n;
    return c;
}

PLAIT_HD constexpr int wht_kron_threads(const wht_kron_config &c) {
    return 32 << (c.log_tile - wht_kron_log_share);
}
PLAIT_HD constexpr int wht_kron_rows_per_tile(const wht_kron_config &c) {
    return 1 << (c.log_tile - c.log_n);
}

/// Groups of eight lines, and of eight matrix rows, of a warp.
PLAIT_HD constexpr int wht_kron_line_groups(const wht_kron_config &c) {
    return 1 << (wht_kron_log_share - 3 - c.log_a);
}
PLAIT_HD constexpr int wht_kron_row_groups(const wht_kron_config &c) {
    return 1 << (wht_kron_log_share - 3 - c.log_b);
}

/// A place of a tile: matrix row and column. Sums of the parts below.
struct wht_kron_place {
    int row, column;
};

/// The first element of a group of lines, product 1.
PLAIT_HD constexpr wht_kron_place wht_kron_lines(const wht_kron_config &c, int warp, int group) {
    const int at = warp * wht_kron_line_groups(c) + group, log_across = c.log_b - 3;
    return {at >> log_across << c.log_a, (at & ((1 << log_across) - 1)) << 3};
}

/// The first element of a group of matrix rows, product 2.
PLAIT_HD constexpr wht_kron_place wht_kron_rows(const wht_kron_config &c, int warp, int group) {
    return {(warp * wht_kron_row_groups(c) + group) << 3, 0};
}

/// The row of H_b behind item 0 of D (half 0) or item 2 (half 1) of tile m in product 2: four in a
/// row in two tiles.
PLAIT_HD constexpr int wht_kron_out(int lane, int m, int half) {
    return m / 2 * 32 | lane / 4 * 4 | m % 2 * 2 | half;
}

/// The element of a tile at a place.
PLAIT_HD constexpr uint32_t wht_kron_element(const wht_kron_config &c, int row, int column) {
    return static_cast<uint32_t>(row << c.log_b | column);
}

/// Is the product of signs of these bits minus?
PLAIT_HD constexpr bool wht_kron_minus(int row, int column) {
    int odd = 0;
    for (int both = row & column; both != 0; both >>= 1) odd ^= both & 1;
    return odd != 0;
}

} // namespace plait::impl
