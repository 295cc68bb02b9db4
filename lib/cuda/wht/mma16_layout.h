// Address maps and launch data of wht.mma16: y[row] = scale * H_n x[row] of f16 or bf16 rows,
// n = 2^log_n, 2^7 <= n <= 2^15.
//
// A warp takes 2^11 elements in a row (of several rows where n is shorter) as 32 matrices of 8 x 8:
// bits 0..2 of the element are the column, bits 3..5 the row, bits 6..10 number the matrices. It
// multiplies from the left by H_(2^dense): bits 3..(2 + dense), on raw 16-bit operands with f32
// sums. D holds bits 3..5 and 1..2 in lanes, bit 0 and 6..10 in registers, where butterflies
// finish bits 6..10. One exchange brings bits 0..2 and the three top bits into registers.
// n = 2^15: one half of the outputs after the other, each from all elements: bit 14 is one more bit
// of the product, with the sign of the half. The exchange then takes even and odd elements in turn,
// so that two blocks fit a multiprocessor. Where rows are few, `both`: a block of twice the warps
// makes both halves at once, in words of their own.
#pragma once

#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

struct wht_mma16_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= n
    int64_t y_row_stride;
    double scale;
};

struct wht_mma16_config {
    scalar type;
    int log_n;
    bool vector;
    int log_part; ///< elements that the warps make at a time
    int halves;   ///< 2 where a row is two parts
    bool both;    ///< which a block makes at a time
    int log_warps;
    int dense; ///< bits of the product, without bit 14 of two halves
    int blocks_per_sm;
};

constexpr int wht_mma16_log_chunk = 11; ///< elements that a warp multiplies
constexpr int wht_mma16_tiles = 16;     ///< D operands of a lane: bits 7..10
constexpr int wht_mma16_copies = 8;     ///< 16-byte copies of a lane for a chunk

constexpr bool wht_mma16_exists(scalar x, scalar y, int log_n) {
    return x == y && wht_is_half(x) && log_n >= 7 && log_n <= 15;
}

/// Both halves at once?
constexpr bool wht_mma16_both_exists(int log_n, bool vector) { return log_n == 15 && vector; }

PLAIT_HD constexpr wht_mma16_config wht_mma16_config_of(scalar type, int log_n, bool vector,
                                                        bool both = false) {
    wht_mma16_config c{};
    c.type = type;
    c.log_n = log_n;
    c.vector = vector;
    c.log_part = log_n < wht_mma16_log_chunk ? wht_mma16_log_chunk : log_n > 14 ? 14 : log_n;
    c.halves = log_n > c.log_part ? 2 : 1;
    c.both = both;
    c.log_warps = c.log_part - wht_mma16_log_chunk;
    c.dense = c.halves == 2 || log_n == 7 ? 4 : 5;
    c.blocks_per_sm = both ? 1 : 2 << (14 - c.log_part);
    return c;
}

/// Of a part.
PLAIT_HD constexpr int wht_mma16_warps(const wht_mma16_config &c) { return 1 << c.log_warps; }
PLAIT_HD constexpr int wht_mma16_threads(const wht_mma16_config &c) {
    return (c.both ? 64 : 32) << c.log_warps;
}
PLAIT_HD constexpr int wht_mma16_rows_per_tile(const wht_mma16_config &c) {
    return c.log_n < c.log_part ? 1 << (c.log_part - c.log_n) : 1;
}

/// Tiles of D that one product makes from as many tiles of B.
PLAIT_HD constexpr int wht_mma16_product_tiles(const wht_mma16_config &c) {
    return 1 << (c.dense - 4);
}

/// Is the sign of H_16's block (tile of D, tile of B) minus?
PLAIT_HD constexpr bool wht_mma16_minus(int row, int column) {
    int odd = 0;
    for (int both = row & column; both != 0; both >>= 1) odd ^= both & 1;
    return odd != 0;
}

