// Sentences and lines out of values. Numbers are the shortest decimals that read back exactly,
// whatever the locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace plait::impl {

template <class T> void append(std::string &out, const T &value) {
    if constexpr (std::is_same_v<T, bool>) {
        out += value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, char>) {
        out += value;
    } else if constexpr (std::is_enum_v<T>) {
        append(out, static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        out.append(digits, end);
    } else {
        out += std::string_view(value);
    }
}

template <class... Parts> std::string text(const Parts &...parts) {
    std::string out;
    (append(out, parts), ...);
    return out;
}

/// Hexadecimal without a prefix, as in tokens.
inline std::string hex(uint64_t value) {
    char digits[16];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
}

} // namespace plait::impl
