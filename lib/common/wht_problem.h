// A Walsh-Hadamard problem in normal form: what a descriptor means, without the ways to say it.
// Extents of 1 are dropped, axes that lie packed behind one another are merged, a bit mask has
// become an alternation of transformed and batch axes. Candidates see this and nothing else.
//
//   Y = scale * DIAG * H * SIGNS * X       adjoint: Y = scale * SIGNS * H^T * conj(DIAG) * X
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
};

struct wht_axis {
    int64_t length;
    int64_t x_stride;     ///< elements
    int64_t y_stride;     ///< elements
    int64_t signs_stride; ///< bits; 0 without SIGNS
    int64_t diag_stride;  ///< elements of DIAG; 0 without DIAG
    bool transformed;
    wht_factor factor; ///< outermost part of a transformed axis
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
    int axes; ///< outermost first; 0 axes: a single element
    wht_axis axis[wht_max_axes];
};

} // namespace plait::impl
