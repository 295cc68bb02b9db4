// Reading of line-oriented texts: profiles, wisdom, patterns.
#pragma once

#include <charconv>
#include <climits>
#include <string_view>
#include <vector>

namespace plait::impl {

inline std::string_view trimmed(std::string_view s) {
    const char *blanks = " \t\r";
    const size_t first = s.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return s.substr(first, s.find_last_not_of(blanks) - first + 1);
}

/// The parts between separators; "" has one, empty part.
inline std::vector<std::string_view> split(std::string_view s, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const size_t at = s.find(separator);
        parts.push_back(s.substr(0, at));
        if (at == std::string_view::npos) return parts;
        s.remove_prefix(at + 1);
    }
}

/// The whole text is one number of type T, whatever the locale.
template <class T> bool number_from(std::string_view s, T &value) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    return error == std::errc() && end == s.data() + s.size();
}

/// The version in a first line "<word> <version>", INT_MAX where it is larger; 0 when the line is
/// anything else.
inline int header_version(std::string_view line, std::string_view word) {
    line = trimmed(line);
    int version = 0;
    if (line.substr(0, word.size()) != word) return 0;
    line.remove_prefix(word.size());
    if (line.empty() || line.front() != ' ') return 0;
    line = trimmed(line);
    if (line.empty() || line.find_first_not_of("0123456789") != std::string_view::npos) return 0;
    return number_from(line, version) ? version : INT_MAX;
}

} // namespace plait::impl
