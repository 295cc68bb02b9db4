// Stored types of wht.inputs and wht.results, a loop for each: numbers are float, double, int32_t
// or int64_t, of complex types in pairs (`Parts` 2).
#pragma once

#include "lib/common/fp8.h"
#include "lib/common/half.h"
#include "lib/common/scalar.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace plait::impl::cpu::around {

inline bool minus(const uint32_t *words, int64_t i) { return words[i / 32] >> (i % 32) & 1u; }

/// `count` elements of X that lie `step` apart.
template <class T, int Parts>
void load(scalar type, const void *base, int64_t at, int64_t step, int64_t count, T *to) {
    const auto each = [&](auto value) {
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(value(at + i * step));
    };
    const auto of = [&](auto *typed) { each([typed](int64_t i) { return typed[i]; }); };
    const auto *half = static_cast<const uint16_t *>(base);
    const auto *bits = static_cast<const uint32_t *>(base);
    if constexpr (Parts == 2) {
        const auto pairs = [&](auto *typed) {
            for (int64_t i = 0; i < count; ++i) {
                to[2 * i] = static_cast<T>(typed[2 * (at + i * step)]);
                to[2 * i + 1] = static_cast<T>(typed[2 * (at + i * step) + 1]);
            }
        };
        if (type == scalar::c128) return pairs(static_cast<const double *>(base));
        return pairs(static_cast<const float *>(base));
    } else if constexpr (std::is_floating_point_v<T>) {
        switch (type) {
        case scalar::f64: return of(static_cast<const double *>(base));
        case scalar::f32: return of(static_cast<const float *>(base));
        case scalar::f16: return each([half](int64_t i) { return f16_to_f32(half[i]); });
        case scalar::bf16: return each([half](int64_t i) { return bf16_to_f32(half[i]); });
        default: return each([bits](int64_t i) { return minus(bits, i) ? -1 : 1; });
        }
    } else {
        switch (type) {
        case scalar::i8: return of(static_cast<const int8_t *>(base));
        case scalar::i16: return of(static_cast<const int16_t *>(base));
        case scalar::i32: return of(static_cast<const int32_t *>(base));
        case scalar::i64: return of(static_cast<const int64_t *>(base));
        default: return each([bits](int64_t i) { return minus(bits, i) ? -1 : 1; });
        }
    }
}

template <class T> T negative(T v) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(v));
    else
        return -v;
}

template <class T, int Parts>
void flip(const uint32_t *words, int64_t at, int64_t step, int64_t count, T *v) {
    for (int64_t i = 0; i < count; ++i)
        for (int p = 0; p < Parts; ++p)
            v[i * Parts + p] =
                minus(words, at + i * step) ? negative(v[i * Parts + p]) : v[i * Parts + p];
}

/// Times a diagonal, or its conjugate. A real coefficient multiplies both parts of a complex number
/// alone: 0 * Inf of a full product would make NaN.
template <class T, int Parts>
void times(scalar type, const void *base, int64_t at, int64_t step, int64_t count, bool conj,
           T *v) {
    if constexpr (std::is_floating_point_v<T>) {
        if (type == scalar::c64 || type == scalar::c128) {
            if constexpr (Parts == 2)
                for (int64_t i = 0; i < count; ++i) {
                    T d[2];
                    load<T, 2>(type, base, at + i * step, 1, 1, d);
                    if (conj) d[1] = -d[1];
                    const T re = v[2 * i] * d[0] - v[2 * i + 1] * d[1];
                    v[2 * i + 1] = v[2 * i] * d[1] + v[2 * i + 1] * d[0];
                    v[2 * i] = re;
                }
            return;
        }
        constexpr int64_t some = 64;
        T d[some];
        for (int64_t i = 0; i < count; i += some) {
            const int64_t now = count - i < some ? count - i : some;
            load<T, 1>(type, base, at + i * step, step, now, d);
            for (int64_t j = 0; j < now * Parts; ++j) v[i * Parts + j] *= d[j / Parts];
        }
    }
}