/// Bytes of raw elements, in front of the words of the exchange.
PLAIT_HD constexpr int wht_mma16_raw_bytes(const wht_mma16_config &c) {
    return 2 * c.halves << c.log_part;
}
/// Those words, for each half that is made at the same time.
PLAIT_HD constexpr int wht_mma16_word_bytes(const wht_mma16_config &c) {
    return (c.halves == 2 && !c.both ? 2 : 4) << c.log_part;
}
constexpr int wht_mma16_smem_bytes(const wht_mma16_config &c) {
    return wht_mma16_raw_bytes(c) + (c.both ? 2 : 1) * wht_mma16_word_bytes(c);
}

/// The element of a chunk at which the i-th 16-byte copy of a lane begins. Matrices 4 i .. 4 i + 3
/// lie there too: the same lane gives the addresses of their rows.
PLAIT_HD constexpr uint32_t wht_mma16_copy(int lane, int i) {
    return static_cast<uint32_t>(256 * i + 8 * lane);
}

/// The element of a part behind item 0 and 1 of D (bit 0), after the product.
PLAIT_HD constexpr uint32_t wht_mma16_product_thread(int warp, int lane) {
    return static_cast<uint32_t>(warp << wht_mma16_log_chunk | lane / 4 << 3 | lane % 4 << 1);
}
PLAIT_HD constexpr uint32_t wht_mma16_product_item(int tile, int item) {
    return static_cast<uint32_t>(tile << 7 | item / 2 << 6 | item % 2);
}

/// What a thread has after the exchange: 8 elements in a row, for each of 8 values of the top bits.
PLAIT_HD constexpr uint32_t wht_mma16_store_thread(int warp, int lane) {
    return static_cast<uint32_t>(warp << 8 | lane << 3);
}
PLAIT_HD constexpr uint32_t wht_mma16_store_item(const wht_mma16_config &c, int top, int low) {
    return static_cast<uint32_t>(top << (c.log_part - 3) | low);
}

/// The word of an element in the exchange: bit 5 swaps neighbours of four, so that eight lanes that
/// read four words each, eight words apart, find them in different banks.
PLAIT_HD constexpr uint32_t wht_mma16_word(uint32_t element) {
    return element ^ (element >> 3 & 4u);
}

/// The word in the exchange of even or of odd elements: what a thread reads is four words in a row,
/// what a warp reads or writes has no gap.
PLAIT_HD constexpr uint32_t wht_mma16_half_word(uint32_t element) { return element >> 1; }

/// Place of an element of a tile, counted from its first row; additive over disjoint bits.
PLAIT_HD constexpr int64_t wht_mma16_offset(const wht_mma16_config &c, uint32_t element,
                                            int64_t stride) {
    if (c.log_n >= c.log_part) return element;
    return static_cast<int64_t>(element >> c.log_n) * stride + (element & ((1u << c.log_n) - 1u));
}

/// Does the row of this element exist, when so many rows are left?
PLAIT_HD constexpr bool wht_mma16_present(const wht_mma16_config &c, int64_t rows_left,
                                          uint32_t element) {
    return c.log_n >= c.log_part || static_cast<int64_t>(element >> c.log_n) < rows_left;
}

constexpr variant_name wht_mma16_variant(scalar type, int log_n, bool vector, bool both) {
    return wht_variant(type, type, both ? ".both" : ".n", log_n, vector);
}

/// False when no such kernel is instantiated. `vector` promises that bases and row strides are
/// multiples of 16 bytes.
inline bool wht_mma16_launch(scalar x, scalar y, int log_n, bool vector, wht_launch *out,
                             bool both = false) {
    if (!wht_mma16_exists(x, y, log_n)) return false;
    if (both && !wht_mma16_both_exists(log_n, vector)) return false;
    const wht_mma16_config c = wht_mma16_config_of(x, log_n, vector, both);
    const variant_name name = wht_mma16_variant(x, log_n, vector, both);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = wht_mma16_threads(c);
    out->smem_bytes = wht_mma16_smem_bytes(c);
    out->min_blocks_per_sm = c.blocks_per_sm;
    out->rows_per_tile = wht_mma16_rows_per_tile(c);
    return true;
}

/// Blocks to launch for rows >= 1.
inline int wht_mma16_grid(const wht_launch &launch, int64_t rows, int sms) {
    return wht_grid(launch, (rows - 1) / launch.rows_per_tile + 1, sms);
}

} // namespace plait::impl
