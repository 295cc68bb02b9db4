#include "src/planner/preferences.h"

#include "src/core/status.h"
#include "src/planner/text_lines.h"

namespace plait::impl {

namespace {

/// Goes back to the last '*' only: linear in practice, never exponential.
bool glob_matches(std::string_view glob, std::string_view name) {
    size_t g = 0, n = 0;
    size_t star = std::string_view::npos, retry = 0;
    while (n < name.size()) {
        if (g < glob.size() && glob[g] == '*') {
            star = g++;
            retry = n;
        } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
            ++g;
            ++n;
        } else if (star != std::string_view::npos) {
            g = star + 1;
            n = ++retry;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == '*') ++g;
    return g == glob.size();
}

bool legal(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '*' ||
           c == '?';
}

} // namespace

bool pattern_admits(const std::string &pattern, const char *name) {
    if (pattern.empty()) return true;
    bool any_positive = false;
    std::optional<bool> decided;
    for (std::string_view glob : split(pattern, ',')) {
        const bool negative = !glob.empty() && glob.front() == '-';
        if (negative) glob.remove_prefix(1);
        any_positive |= !negative;
        if (glob_matches(glob, name)) decided = !negative;
    }
    return decided.value_or(!any_positive);
}

void check_pattern(const std::string &pattern) {
    if (pattern.empty()) return;
    for (std::string_view glob : split(pattern, ',')) {
        if (!glob.empty() && glob.front() == '-') glob.remove_prefix(1);
        if (glob.empty())
            fail(PLAIT_ERR_INVALID_ARGUMENT, "candidates=\"", pattern, "\" has an empty glob");
        for (const char c : glob)
            if (!legal(c))
                fail(PLAIT_ERR_INVALID_ARGUMENT, "candidates=\"", pattern, "\": '", c,
                     "' cannot stand in a glob; a-z 0-9 . _ * ? can");
    }
}

} // namespace plait::impl
