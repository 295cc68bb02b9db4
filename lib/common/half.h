// Conversions between f16, bf16 (as bit patterns) and f32, f64 without hardware help: round to
// nearest even, subnormals kept, Inf kept, NaN stays NaN (quiet, with its upper payload bits).
#pragma once

#include <cstdint>
#include <cstring>

namespace plait::impl {

inline uint32_t f32_bits(float v) {
    uint32_t u;
    std::memcpy(&u, &v, sizeof u);
    return u;
}

inline float f32_from_bits(uint32_t u) {
    float v;
    std::memcpy(&v, &u, sizeof v);
    return v;
}

inline uint64_t f64_bits(double v) {
    uint64_t u;
    std::memcpy(&u, &v, sizeof u);
    return u;
}

inline float bf16_to_f32(uint16_t b) { return f32_from_bits(static_cast<uint32_t>(b) << 16); }

inline float f16_to_f32(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t rest = h & 0x7fffu;
    // Inf and NaN: widen the all-ones exponent and make a signalling NaN quiet.
    if (rest >= 0x7c00u) {
        const uint32_t quiet = rest > 0x7c00u ? 0x00400000u : 0u;
        return f32_from_bits(sign | 0x7f800000u | (rest << 13) | quiet);
    }
    // Normal values: rebias the exponent by 127 - 15.
    if (rest >= 0x0400u) return f32_from_bits(sign | ((rest << 13) + 0x38000000u));
    // Subnormals are integers times 2^-24, exact in f32.
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return f32_from_bits(sign | f32_bits(magnitude));
}

namespace detail {

/// Rounds an f64 to a 16-bit format with `exponent` and `mantissa` bits (1 + 5 + 10, 1 + 8 + 7).
/// Every f32 is an f64, so this one rounding also serves f32.
template <int exponent, int mantissa> inline uint16_t narrow16(double v) {
    const uint64_t u = f64_bits(v);
    const uint16_t sign = static_cast<uint16_t>((u >> 48) & 0x8000u);
    const uint64_t rest = u & 0x7fffffffffffffffu;
    constexpr uint16_t inf = static_cast<uint16_t>(((1u << exponent) - 1u) << mantissa);
    if (rest >= 0x7ff0000000000000u) {
        if (rest == 0x7ff0000000000000u) return static_cast<uint16_t>(sign | inf);
        const uint64_t payload = (rest >> (52 - mantissa)) & ((1u << mantissa) - 1u);
        return static_cast<uint16_t>(sign | inf | payload | (1u << (mantissa - 1)));
    }
    constexpr int bias = (1 << (exponent - 1)) - 1;
    const int e = static_cast<int>(rest >> 52) - 1023; // an f64 subnormal is far below any result
    int drop = 52 - mantissa;                          // mantissa bits to round away
    int field = e + bias;                              // exponent field of the result
    if (field <= 0) {
        drop += 1 - field;
        field = 0;
    }
    if (drop > 53) return sign; // below half of the smallest subnormal
    const uint64_t significand = (rest & 0x000fffffffffffffu) | 0x0010000000000000u;
    const uint64_t kept = significand >> drop;
    const uint64_t remainder = significand & ((uint64_t{1} << drop) - 1u);
    const uint64_t half = uint64_t{1} << (drop - 1);
    const uint64_t up = remainder > half || (remainder == half && (kept & 1u)) ? 1u : 0u;
    // A normal result carries its hidden bit in `kept`: adding it to field - 1 restores the field,
    // and a carry out of the mantissa moves to the next exponent, or to Inf, by itself.
    const uint64_t base = field > 0 ? static_cast<uint64_t>(field - 1) << mantissa : 0u;
    const uint64_t result = base + kept + up;
    if (result >= inf) return static_cast<uint16_t>(sign | inf);
    return static_cast<uint16_t>(sign | result);
}

} // namespace detail

inline uint16_t f64_to_f16(double v) { return detail::narrow16<5, 10>(v); }
inline uint16_t f64_to_bf16(double v) { return detail::narrow16<8, 7>(v); }
inline uint16_t f32_to_f16(float v) { return detail::narrow16<5, 10>(static_cast<double>(v)); }

inline uint16_t f32_to_bf16(float v) {
    const uint32_t u = f32_bits(v);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x0040u);
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

} // namespace plait::impl
