// Arguments of the kernel wht.lines: one pass over a tensor, as tiles. The planner cuts a problem
// into passes and a pass into tiles; the kernel knows no problem.
#pragma once

#include "lib/common/wht_problem.h"
#include "lib/cpu/team_layout.h"

#include <cstdint>

namespace plait::impl::cpu {

/// An axis that tiles stand along. Strides in elements, of SIGNS in bits.
struct wht_lines_axis {
    int64_t length, x_stride, y_stride, signs_stride, diag_stride;
};

/// What a pass does along an axis of its tile.
enum class wht_lines_kind : int8_t { batch, bits, factor };

/// An axis of the tile. In the tile it has a pitch of its own, in real numbers.
struct wht_lines_tile_axis {
    int64_t length, x_stride, y_stride, signs_stride, diag_stride, pitch;
    wht_lines_kind kind;
    wht_factor factor;
};

/// Tile axis `tile` is a piece of a longer axis, whose pieces are outer axis `outer`; the last
/// piece has a length of its own.
struct wht_lines_cut {
    int32_t outer, tile;
    int64_t last;
};

constexpr int wht_lines_max_outer = 60;
constexpr int wht_lines_max_tile = 24;

struct wht_lines_args {
    const void *x;
    void *y;
    const uint32_t *signs; ///< null: not in this pass
    const void *diag;      ///< null: not in this pass
    int32_t *overflow;     ///< null: not in use
    void *scratch;         ///< wht_lines_scratch_bytes, 64-byte aligned
    scalar x_type, y_type; ///< stored types
    scalar arithmetic;     ///< f32, f64, i32 or i64, also of complex types
    scalar diag_type;
    int32_t parts;     ///< real numbers of an element: 2 for complex types
    wht_order order;   ///< of the results along every axis of bits
    bool adjoint;      ///< factor matrices are transposed
    bool signs_first;  ///< SIGNS at the load, else at the store
    bool diag_first;   ///< conj(DIAG) at the load, else DIAG at the store
    bool clear;        ///< OVERFLOW is cleared; else this pass adds to it
    double scale;      ///< 1 for integers
    int64_t tile_size; ///< real numbers, a multiple of wht_lines_vector
    int32_t outer_axes, tile_axes, cuts;
    wht_lines_cut cut[2];
    wht_lines_axis outer[wht_lines_max_outer];    ///< outermost first
    wht_lines_tile_axis tile[wht_lines_max_tile]; ///< ascending pitch
};

/// The type of the arithmetic, or none where the kernel does not take this pair of types. Sums of
/// i32 that may overflow are made in i64.
constexpr scalar wht_lines_arithmetic(scalar x, scalar y, bool overflow) {
    const auto real = [](scalar s) {
        return s == scalar::f16 || s == scalar::bf16 || s == scalar::f32 || s == scalar::f64;
    };
    const auto complex = [](scalar s) { return s == scalar::c64 || s == scalar::c128; };
    const auto integer = [](scalar s) { return s == scalar::i32 || s == scalar::i64; };
    if (real(x) && real(y)) return x == scalar::f64 || y == scalar::f64 ? scalar::f64 : scalar::f32;
    if (complex(x) && complex(y))
        return x == scalar::c64 && y == scalar::c64 ? scalar::f32 : scalar::f64;
    if (integer(x) && integer(y))
        return x == scalar::i64 || y == scalar::i64 || overflow ? scalar::i64 : scalar::i32;
    return scalar::none;
}

/// A tile stays within L2 beside what streams through; up to the second size it stays within L1.
constexpr int64_t wht_lines_l2_bytes = int64_t{1} << 18;
constexpr int64_t wht_lines_l1_bytes = int64_t{1} << 14;

/// Contiguous bytes that a tile takes from a row at least: rows far apart are on pages of their
/// own, and to find a page takes longer than to fetch a few cache lines of it.
constexpr int64_t wht_lines_run_bytes = 1024;

/// Parts of a tile begin at multiples of the longest vector of any type, in numbers.
constexpr int64_t wht_lines_vector = 16;

/// Opening a parallel region takes as long as one core takes for about this much.
constexpr int64_t wht_lines_thread_bytes = int64_t{1} << 15;

constexpr int wht_lines_team(int64_t bytes, int threads) {
    return whole_team(bytes / wht_lines_thread_bytes, threads);
}

constexpr int64_t wht_lines_scratch_bytes(int64_t tile_size, scalar arithmetic, int threads) {
    return tile_size * scalar_bytes(arithmetic) * (threads < 1 ? 1 : threads);
}

} // namespace plait::impl::cpu
