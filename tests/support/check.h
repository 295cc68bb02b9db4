// Short forms for tests that run one call through every candidate that applies.
#pragma once

#include "tests/support/report.h"
#include "tests/support/runner.h"

#include <doctest/doctest.h>
#include <functional>

namespace plait::test {

/// Y of the call by this candidate; a fault fails the test and gives an empty image.
inline bytes result_of(const wht_call &call, const wht_data &data, const candidate &by,
                       plait_math math = PLAIT_MATH_DEFAULT) {
    outcome out;
    try {
        out = run(call, data, by, math);
    } catch (const std::exception &e) {
        out.fault = e.what();
    }
    CHECK_MESSAGE(out.fault == "", by.name);
    return out.y;
}

/// Runs `body` for every candidate that applies; on the CPU there must be one.
inline void for_each_candidate(const wht_call &call,
                               const std::function<void(const candidate &)> &body,
                               plait_math math = PLAIT_MATH_DEFAULT) {
    const desc_ptr desc = desc_of(call);
    const std::string token = token_of(desc.get());
    CAPTURE(token);
    const std::vector<candidate> all = applicable(desc.get(), math);
    if (all.empty()) {
        CHECK_MESSAGE(on_device(), "no candidate on the CPU");
        note_count("properties: not on this backend");
    }
    for (const candidate &by : all) {
        CAPTURE(by.name);
        body(by);
    }
}

/// An image of X with value(e) at logical element e; gaps hold poison.
template <class F> wht_data data_of(const wht_call &call, F &&value) {
    wht_data d;
    d.x.assign(static_cast<size_t>(call.span(PLAIT_X) * bytes_of(call.x)),
               static_cast<std::byte>(poison_of(call.x)));
    const std::vector<int64_t> at = positions(call, PLAIT_X);
    const int parts = parts_of(call.x);
    for (size_t e = 0; e < at.size(); ++e)
        for (int p = 0; p < parts; ++p)
            store(real_of(call.x), d.x.data(), at[e] * parts + p, value(static_cast<int64_t>(e)));
    return d;
}

/// First parts of the logical elements of Y.
inline std::vector<double> values_of(const wht_call &call, const bytes &y) {
    std::vector<double> v;
    if (y.empty()) return v;
    const int parts = parts_of(call.y_type());
    for (int64_t p : positions(call, PLAIT_Y))
        v.push_back(load(real_of(call.y_type()), y.data(), p * parts));
    return v;
}

/// -1, or the first element that is not want(e). One check for a whole array.
template <class F> int64_t first_wrong(const std::vector<double> &y, F &&want) {
    for (size_t e = 0; e < y.size(); ++e)
        if (y[e] != want(static_cast<int64_t>(e))) return static_cast<int64_t>(e);
    return -1;
}

/// Exact results against the definition, for every candidate that promises them (math=f32).
inline void expect_exact(const wht_call &call, const wht_data &data) {
    const expectation ref = reference(call, data);
    for_each_candidate(
        call,
        [&](const candidate &by) {
            const bytes y = result_of(call, data, by, PLAIT_MATH_F32);
            if (!y.empty()) CHECK(first_difference(call, ref, y) == "");
        },
        PLAIT_MATH_F32);
}

/// Results within the bound of each candidate.
inline void expect_close(const wht_call &call, const wht_data &data) {
    const expectation ref = reference(call, data);
    for_each_candidate(call, [&](const candidate &by) {
        const bytes y = result_of(call, data, by);
        if (y.empty()) return;
        const double ratio = worst_ratio(call, ref, y, roundoff_of(by, call));
        note_ratio(by.name, ratio, "", 0);
        CHECK(ratio <= 1);
    });
}

/// A legal call fails to plan, or an illegal one does: the status, with a sentence.
inline plait_status plan_status(const wht_call &call) {
    desc_ptr desc;
    if (const plait_status s = make_desc(call, desc)) return s;
    plait_plan *raw = nullptr;
    const plait_status s = plait_plan_create(&raw, context(), desc.get(), nullptr);
    CHECK((s == PLAIT_OK) == (raw != nullptr));
    plait_plan_destroy(raw);
    return s;
}

} // namespace plait::test
