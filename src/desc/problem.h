// What the planner gets of a descriptor: token, tensors and the family's normal form.
#pragma once

#include "lib/common/conv1d_problem.h"
#include "lib/common/kda_problem.h"
#include "lib/common/wht_problem.h"
#include "src/desc/desc.h"

#include <variant>

namespace plait::impl {

struct problem {
    std::string token;
    std::string family; ///< "wht", "conv1d.fwd"
    std::vector<tensor> tensors;
    std::variant<wht_problem, conv1d_problem, kda_problem> form;
    bool empty; ///< nothing is to be written: no steps

    const wht_problem &wht() const { return std::get<wht_problem>(form); }
    const conv1d_problem &conv1d() const { return std::get<conv1d_problem>(form); }
    const kda_problem &kda() const { return std::get<kda_problem>(form); }
    const tensor *find(plait_role role) const; ///< nullptr when not in use
};

/// Runs check() first.
problem make_problem(const descriptor &desc);

} // namespace plait::impl
