// 64-bit arithmetic that says what overflowed: sizes come from callers.
#pragma once

#include "src/core/status.h"

#include <cstdint>
#include <optional>

namespace plait::impl {

/// nullopt when the result is beyond 64 bits.
inline std::optional<int64_t> try_mul(int64_t a, int64_t b) {
    int64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
    return out;
}

inline std::optional<int64_t> try_add(int64_t a, int64_t b) {
    int64_t out = 0;
    if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
    return out;
}

inline int64_t checked_mul(int64_t a, int64_t b, const char *what) {
    if (const auto out = try_mul(a, b)) return *out;
    fail(PLAIT_ERR_INVALID_DESC, what, ": ", a, " * ", b, " is beyond 64 bits");
}

inline int64_t checked_add(int64_t a, int64_t b, const char *what) {
    if (const auto out = try_add(a, b)) return *out;
    fail(PLAIT_ERR_INVALID_DESC, what, ": ", a, " + ", b, " is beyond 64 bits");
}

} // namespace plait::impl
