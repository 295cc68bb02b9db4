// A descriptor and what its token makes, compared.
#pragma once

#include "src/desc/problem.h"
#include "tests/unit/support.h"

#include <memory>

namespace unit {

/// "" or code and sentence of check().
inline std::string outcome(const descriptor &desc) {
    try {
        desc.check();
        return "";
    } catch (const failure &problem) {
        return text(problem.code(), ' ', problem.what());
    }
}

inline bool same(const tensor &a, const tensor &b) {
    return a.role == b.role && a.access == b.access && a.dtype == b.dtype &&
           a.extents == b.extents && a.strides == b.strides && a.alignment == b.alignment &&
           a.alias == b.alias;
}

/// True when the descriptor passes check(). same_form compares what the family makes of two
/// problems.
template <class Same> bool round_trip(const descriptor &desc, const Same &same_form) {
    const std::string token = desc.token();
    INFO(token);
    CHECK(token.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789:.=+-_@") == token.npos);
    std::unique_ptr<descriptor> again;
    REQUIRE_NOTHROW(again = descriptor_from_token(token));
    CHECK(again->token() == token);
    const std::string verdict = outcome(desc);
    CHECK(outcome(*again) == verdict);
    if (!verdict.empty()) return false;
    const problem a = make_problem(desc), b = make_problem(*again);
    CHECK(a.token == token);
    CHECK(a.family == token.substr(0, token.find(':')));
    CHECK(a.empty == b.empty);
    REQUIRE(a.tensors.size() == b.tensors.size());
    for (size_t i = 0; i < a.tensors.size(); ++i) CHECK(same(a.tensors[i], b.tensors[i]));
    CHECK(same_form(a, b));
    return true;
}

} // namespace unit
