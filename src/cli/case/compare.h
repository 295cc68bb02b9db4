// A result against the reference, one transform at a time.
#pragma once

#include "src/cli/case/dtype.h"
#include "src/cli/case/tensor.h"

#include <string>

namespace plait::cases {

/// The tolerance of a wht in the Euclidean norm of one transform of n = m * 2^k:
/// (k + m) u ||ref|| plus half an ulp of the stored type per element; u of the type that
/// accumulates. Integers are exact.
struct tolerance {
    double relative;    ///< (k + m) u
    plait_dtype stored; ///< of the result
    bool exact;
};
/// `narrow`: the candidate rounds operands to the narrowest type of the call between passes.
tolerance wht_tolerance(const token_parts &parts, plait_dtype x, plait_dtype y, bool narrow);

struct deviation {
    double error = 0; ///< ||y - ref|| / ||ref|| of the worst transform
    double bound = 0; ///< what it may be there
    double ratio = 0; ///< error / bound; over 1: wrong. Infinite for a wrong NaN, Inf or integer
    int64_t worst = -1;
    int64_t transforms = 0;

    void add(int64_t transform, const deviation &of_one);
};

/// `got` holds `length` packed elements of tol.stored; `want` doubles (pairs for complex).
deviation compare_floats(const tolerance &tol, const void *got, const double *want, int64_t length);
/// Equal modulo the width of `stored`.
deviation compare_integers(plait_dtype stored, const void *got, const int64_t *want,
                           int64_t length);

} // namespace plait::cases
