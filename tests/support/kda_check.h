// Short forms for tests that run one call of Kimi Delta Attention through every candidate that
// applies.
#pragma once

#include "tests/support/kda_runner.h"
#include "tests/support/report.h"

#include <doctest/doctest.h>
#include <functional>

namespace plait::test {

/// Results by this candidate; a fault fails the test.
inline kda_outcome result_of(const kda_call &call, const kda_inputs &in, const candidate &by) {
    kda_outcome out = run(call, in, by);
    CHECK_MESSAGE(out.fault == "", by.name);
    return out;
}

/// Calls with an f64 tensor have no candidate on a device, all others have one everywhere.
inline bool only_on_cpus(const kda_call &call) {
    if (!on_device()) return false;
    for (const plait_role role : call.floating())
        if (call.type(role) == PLAIT_F64) return true;
    return false;
}

/// Runs `body` for every candidate that applies; there must be one.
inline void for_each_candidate(const kda_call &call,
                               const std::function<void(const candidate &)> &body) {
    const std::string token = token_of(desc_of(call).get());
    CAPTURE(token);
    const std::vector<candidate> all = candidates_for(call);
    if (all.empty()) {
        CHECK_MESSAGE(only_on_cpus(call), "no candidate");
        note_count("kda: not on this backend");
    }
    for (const candidate &by : all) {
        CAPTURE(by.name);
        body(by);
    }
}

/// Results against the definition.
inline void expect(const kda_call &call, const kda_inputs &in) {
    const kda_results ref = kda_reference(call, in);
    for_each_candidate(call, [&](const candidate &by) {
        const kda_outcome out = result_of(call, in, by);
        if (!out.fault.empty()) return;
        const kda_verdict v = judge(call, ref, out, by);
        CHECK(v.wrong == "");
        note_ratio(by.name, v.ratio, "", 0);
    });
}

inline void expect(const kda_call &call, rng &random) { expect(call, random_inputs(call, random)); }

inline kda_call kda(plait_direction direction, plait_dtype q, int64_t batch, int64_t length,
                    int64_t heads, int64_t value_heads, int64_t dim_k, int64_t dim_v) {
    kda_call c;
    c.direction = direction;
    c.q = q;
    c.batch = batch;
    c.length = length;
    c.heads = heads;
    c.value_heads = value_heads;
    c.dim_k = dim_k;
    c.dim_v = dim_v;
    return c;
}

/// Gate inside with bias, norm, logits, both states: what a layer of a model is.
inline kda_call kda_layer(plait_direction direction, plait_dtype q, int64_t batch, int64_t length,
                          int64_t heads, int64_t value_heads, int64_t dim_k, int64_t dim_v) {
    kda_call c = kda(direction, q, batch, length, heads, value_heads, dim_k, dim_v);
    c.gate = PLAIT_GATE_BOUNDED;
    c.lower_bound = -5;
    c.beta_scale = 1;
    c.eps = 1e-6;
    c.orientation = PLAIT_STATE_VK;
    c.used = {PLAIT_DT_BIAS, PLAIT_STATE_IN, PLAIT_STATE_OUT};
    return c;
}

} // namespace plait::test
