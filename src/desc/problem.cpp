#include "src/desc/problem.h"

#include "src/core/status.h"
#include "src/desc/conv1d.h"
#include "src/desc/kda.h"
#include "src/desc/wht.h"

namespace plait::impl {

const tensor *problem::find(plait_role role) const {
    for (const tensor &t : tensors)
        if (t.role == role) return &t;
    return nullptr;
}

problem make_problem(const descriptor &desc) {
    desc.check();
    problem out{desc.token(), desc.family(), desc.tensors(), {}, true};
    for (const tensor &t : out.tensors)
        if ((t.access & PLAIT_WRITE) && t.elements() > 0) out.empty = false;
    if (const auto *wht = dynamic_cast<const wht_descriptor *>(&desc)) {
        out.form = wht->problem();
    } else if (const auto *conv1d = dynamic_cast<const conv1d_descriptor *>(&desc)) {
        out.form = conv1d->problem();
    } else if (const auto *kda = dynamic_cast<const kda_descriptor *>(&desc)) {
        out.form = kda->problem();
    } else {
        fail(PLAIT_ERR_INTERNAL, "family ", desc.family(), " has no normal form");
    }
    return out;
}

} // namespace plait::impl
