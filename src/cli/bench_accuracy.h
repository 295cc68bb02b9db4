// The error of what is measured, against float64.
#pragma once

#include "src/cli/bench_buffers.h"
#include "src/cli/candidates.h"

#include <functional>

namespace plait::cli {

/// ||y - ref|| / ||ref|| of the worst of a few transforms or channels of one more call, which
/// `execute_once` makes on `set`.
double measure_error(const planned &p, const std::string &token,
                     const std::vector<cases::tensor> &tensors, cases::device &dev, buffer_set &set,
                     const std::function<void()> &execute_once);

} // namespace plait::cli
