// Address maps, moduli and launch data of wht.kron_int8 (kron_layout.h says how a row becomes two
// products): rows of whole numbers, i32, f32 or f64, n = 2^log_n, 2^10 <= n <= 2^14. Each modulus
// takes both products, of bytes with 32-bit sums, and gives one digit of the result in mixed radix.
// All accesses to shared memory are free of bank conflicts: 16 bytes of padding behind each matrix
// row, of elements as of bytes.
#pragma once

#include "lib/cuda/wht/kron_layout.h"

namespace plait::impl {

struct wht_kron_int8_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= n; rows and bases are multiples of 16 bytes
    int64_t y_row_stride;
    double scale;   ///< 1 for i32
    uint64_t whole; ///< product of the first `moduli`; sums are below half of it
    int32_t moduli;
};

/// One of the moduli, all odd and without common divisors, and what the digit of it needs.
struct wht_kron_modulus {
    int32_t p;
    uint32_t magic;      ///< 2^32 / p, rounded up
    uint32_t inverse;    ///< of the weight, modulo p
    int32_t lift;        ///< a multiple of p above all sums
    uint64_t wide_magic; ///< 2^64 / p, rounded down
    uint64_t weight;     ///< product of the moduli before
    double reciprocal;   ///< 1 / p
};

constexpr int wht_kron_most_moduli = 9; ///< f64; f32 and i32 keep 32 bits: the first four

struct wht_kron_moduli {
    wht_kron_modulus list[wht_kron_most_moduli];
};

PLAIT_HD constexpr wht_kron_moduli wht_kron_moduli_table() {
    const int32_t p[wht_kron_most_moduli] = {127, 113, 109, 107, 103, 101, 97, 89, 83};
    wht_kron_moduli t{};
    uint64_t weight = 1;
    for (int i = 0; i < wht_kron_most_moduli; ++i) {
        const auto u = static_cast<uint32_t>(p[i]);
        uint32_t inverse = 1;
        while (static_cast<uint32_t>(weight % u) * inverse % u != 1) ++inverse;
        t.list[i] = {p[i],   0xffffffffu / u + 1, inverse, 256 * p[i], 0xffffffffffffffffu / u,
                     weight, 1.0 / p[i]};
        weight *= u;
    }
    return t;
}

constexpr int wht_kron_moduli_of(scalar x) { return x == scalar::f64 ? wht_kron_most_moduli : 4; }

/// Product of the first `count` moduli.
constexpr uint64_t wht_kron_whole(int count) {
    const wht_kron_moduli t = wht_kron_moduli_table();
    const wht_kron_modulus &last = t.list[count - 1];
    return last.weight * static_cast<uint64_t>(last.p);
}

/// The largest |sum| that so many moduli tell from others.
constexpr int64_t wht_kron_reach(int count) {
    return static_cast<int64_t>((wht_kron_whole(count) - 1) / 2);
}

constexpr bool wht_kron_int8_exists(scalar x, scalar y, int log_n) {
    return y == x && (x == scalar::i32 || x == scalar::f32 || x == scalar::f64) && log_n >= 10 &&
           log_n <= 14;
}

/// The element of shared memory that holds an element of a tile.
PLAIT_HD constexpr int wht_kron_int8_word(const wht_kron_config &c, bool wide, int row,
                                          int column) {
    return row * ((1 << c.log_b) + (wide ? 2 : 4)) + column;
}
/// The byte of the residues between the products, behind the elements.
PLAIT_HD constexpr int wht_kron_int8_byte(const wht_kron_config &c, int row, int column) {
    return row * ((1 << c.log_b) + 16) + column;
}
PLAIT_HD constexpr int wht_kron_int8_bytes_at(const wht_kron_config &c, bool wide) {
    return (wide ? 8 : 4) * wht_kron_int8_word(c, wide, 1 << (c.log_tile - c.log_b), 0);
}
constexpr int wht_kron_int8_smem_bytes(const wht_kron_config &c, bool wide) {
    return wht_kron_int8_bytes_at(c, wide) + wht_kron_int8_byte(c, 1 << (c.log_tile - c.log_b), 0);
}

/// 128 registers a thread: sums take 32, or 64 where they have 64 bits.
PLAIT_HD constexpr int wht_kron_int8_blocks_per_sm(const wht_kron_config &c) {
    return 512 / wht_kron_threads(c);
}

/// Product 1: the matrix row behind a byte of B (word `half` of step s) and behind D.
PLAIT_HD constexpr int wht_kron_int8_in1(int lane, int s, int half, int byte) {
    return s * 32 + byte * 8 + lane % 4 * 2 + half;
}
PLAIT_HD constexpr int wht_kron_int8_out1(int lane, int m, int half) {
    return m * 16 + half * 8 + lane / 4;
}
/// Product 2: the column behind byte 0 of B; four bytes in a row are a word.
PLAIT_HD constexpr int wht_kron_int8_in2(int lane, int s, int half) {
    return s * 32 + half * 16 + lane % 4 * 4;
}

/// The sign of a byte of an A operand is that of the lane, for the column half, times that of (tile
/// m, row half, step s, byte), in both products.
PLAIT_HD constexpr bool wht_kron_int8_lane1(int lane, int half) {
    return wht_kron_minus(lane / 4, lane % 4 * 2 + half);
}
PLAIT_HD constexpr bool wht_kron_int8_lane2(int lane, int half) {
    return wht_kron_minus(lane / 4, half * 4 + lane % 4);
}
PLAIT_HD constexpr uint32_t wht_kron_int8_step(int m, int half, int s) {
    uint32_t word = 0;
    for (int byte = 0; byte < 4; ++byte) {
        const uint32_t one = wht_kron_minus(m * 2 + half, s * 4 + byte) ? 0xffu : 1u;
        word |= one << (8 * byte);
    }
    return word;
}
constexpr uint32_t wht_kron_int8_negate = 0xfefefefeu; ///< by exclusive or: 1 and -1 change places

/// "i32.i32.n14"
constexpr variant_name wht_kron_int8_variant(scalar x, int log_n) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, scalar_name(x));
    variant_append(name, at, ".");
    variant_append(name, at, scalar_name(x));
    variant_append(name, at, ".n");
    variant_append(name, at, log_n);
    return name;
}

/// False when no such kernel is instantiated.
inline bool wht_kron_int8_launch(scalar x, scalar y, int log_n, wht_launch *out) {
    if (!wht_kron_int8_exists(x, y, log_n)) return false;
    const wht_kron_config c = wht_kron_config_of(log_n);
    const variant_name name = wht_kron_int8_variant(x, log_n);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = wht_kron_threads(c);
    out->smem_bytes = wht_kron_int8_smem_bytes(c, x == scalar::f64);
    out->min_blocks_per_sm = wht_kron_int8_blocks_per_sm(c);
    out->rows_per_tile = wht_kron_rows_per_tile(c);
    return true;
}

} // namespace plait::impl
