// The memory of a measurement: what a call must move, tensors full of random data, and the places
// between which the copy runs.
#pragma once

#include "src/cli/case/bound_plan.h"

namespace plait::cli {

/// What a call is held against (rules: benchmarks/README.md).
struct yardstick {
    size_t bytes;  ///< that the call must read and write
    size_t copied; ///< of the copy, which reads and writes each
};
yardstick yardstick_of(const cases::token_parts &parts, const std::vector<cases::tensor> &tensors);

/// Tensors of one call, and two ends for the copy: tensors where they are large enough.
struct buffer_set {
    buffer_set(cases::device &dev, const std::vector<cases::tensor> &tensors, size_t copied);
    /// Random data everywhere, the same in each set; `first` is the set that has it already.
    void fill(cases::device &dev, const cases::token_parts &parts,
              const std::vector<cases::tensor> &tensors, uint64_t seed, const buffer_set *first);
    static size_t bytes_needed(const std::vector<cases::tensor> &tensors, size_t copied);

    cases::placement where;
    cases::buffer pristine, target;
    void *from = nullptr;
    void *to = nullptr;
    bool restores = false; ///< in place: the copy puts the input back, which each call destroys
};

/// A source and a target that lie elsewhere: where two large buffers lie changes the speed of a
/// copy between them by up to a half.
struct copy_place {
    /// `number`: by so many large pages and cache lines the target is moved.
    copy_place(cases::device &dev, size_t copied, int number, const void *data);
    static size_t bytes_needed(size_t copied, int number);
    cases::buffer source, target;
    void *from;
    void *to;
};

} // namespace plait::cli