/// f64_to_e4m3 by the bits of v: no calls.
template <class T> uint8_t to_e4m3(T v) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr int digits = std::numeric_limits<T>::digits - 1, drop = digits - 3;
    constexpr U bias = std::numeric_limits<T>::max_exponent - 1;
    U bits;
    std::memcpy(&bits, &v, sizeof v);
    const auto sign = static_cast<uint8_t>(bits >> (8 * sizeof(T) - 8) & 0x80u);
    const T size = std::fabs(v);
    if (!(size < T(e4m3_max))) return sign | (std::isnan(v) ? 0x7f : 0x7e);
    if (size < T(0x1p-6)) { // steps of 2^-9, as those of a number of this size
        const T large = std::ldexp(T(1), digits - 9), moved = size + large;
        U steps, none;
        std::memcpy(&steps, &moved, sizeof steps);
        std::memcpy(&none, &large, sizeof none);
        return sign | static_cast<uint8_t>(steps - none);
    }
    std::memcpy(&bits, &size, sizeof bits);
    bits += (U(1) << (drop - 1)) - 1 + (bits >> drop & 1u); // ties to even; may carry
    const U code = (bits >> drop) - ((bias - 7) << 3);
    return sign | static_cast<uint8_t>(code < 0x7eu ? code : 0x7eu);
}

/// Rounded to Y's type; integers modulo 2^w.
template <class T, int Parts>
void store(scalar type, void *base, int64_t at, int64_t step, int64_t count, const T *from) {
    const auto each = [&](auto *typed, auto value) {
        for (int64_t i = 0; i < count; ++i) typed[at + i * step] = value(from[i]);
    };
    auto *half = static_cast<uint16_t *>(base);
    if constexpr (Parts == 2) {
        const auto pairs = [&](auto *typed) {
            using S = std::remove_pointer_t<decltype(typed)>;
            for (int64_t i = 0; i < count; ++i) {
                typed[2 * (at + i * step)] = static_cast<S>(from[2 * i]);
                typed[2 * (at + i * step) + 1] = static_cast<S>(from[2 * i + 1]);
            }
        };
        if (type == scalar::c128) return pairs(static_cast<double *>(base));
        return pairs(static_cast<float *>(base));
    } else if constexpr (std::is_floating_point_v<T>) {
        switch (type) {
        case scalar::f64:
            return each(static_cast<double *>(base), [](T v) { return static_cast<double>(v); });
        case scalar::f32:
            return each(static_cast<float *>(base), [](T v) { return static_cast<float>(v); });
        case scalar::f16: return each(half, [](T v) { return f64_to_f16(v); });
        case scalar::bf16:
            if constexpr (sizeof(T) == 4) return each(half, [](T v) { return f32_to_bf16(v); });
            return each(half, [](T v) { return f64_to_bf16(v); });
        default: return each(static_cast<uint8_t *>(base), [](T v) { return to_e4m3(v); });
        }
    } else {
        if (type == scalar::i32)
            return each(static_cast<int32_t *>(base), [](T v) { return static_cast<int32_t>(v); });
        return each(static_cast<int64_t *>(base), [](T v) { return static_cast<int64_t>(v); });
    }
}

/// Bits of magnitudes are in their order, NaN above Inf; of integers 2^63 counts as 2^63 - 1.
template <class T> uint64_t size_of(T v) {
    if constexpr (std::is_integral_v<T>) {
        const int64_t wide = v, top = std::numeric_limits<int64_t>::max();
        return static_cast<uint64_t>(wide >= 0 ? wide : wide == -top - 1 ? top : -wide);
    } else {
        const double size = std::fabs(static_cast<double>(v));
        uint64_t bits;
        std::memcpy(&bits, &size, sizeof bits);
        return bits & ~(uint64_t{1} << 63);
    }
}

inline void raise_to(uint64_t *most, uint64_t v) {
    uint64_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (seen < v &&
           !__atomic_compare_exchange_n(most, &seen, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

} // namespace plait::impl::cpu::around
