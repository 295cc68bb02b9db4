#include "tests/isa/typed.h"

#include "lib/common/half.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace isa_test {

using namespace plait::impl;

uint64_t seed(const char *test) {
    const char *given = std::getenv("PLAIT_TEST_SEED");
    const uint64_t s = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::printf("%s: PLAIT_TEST_SEED=%llu\n", test, static_cast<unsigned long long>(s));
    return s;
}

int64_t pick(rng &r, int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(r);
}

bool is_integer(scalar s) { return s == scalar::i32 || s == scalar::i64; }
bool is_complex(scalar s) { return s == scalar::c64 || s == scalar::c128; }

std::complex<double> get(scalar s, const void *base, int64_t i) {
    switch (s) {
    case scalar::f64: return static_cast<const double *>(base)[i];
    case scalar::f32: return static_cast<const float *>(base)[i];
    case scalar::f16: return f16_to_f32(static_cast<const uint16_t *>(base)[i]);
    case scalar::bf16: return bf16_to_f32(static_cast<const uint16_t *>(base)[i]);
    case scalar::c64: return static_cast<const std::complex<float> *>(base)[i];
    case scalar::c128: return static_cast<const std::complex<double> *>(base)[i];
    default: return static_cast<double>(get_int(s, base, i));
    }
}

int64_t get_int(scalar s, const void *base, int64_t i) {
    if (s == scalar::i32) return static_cast<const int32_t *>(base)[i];
    return static_cast<const int64_t *>(base)[i];
}

void put(scalar s, void *base, int64_t i, std::complex<double> v) {
    switch (s) {
    case scalar::f64: static_cast<double *>(base)[i] = v.real(); return;
    case scalar::f32: static_cast<float *>(base)[i] = static_cast<float>(v.real()); return;
    case scalar::f16: static_cast<uint16_t *>(base)[i] = f64_to_f16(v.real()); return;
    case scalar::bf16: static_cast<uint16_t *>(base)[i] = f64_to_bf16(v.real()); return;
    case scalar::c64: static_cast<std::complex<float> *>(base)[i] = std::complex<float>(v); return;
    case scalar::c128: static_cast<std::complex<double> *>(base)[i] = v; return;
    default: put_int(s, base, i, static_cast<int64_t>(v.real())); return;
    }
}

void put_int(scalar s, void *base, int64_t i, int64_t v) {
    if (s == scalar::i32)
        static_cast<int32_t *>(base)[i] = static_cast<int32_t>(v);
    else
        static_cast<int64_t *>(base)[i] = v;
}

void put_random(scalar s, void *base, int64_t i, rng &r, bool small) {
    if (is_integer(s)) {
        put_int(s, base, i, small ? pick(r, -8, 8) : static_cast<int64_t>(r()));
        return;
    }
    if (small) {
        const double re = static_cast<double>(pick(r, -8, 8));
        put(s, base, i, {re, static_cast<double>(pick(r, -8, 8))});
        return;
    }
    std::normal_distribution<double> normal;
    // One element in 32 is far from the others; f16 has no room for more.
    const double factor = r() % 32 == 0 ? std::ldexp(1.0, static_cast<int>(pick(r, -6, 6))) : 1.0;
    const double re = normal(r) * factor;
    put(s, base, i, {re, normal(r) * factor});
}

double half_ulp(scalar s, double v) {
    int mantissa = 52, lowest = -1074;
    if (s == scalar::f32 || s == scalar::c64) mantissa = 23, lowest = -149;
    if (s == scalar::f16) mantissa = 10, lowest = -24;
    if (s == scalar::bf16) mantissa = 7, lowest = -133;
    if (v == 0) return std::ldexp(0.5, lowest);
    return std::ldexp(0.5, std::max(std::ilogb(v) - mantissa, lowest));
}

buffer::buffer(scalar s, int64_t elements, int64_t shift, uint8_t fill)
    : bytes(static_cast<size_t>((elements + shift) * scalar_bytes(s) + 192), fill) {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    offset = static_cast<int64_t>((64 - address % 64) % 64) + 64 + shift * scalar_bytes(s);
}

} // namespace isa_test
