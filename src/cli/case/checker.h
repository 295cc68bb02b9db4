// Transforms of a problem picked, recomputed in float64 and compared.
#pragma once

#include "src/cli/case/bound_plan.h"
#include "src/cli/case/compare.h"
#include "src/cli/case/reference.h"

#include <functional>

namespace plait::cases {

/// Transforms to check: all of them, or `limit` spread evenly with the first and the last.
std::vector<int64_t> pick_transforms(int64_t transforms, int64_t limit);

/// Copies the span of a part of one tensor, `elements` long from `offset` elements behind the base,
/// to the front of `to`. Where it comes from (host image, device) is the caller's business.
using fetch = std::function<void(const tensor &t, int64_t offset, int64_t elements, void *to)>;

struct check_result {
    deviation values;
    bool overflow_checked = false; ///< only when every transform was checked
    int32_t overflow_wanted = 0;
};

/// `inputs` gives x, signs and diag as they were before the transform, `outputs` gives y.
check_result check_transforms(const std::string &token, const std::vector<tensor> &tensors,
                              const std::vector<int64_t> &which, reference &ref, bool narrow,
                              const fetch &inputs, const fetch &outputs);

} // namespace plait::cases
