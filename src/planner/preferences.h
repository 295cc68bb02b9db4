// Preferences: they filter and rank candidates.
#pragma once

#include <cstdint>
#include <optional>
#include <plait/plait.h>
#include <string>

namespace plait::impl {

struct preferences {
    plait_rigor rigor = PLAIT_ESTIMATE;
    bool wisdom_only = false;
    std::optional<uint64_t> workspace_limit; ///< bytes
    std::optional<double> time_limit;        ///< seconds for measuring
    plait_determinism determinism = PLAIT_ANY_ORDER;
    plait_math math = PLAIT_MATH_DEFAULT;
    std::string pattern; ///< comma list of globs, last match wins; empty: all
};

/// Does the pattern admit this candidate name? '*' stands for any text, '?' for one character, a
/// leading '-' excludes. The last glob that matches decides; a list without positive globs starts
/// from all candidates, any other list from none.
bool pattern_admits(const std::string &pattern, const char *name);
/// Throws INVALID_ARGUMENT for a pattern with an empty or ill-formed glob.
void check_pattern(const std::string &pattern);

} // namespace plait::impl
