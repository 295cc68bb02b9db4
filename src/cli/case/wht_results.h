// What stands around the results of a wht: their largest, their scales and their histogram.
#pragma once

#include "src/cli/case/compare.h"
#include "src/cli/case/tensor.h"

#include <string>
#include <vector>

namespace plait::cases {

/// Values of one transform: doubles (pairs for complex types), or integers before they wrap.
struct wht_values {
    std::vector<double> floats;
    std::vector<int64_t> integers;
    int64_t count = 0;
};

/// AMAX or SCALES, packed in `said`, of the results of one transform. `relative` of their norm may
/// be wrong. "" or the first value that is.
std::string wrong_group(const tensor &t, const void *said, int64_t groups, const wht_values &of,
                        const tolerance &tol);

/// HISTOGRAM, packed, with the bins of the option "65.-64.2".
std::string wrong_histogram(const std::string &option, const int64_t *said, const wht_values &of,
                            plait_dtype stored);

} // namespace plait::cases
