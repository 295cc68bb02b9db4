// plait_conv1d_*: descriptors of causal depthwise convolutions.
#include "src/desc/conv1d.h"

#include "src/api/guard.h"
#include "src/api/handles.h"

using namespace plait::impl;

namespace {

template <class Set> plait_status set(const char *function, plait_desc *desc, Set &&how) noexcept {
    return guard(function, [&] {
        require(desc, "desc");
        auto *conv1d = dynamic_cast<conv1d_descriptor *>(desc->body.get());
        if (!conv1d)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "the descriptor is of family ", desc->body->family(),
                 ", not conv1d");
        how(*conv1d);
    });
}

} // namespace

extern "C" {

plait_status plait_conv1d_create(plait_desc **desc, plait_direction dir, plait_dtype dtype,
                                 int64_t batch, int64_t channels, int64_t length, int64_t width) {
    return guard_create(__func__, desc, "desc", [&] {
        return new plait_desc{
            std::make_unique<conv1d_descriptor>(dir, dtype, batch, channels, length, width)};
    });
}

plait_status plait_conv1d_set_layout(plait_desc *desc, plait_layout layout) {
    return set(__func__, desc, [&](conv1d_descriptor &d) { d.set_layout(layout); });
}

plait_status plait_conv1d_set_activation(plait_desc *desc, plait_activation act) {
    return set(__func__, desc, [&](conv1d_descriptor &d) { d.set_activation(act); });
}

plait_status plait_conv1d_set_residual(plait_desc *desc, int enable) {
    return set(__func__, desc, [&](conv1d_descriptor &d) { d.set_residual(enable != 0); });
}

plait_status plait_conv1d_set_state(plait_desc *desc, plait_state_kind kind, int64_t entries) {
    return set(__func__, desc, [&](conv1d_descriptor &d) { d.set_state(kind, entries); });
}

} // extern "C"
