// wht.simd against wht.ref at every instruction level: all type pairs, lengths, strides with gaps,
// in place, unaligned bases, scale, numbers of threads. Bytes outside the rows never change.
#include "tests/isa/levels.h"
#include "tests/isa/simd_run.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <map>

using namespace isa_test;
using namespace plait::impl;

namespace {

const scalar types[] = {scalar::f16, scalar::bf16, scalar::f32, scalar::f64,
                        scalar::c64, scalar::c128, scalar::i32, scalar::i64};

int log2_of(int64_t n) {
    int k = 0;
    while (int64_t{1} << k < n) ++k;
    return k;
}

/// Norm-wise per transform: k u |ref| for the stages, one more for the scale, and half an ulp of
/// the stored type for every element.
void check_rows(const rows_call &c, const std::vector<uint8_t> &ref, const buffer &got) {
    const scalar sums = cpu::wht_simd_accumulator(c.x, c.y);
    const double u = sums == scalar::f64 || sums == scalar::c128 ? 0x1p-53 : 0x1p-24;
    const scalar ref_type = is_complex(c.y) ? scalar::c128 : scalar::f64;
    for (int64_t r = 0; r < c.rows; ++r) {
        double error = 0, norm = 0, rounding = 0;
        for (int64_t i = 0; i < c.n; ++i) {
            const std::complex<double> want = get(ref_type, ref.data(), r * c.n + i);
            const std::complex<double> have = get(c.y, got.at(), r * c.y_stride + i);
            error += std::norm(have - want);
            norm += std::norm(want);
            rounding += std::pow(half_ulp(c.y, want.real()), 2);
            if (is_complex(c.y)) rounding += std::pow(half_ulp(c.y, want.imag()), 2);
        }
        const double bound =
            (log2_of(c.n) + 1) * u * std::sqrt(norm) * 1.0001 + std::sqrt(rounding) * 1.0001;
        CHECK_MESSAGE(std::sqrt(error) <= bound, "row ", r, " error ", std::sqrt(error), " bound ",
                      bound);
    }
}

/// Restores every row of y in `after` from `before`: what is left must be equal.
void check_untouched(const rows_call &c, const buffer &before, buffer after) {
    const int64_t size = scalar_bytes(c.y);
    for (int64_t r = 0; r < c.rows; ++r)
        std::memcpy(static_cast<uint8_t *>(after.at()) + r * c.y_stride * size,
                    static_cast<const uint8_t *>(before.at()) + r * c.y_stride * size,
                    static_cast<size_t>(c.n * size));
    CHECK(before.bytes == after.bytes);
}

rows_call random_call(rng &r, scalar x, scalar y, int64_t n, int64_t most_elements) {
    rows_call c;
    c.x = x;
    c.y = y;
    c.n = n;
    const int64_t most = std::max<int64_t>(1, std::min<int64_t>(most_elements / n, 37));
    c.rows = pick(r, 1, most);
    c.in_place = x == y && pick(r, 0, 1) == 1;
    const bool packed = pick(r, 0, 1) == 1;
    c.x_stride = n + (packed ? 0 : pick(r, 1, 9));
    c.y_stride = c.in_place ? c.x_stride : packed ? n : n + pick(r, 0, 9);
    if (!is_integer(x) && pick(r, 0, 2) != 0) c.scale = 1 / std::sqrt(static_cast<double>(n));
    c.x_shift = pick(r, 0, 3);
    c.y_shift = pick(r, 0, 3);
    c.threads = static_cast<int>(pick(r, 1, 3));
    return c;
}

void check_call(const rows_call &c, rng &r) {
    buffer x(c.x, c.x_extent(), c.x_shift, 0x5b), y(c.y, c.y_extent(), c.y_shift, 0xa7);
    for (int64_t i = 0; i < c.rows; ++i)
        for (int64_t j = 0; j < c.n; ++j) put_random(c.x, x.at(), i * c.x_stride + j, r, false);
    const buffer x_before = x, y_before = y;
    const bool integer = is_integer(c.x);
    const std::vector<uint8_t> ref = run_ref(c, x,
                                             integer           ? c.y
                                             : is_complex(c.x) ? scalar::c128
                                                               : scalar::f64);
    run_simd(c, x, y);
    const buffer &got = c.in_place ? x : y;
    if (integer) {
        const int64_t row_bytes = c.n * scalar_bytes(c.y);
        for (int64_t i = 0; i < c.rows; ++i)
            CHECK(std::memcmp(static_cast<const uint8_t *>(got.at()) +
                                  i * c.y_stride * scalar_bytes(c.y),
                              ref.data() + i * row_bytes, static_cast<size_t>(row_bytes)) == 0);
    } else {
        check_rows(c, ref, got);
    }
    check_untouched(c, c.in_place ? x_before : y_before, got);
    if (!c.in_place) CHECK(x.bytes == x_before.bytes);
}

} // namespace

