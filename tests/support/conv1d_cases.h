// The cases of tests/cases/conv1d.json (format: tests/cases/README.md).
#pragma once

#include "tests/support/conv1d_call.h"

#include <nlohmann/json.hpp>

namespace plait::test {

/// One call of a case and what it must give; chains have several.
struct conv1d_step {
    conv1d_call call;
    conv1d_inputs in;
    std::map<plait_role, conv1d_array> expected; ///< of the listed tensors
    bool state_follows = false;                  ///< its state is what the step before it left
};

struct conv1d_case {
    nlohmann::json text;

    std::string name() const { return text.at("name"); }
    std::string op() const { return text.at("op"); }
    std::string status() const { return text.at("status"); }
    bool exact() const { return text.at("exact"); }
    double floor() const { return text.value("abs_tol", 0.0); } ///< absolute tolerance
    /// Packed BCT calls in this type.
    std::vector<conv1d_step> steps(plait_dtype type) const;
};

/// From $PLAIT_TEST_CASES, the source tree, or tests/cases under the working directory.
const std::vector<conv1d_case> &conv1d_cases();

} // namespace plait::test
