// Short forms for tests that run one convolution through every candidate that applies.
#pragma once

#include "tests/support/conv1d_random.h"
#include "tests/support/conv1d_runner.h"
#include "tests/support/report.h"

#include <doctest/doctest.h>
#include <functional>

namespace plait::test {

/// Results by this candidate; a fault fails the test.
inline conv1d_outcome result_of(const conv1d_call &call, const conv1d_inputs &in,
                                const candidate &by) {
    conv1d_outcome out = run(call, in, by);
    CHECK_MESSAGE(out.fault == "", by.name);
    return out;
}

/// Runs `body` for every candidate that applies; on the CPU there must be one.
inline void for_each_candidate(const conv1d_call &call,
                               const std::function<void(const candidate &)> &body) {
    const std::string token = token_of(desc_of(call).get());
    CAPTURE(token);
    const std::vector<candidate> all = candidates_for(call);
    if (all.empty()) {
        CHECK_MESSAGE(on_device(), "no candidate on the CPU");
        note_count("conv1d: not on this backend");
    }
    for (const candidate &by : all) {
        CAPTURE(by.name);
        body(by);
    }
}

inline double roundoff_of(const conv1d_call &call) { return roundoff(call.accumulator()); }

/// Results against the definition: `u` is the accumulator's roundoff; 0: with ==.
inline void expect(const conv1d_call &call, const conv1d_inputs &in, double u) {
    const conv1d_results ref = conv1d_reference(in, u);
    for_each_candidate(call, [&](const candidate &by) {
        const conv1d_outcome out = result_of(call, in, by);
        if (!out.fault.empty()) return;
        const conv1d_verdict v = judge(call, ref, out);
        CHECK(v.wrong == "");
        if (u > 0) note_ratio(by.name, v.ratio, "", 0);
    });
}

inline void expect_close(const conv1d_call &call, rng &random) {
    expect(call, random_inputs(call, conv1d_filling::uniform, random), roundoff_of(call));
}

/// Without activation all sums are exact, and so is every result.
inline void expect_exact(const conv1d_call &call, rng &random) {
    expect(call, random_inputs(call, conv1d_filling::quarters, random), 0);
}

inline conv1d_call conv1d(plait_direction direction, plait_dtype x, int64_t batch, int64_t channels,
                          int64_t length, int64_t width) {
    conv1d_call c;
    c.direction = direction;
    c.x = x;
    c.batch = batch;
    c.channels = channels;
    c.length = length;
    c.width = width;
    return c;
}

} // namespace plait::test
