// wht.simd on values with known answers: exact sums, impulses, NaN and Inf, subnormals, the small
// outputs next to a large one.
#include "tests/isa/levels.h"
#include "tests/isa/simd_run.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>

using namespace isa_test;
using namespace plait::impl;

namespace {

const scalar floats[] = {scalar::f16, scalar::bf16, scalar::f32, scalar::f64};
const int sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 15, 16};

rows_call packed_call(scalar x, scalar y, int64_t rows, int64_t n) {
    rows_call c;
    c.x = x;
    c.y = y;
    c.rows = rows;
    c.n = c.x_stride = c.y_stride = n;
    return c;
}

} // namespace

TEST_CASE("simd: sums that f32 holds are exact, whatever the stored types") {
    const uint64_t s = seed("simd exact");
    at_every_level([&](const std::string &) {
        for (const scalar x : floats)
            for (const scalar y : floats) {
                if (cpu::wht_simd_accumulator(x, y) == scalar::none) continue;
                for (const int k : sizes) {
                    rng r(s + static_cast<uint64_t>(k));
                    const rows_call c = packed_call(x, y, 5, int64_t{1} << k);
                    INFO("seed ", s + static_cast<uint64_t>(k), ": ", c.text());
                    buffer in(x, c.x_extent(), 1, 0), out(y, c.y_extent(), 1, 0);
                    for (int64_t i = 0; i < c.x_extent(); ++i) put_random(x, in.at(), i, r, true);
                    const std::vector<uint8_t> ref = run_ref(c, in, y); // one rounding to Y
                    run_simd(c, in, out);
                    int64_t wrong = 0;
                    for (int64_t i = 0; i < c.y_extent(); ++i)
                        wrong += get(y, ref.data(), i) != get(y, out.at(), i);
                    CHECK(wrong == 0);
                }
            }
    });
}

TEST_CASE("simd: an impulse becomes a row of the matrix") {
    const uint64_t s = seed("simd impulse");
    at_every_level([&](const std::string &) {
        rng r(s);
        for (const scalar t : {scalar::f32, scalar::f64, scalar::bf16, scalar::i32, scalar::i64})
            for (const int k : sizes) {
                const int64_t n = int64_t{1} << k;
                const rows_call c = packed_call(t, t, 3, n);
                INFO("seed ", s, ": ", c.text());
                buffer in(t, c.x_extent(), 0, 0), out(t, c.y_extent(), 0, 0);
                int64_t at[3];
                for (int64_t row = 0; row < 3; ++row) {
                    at[row] = pick(r, 0, n - 1);
                    put(t, in.at(), row * n + at[row], 1.0);
                }
                run_simd(c, in, out);
                int64_t wrong = 0;
                for (int64_t row = 0; row < 3; ++row)
                    for (int64_t i = 0; i < n; ++i)
                        wrong += get(t, out.at(), row * n + i).real() !=
                                 (__builtin_parityll(i & at[row]) ? -1 : 1);
                CHECK(wrong == 0);
            }
    });
}

TEST_CASE("simd: NaN and Inf stay in their row and follow IEEE sums inside it") {
    const uint64_t s = seed("simd nan");
    at_every_level([&](const std::string &) {
        rng r(s);
        for (const scalar t : floats)
            for (const int k : sizes) {
                const int64_t n = int64_t{1} << k;
                rows_call c = packed_call(t, t, 5, n);
                INFO("seed ", s, ": ", c.text());
                buffer in(t, c.x_extent(), 0, 0), plain(t, c.y_extent(), 0, 0);
                for (int64_t i = 0; i < c.x_extent(); ++i) put_random(t, in.at(), i, r, true);
                run_simd(c, in, plain);
                const double inf = std::numeric_limits<double>::infinity();
                const int64_t hole = pick(r, 0, n - 1);
                put(t, in.at(), 1 * n + pick(r, 0, n - 1), std::nan(""));
                put(t, in.at(), 3 * n + hole, -inf);
                buffer out(t, c.y_extent(), 0, 0);
                run_simd(c, in, out);
                const int64_t size = scalar_bytes(t);
                for (const int64_t row : {0, 2, 4})
                    CHECK(std::memcmp(static_cast<uint8_t *>(out.at()) + row * n * size,
                                      static_cast<uint8_t *>(plain.at()) + row * n * size,
                                      static_cast<size_t>(n * size)) == 0);
                int64_t wrong = 0;
                for (int64_t i = 0; i < n; ++i) {
                    wrong += !std::isnan(get(t, out.at(), n + i).real());
                    wrong += get(t, out.at(), 3 * n + i).real() !=
                             (__builtin_parityll(i & hole) ? inf : -inf);
                }
                CHECK(wrong == 0);
                if (n < 2) continue;
                // Two infinities of one sign: their sum is one, their difference is none.
                put(t, in.at(), 3 * n + (hole + 1) % n, -inf);
                run_simd(c, in, out);
                for (int64_t i = 0; i < n; ++i) {
                    const bool same =
                        __builtin_parityll(i & hole) == __builtin_parityll(i & ((hole + 1) % n));
                    wrong += std::isnan(get(t, out.at(), 3 * n + i).real()) == same;
                }
                CHECK(wrong == 0);
            }
    });
}

TEST_CASE("simd: small outputs next to a large one survive in 16 bit") {
    at_every_level([&](const std::string &) {
        for (const scalar t : {scalar::f16, scalar::bf16}) {
            const int64_t n = 1 << 14;
            rows_call c = packed_call(t, t, 1, n);
            buffer in(t, n, 0, 0), out(t, n, 0, 0);
            for (int64_t i = 0; i < n; ++i) put(t, in.at(), i, i == n - 1 ? -1.0 : 1.0);
            run_simd(c, in, out);
            int64_t wrong = 0;
            for (int64_t i = 1; i < n; ++i)
                wrong +=
                    get(t, out.at(), i).real() != (__builtin_parityll(i & (n - 1)) ? 2.0 : -2.0);
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE("simd: subnormals are kept, overflow gives Inf, equal huge values cancel") {
    at_every_level([&](const std::string &) {
        const int64_t n = 64;
        rows_call c = packed_call(scalar::f32, scalar::f32, 1, n);
        std::vector<float> x(n, 0.0f), y(n);
        buffer in(scalar::f32, n, 0, 0), out(scalar::f32, n, 0, 0);
        for (int64_t i = 0; i < n; ++i) put(scalar::f32, in.at(), i, 0x1p-149);
        run_simd(c, in, out);
        CHECK(get(scalar::f32, out.at(), 0).real() == 64 * 0x1p-149);
        CHECK(get(scalar::f32, out.at(), 5).real() == 0);
        for (int64_t i = 0; i < n; ++i) put(scalar::f32, in.at(), i, 3e38);
        run_simd(c, in, out);
        CHECK(std::isinf(get(scalar::f32, out.at(), 0).real()));
        CHECK(get(scalar::f32, out.at(), 1).real() == 0);
    });
}
