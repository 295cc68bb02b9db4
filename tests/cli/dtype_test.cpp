// Conversions, checked against exact arithmetic and not against the code that they share.
#include "src/cli/case/dtype.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <initializer_list>
#include <limits>

using namespace plait::cases;

namespace {

double decoded(plait_dtype dtype, uint16_t bits) {
    double value;
    to_double(dtype, &bits, 1, &value);
    return value;
}

uint16_t encoded(plait_dtype dtype, double value) {
    uint16_t bits;
    from_double(dtype, &value, 1, &bits);
    return bits;
}

} // namespace

TEST_CASE("every 16-bit value survives, and midpoints go to even") {
    for (const plait_dtype dtype : {PLAIT_F16, PLAIT_BF16}) {
        const uint16_t infinity = dtype == PLAIT_F16 ? 0x7c00 : 0x7f80;
        int wrong = 0;
        for (uint32_t i = 0; i < infinity; ++i) {
            const uint16_t bits = static_cast<uint16_t>(i);
            const double here = decoded(dtype, bits);
            wrong += encoded(dtype, here) != bits;
            wrong += encoded(dtype, -here) != (bits | 0x8000);
            if (i + 1 == infinity) break;
            const double next = decoded(dtype, static_cast<uint16_t>(bits + 1));
            const double middle = here / 2 + next / 2;
            wrong += !(next > here);
            wrong += encoded(dtype, middle) != (bits & 1 ? bits + 1 : bits);
            wrong += encoded(dtype, std::nextafter(middle, 0)) != bits;
            wrong += encoded(dtype, std::nextafter(middle, 1e300)) != bits + 1;
        }
        INFO(dtype_name(dtype));
        CHECK(wrong == 0);
        CHECK(encoded(dtype, std::numeric_limits<double>::infinity()) == infinity);
        CHECK(std::isinf(decoded(dtype, infinity)));
        CHECK(std::isnan(decoded(dtype, encoded(dtype, std::nan("")))));
        CHECK(encoded(dtype, 1e300) == infinity);
        CHECK(encoded(dtype, 1e-300) == 0);
    }
    CHECK(encoded(PLAIT_F16, 65519.99) == 0x7bff);
    CHECK(encoded(PLAIT_F16, 65520) == 0x7c00); // the tie above the largest number
    CHECK(decoded(PLAIT_F16, 0x3555) == doctest::Approx(0.33325195));
    CHECK(decoded(PLAIT_BF16, 0x4049) == doctest::Approx(3.140625));
}

TEST_CASE("sizes and roundoffs") {
    CHECK(bytes_for(PLAIT_C128, 3) == 48);
    CHECK(bytes_for(PLAIT_B1, 33) == 8);
    CHECK(unit_roundoff(PLAIT_F32) == std::ldexp(1.0, -24));
    CHECK(unit_roundoff(PLAIT_BF16) == std::ldexp(1.0, -8));
    CHECK(half_ulp(PLAIT_F32, 1.5) == std::ldexp(1.0, -24));
    CHECK(half_ulp(PLAIT_F16, 3.0) == std::ldexp(1.0, -10));
    CHECK(half_ulp(PLAIT_F16, 0.0) == std::ldexp(1.0, -25));
    CHECK(rounded(PLAIT_F16, 2049) == 2048);
    CHECK(rounded(PLAIT_BF16, 1.00390625) == 1);
}

TEST_CASE("integers wrap into I32") {
    const int64_t wide[3] = {int64_t{1} << 31, -(int64_t{1} << 31) - 1, -5};
    int32_t narrow[3];
    from_int64(PLAIT_I32, wide, 3, narrow);
    CHECK(narrow[0] == INT32_MIN);
    CHECK(narrow[1] == INT32_MAX);
    CHECK(narrow[2] == -5);
    int64_t back[3];
    to_int64(PLAIT_I32, narrow, 3, back);
    CHECK(back[1] == INT32_MAX);
}
