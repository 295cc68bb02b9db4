// Plans of conv1d on emulated kernels in every order of threads, against the definition.
#pragma once

#include "tests/emulate/orders.h"
#include "tests/support/conv1d_check.h"

#include <initializer_list>

namespace plait::test {

/// In every order of threads. Forward and update: all candidates give the same bits. Backward: the
/// sums over tokens of a candidate have an order of their own.
inline void check_orders(const conv1d_call &call, conv1d_filling how, rng &random) {
    const conv1d_inputs in = random_inputs(call, how, random);
    const double u = how == conv1d_filling::quarters ? 0 : roundoff_of(call);
    const conv1d_results ref = conv1d_reference(in, u);
    conv1d_outcome first;
    for_each_candidate(call, [&](const candidate &by) {
        if (call.direction == PLAIT_BACKWARD) first = {};
        for (const emulation::settings &order : walking_orders) {
            emulation::current_settings() = order;
            const conv1d_outcome out = result_of(call, in, by);
            emulation::current_settings() = {};
            if (!out.fault.empty()) return; // result_of has reported it
            if (first.values.empty()) first = out;
            CHECK_MESSAGE(difference(first, out) == "",
                          "another order of threads or another candidate changes the result");
        }
        const conv1d_verdict v = judge(call, ref, first);
        CHECK(v.wrong == "");
        if (u > 0) note_ratio(by.name, v.ratio, token_of(desc_of(call).get()), config().seed);
        note_count("emulated plans of " + by.name);
    });
}

/// With values, and exactly.
inline void check_both(conv1d_call call, rng &random) {
    check_orders(call, conv1d_filling::uniform, random);
    call.silu = false;
    check_orders(call, conv1d_filling::quarters, random);
}

inline conv1d_call with_silu_and_bias(plait_direction direction, plait_dtype x, plait_layout layout,
                                      int64_t b, int64_t c, int64_t l, int64_t k) {
    conv1d_call call = conv1d(direction, x, b, c, l, k);
    call.layout = layout;
    call.silu = true;
    call.used = {PLAIT_BIAS};
    return call;
}

inline void use(conv1d_call &call, std::initializer_list<plait_role> roles) {
    call.used.insert(call.used.end(), roles);
}

} // namespace plait::test
