// What the planner gets of a descriptor: token, tensors and the family's normal form.
#pragma once

#include "lib/common/wht_problem.h"
#include "src/desc/desc.h"

#include <variant>

namespace plait::impl {

struct problem {
    std::string token;
    std::string family; ///< "wht"
    std::vector<tensor> tensors;
    std::variant<wht_problem> form;
    bool empty; ///< some extent is 0: no steps

    const wht_problem &wht() const { return std::get<wht_problem>(form); }
    const tensor *find(plait_role role) const; ///< nullptr when not in use
};

/// Runs check() first.
problem make_problem(const descriptor &desc);

} // namespace plait::impl
