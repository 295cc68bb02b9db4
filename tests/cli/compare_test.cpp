// The judge: right passes, a little wrong fails, and the reference is the transform of the token.
#include "src/cli/case/dtype.h"
#include "src/cli/case/wht_check.h"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>

using namespace plait::cases;

TEST_CASE("the reference of a token") {
    CHECK(wht_reference("wht:bf16:b8:n64:b2:scale=0.5:x.s200.2.1:y.f32").token(7) ==
          "wht:f64:b7:n64:scale=0.5");
    CHECK(wht_reference("wht:c64:n16:bits=3:y@x").token(1) == "wht:c128:n16:bits=3");
    CHECK(wht_reference("wht:i32:b4:n16:+overflow:y.i64").token(2) == "wht:i64:b2:n16:+overflow");
    CHECK(wht_reference("wht:f32:b4:n8:+signs").batches());
    CHECK(!wht_reference("wht:f32:b4:n8:+signs:signs.s8.1").batches());

    wht_reference ref("wht:f32:n4");
    const double x[8] = {1, 2, 3, 4, 0, 0, 1, 0};
    double y[8];
    ref.run(2, x, {}, y);
    const double expected[8] = {10, -2, -4, 0, 1, 1, -1, -1};
    CHECK(std::memcmp(y, expected, sizeof y) == 0);
}

TEST_CASE("floats: the bound is (k + m) u and half an ulp") {
    const token_parts parts = split_token("wht:f32:n1024");
    const tolerance tol = wht_tolerance(parts, PLAIT_F32, PLAIT_F32, rounding::sums);
    CHECK(tol.relative == 11 * std::ldexp(1.0, -24));
    CHECK(wht_tolerance(parts, PLAIT_F32, PLAIT_F32, rounding::tf32).relative ==
          tol.relative + std::ldexp(1.0, -10)); // operands of two products
    CHECK(wht_tolerance(parts, PLAIT_F16, PLAIT_F16, rounding::stored).relative ==
          11 * std::ldexp(1.0, -11));
    CHECK(wht_tolerance(split_token("wht:f64:n24.h12s"), PLAIT_F64, PLAIT_F64, rounding::sums)
              .relative == 13 * std::ldexp(1.0, -53));

    std::vector<double> want(64, 1.0);
    std::vector<float> got(64, 1.0f);
    CHECK(compare_floats(tol, got.data(), want.data(), 64).ratio == 0);
    got[5] = 1.0f + 8e-6f; // a relative error of 1e-6 in the norm of 8
    const deviation far = compare_floats(tol, got.data(), want.data(), 64);
    CHECK(far.error == doctest::Approx(1e-6).epsilon(0.02));
    CHECK(far.ratio > 1);
    got[5] = 1.0f + 2e-6f;
    CHECK(compare_floats(tol, got.data(), want.data(), 64).ratio < 1);
}

TEST_CASE("a sum of terms of both signs counts against the size of its terms") {
    const double want = 0.01;
    const float got = 0.014f;
    tolerance tol{1e-2, PLAIT_F32, false};
    CHECK(compare_floats(tol, &got, &want, 1).ratio > 30);
    tol.least_norm = 1;
    const deviation d = compare_floats(tol, &got, &want, 1);
    CHECK(d.ratio == doctest::Approx(0.4).epsilon(0.01));
    CHECK(d.error == doctest::Approx(0.4).epsilon(0.01));
    CHECK(d.bound == doctest::Approx(1).epsilon(0.01));
    tol.least_norm = 0.1;
    CHECK(compare_floats(tol, &got, &want, 1).ratio > 3);
}

TEST_CASE("non-finite values must be where they belong") {
    const tolerance tol =
        wht_tolerance(split_token("wht:f16:n4"), PLAIT_F16, PLAIT_F16, rounding::sums);
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
    const auto ratio = [&](double got, double want) {
        uint16_t bits;
        from_double(PLAIT_F16, &got, 1, &bits);
        return compare_floats(tol, &bits, &want, 1).ratio;
    };
    CHECK(ratio(infinity, 70000) == 0); // does not fit F16
    CHECK(ratio(-infinity, 70000) == infinity);
    CHECK(ratio(65504, 70000) == infinity);
    CHECK(ratio(nan, nan) == 0);
    CHECK(ratio(1, nan) == infinity);
    CHECK(ratio(nan, 1) == infinity);
    CHECK(ratio(infinity, infinity) == 0);
}

TEST_CASE("integers are equal modulo their width") {
    const int64_t want[2] = {(int64_t{1} << 32) + 5, -1};
    const int32_t right[2] = {5, -1}, wrong[2] = {5, 1};
    CHECK(compare_integers(PLAIT_I32, right, want, 2).ratio == 0);
    CHECK(compare_integers(PLAIT_I32, wrong, want, 2).ratio > 1);
    CHECK(compare_integers(PLAIT_I32, wrong, want, 2).error == 0.5);
    CHECK(compare_integers(PLAIT_I64, want, want, 2).ratio == 0);
}

TEST_CASE("one wrong element in one transform is found") {
    const std::string token = "wht:f32:b40:n32";
    const desc_ptr desc = make_desc(token);
    const std::vector<tensor> tensors = tensors_of(desc.get());
    std::vector<float> x(40 * 32, 1.0f), y(40 * 32, 0.0f);
    for (size_t i = 0; i < 40; ++i) y[i * 32] = 32.0f;
    const fetch from = [&](const slice &part, void *packed) {
        gather(part, part.part.role == PLAIT_X ? x.data() : y.data(), packed);
    };
    const std::unique_ptr<checker> judge = make_checker(token, tensors);
    const std::vector<int64_t> all = pick_parts(40, 40);
    CHECK(judge->check(all, rounding::sums, from, from).values.ratio == 0);
    y[17 * 32 + 3] = 0.01f;
    const deviation d = judge->check(all, rounding::sums, from, from).values;
    CHECK(d.ratio > 1);
    CHECK(d.worst == 17);
    CHECK(d.compared == 40);
}

TEST_CASE("parts are picked from the whole range") {
    CHECK(pick_parts(5, 100) == std::vector<int64_t>{0, 1, 2, 3, 4});
    CHECK(pick_parts(100, 3) == std::vector<int64_t>{0, 49, 99});
    CHECK(pick_parts(0, 3).empty());
    CHECK(pick_parts(int64_t{1} << 40, 2) == std::vector<int64_t>{0, (int64_t{1} << 40) - 1});
}
