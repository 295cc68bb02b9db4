// Passes of wht.any as a part of other candidates.
#pragma once

#include "src/planner/wht_any_passes.h"
#include "src/planner/wht_candidates.h"

namespace plait::impl {

/// Bytes of the workspace.
int64_t wht_any_work_bytes(const wht_any_plan &);
void wht_any_price(const wht_any_plan &, const profile &, cost &sum);
/// From X to Y. `problem`: what the plan was made for.
void wht_any_add_steps(const wht_any_plan &, const wht_problem &, const profile &, pipeline &);

} // namespace plait::impl
