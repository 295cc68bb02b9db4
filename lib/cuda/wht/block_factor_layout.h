// Launch data and address maps of wht.block_factor: y[row] = scale * (H_m (x) H_2^k) x[row] for the
// factors of order 12, 20, 28 and 40, k <= 10.
//
// A block holds whole rows in shared memory, as sums. First the factor: 16-bit elements by tensor
// cores, m elements of 64 columns a warp, whose sums also leave with the low 4 bits of the column
// transformed; others by additions, a column a thread. Then a warp takes segments of consecutive
// elements and transforms their low k bits in two phases in registers, with an exchange of its own
// between them. All its accesses to shared memory are 16 bytes, whose places are swizzled.
#pragma once

#include "lib/common/factor_matrices.h"
#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

constexpr int wht_block_factor_log_k = 10;
constexpr int wht_block_factor_wanted = 6144;   ///< elements of a tile of several rows, at least
constexpr int wht_block_factor_log_columns = 6; ///< of a product on tensor cores
constexpr int wht_block_factor_log_fused = 4;   ///< column bits that go with it

struct wht_block_factor_args {
    const void *x;
    void *y; ///< may equal x; then the row strides are equal
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= m 2^k
    int64_t y_row_stride;
    double scale;
    int32_t log_k;
    int32_t rows_per_tile;
    int32_t blocks_per_sm; ///< as many as run at a time: how far ahead to prefetch
    int32_t lines;         ///< of 128 bytes that the rows of a tile of x take; 0: no prefetch
    bool x_vector;         ///< 16-byte base, strides of whole accesses
    bool y_vector;
    uint64_t minus[wht_factor_max_order]; ///< tensor cores: the matrix, a word per row
};

constexpr bool wht_block_factor_exists(scalar x, wht_factor f, int log_k) {
    if (x != scalar::f32 && x != scalar::f64 && !wht_is_half(x)) return false;
    return f >= wht_factor::h12_paley2 && f <= wht_factor::h40 && log_k >= 0 &&
           log_k <= wht_block_factor_log_k;
}

/// Elements of a 16-byte access to shared memory, to memory, and that a thread holds, as log2.
struct wht_block_factor_shape {
    int log_unit, log_vec, log_items;
};

PLAIT_HD constexpr wht_block_factor_shape wht_block_factor_shape_of(scalar x) {
    return wht_is_half(x)   ? wht_block_factor_shape{2, 3, 6}
           : wht_is_wide(x) ? wht_block_factor_shape{1, 1, 5}
                            : wht_block_factor_shape{2, 2, 6};
}

PLAIT_HD constexpr int wht_block_factor_log_segment(scalar x) {
    return wht_block_factor_shape_of(x).log_items + 5;
}

/// Bits of a segment that a thread holds in a phase; the other ones number the lanes.
PLAIT_HD constexpr uint32_t wht_block_factor_regs(scalar x, int phase) {
    const wht_block_factor_shape s = wht_block_factor_shape_of(x);
    const int middle = s.log_vec + s.log_items - s.log_unit;
    return phase == 0
               ? bit_range(0, s.log_unit) | bit_range(s.log_vec, middle)
               : bit_range(0, s.log_vec) | bit_range(middle, middle + s.log_items - s.log_vec);
}

/// Where an element is in shared memory. Linear over GF(2): word(a ^ b) = word(a) ^ word(b), and
/// only bits 0..2 of the number of its unit differ from its own. Eight lanes in a row, an access,
/// have eight of those: in both phases, and where products with the factor are written.
PLAIT_HD constexpr uint32_t wht_block_factor_word(scalar x, uint32_t e) {
    if (wht_is_half(x)) {
        const uint32_t b = e >> 2; // units of 4: phases by bits {0, 5, 6} and {1, 2, 3}, products
                                   // by {2, 3} and the bit of a row of the factor
        const uint32_t flip =
            (b >> 3 & 3u) ^ (b >> 4 & 6u) ^ (b >> 5 & 2u) ^ (b >> 6 & 2u) ^ (b >> 7 & 2u);
        return e ^ flip << 2;
    }
    const int log_unit = wht_block_factor_shape_of(x).log_unit;
    return e ^ (e >> (log_unit + 4) & 7u) << log_unit; // phases by unit bits 4..6 and 0..2
}

/// Rows that one lane of a tensor core product holds of a column, out of four.
PLAIT_HD constexpr int wht_block_factor_lane_rows(int m) { return m / 4; }

/// A row of the matrix for tensor cores. Lane l of four has the elements from l m / 4 on: bit p of
/// its 16 is the sign of element 2 p of them, bit 8 + p that of element 2 p + 1.
constexpr uint64_t wht_block_factor_signs(wht_factor f, bool adjoint, int row) {
    const int m = wht_factor_order(f), each = wht_block_factor_lane_rows(m);
    uint64_t bits = 0;
    for (int j = 0; j < m; ++j) {
        const int lane = j / each, s = j % each;
        const int sign = adjoint ? wht_factor_sign(f, j, row) : wht_factor_sign(f, row, j);
        if (sign < 0) bits |= uint64_t{1} << (16 * lane + 8 * (s % 2) + s / 2);
    }
    return bits;
}

/// "f32.f20.m20.adj": matrices by number, a symmetric one has no adjoint of its own. Tensor cores
/// take the matrix from the arguments: "bf16.m20".
constexpr variant_name wht_block_factor_variant(scalar x, wht_factor f, bool adjoint) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, scalar_name(x));
    if (!wht_is_half(x)) {
        variant_append(name, at, ".f");
        variant_append(name, at, static_cast<int>(f));
    }
    variant_append(name, at, ".m");
    variant_append(name, at, wht_factor_order(f));
    if (adjoint && !wht_is_half(x)) variant_append(name, at, ".adj");
    return name;
}

/// Warps of an SM: 128 registers a thread, which do not hold a column of 40 elements of f64.
PLAIT_HD constexpr int wht_block_factor_warps(scalar x, int m) {
    return wht_is_wide(x) && m > 28 ? 12 : 16;
}

/// Warps of a block: what is left of an SM for each of the blocks that its memory has room for.
constexpr int wht_block_factor_warps_of(int most, int smem_bytes) {
    const int room = 227 * 1024 / (smem_bytes + 1024);
    const int warps = most / (room < 1 ? 1 : room);
    return warps < 4 ? 4 : warps;
}

inline bool wht_block_factor_launch(scalar x, wht_factor f, bool adjoint, int log_k,
                                    wht_launch *out) {
    if (!wht_block_factor_exists(x, f, log_k)) return false;
    const variant_name name = wht_block_factor_variant(x, f, adjoint && !wht_factor_symmetric(f));
    const int n = wht_factor_order(f) << log_k, segment = 1 << wht_block_factor_log_segment(x);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->rows_per_tile = n >= wht_block_factor_wanted ? 1 : wht_block_factor_wanted / n;
    const int segments = (out->rows_per_tile * n - 1) / segment + 1;
    out->smem_bytes = segments * segment * wht_accumulate_bytes(x);
    const int most = wht_block_factor_warps(x, wht_factor_order(f));
    const int warps = wht_block_factor_warps_of(most, out->smem_bytes);
    out->threads = 32 * warps;
    out->min_blocks_per_sm = most / warps;
    return true;
}

} // namespace plait::impl
