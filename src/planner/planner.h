// problem + profile + preferences + wisdom -> ranked candidates -> choice. Pure but for measuring,
// which goes through the abstract backend.
#pragma once

#include "src/backend/backend.h"
#include "src/planner/candidate.h"
#include "src/planner/preferences.h"
#include "src/planner/wisdom.h"

namespace plait::impl {

struct ranked {
    const candidate *what;
    verdict refusal;                ///< "" = admissible
    cost estimate;                  ///< when admissible
    std::optional<double> measured; ///< wisdom of this problem and device, seconds
    int64_t work_bytes = 0;
};

enum class choice_source { estimate, wisdom, measured, empty };

struct choice {
    const candidate *what = nullptr; ///< nullptr: the problem is empty, there are no steps
    pipeline steps;
    cost estimate;
    std::optional<double> measured;
    choice_source source = choice_source::estimate;
};

/// Every candidate of the family with its verdict, admissible ones first, best first.
std::vector<ranked> rank(const problem &, const profile &, const preferences &, const wisdom &);

/// Throws NOT_SUPPORTED naming the nearest candidate and the rule it failed, NO_WISDOM, NO_DEVICE
/// when it would have to measure without a device (`device` == nullptr).
choice choose(const problem &, const profile &, const preferences &, wisdom &, backend *device);

/// The texts of plait_plan_print and plait_candidates_print.
std::string print_plan(const problem &, const profile &, plait_rigor, const choice &, plait_format);
std::string print_candidates(const problem &, const profile &, const std::vector<ranked> &,
                             plait_format);

} // namespace plait::impl
