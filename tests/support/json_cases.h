// The cases of tests/cases/wht.json (format: tests/cases/README.md).
#pragma once

#include "tests/support/wht_call.h"

#include <nlohmann/json.hpp>

namespace plait::test {

/// A case for one element type.
struct case_instance {
    wht_call call;
    bool one_buffer = false;
    bytes x_buffer;             ///< whole, its first byte on a multiple of 256
    bytes y_before;             ///< whole buffer of Y before the call
    bytes y_after;              ///< what it must hold afterwards (with one_buffer: the buffer)
    std::vector<uint8_t> signs; ///< one entry per bit
    bytes diag;
    std::optional<int> overflow;
    std::optional<double> rel_tol;
};

struct json_case {
    nlohmann::json text;

    std::string name() const { return text.at("name"); }
    std::string status() const { return text.at("status"); }
    std::string tier() const { return text.value("tier", "normal"); }
    bool later() const { return text.value("later", false); }
    std::vector<plait_dtype> dtypes() const;
    /// The call alone; also for cases that are no legal call.
    wht_call call(plait_dtype x) const;
    case_instance instance(plait_dtype x) const;
};

/// From $PLAIT_TEST_CASES, the source tree, or tests/cases under the working directory.
const std::vector<json_case> &wht_cases();

/// A token for every row of "who needs what": tests/cases/wht_users.txt.
std::vector<std::string> user_tokens();

} // namespace plait::test
