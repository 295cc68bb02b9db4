// Profiles, corpus and problems for the tests of the planner.
#pragma once

#include "src/planner/planner.h"

#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <vector>

namespace plait::test {

using namespace plait::impl;

std::string read_file(const std::string &path);
std::string golden_path(const std::string &name); ///< in tests/golden

/// The golden file holds this text; else the test fails with a diff. Rewrites it on request.
void check_golden(const std::string &name, const std::string &text);

struct named_profile {
    std::string name; ///< "h200"
    profile facts;
};
const std::vector<named_profile> &profiles();
const profile &profile_named(const std::string &name);

std::vector<std::string> tokens_of(const std::string &name); ///< one a line, in tests/golden
const std::vector<std::string> &corpus();
problem problem_of(const std::string &token);
const candidate &candidate_named(const std::string &name);

/// The sentence of the failure, which must have this code.
std::string sentence_of(plait_status code, const std::function<void()> &call);

inline bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

} // namespace plait::test
