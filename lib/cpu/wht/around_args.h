// Arguments of wht.inputs and wht.results: what stands before and behind the passes of a transform.
#pragma once

#include "lib/common/wht_problem.h"
#include "lib/cpu/team_layout.h"

#include <cstdint>

namespace plait::impl::cpu {

// Between them the numbers lie packed, transform after transform, in natural order: of one all
// transformed axes, row-major.

/// Pointers that are not in use are null.
struct wht_inputs_args {
    const void *x; ///< null: `w` times DIAG_MID, in place
    void *w;
    const uint32_t *signs; ///< before the transform
    const void *diag;      ///< DIAG_IN, or DIAG of an adjoint, or DIAG_MID
    const void *rows;      ///< of an adjoint
    int32_t *status;
    scalar w_type; ///< f32 f64 c64 c128 i32 i64
    scalar diag_type;
    wht_problem problem;
};

struct wht_results_args {
    const void *w;
    void *y;
    const uint32_t *signs; ///< behind the transform
    const void *diag;      ///< DIAG, or DIAG_IN of an adjoint
    int32_t *overflow;
    const void *rows; ///< of no adjoint
    void *amax;
    float *scales;
    int64_t *histogram;
    int32_t *status;
    uint64_t
        *largest; ///< bits of the largest magnitude of each group; null without AMAX and SCALES
    scalar w_type;
    scalar diag_type;
    wht_problem problem;
};

/// Elements that a thread takes at a time: what is fetched for them and their neighbours in the
/// batch stays in L1.
constexpr int64_t wht_around_piece = 512;
/// The same where they lie apart, each in a cache line of its own and all in a few sets.
constexpr int64_t wht_around_apart = 64;

/// Opening a parallel region takes as long as one core takes for about this many elements.
constexpr int64_t wht_around_thread_elements = int64_t{1} << 12;

constexpr int wht_around_team(int64_t elements, int threads) {
    return whole_team(elements / wht_around_thread_elements, threads);
}

} // namespace plait::impl::cpu
