// plait_kda_*: descriptors of Kimi Delta Attention.
#include "src/desc/kda.h"

#include "src/api/guard.h"
#include "src/api/handles.h"

using namespace plait::impl;

namespace {

template <class Set> plait_status set(const char *function, plait_desc *desc, Set &&how) noexcept {
    return guard(function, [&] {
        require(desc, "desc");
        auto *kda = dynamic_cast<kda_descriptor *>(desc->body.get());
        if (!kda)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "the descriptor is of family ", desc->body->family(),
                 ", not kda");
        how(*kda);
    });
}

} // namespace

extern "C" {

plait_status plait_kda_create(plait_desc **desc, plait_direction dir, plait_dtype dtype,
                              int64_t batch, int64_t length, int64_t heads, int64_t value_heads,
                              int64_t dim_k, int64_t dim_v) {
    return guard_create(__func__, desc, "desc", [&] {
        return new plait_desc{std::make_unique<kda_descriptor>(dir, dtype, batch, length, heads,
                                                               value_heads, dim_k, dim_v)};
    });
}

plait_status plait_kda_set_gate(plait_desc *desc, plait_kda_gate gate, double lower_bound) {
    return set(__func__, desc, [&](kda_descriptor &d) { d.set_gate(gate, lower_bound); });
}

plait_status plait_kda_set_beta(plait_desc *desc, int is_logit, double scale) {
    return set(__func__, desc, [&](kda_descriptor &d) { d.set_beta(is_logit != 0, scale); });
}

plait_status plait_kda_set_qk_norm(plait_desc *desc, int enable, double eps) {
    return set(__func__, desc, [&](kda_descriptor &d) { d.set_qk_norm(enable != 0, eps); });
}

plait_status plait_kda_set_scale(plait_desc *desc, double scale) {
    return set(__func__, desc, [&](kda_descriptor &d) { d.set_scale(scale); });
}

plait_status plait_kda_set_state(plait_desc *desc, plait_state_layout layout) {
    return set(__func__, desc, [&](kda_descriptor &d) { d.set_state(layout); });
}

} // extern "C"
