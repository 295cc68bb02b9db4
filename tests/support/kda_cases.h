// The cases of tests/cases/kda.json (format: tests/cases/README.md).
#pragma once

#include "tests/support/kda_oracle.h"

namespace plait::test {

struct kda_case {
    std::string name;
    kda_call forward, backward; ///< of F64, packed; other types are set by the test
    kda_inputs in;              ///< of both; NaN in STATE_OUT
    kda_results expected;       ///< of both
};

/// From $PLAIT_TEST_CASES, the source tree, or tests/cases under the working directory.
const std::vector<kda_case> &kda_cases();

} // namespace plait::test
