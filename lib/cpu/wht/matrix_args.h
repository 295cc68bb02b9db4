// Arguments of wht.matrix: a factor matrix along one axis of packed numbers.
#pragma once

#include "lib/common/wht_problem.h"

#include <cstdint>

namespace plait::impl::cpu {

struct wht_matrix_args {
    void *w;                ///< [groups][order][columns], in place
    const uint32_t *factor; ///< the matrix of FACTOR, bits; null: of its name
    int8_t *signs;          ///< order * order of them: scratch
    scalar w_type;          ///< f32 f64 c64 c128 i32 i64
    wht_factor name;
    int32_t order;
    bool transposed;
    int64_t factor_stride[2]; ///< bits: from row to row, from column to column
    int64_t groups, columns;
};

} // namespace plait::impl::cpu
