// What stands before and behind the passes of a Walsh-Hadamard transform, as data: arguments of
// wht.widen, wht.factor, wht.finish and their small helpers. The planner (wht_walks.cpp,
// wht_cuda_composed.cpp) fills them in.
#pragma once

#include "lib/common/factor_matrices.h"
#include "lib/common/hd.h"
#include "lib/common/wht_problem.h"

#include <cstdint>

namespace plait::impl {

constexpr int wht_walk_threads = 256;
constexpr int wht_walk_most_axes = 12;   ///< outside a line
constexpr int wht_walk_tile = 2048;      ///< elements, at most
constexpr int wht_walk_most_lines = 128; ///< of a tile

template <int K> struct wht_walk_axis {
    int64_t length;
    int64_t stride[K]; ///< elements of each tensor
};

/// A way over all elements: lines along the innermost axis, a tile being a chunk of a line or
/// several whole lines. K tensors, each with strides of its own.
template <int K> struct wht_walk {
    int64_t tiles;
    int64_t lines;
    int64_t length; ///< of a line
    int64_t chunks; ///< tiles of a line
    uint64_t magic; ///< 2^32 / what follows, rounded up
    int32_t part;   ///< elements of a tile on one line
    int32_t lines_per_tile;
    int32_t axes;                              ///< outside a line
    int64_t step[K];                           ///< along a line
    wht_walk_axis<K> axis[wht_walk_most_axes]; ///< innermost first
};

/// Elements of a tile; those behind the end of the walk come last.
template <int K> PLAIT_HD constexpr int wht_walk_count(const wht_walk<K> &w, int64_t tile) {
    if (w.lines_per_tile > 1) {
        const int64_t left = w.lines - tile * w.lines_per_tile;
        return static_cast<int>((left < w.lines_per_tile ? left : w.lines_per_tile) * w.length);
    }
    const int64_t left = w.length - tile % w.chunks * w.part;
    return static_cast<int>(left < w.part ? left : w.part);
}

/// Number of the first element of a tile in the order of the walk.
template <int K> PLAIT_HD constexpr int64_t wht_walk_number(const wht_walk<K> &w, int64_t tile) {
    return tile / w.chunks * w.lines_per_tile * w.length + tile % w.chunks * w.part;
}

/// Line of element `i` of a tile, exact below 2^16.
template <int K> PLAIT_HD constexpr int wht_walk_line(const wht_walk<K> &w, int i) {
    return static_cast<int>(static_cast<uint64_t>(i) * w.magic >> 32);
}

// ---- X -> the numbers of the transform -------------------------------------------------------

enum wht_widen_tensor {
    wht_widen_w,
    wht_widen_x,
    wht_widen_signs,
    wht_widen_diag,
    wht_widen_place
};
constexpr int wht_widen_tensors = 5;

/// How X becomes the numbers of a transform.
struct wht_source {
    scalar x;       ///< stored
    scalar w;       ///< the numbers as they are kept: f32 f64 c64 c128 i32 i64
    scalar diag;    ///< none: not in use
    bool conj;      ///< conj(diag)
    bool signs;     ///< in use
    bool gathers;   ///< element k is the sum of the entries of X whose ROWS is k
    int64_t x_step; ///< of X, from entry to entry
};

struct wht_widen_args {
    const void *x;
    void *w;
    const void *signs;
    const void *diag;
    int32_t *overflow;
    const int64_t *chains; ///< first entry of each place, then the next one of each entry; or null
    wht_source source;
    int64_t places; ///< of `chains`
    int64_t half;   ///< not 0: W gets v >> 32, and as far behind it v modulo 2^32
    wht_walk<wht_widen_tensors> walk;
};

// ---- Factor matrices beyond those that wht.any has --------------------------------------------

constexpr int wht_factor_most_bytes = 65536; ///< of the numbers of a tile

/// Signs of a named matrix from few numbers: Paley I or Williamson, orders 52 to 172.
struct wht_factor_rule {
    int32_t paley;   ///< the prime q of Paley I, or 0
    int32_t s;       ///< order of the circulants of Williamson's form
    uint64_t row[4]; ///< entries of -1 of the first rows; Paley: squares modulo q
};

constexpr wht_factor_rule wht_factor_rule_of(wht_factor f) {
    wht_factor_rule r{};
    const factors::four_rows *w = nullptr;
    switch (f) {
    case wht_factor::h52_williamson: w = &factors::w52; break;
    case wht_factor::h116_williamson: w = &factors::w116; break;
    case wht_factor::h124_williamson: w = &factors::w124; break;
    case wht_factor::h156_williamson: w = &factors::w156; break;
    case wht_factor::h172_williamson: w = &factors::w172; break;
    default: r.paley = wht_factor_order(f) - 1; break;
    }
    if (w) {
        r.s = w->s;
        for (int i = 0; i < 4; ++i) r.row[i] = w->row[i];
    } else {
        for (int b = 1; b <= r.paley / 2; ++b) {
            const int a = b * b % r.paley;
            r.row[a / 64] |= uint64_t{1} << (a % 64);
        }
    }
    return r;
}

/// Whether entry (i, j) is -1.
PLAIT_HD constexpr bool wht_factor_minus(const wht_factor_rule &r, int i, int j) {
    if (r.paley > 0) {
        if (i == 0) return j != 0;
        if (j == 0 || i == j) return false;
        const int a = i > j ? i - j : i - j + r.paley;
        return (r.row[a / 64] >> (a % 64) & 1u) == 0;
    }
    const int p = i / r.s, q = j / r.s;
    const int k = j % r.s - i % r.s;
    // Rows of the quaternion table: bit q of nibble p is set where the block is negated.
    const bool negated = (0x3950u >> (4 * p + q) & 1u) != 0;
    return ((r.row[p ^ q] >> (k < 0 ? k + r.s : k) & 1u) != 0) != negated;
}

struct wht_factor_args {
    const void *x; ///< as wht_widen_args; w may equal x
    void *w;
    const void *signs;
    const void *diag;
    int32_t *overflow;
    const void *matrix; ///< bits; null: `rule`
    wht_source source;
    wht_factor_rule rule;
    int64_t matrix_stride[2];        ///< bits: from row to row, from column to column
    int64_t step[wht_widen_tensors]; ///< along the axis of the matrix
    int32_t order, bits;             ///< of the matrix; a tile has 2^bits columns
    bool transposed;
    bool along;    ///< lanes lie along the axis of the matrix
    bool products; ///< f32, 32 columns: entries are floats, an addition is a product and a sum
    wht_walk<wht_widen_tensors> walk; ///< over the columns
};

/// Rows of a warp's block; rows of products in whole such blocks.
constexpr int wht_factor_rows = 8;
PLAIT_HD constexpr int wht_factor_padded(int order) {
    return (order + wht_factor_rows - 1) / wht_factor_rows * wht_factor_rows;
}

/// Shared memory: words, then bytes of signs: entry [k / 8][j], bit k % 8; with `products` floats
/// of the matrix instead, entry [j][k] of padded rows.
PLAIT_HD constexpr int wht_factor_signs_at(const wht_factor_args &a, int number_bytes) {
    const int slots = a.order << a.bits; // wht_any_words
    return (number_bytes * (slots + (slots >> 5) + (slots >> 10) + 1) + 15) / 16 * 16;
}
PLAIT_HD constexpr int wht_factor_smem(const wht_factor_args &a, int number_bytes) {
    const int padded = wht_factor_padded(a.order);
    return wht_factor_signs_at(a, number_bytes) +
           (a.products ? 4 * padded * a.order : padded / 8 * a.order);
}

// ---- Results -> Y, AMAX, SCALES, HISTOGRAM ----------------------------------------------------

enum wht_finish_tensor {
    wht_finish_w,
    wht_finish_y,
    wht_finish_diag,
    wht_finish_group,
    wht_finish_bins,
    wht_finish_rows
};
constexpr int wht_finish_tensors = 6;
constexpr int wht_finish_most_bins = 2048; ///< counters of a block

struct wht_finish_args {
    const void *w;
    void *y;          ///< null: not stored
    const void *diag; ///< conj(DIAG_IN) of an adjoint, or `signs`
    int32_t *overflow;
    const void *rows;
    void *largest;       ///< bits of the largest magnitude of each group, 0 at first; or null
    const float *scales; ///< one for each group, or null
    unsigned long long *histogram;
    scalar w_type, y_type, diag_type, rows_type; ///< rows_type none: all results
    int64_t places, place_step;                  ///< of the transform; of W from place to place
    int64_t half; ///< not 0: results are 2^32 W[i] + W[i + half], before SIGNS of an adjoint
    int64_t bins, first_bin, bin_width, bin_stride;
    int32_t bin_shift; ///< log2 of bin_width, or negative
    bool stores;       ///< Y
    bool signs;        ///< `diag` has SIGNS
    wht_walk<wht_finish_tensors> walk;
};

/// Bytes of a group's largest.
constexpr int wht_largest_bytes(scalar w) { return w == scalar::f32 ? 4 : 8; }

enum wht_groups_tensor { wht_groups_amax, wht_groups_scales };
constexpr int wht_groups_tensors = 2;

struct wht_groups_args {
    const void *largest;
    void *amax;    ///< or null
    float *scales; ///< or null
    float *dense;  ///< or null: the same, in the order of the groups
    scalar w_type, amax_type;
    wht_walk<wht_groups_tensors> walk; ///< groups in order
};

struct wht_clear_args {
    int64_t *out;
    wht_walk<1> walk;
};

// ---- ROWS -------------------------------------------------------------------------------------

/// For each place of a transform the entries of ROWS that name it, in ascending order.
struct wht_chains_args {
    const void *rows;
    int64_t *chains; ///< places + count of them
    int64_t places, count, stride;
    scalar type;
    int32_t warps; ///< each has a range of places
};

struct wht_rows_status_args {
    const void *rows;
    int32_t *status; ///< 0 at first
    int64_t places, count, stride;
    scalar type;
};

} // namespace plait::impl
