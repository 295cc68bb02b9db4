// What must hold without any reference, for every candidate that applies.
#include "tests/support/check.h"

#include <cmath>

namespace plait::test {
namespace {

/// Rows of a type.
wht_call rows(plait_dtype type, int64_t count, int64_t n) {
    wht_call c;
    c.x = type;
    c.extents = {count, n};
    return c;
}

std::vector<plait_dtype> types() {
    return {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16, PLAIT_C64, PLAIT_I32, PLAIT_I64};
}

/// Around the borders between the kernels of the CPU and of the device.
std::vector<int> sizes() {
    if (config().small || config().brief) return {0, 1, 5, 8, 11, 15};
    if (!on_device()) return {0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 14, 15, 16};
    return {0, 1, 2, 3, 4, 5, 7, 8, 10, 12, 13, 14, 15, 16, 17};
}

plait_dtype wide_of(plait_dtype type) { return is_sixteen_bit(type) ? PLAIT_F32 : type; }

} // namespace

TEST_CASE("property: H H = n I") {
    rng random(config().seed);
    for (plait_dtype type : types())
        for (int k : sizes()) {
            wht_call there = rows(type, 3, int64_t{1} << k);
            there.y = wide_of(type); // 16 bits could not hold the spectrum
            wht_call back = rows(wide_of(type), 3, int64_t{1} << k);
            back.y = type;
            back.adjoint = true;
            if (!is_integer(type)) back.scale = std::exp2(-k);
            const wht_data data = random_data(there, filling::integers, random);
            for_each_candidate(there, [&](const candidate &by) {
                wht_data spectrum;
                spectrum.x = result_of(there, data, by);
                if (spectrum.x.empty()) return;
                for_each_candidate(
                    back,
                    [&](const candidate &again) {
                        const bytes y = result_of(back, spectrum, again, PLAIT_MATH_F32);
                        if (y.empty()) return;
                        if (!is_integer(type)) {
                            CHECK(y == data.x);
                            return;
                        }
                        CHECK(first_wrong(values_of(back, y), [&](int64_t e) {
                                  return load(type, data.x.data(), e) * std::exp2(k);
                              }) == -1);
                    },
                    PLAIT_MATH_F32);
            });
        }
}

TEST_CASE("property: impulses give rows of H, and rows of H give impulses") {
    rng random(config().seed + 1);
    for (plait_dtype type : types())
        for (int k : sizes()) {
            wht_call c = rows(type, 2, int64_t{1} << k);
            const int64_t n = int64_t{1} << k, j = random.between(0, n - 1);
            const auto impulse = [&](int64_t e) { return e % n == j ? 3.0 : 0.0; };
            const auto row = [&](int64_t e) { return hadamard_sign(e % n, j); };
            for_each_candidate(c, [&](const candidate &by) {
                const auto y = values_of(c, result_of(c, data_of(c, impulse), by));
                CHECK(first_wrong(y, [&](int64_t e) { return 3.0 * row(e); }) == -1);
            });
            if (!is_integer(type)) c.scale = std::exp2(-k); // n is beyond F16
            const double peak = is_integer(type) ? std::exp2(k) : 1.0;
            for_each_candidate(c, [&](const candidate &by) {
                const auto y = values_of(c, result_of(c, data_of(c, row), by));
                CHECK(first_wrong(y, [&](int64_t e) { return e % n == j ? peak : 0.0; }) == -1);
            });
        }
}

TEST_CASE("property: a ramp has energy in the powers of two alone") {
    for (plait_dtype type : types())
        for (int k : sizes()) {
            const int64_t n = int64_t{1} << k;
            if (is_sixteen_bit(type) || (real_of(type) == PLAIT_F32 && k > 12)) continue;
            if (type == PLAIT_I32 && k > 16) continue;
            const wht_call c = rows(type, 1, n);
            for_each_candidate(c, [&](const candidate &by) {
                const auto data = data_of(c, [](int64_t e) { return static_cast<double>(e); });
                const auto y = values_of(c, result_of(c, data, by));
                const double half = static_cast<double>(n) / 2;
                CHECK(first_wrong(y, [&](int64_t e) {
                          if (e == 0) return half * static_cast<double>(n - 1);
                          return (e & (e - 1)) == 0 ? -half * static_cast<double>(e) : 0.0;
                      }) == -1);
            });
        }
}

TEST_CASE("property: a dyadic shift of the input changes signs of the output") {
    rng random(config().seed + 2);
    for (plait_dtype type : types())
        for (int k : sizes()) {
            const int64_t n = int64_t{1} << k, shift = random.between(0, n - 1);
            wht_call c = rows(type, 2, n);
            c.y = wide_of(type);
            std::vector<double> x(static_cast<size_t>(2 * n));
            for (double &v : x) v = static_cast<double>(random.between(-2, 2));
            const auto plain = data_of(c, [&](int64_t e) { return x[static_cast<size_t>(e)]; });
            const auto moved =
                data_of(c, [&](int64_t e) { return x[static_cast<size_t>(e ^ shift)]; });
            for_each_candidate(
                c,
                [&](const candidate &by) {
                    const auto a = values_of(c, result_of(c, plain, by, PLAIT_MATH_F32));
                    const auto b = values_of(c, result_of(c, moved, by, PLAIT_MATH_F32));
                    REQUIRE(a.size() == b.size());
                    CHECK(first_wrong(b, [&](int64_t e) {
                              return a[static_cast<size_t>(e)] * hadamard_sign(e % n, shift);
                          }) == -1);
                },
                PLAIT_MATH_F32);
        }
}

TEST_CASE("property: Parseval") {
    rng random(config().seed + 3);
    for (plait_dtype type : types())
        for (int k : sizes()) {
            const int64_t n = int64_t{1} << k;
            wht_call c = rows(type, 1, n);
            if (is_complex(type)) continue; // the same sums twice
            c.y = wide_of(type);
            const wht_data data = random_data(c, filling::integers, random);
            double energy = 0;
            for (int64_t e = 0; e < n; ++e) energy += std::pow(load(type, data.x.data(), e), 2);
            for_each_candidate(
                c,
                [&](const candidate &by) {
                    double sum = 0; // whole numbers below 2^53
                    for (double v : values_of(c, result_of(c, data, by, PLAIT_MATH_F32)))
                        sum += v * v;
                    CHECK(sum == static_cast<double>(n) * energy);
                },
                PLAIT_MATH_F32);
        }
}

TEST_CASE("property: linear on random signs") {
    rng random(config().seed + 4);
    for (plait_dtype type : types())
        for (int k : sizes()) {
            wht_call c = rows(type, 2, int64_t{1} << k);
            c.y = wide_of(type);
            std::vector<double> a(static_cast<size_t>(c.elements())), b(a.size());
            for (double &v : a) v = random.pick({1.0, -1.0});
            for (double &v : b) v = random.pick({1.0, -1.0});
            const auto at = [](const std::vector<double> &v) {
                return [&v](int64_t e) { return v[static_cast<size_t>(e)]; };
            };
            const auto sum = data_of(c, [&](int64_t e) { return at(a)(e) + 2 * at(b)(e); });
            for_each_candidate(
                c,
                [&](const candidate &by) {
                    const auto ya =
                        values_of(c, result_of(c, data_of(c, at(a)), by, PLAIT_MATH_F32));
                    const auto yb =
                        values_of(c, result_of(c, data_of(c, at(b)), by, PLAIT_MATH_F32));
                    const auto ys = values_of(c, result_of(c, sum, by, PLAIT_MATH_F32));
                    REQUIRE(ys.size() == ya.size());
                    CHECK(first_wrong(ys, [&](int64_t e) {
                              return ya[static_cast<size_t>(e)] + 2 * yb[static_cast<size_t>(e)];
                          }) == -1);
                },
                PLAIT_MATH_F32);
        }
}

TEST_CASE("property: all ones but the last: small outputs beside a large one survive") {
    for (plait_dtype type : types())
        for (int k : sizes()) {
            if (k < 2) continue;
            const int64_t n = int64_t{1} << k;
            const wht_call c = rows(type, 1, n);
            const auto data = data_of(c, [n](int64_t e) { return e == n - 1 ? -1.0 : 1.0; });
            for_each_candidate(
                c,
                [&](const candidate &by) {
                    const auto y = values_of(c, result_of(c, data, by, PLAIT_MATH_F32));
                    CHECK(first_wrong(y, [&](int64_t e) {
                              return e == 0 ? rounded(real_of(type), static_cast<double>(n - 2))
                                            : -2.0 * hadamard_sign(e, -1);
                          }) == -1);
                },
                PLAIT_MATH_F32);
        }
}

TEST_CASE("property: <A x, y> = <x, A' y>, for each factor and each order") {
    rng random(config().seed + 5);
    std::vector<wht_call> calls;
    for (int f = PLAIT_H12_PALEY2; f <= PLAIT_H172_WILLIAMSON; ++f)
        for (int k : {0, 1, 4}) {
            const auto factor = static_cast<plait_wht_factor>(f);
            wht_call c;
            c.x = PLAIT_F64;
            c.extents = {factor_matrix(factor).order * (int64_t{1} << k)};
            c.factor = {{0, factor}};
            calls.push_back(c);
        }
    for (plait_wht_order order : {PLAIT_NATURAL, PLAIT_SEQUENCY, PLAIT_DYADIC}) {
        wht_call c;
        c.x = PLAIT_F64;
        c.extents = {64};
        c.order = order;
        calls.push_back(c);
    }
    for (wht_call c : calls) {
        c.signs = true;
        c.diag = PLAIT_F64;
        wht_call adjoint = c;
        adjoint.adjoint = true;
        const wht_data x = random_data(c, filling::integers, random);
        wht_data y = x; // the same signs and diagonal
        y.x = random_data(c, filling::integers, random).x;
        for_each_candidate(c, [&](const candidate &by) {
            const auto ax = values_of(c, result_of(c, x, by));
            const auto ay = values_of(c, result_of(adjoint, y, by));
            REQUIRE(ax.size() == ay.size());
            double left = 0, right = 0;
            for (size_t e = 0; e < ax.size(); ++e) {
                left += ax[e] * load(PLAIT_F64, y.x.data(), static_cast<int64_t>(e));
                right += ay[e] * load(PLAIT_F64, x.x.data(), static_cast<int64_t>(e));
            }
            CHECK(left == right);
        });
    }
}

TEST_CASE("property: Inf and NaN stay in their row, and every row is independent of the others") {
    rng random(config().seed + 6);
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16})
        for (int k : sizes()) {
            const int64_t n = int64_t{1} << k, count = k <= 8 ? 37 : 5;
            wht_call c = rows(type, count, n);
            c.scale = 1 / std::sqrt(static_cast<double>(n));
            const wht_data clean = random_data(c, filling::uniform, random);
            wht_data dirty = clean;
            for (int64_t r = 1; r < count; r += 2)
                store(type, dirty.x.data(), r * n + random.between(0, n - 1),
                      random.pick({HUGE_VAL, -HUGE_VAL, std::nan("")}));
            for_each_candidate(c, [&](const candidate &by) {
                const bytes a = result_of(c, clean, by), b = result_of(c, dirty, by);
                REQUIRE(a.size() == b.size());
                const auto row_bytes = static_cast<std::ptrdiff_t>(n * bytes_of(type));
                for (int64_t r = 0; r < count; r += 2)
                    REQUIRE(std::equal(a.begin() + r * row_bytes, a.begin() + (r + 1) * row_bytes,
                                       b.begin() + r * row_bytes));
                bool all_hit = true;
                for (int64_t r = 1; r < count; r += 2)
                    for (int64_t e = 0; e < n; ++e)
                        all_hit &= !std::isfinite(load(type, b.data(), r * n + e));
                CHECK(all_hit);
            });
        }
}

