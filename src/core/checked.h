// 64-bit arithmetic that says what overflowed: sizes come from callers.
#pragma once

#include "src/core/status.h"

#include <cstdint>

namespace plait::impl {

inline int64_t checked_mul(int64_t a, int64_t b, const char *what) {
    int64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out))
        fail(PLAIT_ERR_INVALID_DESC, what, ": ", a, " * ", b, " is beyond 64 bits");
    return out;
}

inline int64_t checked_add(int64_t a, int64_t b, const char *what) {
    int64_t out = 0;
    if (__builtin_add_overflow(a, b, &out))
        fail(PLAIT_ERR_INVALID_DESC, what, ": ", a, " + ", b, " is beyond 64 bits");
    return out;
}

} // namespace plait::impl
