// lib/common/half.h, over every 16-bit value and every boundary between two of them; and the same
// for the vector conversions of wht.simd, whose transforms of length 1 only convert.
#include "lib/common/half.h"

#include "lib/cpu/kernel_table.h"
#include "lib/cpu/wht/around_values.h"
#include "lib/cpu/wht/simd_args.h"
#include "tests/isa/levels.h"
#include "tests/isa/typed.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace isa_test;
using namespace plait::impl;

namespace {

/// By definition: sign, exponent and mantissa fields of a format with e exponent bits.
double value_of(uint16_t bits, int e, int m) {
    const int field = bits >> m & ((1 << e) - 1);
    const int mantissa = bits & ((1 << m) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    const int bias = (1 << (e - 1)) - 1;
    if (field == (1 << e) - 1)
        return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    if (field == 0) return sign * std::ldexp(mantissa, 1 - bias - m);
    return sign * std::ldexp((1 << m) + mantissa, field - bias - m);
}

bool is_nan16(uint16_t b, int m) { return (b & 0x7fff) > ((0x7fff >> m) << m & 0x7fff); }

struct format {
    scalar type;
    int e, m;
    float (*widen)(uint16_t);
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
};

const format formats[] = {
    {scalar::f16, 5, 10, f16_to_f32, f32_to_f16, f64_to_f16},
    {scalar::bf16, 8, 7, bf16_to_f32, f32_to_bf16, f64_to_bf16},
};

/// Values around every boundary of rounding between two neighbours, with the right results.
struct rounding {
    double value;
    uint16_t expected;
};

std::vector<rounding> roundings(const format &f) {
    std::vector<rounding> list;
    const uint16_t inf = static_cast<uint16_t>(((1 << f.e) - 1) << f.m);
    for (int lower = 0; lower < inf; ++lower) {
        const uint16_t upper = static_cast<uint16_t>(lower + 1);
        const double a = value_of(static_cast<uint16_t>(lower), f.e, f.m);
        // Above the largest finite value the boundary is where the next one would have been.
        const double b = upper == inf ? std::ldexp(1.0, 1 << (f.e - 1)) : value_of(upper, f.e, f.m);
        const double middle = (a + b) / 2;
        const uint16_t even = lower % 2 == 0 ? static_cast<uint16_t>(lower) : upper;
        for (const int sign : {0, 0x8000}) {
            const double s = sign ? -1 : 1;
            const auto expect = [&](double v, uint16_t r) {
                list.push_back({s * v, static_cast<uint16_t>(r | sign)});
            };
            expect(a, static_cast<uint16_t>(lower));
            expect(middle, even);
            // One step of f32 to either side of the middle.
            const float mid = static_cast<float>(middle);
            expect(std::nextafter(mid, 0.0f), static_cast<uint16_t>(lower));
            expect(std::nextafter(mid, std::numeric_limits<float>::infinity()), upper);
        }
    }
    return list;
}

} // namespace

TEST_CASE("half: every 16-bit value widens to its definition and comes back") {
    for (const format &f : formats) {
        int wrong = 0;
        for (int i = 0; i <= 0xffff; ++i) {
            const uint16_t b = static_cast<uint16_t>(i);
            const double v = value_of(b, f.e, f.m);
            const float w = f.widen(b);
            if (is_nan16(b, f.m)) {
                wrong += !std::isnan(w) || !is_nan16(f.from_f32(w), f.m) ||
                         !is_nan16(f.from_f64(w), f.m);
                continue;
            }
            wrong += w != v || std::signbit(w) != ((b & 0x8000) != 0);
            wrong += f.from_f32(w) != b || f.from_f64(w) != b;
        }
        CHECK_MESSAGE(wrong == 0, scalar_name(f.type));
    }
}

TEST_CASE("half: rounding to nearest even at every boundary") {
    for (const format &f : formats) {
        int wrong = 0;
        for (const rounding &r : roundings(f)) {
            wrong += f.from_f32(static_cast<float>(r.value)) != r.expected;
            wrong += f.from_f64(r.value) != r.expected;
        }
        CHECK_MESSAGE(wrong == 0, scalar_name(f.type));
        // Beyond the boundaries of f32: through f32 these would round twice, to the middle first.
        const double above = 1.0 + std::ldexp(1.0, -f.m - 1) + std::ldexp(1.0, -50);
        CHECK(f.from_f64(above) == f.from_f64(1.0) + 1);
        CHECK(f.from_f64(1e300) == f.from_f64(HUGE_VAL));
        CHECK(f.from_f64(5e-324) == 0);
        CHECK(f.from_f64(-5e-324) == 0x8000);
        CHECK(is_nan16(f.from_f64(std::nan("")), f.m));
    }
}

TEST_CASE("half: the vector conversions agree with the scalar ones at every level") {
    const cpu::kernel_fn kernel = cpu::find_kernel("wht.simd");
    const auto convert = [&](scalar from, const void *x, scalar to, void *y, int64_t count) {
        std::vector<uint8_t> scratch(
            static_cast<size_t>(cpu::wht_simd_scratch_bytes(from, to, 1, 1) + 64));
        auto *aligned =
            reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
        const cpu::wht_simd_args args{x, y, aligned, from, to, count, 1, 1, 1, 1.0};
        kernel(&args, 1);
    };
    for (const format &f : formats) {
        std::vector<uint16_t> all;
        for (int i = 0; i <= 0xffff; ++i) all.push_back(static_cast<uint16_t>(i));
        std::vector<float> rounded;
        for (const rounding &r : roundings(f)) rounded.push_back(static_cast<float>(r.value));
        for (const uint32_t u : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu, 0x7f800000u,
                                 0xff800000u, 0x00000001u, 0x807fffffu, 0x7f7fffffu})
            rounded.push_back(f32_from_bits(u));
        at_every_level([&](const std::string &) {
            std::vector<float> wide(all.size());
            convert(f.type, all.data(), scalar::f32, wide.data(), static_cast<int64_t>(all.size()));
            int wrong = 0;
            for (size_t i = 0; i < all.size(); ++i)
                wrong += f32_bits(wide[i]) != f32_bits(f.widen(all[i])) &&
                         !(std::isnan(wide[i]) && is_nan16(all[i], f.m));
            CHECK(wrong == 0);
            std::vector<uint16_t> narrow(rounded.size());
            convert(scalar::f32, rounded.data(), f.type, narrow.data(),
                    static_cast<int64_t>(rounded.size()));
            for (size_t i = 0; i < rounded.size(); ++i)
                wrong += narrow[i] != f.from_f32(rounded[i]) &&
                         !(std::isnan(rounded[i]) && is_nan16(narrow[i], f.m));
            CHECK(wrong == 0);
        });
    }
}

