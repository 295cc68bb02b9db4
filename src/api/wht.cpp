// plait_wht_*: descriptors of Walsh-Hadamard transforms.
#include "src/desc/wht.h"

#include "src/api/guard.h"
#include "src/api/handles.h"

using namespace plait::impl;

namespace {

template <class Set> plait_status set(const char *function, plait_desc *desc, Set &&how) noexcept {
    return guard(function, [&] {
        require(desc, "desc");
        auto *wht = dynamic_cast<wht_descriptor *>(desc->body.get());
        if (!wht)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "the descriptor is of family ", desc->body->family(),
                 ", not wht");
        how(*wht);
    });
}

} // namespace

extern "C" {

plait_status plait_wht_create(plait_desc **desc, plait_dtype dtype, int rank,
                              const int64_t *extents) {
    return guard_create(__func__, desc, "desc", [&] {
        return new plait_desc{std::make_unique<wht_descriptor>(dtype, rank, extents)};
    });
}

plait_status plait_wht_set_axes(plait_desc *desc, uint32_t axes) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_axes(axes); });
}

plait_status plait_wht_set_bits(plait_desc *desc, uint64_t bits) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_bits(bits); });
}

plait_status plait_wht_set_factor(plait_desc *desc, int axis, plait_wht_factor factor) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_factor(axis, factor); });
}

plait_status plait_wht_set_factor_order(plait_desc *desc, int axis, int order) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_factor_order(axis, order); });
}

plait_status plait_wht_set_order(plait_desc *desc, plait_wht_order order) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_order(order); });
}

plait_status plait_wht_set_adjoint(plait_desc *desc, int enable) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_adjoint(enable != 0); });
}

plait_status plait_wht_set_scale(plait_desc *desc, double scale) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_scale(scale); });
}

plait_status plait_wht_set_bound(plait_desc *desc, int64_t bound) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_bound(bound); });
}

plait_status plait_wht_set_rows(plait_desc *desc, int64_t count) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_rows(count); });
}

plait_status plait_wht_set_group(plait_desc *desc, int64_t length) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_group(length); });
}

plait_status plait_wht_set_histogram(plait_desc *desc, int64_t bins, int64_t first, int64_t width) {
    return set(__func__, desc, [&](wht_descriptor &d) { d.set_histogram({bins, first, width}); });
}

} // extern "C"
