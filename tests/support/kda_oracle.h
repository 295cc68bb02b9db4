// The definition of Kimi Delta Attention, token by token, from its formulas alone, on dense arrays
// in long double. Shares nothing with lib or src.
#pragma once

#include "tests/support/kda_call.h"

namespace plait::test {

struct kda_results {
    std::map<plait_role, kda_array> arrays; ///< every floating tensor that the call writes
    int32_t status = 0;
    long double dbeta_terms = 0; ///< sum of squares of the terms of all elements of DBETA
};

/// What the call must give: O and STATE_OUT, or the gradients of sum(O * DO) + sum(STATE_OUT *
/// DSTATE_OUT) with respect to its inputs as they are given.
kda_results kda_reference(const kda_call &call, const kda_inputs &in);

} // namespace plait::test
