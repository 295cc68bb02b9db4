// E4M3: sign, 4 bits of exponent with bias 7, 3 of fraction; largest 448, one NaN of each sign, no
// Inf (the "fn" variant of the machine learning formats).
#pragma once

#include <cmath>
#include <cstdint>

namespace plait::impl {

constexpr double e4m3_max = 448;

/// To nearest even in one rounding; what is beyond the largest value becomes it, NaN stays.
inline uint8_t f64_to_e4m3(double v) {
    const unsigned sign = std::signbit(v) ? 0x80u : 0u;
    if (std::isnan(v)) return static_cast<uint8_t>(sign | 0x7fu);
    const double size = std::fabs(v);
    if (size >= e4m3_max) return static_cast<uint8_t>(sign | 0x7eu);
    int exponent = -6; // of the subnormals, whose steps are those of the smallest normal numbers
    if (size >= 0x1p-6) exponent = std::ilogb(size);
    const double steps = std::ldexp(size, 3 - exponent); // below 16, exact
    unsigned whole = static_cast<unsigned>(steps);
    const double rest = steps - whole;
    if (rest > 0.5 || (rest == 0.5 && (whole & 1u))) ++whole;
    // A carry runs into the exponent; a subnormal has exponent field 0 and no leading one.
    const unsigned bits = static_cast<unsigned>(exponent + 6) * 8 + whole;
    return static_cast<uint8_t>(sign | (bits < 0x7eu ? bits : 0x7eu));
}

inline float e4m3_to_f32(uint8_t bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    float size =
        std::ldexp(exponent == 0 ? static_cast<float>(fraction) : static_cast<float>(8 + fraction),
                   (exponent == 0 ? 1 : exponent) - 10);
    if ((bits & 0x7f) == 0x7f) size = NAN;
    return bits & 0x80 ? -size : size;
}

/// SCALES of a group whose largest magnitude is `largest`: the rule of plait.h.
inline float e4m3_group_scale(double largest) {
    if (!(largest > 0) || std::isinf(largest)) return 1; // zeros, NaN, Inf
    const double scale = largest / e4m3_max;
    return static_cast<float>(scale < 0x1p-126 ? 0x1p-126 : scale);
}

} // namespace plait::impl
