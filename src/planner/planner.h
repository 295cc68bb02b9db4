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
    std::optional<double> generic;  ///< of a CPU with these instructions: says who is faster
    int64_t work_bytes = 0;         ///< when admissible
};

enum class choice_source { estimate, wisdom, generic, measured, empty };
const char *choice_source_name(choice_source source); ///< "cost-model", "wisdom"

struct choice {
    const candidate *what = nullptr; ///< nullptr: the problem is empty, there are no steps
    pipeline steps;
    cost estimate;
    std::optional<double> measured;
    choice_source source = choice_source::estimate;
};

/// Every candidate of the family with its verdict, admissible ones first, best first: measured ones
/// by time, then the others by estimate, then table order, and the definitions (narrowest::exact)
/// behind all of these. Those that are refused follow in table order.
std::vector<ranked> rank(const problem &, const profile &, const preferences &, const wisdom &);

/// ESTIMATE takes the first of rank(). MEASURE times the four best by estimate, EXHAUSTIVE all,
/// unless wisdom has their times; the fastest measured one is chosen. A candidate that cannot be
/// measured is passed over; the next by estimate takes its place. `memory` serves the measurements
/// (nullptr: the device's own allocator).
///
/// Throws NOT_SUPPORTED naming the nearest candidate and the rule it failed, NO_WISDOM, NO_DEVICE
/// when it would have to measure without a device (`device` == nullptr).
choice choose(const problem &, const profile &, const preferences &, wisdom &,
              const backend *device, allocator *memory = nullptr);

/// The texts of plait_plan_print and plait_candidates_print.
std::string print_plan(const problem &, const profile &, plait_rigor, const choice &, plait_format);
std::string print_candidates(const problem &, const profile &, const std::vector<ranked> &,
                             plait_format);

} // namespace plait::impl
