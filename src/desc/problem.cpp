#include "src/desc/problem.h"

#include "src/core/status.h"
#include "src/desc/wht.h"

namespace plait::impl {

const tensor *problem::find(plait_role role) const {
    for (const tensor &t : tensors)
        if (t.role == role) return &t;
    return nullptr;
}

problem make_problem(const descriptor &desc) {
    desc.check();
    const auto *wht = dynamic_cast<const wht_descriptor *>(&desc);
    if (!wht) fail(PLAIT_ERR_INTERNAL, "family ", desc.family(), " has no normal form");
    return {desc.token(), desc.family(), desc.tensors(), wht->problem(), wht->empty()};
}

} // namespace plait::impl
