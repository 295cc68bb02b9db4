// Measuring one plan against a copy of the same bytes. The rules are in benchmarks/README.md.
#pragma once

#include "src/cli/candidates.h"
#include "src/cli/case/device.h"
#include "src/cli/case/tensor.h"

#include <functional>

namespace plait::cli {

struct bench_options {
    int repetitions = 30;
    bool latency = false; ///< one set of buffers that stays in cache, replayed as a graph
    uint64_t seed = 1;
    bool accuracy = true;
};

struct bench_result {
    double median = 0, minimum = 0; ///< seconds per call
    double spread = 0;              ///< (90th - 10th percentile) / median
    double copy = 0;                ///< median seconds of the copy, between the best places
    double estimate = 0;            ///< of the cost model, seconds
    double relative_error = -1;     ///< negative: not measured
    size_t bytes = 0;               ///< that the call must read and write
    size_t work_bytes = 0;
    int repetitions = 0;
    int calls_per_sample = 1; ///< over 1: replayed as one graph
    int buffer_sets = 1;
    int copy_places = 1; ///< that were tried
    double r() const { return median / copy; }
    double bytes_per_second() const { return static_cast<double>(bytes) / median; }
};

/// Tells how far it is: 0 .. 1.
using on_progress = std::function<void(double)>;

bench_result bench(const planned &p, const std::string &token, const std::vector<cases::tensor> &t,
                   cases::device &dev, const bench_options &o, const on_progress &progress);

} // namespace plait::cli
