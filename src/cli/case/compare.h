// A result against the reference, one part (a transform, a channel) at a time.
#pragma once

#include <cstdint>
#include <plait/plait.h>

namespace plait::cases {

/// In the Euclidean norm: `relative` times the norm of the reference, plus half an ulp of the
/// stored type per element.
struct tolerance {
    double relative;
    plait_dtype stored; ///< of the result
    bool exact;
    double least_norm = 0; ///< of sums whose terms are larger: the error counts against this
};

struct deviation {
    double error = 0; ///< ||y - ref|| / ||ref|| of the worst part
    double bound = 0; ///< what it may be there
    double ratio = 0; ///< over 1: wrong. Infinite for a wrong NaN, Inf or integer
    int64_t worst = -1;
    int64_t compared = 0; ///< parts

    void add(int64_t part, const deviation &of_one);
};

/// `got` holds `length` packed elements of tol.stored; `want` doubles (pairs for complex).
deviation compare_floats(const tolerance &tol, const void *got, const double *want, int64_t length);
/// Element by element, where errors grow with other quantities than the result.
struct element_tolerance {
    double relative;  ///< of `size`: what the terms of a sum add up to without their signs
    double half_ulps; ///< of the stored type, around the reference
    plait_dtype stored;
};
/// The ratio is that of the worst element. `want` and `size`: one double an element.
deviation compare_elements(const element_tolerance &tol, const void *got, const double *want,
                           const double *size, int64_t length);
/// Equal modulo the width of `stored`.
deviation compare_integers(plait_dtype stored, const void *got, const int64_t *want,
                           int64_t length);

} // namespace plait::cases
