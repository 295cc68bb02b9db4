#include "src/cli/case/dtype.h"

#include "src/cli/case/handle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace plait::cases {
namespace {

struct float_format {
    int fraction; ///< bits behind the leading one
    int emin;     ///< exponent of the smallest normal number
    int emax;
};

float_format format_of(plait_dtype dtype) {
    switch (real_of(dtype)) {
    case PLAIT_F64: return {52, -1022, 1023};
    case PLAIT_F32: return {23, -126, 127};
    case PLAIT_F16: return {10, -14, 15};
    case PLAIT_BF16: return {7, -126, 127};
    case PLAIT_E4M3: return {3, -6, 8};
    default: throw failure(PLAIT_ERR_INTERNAL, "not a floating type");
    }
}

/// One rounding, to nearest even, straight from double: going through float would round twice.
template <int Fraction, int EMin, int EMax> uint16_t encode16(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = static_cast<uint16_t>((bits >> 63) << 15);
    const int raw = static_cast<int>((bits >> 52) & 0x7ff);
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    constexpr uint16_t infinity = static_cast<uint16_t>((EMax + 1 - EMin + 1) << Fraction);
    if (raw == 0x7ff) return sign | infinity | (fraction ? uint16_t{1} << (Fraction - 1) : 0);
    const int e = raw - 1023;
    if (e > EMax) return sign | infinity;
    if (e < EMin - Fraction - 1) return sign;
    const uint64_t mantissa = fraction | (uint64_t{1} << 52);
    const int shift = 52 - Fraction + std::max(0, EMin - e);
    uint64_t kept = mantissa >> shift;
    const uint64_t rest = mantissa & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    // The carry of the rounding runs into the exponent field, up to infinity.
    const uint64_t biased = e < EMin ? 0 : static_cast<uint64_t>(e - EMin);
    return sign | static_cast<uint16_t>((biased << Fraction) + kept);
}

uint16_t encode_f16(double value) { return encode16<10, -14, 15>(value); }
uint16_t encode_bf16(double value) { return encode16<7, -126, 127>(value); }

double decode_bf16(uint16_t bits) {
    const uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

/// Largest 448, which all that is beyond it becomes; no Inf.
double decode_e4m3(uint8_t bits) {
    const int e = (bits >> 3) & 15, f = bits & 7;
    double v = e == 0 ? std::ldexp(f, -9) : std::ldexp(8 + f, e - 10);
    if (e == 15 && f == 7) v = std::numeric_limits<double>::quiet_NaN();
    return bits & 0x80 ? -v : v;
}

uint8_t encode_e4m3(double value) {
    // By search: the values ascend with their bits.
    const uint8_t sign = std::signbit(value) ? 0x80 : 0;
    if (std::isnan(value)) return sign | 0x7f;
    const double size = std::min(std::fabs(value), 448.0);
    uint8_t below = 0;
    while (below < 0x7e && decode_e4m3(static_cast<uint8_t>(below + 1)) <= size) ++below;
    if (below == 0x7e) return sign | below;
    const double low = decode_e4m3(below), high = decode_e4m3(static_cast<uint8_t>(below + 1));
    const double middle = (low + high) / 2;
    const bool up = size > middle || (size == middle && (below & 1));
    return static_cast<uint8_t>(sign | (below + (up ? 1 : 0)));
}

const double *f16_values() {
    static const std::vector<double> table = [] {
        std::vector<double> t(65536);
        for (int i = 0; i < 65536; ++i) {
            const int e = (i >> 10) & 31, f = i & 1023;
            double v = e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, e - 25);
            if (e == 31)
                v = f ? std::numeric_limits<double>::quiet_NaN()
                      : std::numeric_limits<double>::infinity();
            t[static_cast<size_t>(i)] = i & 0x8000 ? -v : v;
        }
        return t;
    }();
    return table.data();
}

template <class From, class To, class Map>
void convert(const void *from, int64_t count, void *to, Map map) {
    const From *in = static_cast<const From *>(from);
    To *out = static_cast<To *>(to);
    for (int64_t i = 0; i < count; ++i) out[i] = map(in[i]);
}

} // namespace

const char *dtype_name(plait_dtype dtype) {
    switch (dtype) {
    case PLAIT_F64: return "f64";
    case PLAIT_F32: return "f32";
    case PLAIT_F16: return "f16";
    case PLAIT_BF16: return "bf16";
    case PLAIT_C128: return "c128";
    case PLAIT_C64: return "c64";
    case PLAIT_I32: return "i32";
    case PLAIT_I64: return "i64";
    case PLAIT_E4M3: return "e4m3";
    case PLAIT_I8: return "i8";
    case PLAIT_I16: return "i16";
    case PLAIT_B1: return "b1";
    }
    return "unknown";
}

bool is_integer(plait_dtype dtype) {
    return dtype == PLAIT_I8 || dtype == PLAIT_I16 || dtype == PLAIT_I32 || dtype == PLAIT_I64;
}
bool is_complex(plait_dtype dtype) { return dtype == PLAIT_C64 || dtype == PLAIT_C128; }

