// Element types of tensors, with the numbers of plait_dtype (a unit test compares them).
#pragma once

#include <cstdint>

namespace plait::impl {

enum class scalar : int32_t {
    none = 0,
    f64 = 1,
    f32 = 2,
    f16 = 3,
    bf16 = 4,
    e4m3 = 5,
    c128 = 8,
    c64 = 9,
    i32 = 16,
    i64 = 17,
    i8 = 18,
    i16 = 19,
    b1 = 24,
};

/// Bits of one element; complex elements count both parts.
constexpr int scalar_bits(scalar s) {
    switch (s) {
    case scalar::c128: return 128;
    case scalar::f64:
    case scalar::c64:
    case scalar::i64: return 64;
    case scalar::f32:
    case scalar::i32: return 32;
    case scalar::f16:
    case scalar::bf16:
    case scalar::i16: return 16;
    case scalar::e4m3:
    case scalar::i8: return 8;
    case scalar::b1: return 1;
    default: return 0;
    }
}

constexpr int scalar_bytes(scalar s) { return scalar_bits(s) / 8; }

/// The name used in tokens, variants and printed plans.
constexpr const char *scalar_name(scalar s) {
    switch (s) {
    case scalar::f64: return "f64";
    case scalar::f32: return "f32";
    case scalar::f16: return "f16";
    case scalar::bf16: return "bf16";
    case scalar::e4m3: return "e4m3";
    case scalar::c128: return "c128";
    case scalar::c64: return "c64";
    case scalar::i32: return "i32";
    case scalar::i64: return "i64";
    case scalar::i8: return "i8";
    case scalar::i16: return "i16";
    case scalar::b1: return "b1";
    default: return "none";
    }
}

} // namespace plait::impl
