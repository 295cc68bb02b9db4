// A Walsh-Hadamard problem in normal form: what a descriptor means, without the ways to say it.
// Extents of 1 are dropped, axes that lie packed behind one another are merged, a bit mask has
// become an alternation of transformed and batch axes. Candidates see this and nothing else.
//
//   Y = scale * DIAG * H * DIAG_IN * SIGNS * X
//   adjoint: Y = scale * SIGNS * conj(DIAG_IN) * H^T * conj(DIAG) * X
// with DIAG_MID: H * DIAG_MID * H for H, H^T * conj(DIAG_MID) * H^T for H^T.
#pragma once

#include "lib/common/scalar.h"

#include <cstdint>

namespace plait::impl {

enum class wht_order : int32_t { natural = 0, sequency = 1, dyadic = 2 };

/// Named factor matrices, with the numbers of plait_wht_factor.
enum class wht_factor : int32_t {
    h1 = 0,
    h12_paley2 = 1,
    h12_sloane = 2,
    h20_williamson = 3,
    h28_williamson = 4,
    h40 = 5,
    h4_regular = 6,
    h20_paley1 = 7,
    h28_paley2 = 8,
    h36_paley2 = 9,
    h52_williamson = 10,
    h60_paley1 = 11,
    h108_paley1 = 12,
    h116_williamson = 13,
    h124_williamson = 14,
    h140_paley1 = 15,
    h156_williamson = 16,
    h172_williamson = 17,
    given = 64, ///< the matrix of the role FACTOR; no plait_wht_factor
};

struct wht_axis {
    int64_t length;
    int64_t x_stride;     ///< elements
    int64_t y_stride;     ///< elements
    int64_t signs_stride; ///< bits; 0 without SIGNS
    int64_t diag_stride;  ///< elements of DIAG; 0 without DIAG
    bool transformed;
    wht_factor factor; ///< outermost part of a transformed axis
    // Elements; 0 where the tensor is not in use.
    int64_t diag_in_stride = 0;
    int64_t diag_mid_stride = 0;
    // Elements, of batch axes; 0 where the tensor is not in use.
    int64_t amax_stride = 0;
    int64_t scales_stride = 0;
    int64_t histogram_stride = 0;
};

/// 8 extents, one of which a bit mask may split into at most 63 runs.
constexpr int wht_max_axes = 72;

struct wht_problem {
    scalar x, y;     ///< stored types
    scalar diag;     ///< none: DIAG is not in use
    bool signs;      ///< SIGNS is in use
    bool overflow;   ///< OVERFLOW is in use
    wht_order order; ///< applies to every transformed axis
    bool adjoint;
    bool alias;    ///< X and Y may be the same pointer
    double scale;  ///< finite; 1 for integers
    int64_t bound; ///< promise |x| <= bound, 0: none
    int x_align;   ///< promised alignment of the bases, bytes
    int y_align;

    // What few kernels take: wht_ref_only (src/planner) says which of it is in use.
    scalar diag_in = scalar::none, diag_mid = scalar::none; ///< none: not in use
    bool stores = true;                                     ///< Y is in use

    int given_order = 0;       ///< of the matrix FACTOR; 0: not in use
    int64_t given_stride[2]{}; ///< of FACTOR, bits: from row to row, from column to column

    // ROWS: the one transformed axis of Y (adjoint: of X) is replaced by `rows` chosen entries.
    scalar rows_type = scalar::none; ///< none: not in use
    int64_t rows = 0;
    int64_t index_stride = 0; ///< of ROWS
    int64_t row_stride = 0;   ///< of Y (adjoint: of X) from entry to entry
    bool status = false;

    // AMAX and SCALES: `groups` values of `group_length` results each, per transform.
    scalar amax = scalar::none; ///< none: not in use
    bool scales = false;
    int64_t groups = 1, group_length = 0;
    int64_t amax_group_stride = 0, scales_group_stride = 0;

    // HISTOGRAM: bin b counts first_bin + b * bin_width <= y < first_bin + (b + 1) * bin_width.
    int64_t bins = 0; ///< 0: not in use
    int64_t first_bin = 0, bin_width = 1;
    int64_t bin_stride = 0;

    int axes; ///< outermost first; 0 axes: a single element
    wht_axis axis[wht_max_axes];
};

} // namespace plait::impl
