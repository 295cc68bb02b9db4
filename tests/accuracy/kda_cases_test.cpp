// Every case of tests/cases/kda.json in every type, orientation and place, through every candidate
// of the backend that applies.
#include "tests/support/kda_cases.h"
#include "tests/support/kda_check.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

/// The same call with Q and what follows it in one type, and parameters and states in theirs.
kda_call placed(kda_call c, plait_dtype type, plait_state_layout orientation, int64_t pitch,
                int64_t shift) {
    c.q = type;
    c.orientation = orientation;
    for (const plait_role role : c.floating()) {
        if (pitch != 0) c.strides[role] = c.packed(role, pitch);
        if (shift != 0) c.offsets[role] = shift;
    }
    return c;
}

} // namespace

TEST_CASE("kda cases: every answer of kda.json") {
    int count = 0;
    for (const kda_case &k : kda_cases()) {
        CAPTURE(k.name);
        ++count;
        for (const plait_dtype type : {PLAIT_F64, PLAIT_F32, PLAIT_BF16}) {
            if (config().small && type == PLAIT_F64) continue;
            CAPTURE(name_of(type));
            for (const kda_call *given : {&k.forward, &k.backward})
                for (const plait_state_layout orientation : {PLAIT_STATE_KV, PLAIT_STATE_VK})
                    for (const int64_t loose : {0, 1}) {
                        const kda_call call = placed(*given, type, orientation, 3 * loose, loose);
                        for_each_candidate(call, [&](const candidate &by) {
                            const kda_outcome out = result_of(call, k.in, by);
                            if (!out.fault.empty()) return;
                            const kda_verdict v = judge(call, k.expected, out, by);
                            CHECK(v.wrong == "");
                            note_count("kda cases: run with " + by.name);
                        });
                    }
        }
    }
    CHECK(count == 6);
}

TEST_CASE("kda cases: the oracle has the same answers") {
    for (const kda_case &k : kda_cases()) {
        CAPTURE(k.name);
        for (const kda_call *call : {&k.forward, &k.backward}) {
            const kda_results ref = kda_reference(*call, k.in);
            for (const auto &[role, got] : ref.arrays) {
                CAPTURE(plait_role_name(role));
                REQUIRE(k.expected.arrays.count(role) == 1);
                const kda_array &want = k.expected.arrays.at(role);
                REQUIRE(got.v.size() == want.v.size());
                long double largest = 0, worst = 0;
                for (size_t e = 0; e < got.v.size(); ++e) {
                    largest = std::max(largest, std::fabs(want.v[e]));
                    worst = std::max(worst, std::fabs(got.v[e] - want.v[e]));
                }
                CHECK(worst <= 2e-13L * largest);
            }
        }
    }
}

} // namespace plait::test