TEST_CASE("half: E4M3 by bits, at every value, every tie and beside them, in both types") {
    int wrong = 0;
    const auto check = [&](double v) {
        const auto f = static_cast<float>(v);
        wrong += cpu::around::to_e4m3(v) != f64_to_e4m3(v);
        wrong += cpu::around::to_e4m3(f) != f64_to_e4m3(static_cast<double>(f));
    };
    for (int code = 0; code < 0x7e; ++code) {
        const double here = static_cast<double>(e4m3_to_f32(static_cast<uint8_t>(code)));
        const double next = static_cast<double>(e4m3_to_f32(static_cast<uint8_t>(code + 1)));
        for (const double v : {here, (here + next) / 2})
            for (const double beside : {v, std::nextafter(v, 1e9), std::nextafter(v, -1e9),
                                        v * (1 + 0x1p-22), v * (1 - 0x1p-22)}) {
                check(beside);
                check(-beside);
            }
    }
    const double beyond[] = {448, 464, 1e9, 0x1p-149, 1e-300, HUGE_VAL, std::nan("")};
    for (const double v : beyond) {
        check(v);
        check(-v);
    }
    for (int i = 0; i < 65536; ++i)
        check(static_cast<double>(f32_from_bits(static_cast<uint32_t>(i) << 16)));
    CHECK(wrong == 0);
}
