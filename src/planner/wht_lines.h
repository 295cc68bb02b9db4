// A Walsh-Hadamard problem as passes of the kernel wht.lines.
#pragma once

#include "lib/cpu/wht/lines_args.h"
#include "src/planner/wht_candidates.h"

#include <vector>

namespace plait::impl {

struct wht_lines_pass {
    cpu::wht_lines_args args; ///< without pointers
    double additions;         ///< for each real number
    bool first, last;
};

struct wht_lines_plan {
    std::vector<wht_lines_pass> passes;
    scalar arithmetic = scalar::none;
    int64_t elements = 1;
    int64_t between_bytes = 0; ///< 0: between the passes the numbers are in Y
    int64_t scratch_bytes = 0; ///< tiles of all threads
    int team = 1;
};

/// "" and the passes, or why the kernel does not take the problem.
verdict wht_as_lines(const problem &, int threads, wht_lines_plan *out);

} // namespace plait::impl
