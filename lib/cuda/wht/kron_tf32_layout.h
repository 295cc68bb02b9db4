// Address maps and launch data of wht.kron_tf32 (kron_layout.h says how a row becomes two
// products): f32 rows of n = 2^log_n, 2^9 <= n <= 2^14. All accesses to shared memory are free of
// bank conflicts with four words of padding behind each matrix row.
#pragma once

#include "lib/cuda/wht/kron_layout.h"

namespace plait::impl {

struct wht_kron_tf32_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= n, a multiple of 4; bases are multiples of 16 bytes
    int64_t y_row_stride;
    double scale;
};

constexpr bool wht_kron_tf32_exists(scalar x, scalar y, int log_n, int terms) {
    return x == scalar::f32 && y == x && log_n >= 9 && log_n <= 14 && (terms == 1 || terms == 3);
}

/// Word of shared memory.
PLAIT_HD constexpr int wht_kron_tf32_word(const wht_kron_config &c, int row, int column) {
    return row * ((1 << c.log_b) + 4) + column;
}

constexpr int wht_kron_tf32_smem_bytes(const wht_kron_config &c) {
    return 4 * wht_kron_tf32_word(c, 1 << (c.log_tile - c.log_b), 0);
}

/// 64 registers a thread, or 128 where operands are split: then three words stand for each.
PLAIT_HD constexpr int wht_kron_tf32_blocks_per_sm(const wht_kron_config &c, int terms) {
    return (terms == 1 ? 1024 : 512) / wht_kron_threads(c);
}

/// Three bits of the row of H_a that a lane has of D, its number / 4: so turned that float2 of 16
/// lanes lie in different banks.
PLAIT_HD constexpr int wht_kron_tf32_row(int lane) { return lane / 4 % 4 * 2 + lane / 16; }

/// Product 1: the matrix row behind an element of B (word `half` of step s) and of D.
PLAIT_HD constexpr int wht_kron_tf32_in1(int lane, int s, int half) {
    return s * 8 + lane % 4 * 2 + half;
}
PLAIT_HD constexpr int wht_kron_tf32_out1(int lane, int m, int half) {
    return m * 16 + half * 8 + wht_kron_tf32_row(lane);
}

/// Product 2: the column behind an element of B. Four steps are four words in a row.
PLAIT_HD constexpr int wht_kron_tf32_in2(int lane, int s, int half) {
    return s / 4 * 32 + lane % 4 * 8 + half * 4 + s % 4;
}

/// The sign of an A operand is that of the lane, for the column half, times that of (tile m, row
/// half, step s), in both products.
PLAIT_HD constexpr bool wht_kron_tf32_lane1(int lane, int half) {
    return wht_kron_minus(wht_kron_tf32_row(lane), lane % 4 * 2 + half);
}
PLAIT_HD constexpr bool wht_kron_tf32_lane2(int lane, int half) {
    return wht_kron_minus(lane / 4, lane % 4 * 2 + half);
}
PLAIT_HD constexpr bool wht_kron_tf32_step(int m, int half, int s) {
    return wht_kron_minus(m * 2 + half, s);
}

/// "f32.f32.n14.t3"
constexpr variant_name wht_kron_tf32_variant(int log_n, int terms) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, "f32.f32.n");
    variant_append(name, at, log_n);
    variant_append(name, at, ".t");
    variant_append(name, at, terms);
    return name;
}

/// False when no such kernel is instantiated.
inline bool wht_kron_tf32_launch(scalar x, scalar y, int log_n, int terms, wht_launch *out) {
    if (!wht_kron_tf32_exists(x, y, log_n, terms)) return false;
    const wht_kron_config c = wht_kron_config_of(log_n);
    const variant_name name = wht_kron_tf32_variant(log_n, terms);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = wht_kron_threads(c);
    out->smem_bytes = wht_kron_tf32_smem_bytes(c);
    out->min_blocks_per_sm = wht_kron_tf32_blocks_per_sm(c, terms);
    out->rows_per_tile = wht_kron_rows_per_tile(c);
    return true;
}

} // namespace plait::impl