TEST_CASE("simd: every pair of types and length at every level against ref") {
    const uint64_t s = seed("simd sweep");
    at_every_level([&](const std::string &) {
        uint64_t index = 0;
        for (const scalar x : types)
            for (const scalar y : types) {
                if (cpu::wht_simd_accumulator(x, y) == scalar::none) continue;
                for (int k = 0; k <= 18; ++k)
                    for (int repeat = 0; repeat < (k < 12 ? 2 : 1); ++repeat) {
                        rng r(s + index++);
                        const rows_call c =
                            random_call(r, x, y, int64_t{1} << k, k < 12 ? 8000 : 20000);
                        INFO("seed ", s + index - 1, ": ", c.text());
                        check_call(c, r);
                    }
            }
    });
}

TEST_CASE("simd: more rows than a chunk, and rows of one element") {
    const uint64_t s = seed("simd rows");
    at_every_level([&](const std::string &) {
        rng r(s);
        for (const scalar t : types)
            for (const int64_t n : {1, 2, 4, 8, 16, 64})
                for (const int64_t gap : {0, 3}) {
                    rows_call c;
                    c.x = c.y = t;
                    c.n = n;
                    c.rows = 9001 / n + 1;
                    c.x_stride = c.y_stride = n + gap;
                    c.x_shift = 1;
                    c.threads = 3;
                    c.scale = is_integer(t) ? 1 : 0.7;
                    INFO("seed ", s, ": ", c.text());
                    check_call(c, r);
                }
    });
}

TEST_CASE("simd: long rows, shared by threads and not") {
    const uint64_t s = seed("simd long");
    rng r(s);
    for (const scalar t : types)
        for (const int k : {19, 20, 21}) // lengths modulo 3 take different ways to be joined
            for (const int threads : {1, 3}) {
                if (k == 21 && t != scalar::f32 && t != scalar::bf16) continue;
                rows_call c;
                c.x = c.y = t;
                c.n = int64_t{1} << k;
                c.rows = k == 19 ? 2 : 1;
                c.x_stride = c.y_stride = c.n + 5;
                c.threads = threads;
                c.in_place = threads == 1;
                c.scale = is_integer(t) ? 1 : 0x1p-10;
                INFO("seed ", s, ": ", c.text());
                check_call(c, r);
            }
}

TEST_CASE("simd: levels and numbers of threads give the same bits") {
    const uint64_t s = seed("simd bits");
    for (const scalar t : types)
        for (const int k : {3, 7, 11, 13, 15, 16, 17, 18}) {
            rng r(s + static_cast<uint64_t>(k));
            rows_call c;
            c.x = c.y = t;
            c.n = int64_t{1} << k;
            c.rows = 3;
            c.x_stride = c.y_stride = c.n;
            c.scale = is_integer(t) ? 1 : 0.3;
            buffer x(c.x, c.x_extent(), 0, 0);
            for (int64_t i = 0; i < c.x_extent(); ++i) put_random(c.x, x.at(), i, r, false);
            std::vector<uint8_t> first;
            at_every_level([&](const std::string &) {
                for (const int threads : {1, 2, 4, 5}) {
                    c.threads = threads;
                    INFO("seed ", s, ": ", c.text());
                    buffer y(c.y, c.y_extent(), 0, 0);
                    run_simd(c, x, y);
                    const auto *bytes = static_cast<const uint8_t *>(y.at());
                    const std::vector<uint8_t> now(bytes, bytes + c.y_extent() * scalar_bytes(c.y));
                    if (first.empty()) first = now;
                    CHECK(first == now);
                }
            });
        }
}