plait_dtype real_of(plait_dtype dtype) {
    return dtype == PLAIT_C64 ? PLAIT_F32 : dtype == PLAIT_C128 ? PLAIT_F64 : dtype;
}

int parts_of(plait_dtype dtype) { return is_complex(dtype) ? 2 : 1; }

size_t bytes_of(plait_dtype dtype) {
    switch (dtype) {
    case PLAIT_F64:
    case PLAIT_C64:
    case PLAIT_I64: return 8;
    case PLAIT_F32:
    case PLAIT_I32: return 4;
    case PLAIT_F16:
    case PLAIT_BF16:
    case PLAIT_I16: return 2;
    case PLAIT_E4M3:
    case PLAIT_I8: return 1;
    case PLAIT_C128: return 16;
    case PLAIT_B1: return 0;
    }
    return 0;
}

size_t bytes_for(plait_dtype dtype, int64_t elements) {
    if (dtype == PLAIT_B1) return static_cast<size_t>((elements + 31) / 32) * 4;
    return static_cast<size_t>(elements) * bytes_of(dtype);
}

double unit_roundoff(plait_dtype dtype) { return std::ldexp(1.0, -format_of(dtype).fraction - 1); }

double half_ulp(plait_dtype dtype, double value) {
    const float_format f = format_of(dtype);
    if (!std::isfinite(value)) return 0;
    const int e = value == 0 ? f.emin : std::max(f.emin, std::ilogb(value));
    return std::ldexp(1.0, e - f.fraction - 1);
}

double rounded(plait_dtype dtype, double value) {
    switch (real_of(dtype)) {
    case PLAIT_F32: return static_cast<float>(value);
    case PLAIT_F16: return f16_values()[encode_f16(value)];
    case PLAIT_BF16: return decode_bf16(encode_bf16(value));
    case PLAIT_E4M3: return decode_e4m3(encode_e4m3(value));
    default: return value;
    }
}

void to_double(plait_dtype dtype, const void *from, int64_t count, double *to) {
    count *= parts_of(dtype);
    switch (real_of(dtype)) {
    case PLAIT_F64: std::memcpy(to, from, static_cast<size_t>(count) * sizeof(double)); return;
    case PLAIT_F32:
        convert<float, double>(from, count, to, [](float v) { return static_cast<double>(v); });
        return;
    case PLAIT_F16: {
        const double *values = f16_values();
        convert<uint16_t, double>(from, count, to, [values](uint16_t v) { return values[v]; });
        return;
    }
    case PLAIT_BF16: convert<uint16_t, double>(from, count, to, decode_bf16); return;
    case PLAIT_E4M3: convert<uint8_t, double>(from, count, to, decode_e4m3); return;
    default: throw failure(PLAIT_ERR_INTERNAL, "to_double: not a floating type");
    }
}

void from_double(plait_dtype dtype, const double *from, int64_t count, void *to) {
    count *= parts_of(dtype);
    switch (real_of(dtype)) {
    case PLAIT_F64: std::memcpy(to, from, static_cast<size_t>(count) * sizeof(double)); return;
    case PLAIT_F32:
        convert<double, float>(from, count, to, [](double v) { return static_cast<float>(v); });
        return;
    case PLAIT_F16: convert<double, uint16_t>(from, count, to, encode_f16); return;
    case PLAIT_BF16: convert<double, uint16_t>(from, count, to, encode_bf16); return;
    case PLAIT_E4M3: convert<double, uint8_t>(from, count, to, encode_e4m3); return;
    default: throw failure(PLAIT_ERR_INTERNAL, "from_double: not a floating type");
    }
}

void to_int64(plait_dtype dtype, const void *from, int64_t count, int64_t *to) {
    const auto widened = [](auto v) { return static_cast<int64_t>(v); };
    switch (dtype) {
    case PLAIT_I8: return convert<int8_t, int64_t>(from, count, to, widened);
    case PLAIT_I16: return convert<int16_t, int64_t>(from, count, to, widened);
    case PLAIT_I32: return convert<int32_t, int64_t>(from, count, to, widened);
    default: std::memcpy(to, from, static_cast<size_t>(count) * sizeof(int64_t));
    }
}

void from_int64(plait_dtype dtype, const int64_t *from, int64_t count, void *to) {
    // Through unsigned: modulo 2^bits.
    switch (dtype) {
    case PLAIT_I8:
        return convert<int64_t, uint8_t>(from, count, to,
                                         [](int64_t v) { return static_cast<uint8_t>(v); });
    case PLAIT_I16:
        return convert<int64_t, uint16_t>(from, count, to,
                                          [](int64_t v) { return static_cast<uint16_t>(v); });
    case PLAIT_I32:
        return convert<int64_t, uint32_t>(from, count, to,
                                          [](int64_t v) { return static_cast<uint32_t>(v); });
    default: std::memcpy(to, from, static_cast<size_t>(count) * sizeof(int64_t));
    }
}

} // namespace plait::cases
