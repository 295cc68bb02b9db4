// The passes of wht.cuda.any: which index bits a tile holds, which stages it does, in what order.
#pragma once

#include "lib/cuda/wht/any_layout.h"
#include "src/planner/profile.h"

#include <string>
#include <vector>

namespace plait::impl {

struct wht_any_pass {
    wht_any_args args{};      ///< but the pointers
    bool from_work = false;   ///< else X; after the first pass without a workspace: Y
    bool to_work = false;     ///< else Y
    int64_t elements[2] = {}; ///< contiguous ones of a tile on either side, at least
};

struct wht_any_plan {
    std::string refusal; ///< "" or why there is none
    wht_any_number number{};
    std::vector<wht_any_pass> passes;
    int64_t elements = 0; ///< of the problem
    bool uses_work = false;
    int smem_bytes(const wht_any_pass &p) const;
};

/// Stages keep one order, from the innermost axis and its lowest bit outwards, a factor after the
/// bits of its axis: passes and tiles do not change the results.
wht_any_plan plan_wht_any(const wht_problem &, const profile &);

} // namespace plait::impl
