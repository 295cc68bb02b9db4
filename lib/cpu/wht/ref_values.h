// How wht.ref sees stored elements: one accumulator type for each kind of problem, and the way from
// an element of X to it and from it to an element of Y.
#pragma once

#include "lib/common/fp8.h"
#include "lib/common/half.h"
#include "lib/common/scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace plait::impl::cpu {

__extension__ typedef __int128 int128;

struct complex128 {
    double re, im;
};

inline complex128 operator+(complex128 a, complex128 b) { return {a.re + b.re, a.im + b.im}; }
inline complex128 operator-(complex128 a, complex128 b) { return {a.re - b.re, a.im - b.im}; }
inline complex128 operator-(complex128 a) { return {-a.re, -a.im}; }

template <class T> T element(const void *base, int64_t i) {
    return static_cast<const T *>(base)[i];
}

inline bool bit_at(const uint32_t *words, int64_t i) { return words[i / 32] >> (i % 32) & 1u; }

/// A real element; a bit b is (-1)^b.
inline double load_real(scalar type, const void *base, int64_t i) {
    switch (type) {
    case scalar::f64: return element<double>(base, i);
    case scalar::f32: return element<float>(base, i);
    case scalar::f16: return f16_to_f32(element<uint16_t>(base, i));
    case scalar::bf16: return bf16_to_f32(element<uint16_t>(base, i));
    case scalar::b1: return bit_at(static_cast<const uint32_t *>(base), i) ? -1 : 1;
    default: return 0;
    }
}

inline complex128 load_pair(scalar type, const void *base, int64_t i) {
    if (type == scalar::c128)
        return {element<double>(base, 2 * i), element<double>(base, 2 * i + 1)};
    return {element<float>(base, 2 * i), element<float>(base, 2 * i + 1)};
}

inline int64_t load_integer(scalar type, const void *base, int64_t i) {
    switch (type) {
    case scalar::i8: return element<int8_t>(base, i);
    case scalar::i16: return element<int16_t>(base, i);
    case scalar::i32: return element<int32_t>(base, i);
    case scalar::i64: return element<int64_t>(base, i);
    case scalar::b1: return bit_at(static_cast<const uint32_t *>(base), i) ? -1 : 1;
    default: return 0;
    }
}

template <class acc> acc load_value(scalar type, const void *base, int64_t i) {
    if constexpr (std::is_same_v<acc, double>)
        return load_real(type, base, i);
    else if constexpr (std::is_same_v<acc, complex128>)
        return load_pair(type, base, i);
    else // the cast keeps the sign bits: arithmetic modulo 2^64 is then right modulo 2^32
        return static_cast<acc>(load_integer(type, base, i));
}

/// The value of an integer of Y's type, wrapped.
template <class acc> int64_t wrapped(scalar type, acc v) {
    const uint64_t bits = static_cast<uint64_t>(v);
    return type == scalar::i32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
}

template <class acc> void store_value(scalar type, void *base, int64_t i, acc v) {
    if constexpr (std::is_same_v<acc, double>) {
        switch (type) {
        case scalar::f64: static_cast<double *>(base)[i] = v; return;
        case scalar::f32: static_cast<float *>(base)[i] = static_cast<float>(v); return;
        case scalar::f16: static_cast<uint16_t *>(base)[i] = f64_to_f16(v); return;
        case scalar::bf16: static_cast<uint16_t *>(base)[i] = f64_to_bf16(v); return;
        case scalar::e4m3: static_cast<uint8_t *>(base)[i] = f64_to_e4m3(v); return;
        default: return;
        }
    } else if constexpr (std::is_same_v<acc, complex128>) {
        if (type == scalar::c128) {
            static_cast<double *>(base)[2 * i] = v.re;
            static_cast<double *>(base)[2 * i + 1] = v.im;
        } else {
            static_cast<float *>(base)[2 * i] = static_cast<float>(v.re);
            static_cast<float *>(base)[2 * i + 1] = static_cast<float>(v.im);
        }
    } else if (type == scalar::i32) {
        static_cast<int32_t *>(base)[i] = static_cast<int32_t>(wrapped(type, v));
    } else {
        static_cast<int64_t *>(base)[i] = wrapped(type, v);
    }
}

inline bool is_complex(scalar s) { return s == scalar::c64 || s == scalar::c128; }

/// One coefficient of a diagonal times v. A real coefficient multiplies both parts of a complex v
/// alone: 0 * Inf of a full product would make NaN.
template <class acc>
acc times_diagonal(acc v, scalar type, const void *base, int64_t i, bool conjugate) {
    if constexpr (std::is_same_v<acc, double>) {
        return v * load_real(type, base, i);
    } else if constexpr (std::is_same_v<acc, complex128>) {
        if (!is_complex(type)) {
            const double d = load_real(type, base, i);
            return {v.re * d, v.im * d};
        }
        complex128 d = load_pair(type, base, i);
        if (conjugate) d.im = -d.im;
        return {v.re * d.re - v.im * d.im, v.re * d.im + v.im * d.re};
    } else {
        return v;
    }
}

template <class acc> acc times_scale(acc v, double s) {
    if constexpr (std::is_same_v<acc, double>)
        return v * s;
    else if constexpr (std::is_same_v<acc, complex128>)
        return {v.re * s, v.im * s};
    else
        return v;
}

/// The largest magnitude of some results, a NaN if one is: `size` for floating types, `whole` for
/// integers of Y's type, where 2^63 counts as 2^63 - 1.
struct largest {
    double size = 0;
    int64_t whole = 0;

    template <class acc> void add(scalar type, acc v) {
        if constexpr (std::is_same_v<acc, double>) {
            const double a = std::fabs(v);
            if (a > size || std::isnan(a)) size = a; // a NaN stays: nothing is larger
        } else if constexpr (!std::is_same_v<acc, complex128>) {
            const int64_t w = wrapped(type, v), top = std::numeric_limits<int64_t>::max();
            const int64_t a = w >= 0 ? w : w == -top - 1 ? top : -w;
            if (a > whole) whole = a;
        }
    }

    void store(scalar type, void *base, int64_t i) const {
        if (type == scalar::i64)
            static_cast<int64_t *>(base)[i] = whole;
        else
            store_value<double>(type, base, i, size);
    }
};

} // namespace plait::impl::cpu
