// The candidate list of a problem, as the library prints it in JSON.
#pragma once

#include "src/cli/case/check.h"
#include "src/cli/options.h"

#include <string>
#include <vector>

namespace plait::cli {

struct candidate_row {
    std::string name;
    bool applies;
    cases::rounding how;
    std::string reason; ///< when it does not apply
    int revision;
};

std::vector<candidate_row> list_candidates(const session &s, const plait_desc *desc);

/// Plans to run for a problem: the chosen one, or one of every candidate that applies.
struct planned {
    cases::plan_ptr plan;
    std::string candidate;
    cases::rounding how;
    int revision;
    const plait_context *context; ///< that made the plan
};
std::vector<planned> make_plans(const session &s, const plait_desc *desc, bool all);

} // namespace plait::cli