TEST_CASE("property: a row gives the same bits anywhere in a batch, alone, and at any alignment") {
    rng random(config().seed + 7);
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16})
        for (int k : sizes()) {
            const int64_t n = int64_t{1} << k, count = k <= 8 ? 21 : 5;
            wht_call c = rows(type, count, n);
            c.scale = 0.3;
            wht_data one;
            one.x = random_data(rows(type, 1, n), filling::uniform, random).x;
            wht_data all;
            for (int64_t r = 0; r < count; ++r)
                all.x.insert(all.x.end(), one.x.begin(), one.x.end());
            const auto same_rows = [&](const bytes &y, const bytes &first, int64_t pitch) {
                const auto size = static_cast<std::ptrdiff_t>(one.x.size());
                for (int64_t r = 0; r < count; ++r)
                    if (!std::equal(first.begin(), first.begin() + size,
                                    y.begin() + r * pitch * bytes_of(type)))
                        return false;
                return true;
            };
            for_each_candidate(c, [&](const candidate &by) {
                const bytes y = result_of(c, all, by);
                REQUIRE(!y.empty());
                CHECK(same_rows(y, y, n));
                CHECK(result_of(c, all, by) == y); // and a second run gives the same bits

                wht_call single = rows(type, 1, n);
                single.scale = c.scale;
                for (const candidate &also : applicable(desc_of(single).get()))
                    if (also.name == by.name) CHECK(same_rows(y, result_of(single, one, by), n));

                wht_call moved = c; // one element off, odd pitch
                moved.x_offset = moved.y_offset = 1;
                moved.x_strides = moved.y_strides = {n + 3, 1};
                const auto data =
                    data_of(moved, [&](int64_t e) { return load(type, one.x.data(), e % n); });
                for (const candidate &also : applicable(desc_of(moved).get()))
                    if (also.name == by.name)
                        CHECK(same_rows(result_of(moved, data, by), y, n + 3));
            });
        }
}

} // namespace plait::test
