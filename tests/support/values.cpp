#include "tests/support/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace plait::test {
namespace {

struct row {
    plait_dtype dtype;
    const char *name;
    int bytes;
    int exponent_min; // of the smallest normal value
    int fraction;     // stored bits of the fraction
    int exponent_max;
};

// The formats, from IEEE 754 (and bfloat16: F32 cut to 16 bits).
constexpr row rows[] = {
    {PLAIT_F64, "f64", 8, -1022, 52, 1023}, {PLAIT_F32, "f32", 4, -126, 23, 127},
    {PLAIT_F16, "f16", 2, -14, 10, 15},     {PLAIT_BF16, "bf16", 2, -126, 7, 127},
    {PLAIT_C128, "c128", 16, 0, 0, 0},      {PLAIT_C64, "c64", 8, 0, 0, 0},
    {PLAIT_I32, "i32", 4, 0, 0, 0},         {PLAIT_I64, "i64", 8, 0, 0, 0},
    {PLAIT_I8, "i8", 1, 0, 0, 0},           {PLAIT_I16, "i16", 2, 0, 0, 0},
};

const row &find(plait_dtype dtype) {
    for (const row &r : rows)
        if (r.dtype == dtype) return r;
    throw std::logic_error("no such element type");
}

// Rounds to a grid of 2^(e - fraction): nearest even is the mode of nearbyint.
long double to_format(const row &r, long double v) {
    if (v == 0 || !std::isfinite(v)) return v;
    const int e = std::max(std::ilogb(v), r.exponent_min);
    const long double q = std::nearbyint(std::ldexp(v, r.fraction - e));
    const long double value = std::ldexp(q, e - r.fraction);
    if (std::fabs(value) >= std::ldexp(1.0L, r.exponent_max + 1))
        return std::copysign(static_cast<long double>(HUGE_VAL), v);
    return value;
}

uint16_t pack(const row &r, long double v) {
    const int exponent_bits = 15 - r.fraction;
    const uint32_t all_ones = (1u << exponent_bits) - 1;
    const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
    if (std::isnan(v))
        return static_cast<uint16_t>(sign | all_ones << r.fraction | 1u << (r.fraction - 1));
    const long double value = std::fabs(to_format(r, v));
    if (std::isinf(value)) return static_cast<uint16_t>(sign | all_ones << r.fraction);
    if (value == 0) return sign;
    const int e = std::max(std::ilogb(value), r.exponent_min);
    const auto significand = static_cast<uint32_t>(std::ldexp(value, r.fraction - e));
    const bool normal = significand >> r.fraction != 0;
    const uint32_t field = normal ? static_cast<uint32_t>(e - r.exponent_min + 1) : 0;
    const uint32_t fraction = significand & ((1u << r.fraction) - 1);
    return static_cast<uint16_t>(sign | field << r.fraction | fraction);
}

double unpack(const row &r, uint16_t bits) {
    const int exponent_bits = 15 - r.fraction;
    const uint32_t field = (bits >> r.fraction) & ((1u << exponent_bits) - 1);
    const uint32_t fraction = bits & ((1u << r.fraction) - 1);
    double v;
    if (field == (1u << exponent_bits) - 1)
        v = fraction ? std::nan("") : HUGE_VAL;
    else if (field == 0)
        v = std::ldexp(fraction, r.exponent_min - r.fraction);
    else
        v = std::ldexp(fraction + (1u << r.fraction),
                       static_cast<int>(field) - 1 + r.exponent_min - r.fraction);
    return bits & 0x8000 ? -v : v;
}

template <class T> T read(const void *base, int64_t index) {
    T v;
    std::memcpy(&v, static_cast<const char *>(base) + index * static_cast<int64_t>(sizeof v),
                sizeof v);
    return v;
}

template <class T> void write(void *base, int64_t index, T v) {
    std::memcpy(static_cast<char *>(base) + index * static_cast<int64_t>(sizeof v), &v, sizeof v);
}

} // namespace

bool is_integer(plait_dtype d) { return d == PLAIT_I32 || d == PLAIT_I64 || is_narrow(d); }
bool is_narrow(plait_dtype d) { return d == PLAIT_I8 || d == PLAIT_I16; }
bool is_complex(plait_dtype d) { return d == PLAIT_C64 || d == PLAIT_C128; }
bool is_sixteen_bit(plait_dtype d) { return d == PLAIT_F16 || d == PLAIT_BF16; }

plait_dtype real_of(plait_dtype d) {
    return d == PLAIT_C128 ? PLAIT_F64 : d == PLAIT_C64 ? PLAIT_F32 : d;
}

int64_t bytes_of(plait_dtype d) { return find(d).bytes; }
int parts_of(plait_dtype d) { return is_complex(d) ? 2 : 1; }
const char *name_of(plait_dtype d) { return find(d).name; }

plait_dtype dtype_named(const std::string &name) {
    for (const row &r : rows)
        if (name == r.name) return r.dtype;
    throw std::invalid_argument("unknown element type " + name);
}

double load(plait_dtype d, const void *base, int64_t i) {
    switch (d) {
    case PLAIT_F64: return read<double>(base, i);
    case PLAIT_F32: return read<float>(base, i);
    case PLAIT_I8:
    case PLAIT_I16:
    case PLAIT_I32:
    case PLAIT_I64: return static_cast<double>(load_integer(d, base, i));
    default: return unpack(find(d), read<uint16_t>(base, i));
    }
}

int64_t load_integer(plait_dtype d, const void *base, int64_t i) {
    switch (d) {
    case PLAIT_I8: return read<int8_t>(base, i);
    case PLAIT_I16: return read<int16_t>(base, i);
    case PLAIT_I32: return read<int32_t>(base, i);
    default: return read<int64_t>(base, i);
    }
}

void store(plait_dtype d, void *base, int64_t i, long double v) {
    switch (d) {
    case PLAIT_F64: write(base, i, static_cast<double>(v)); break;
    case PLAIT_F32: write(base, i, static_cast<float>(v)); break;
    case PLAIT_I8:
    case PLAIT_I16:
    case PLAIT_I32:
    case PLAIT_I64: store_integer(d, base, i, static_cast<int64_t>(v)); break;
    default: write(base, i, pack(find(d), v));
    }
}

void store_integer(plait_dtype d, void *base, int64_t i, int64_t v) {
    const auto bits = static_cast<uint64_t>(v);
    switch (d) {
    case PLAIT_I8: write(base, i, static_cast<uint8_t>(bits)); break;
    case PLAIT_I16: write(base, i, static_cast<uint16_t>(bits)); break;
    case PLAIT_I32: write(base, i, static_cast<uint32_t>(bits)); break;
    default: write(base, i, bits);
    }
}

double rounded(plait_dtype d, long double v) {
    double out;
    char bytes[8];
    store(d, bytes, 0, v);
    out = load(d, bytes, 0);
    return out;
}

double half_ulp(plait_dtype d, long double v) {
    if (is_integer(d)) return 0;
    const row &r = find(real_of(d));
    const int e = v == 0 ? r.exponent_min : std::max(std::ilogb(v), r.exponent_min);
    return std::ldexp(0.5, e - r.fraction);
}

double roundoff(plait_dtype d) { return std::ldexp(0.5, -find(real_of(d)).fraction); }

int poison_of(plait_dtype d) { return is_integer(d) ? 0xA5 : 0xFF; }

} // namespace plait::test
