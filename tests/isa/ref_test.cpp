// wht.ref against the definition written out: y[k] = scale * diag[k] * sum_j H[k][j] s[j] x[j] with
// a dense H over all transformed axes, on random small problems of every kind.
#include "lib/common/factor_matrices.h"
#include "lib/cpu/kernel_table.h"
#include "lib/cpu/wht/ref_args.h"
#include "tests/isa/typed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace isa_test;
using namespace plait::impl;

namespace {

__extension__ typedef __int128 int128;

cpu::wht_ref_args ref_args(const void *x, void *y, const uint32_t *signs, const void *diag,
                           int32_t *overflow, void *scratch, const wht_problem &p) {
    cpu::wht_ref_args args{};
    args.x = x;
    args.y = y;
    args.signs = signs;
    args.diag = diag;
    args.overflow = overflow;
    args.scratch = scratch;
    args.problem = p;
    return args;
}

int sign_changes(int64_t row, int64_t n) {
    int changes = 0;
    for (int64_t j = 1; j < n; ++j)
        changes += __builtin_parityll(row & j) != __builtin_parityll(row & (j - 1));
    return changes;
}

/// H of one axis, dense, in its output order.
std::vector<int> axis_matrix(const wht_axis &ax, wht_order order) {
    const int64_t n = ax.length;
    const int m = wht_factor_order(ax.factor);
    const int64_t two_k = n / m;
    std::vector<int64_t> natural_row(static_cast<size_t>(n));
    for (int64_t r = 0; r < n; ++r) {
        if (order == wht_order::natural) natural_row[r] = r;
        // Sequency: row r is the natural row with r sign changes.
        if (order == wht_order::sequency) natural_row[sign_changes(r, n)] = r;
        if (order == wht_order::dyadic) {
            int64_t reversed = 0;
            for (int64_t bit = 1; bit < n; bit *= 2) reversed = reversed * 2 + (r / bit) % 2;
            natural_row[r] = reversed;
        }
    }
    std::vector<int> h(static_cast<size_t>(n * n));
    for (int64_t r = 0; r < n; ++r)
        for (int64_t j = 0; j < n; ++j) {
            const int64_t k = natural_row[r];
            const int f = wht_factor_sign(ax.factor, static_cast<int>(k / two_k),
                                          static_cast<int>(j / two_k));
            const int b = __builtin_parityll((k % two_k) & (j % two_k)) ? -1 : 1;
            h[static_cast<size_t>(r * n + j)] = f * b;
        }
    return h;
}

/// Offsets of every point of one kind of axes, row-major.
struct point {
    int64_t x = 0, y = 0, signs = 0, diag = 0;
    std::vector<int64_t> at;
};

std::vector<point> points(const wht_problem &p, bool transformed) {
    std::vector<point> list(1);
    for (int a = 0; a < p.axes; ++a) {
        const wht_axis &ax = p.axis[a];
        if (ax.transformed != transformed) continue;
        std::vector<point> longer;
        for (const point &q : list)
            for (int64_t i = 0; i < ax.length; ++i) {
                point next = q;
                next.x += i * ax.x_stride;
                next.y += i * ax.y_stride;
                next.signs += i * ax.signs_stride;
                next.diag += i * ax.diag_stride;
                next.at.push_back(i);
                longer.push_back(next);
            }
        list = longer;
    }
    return list;
}

/// H of all transformed axes: the product of the axes' entries.
std::vector<int> full_matrix(const wht_problem &p, const std::vector<point> &t) {
    std::vector<std::vector<int>> axes;
    std::vector<int64_t> lengths;
    for (int a = 0; a < p.axes; ++a)
        if (p.axis[a].transformed) {
            axes.push_back(axis_matrix(p.axis[a], p.order));
            lengths.push_back(p.axis[a].length);
        }
    std::vector<int> h(t.size() * t.size(), 1);
    for (size_t k = 0; k < t.size(); ++k)
        for (size_t j = 0; j < t.size(); ++j)
            for (size_t a = 0; a < axes.size(); ++a)
                h[k * t.size() + j] *=
                    axes[a][static_cast<size_t>(t[k].at[a] * lengths[a] + t[j].at[a])];
    return h;
}

/// Row-major strides of the axes in a random order of nesting, with gaps; returns the extent.
int64_t nest(wht_problem &p, rng &r, int64_t wht_axis::*stride, bool only_transformed, bool gaps) {
    std::vector<int> order;
    for (int a = 0; a < p.axes; ++a) {
        p.axis[a].*stride = 0;
        if (!only_transformed || p.axis[a].transformed) order.push_back(a);
    }
    if (!only_transformed)
        std::shuffle(order.begin(), order.end(), r);
    else
        std::reverse(order.begin(), order.end());
    int64_t extent = 1;
    for (const int a : order) {
        if (gaps) extent += pick(r, 0, 2);
        p.axis[a].*stride = extent;
        extent *= p.axis[a].length;
    }
    return extent;
}

struct example {
    wht_problem p{};
    int64_t x_extent = 1, y_extent = 1, signs_extent = 1, diag_extent = 1;
    std::string text;
};

example random_example(rng &r) {
    example e;
    wht_problem &p = e.p;
    const int kind = static_cast<int>(pick(r, 0, 2));
    const scalar floats[] = {scalar::f16, scalar::bf16, scalar::f32, scalar::f64};
    const scalar complexes[] = {scalar::c64, scalar::c128};
    const scalar integers[] = {scalar::i32, scalar::i64};
    const auto any = [&](const scalar *list, int count) { return list[pick(r, 0, count - 1)]; };
    p.x = kind == 0 ? any(floats, 4) : kind == 1 ? any(complexes, 2) : any(integers, 2);
    p.y = kind == 0 ? any(floats, 4) : kind == 1 ? any(complexes, 2) : any(integers, 2);
    p.order = static_cast<wht_order>(pick(r, 0, 2));
    p.adjoint = pick(r, 0, 1) == 1;
    p.scale = kind == 2 ? 1.0 : pick(r, 0, 3) == 0 ? 0.0 : std::ldexp(1.0 + 0.1 * kind, -3);
    p.signs = pick(r, 0, 1) == 1;
    p.overflow = kind == 2 && pick(r, 0, 1) == 1;
    if (kind != 2 && pick(r, 0, 1) == 1) {
        if (kind == 1 && pick(r, 0, 1) == 1)
            p.diag = any(complexes, 2);
        else
            p.diag = any(floats, 4);
    }
    p.axes = static_cast<int>(pick(r, 0, 4));
    int64_t n = 1;
    const wht_factor factors[] = {wht_factor::h12_paley2, wht_factor::h12_sloane,
                                  wht_factor::h20_williamson, wht_factor::h28_williamson,
                                  wht_factor::h40};
    for (int a = 0; a < p.axes; ++a) {
        wht_axis &ax = p.axis[a];
        ax.factor = wht_factor::h1;
        ax.transformed = pick(r, 0, 2) != 0;
        ax.length = ax.transformed ? int64_t{1} << pick(r, 1, 5) : pick(r, 2, 5);
        if (ax.transformed && p.order == wht_order::natural && pick(r, 0, 1) == 1) {
            ax.factor = factors[pick(r, 0, 4)];
            ax.length = wht_factor_order(ax.factor) << pick(r, 0, 2);
        }
        if (ax.transformed && n * ax.length > 240) { // keeps the dense matrix small
            ax.transformed = false;
            ax.factor = wht_factor::h1;
            ax.length = 2;
        }
        if (ax.transformed) n *= ax.length;
    }
    e.x_extent = nest(p, r, &wht_axis::x_stride, false, true);
    e.y_extent = nest(p, r, &wht_axis::y_stride, false, true);
    p.alias = scalar_bits(p.x) == scalar_bits(p.y) && pick(r, 0, 2) == 0;
    if (p.alias) {
        for (int a = 0; a < p.axes; ++a) p.axis[a].y_stride = p.axis[a].x_stride;
        e.y_extent = e.x_extent;
    }
    // Indexed like X over the transformed axes, sometimes with its own values per batch entry.
    const bool shared_signs = pick(r, 0, 1) == 1, shared_diag = pick(r, 0, 1) == 1;
    if (p.signs) e.signs_extent = nest(p, r, &wht_axis::signs_stride, shared_signs, !shared_signs);
    if (p.diag != scalar::none)
        e.diag_extent = nest(p, r, &wht_axis::diag_stride, shared_diag, !shared_diag);
    e.text = std::string(scalar_name(p.x)) + "->" + scalar_name(p.y) + " order " +
             std::to_string(static_cast<int>(p.order)) + (p.adjoint ? " adjoint" : "") +
             (p.signs ? " signs" : "") + " diag " + scalar_name(p.diag) +
             (p.overflow ? " overflow" : "") + (p.alias ? " alias" : "");
    for (int a = 0; a < p.axes; ++a)
        e.text += " [" + std::to_string(p.axis[a].length) + (p.axis[a].transformed ? "t" : "b") +
                  std::to_string(static_cast<int>(p.axis[a].factor)) + "]";
    return e;
}

bool fits(scalar y, int128 v) {
    if (y == scalar::i32) return v >= INT32_MIN && v <= INT32_MAX;
    return v >= INT64_MIN && v <= INT64_MAX;
}

struct run_result {
    std::vector<uint8_t> y_bytes;
    int32_t overflow = 7;
};

void check_example(const example &e, rng &r) {
    const wht_problem &p = e.p;
    const bool small = pick(r, 0, 1) == 1;
    buffer x(p.x, e.x_extent, pick(r, 0, 2), 0x5b), y(p.y, e.y_extent, pick(r, 0, 2), 0xa7);
    const std::vector<point> batch = points(p, false), t = points(p, true);
    for (int64_t i = 0; i < e.x_extent; ++i) put_random(p.x, x.at(), i, r, small);
    std::vector<uint32_t> signs(static_cast<size_t>(e.signs_extent / 32 + 1));
    for (uint32_t &w : signs) w = static_cast<uint32_t>(r());
    buffer diag(p.diag == scalar::none ? scalar::f32 : p.diag, e.diag_extent, 0, 0);
    for (int64_t i = 0; p.diag != scalar::none && i < e.diag_extent; ++i)
        put_random(p.diag, diag.at(), i, r, small);
    const buffer x_before = x, y_before = y;
    const auto *x_values = x_before.bytes.data() + x_before.offset;

    void *out = p.alias ? x.at() : y.at();
    const int threads = static_cast<int>(pick(r, 1, 3));
    std::vector<uint8_t> scratch(static_cast<size_t>(cpu::wht_ref_scratch_bytes(p, threads)) + 64);
    int32_t overflow = 7;
    const cpu::wht_ref_args args = ref_args(
        x.at(), out, p.signs ? signs.data() : nullptr, p.diag != scalar::none ? diag.at() : nullptr,
        p.overflow ? &overflow : nullptr,
        reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64), p);
    cpu::find_kernel("wht.ref")(&args, threads);

    const std::vector<int> h = full_matrix(p, t);
    const auto minus = [&](int64_t i) { return p.signs && (signs[i / 32] >> (i % 32) & 1u) != 0; };
    const buffer &written = p.alias ? x : y;
    buffer expected = p.alias ? x_before : y_before; // gaps and guards stay
    bool true_overflow = false;
    for (const point &b : batch) {
        double error = 0, norm = 0, rounding = 0;
        for (size_t k = 0; k < t.size(); ++k) {
            const int64_t at = b.y + t[k].y;
            const auto entry = [&](size_t j) {
                return p.adjoint ? h[j * t.size() + k] : h[k * t.size() + j];
            };
            if (is_integer(p.x)) {
                int128 sum = 0;
                for (size_t j = 0; j < t.size(); ++j) {
                    int128 v = get_int(p.x, x_values, b.x + t[j].x);
                    if (!p.adjoint && minus(b.signs + t[j].signs)) v = -v;
                    sum += entry(j) * v;
                }
                if (p.adjoint && minus(b.signs + t[k].signs)) sum = -sum;
                true_overflow |= !fits(p.y, sum);
                put_int(p.y, expected.at(), at, static_cast<int64_t>(static_cast<uint64_t>(sum)));
                continue;
            }
            const auto d = [&](size_t i) -> std::complex<double> {
                if (p.diag == scalar::none) return 1;
                const auto v = get(p.diag, diag.at(), b.diag + t[i].diag);
                return is_complex(p.diag) ? v : v.real();
            };
            std::complex<double> sum = 0;
            for (size_t j = 0; j < t.size(); ++j) {
                std::complex<double> v = get(p.x, x_values, b.x + t[j].x);
                if (!p.adjoint && minus(b.signs + t[j].signs)) v = -v;
                if (p.adjoint) v *= std::conj(d(j));
                sum += static_cast<double>(entry(j)) * v;
            }
            if (!p.adjoint) sum *= d(k);
            if (p.adjoint && minus(b.signs + t[k].signs)) sum = -sum;
            sum *= p.scale;
            const std::complex<double> got = get(p.y, written.bytes.data() + written.offset, at);
            const int64_t size = scalar_bytes(p.y);
            std::memcpy(static_cast<uint8_t *>(expected.at()) + at * size,
                        written.bytes.data() + written.offset + at * size,
                        static_cast<size_t>(size));
            // f16 overflows to Inf where the definition does not fit.
            if (p.y == scalar::f16 && std::abs(sum.real()) >= 65519) continue;
            error += std::norm(got - sum);
            norm += std::norm(sum);
            rounding += std::pow(half_ulp(p.y, sum.real()), 2);
            if (is_complex(p.y)) rounding += std::pow(half_ulp(p.y, sum.imag()), 2);
        }
        if (!is_integer(p.x))
            CHECK(std::sqrt(error) <= 1e-12 * std::sqrt(norm) + 1.0001 * std::sqrt(rounding));
    }
    if (p.overflow)
        CHECK(overflow == (true_overflow ? 1 : 0));
    else
        CHECK(overflow == 7);
    CHECK(written.bytes == expected.bytes);
    if (!p.alias) CHECK(x.bytes == x_before.bytes);
}

} // namespace

TEST_CASE("ref: random problems against the dense definition") {
    const uint64_t s = seed("ref dense");
    for (uint64_t i = 0; i < 1500; ++i) {
        rng r(s + i);
        const example e = random_example(r);
        INFO("seed ", s + i, ": ", e.text);
        check_example(e, r);
    }
}

TEST_CASE("ref: overflow exactly at the edge of the range, also inside a factor") {
    const auto flag = [](std::vector<int32_t> x, wht_factor f, std::vector<int32_t> *result) {
        wht_problem p{};
        p.x = p.y = scalar::i32;
        p.scale = 1;
        p.overflow = true;
        p.axes = 1;
        p.axis[0] = {static_cast<int64_t>(x.size()), 1, 1, 0, 0, true, f};
        std::vector<int32_t> y(x.size());
        std::vector<uint8_t> scratch(static_cast<size_t>(cpu::wht_ref_scratch_bytes(p, 1)) + 64);
        int32_t overflow = 7;
        const cpu::wht_ref_args args = ref_args(
            x.data(), y.data(), nullptr, nullptr, &overflow,
            reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64),
            p);
        cpu::find_kernel("wht.ref")(&args, 1);
        if (result != nullptr) *result = y;
        return overflow;
    };
    const int32_t big = 1 << 30;
    CHECK(flag({big, big}, wht_factor::h1, nullptr) == 1);     // +2^31
    CHECK(flag({-big, -big}, wht_factor::h1, nullptr) == 0);   // -2^31 fits
    CHECK(flag({big, big - 1}, wht_factor::h1, nullptr) == 0); // 2^31 - 1
    CHECK(flag({big, -big}, wht_factor::h1, nullptr) == 1);
    // The first stage leaves the range and the last one comes back only modulo 2^32.
    CHECK(flag({big, big, big, big}, wht_factor::h1, nullptr) == 1);
    // x = column 0 of H^T times c: every partial sum but the last is far out, all results fit.
    std::vector<int32_t> x(12), y;
    for (int j = 0; j < 12; ++j)
        x[static_cast<size_t>(j)] = (1 << 27) * wht_factor_sign(wht_factor::h12_sloane, 0, j);
    CHECK(flag(x, wht_factor::h12_sloane, &y) == 0);
    CHECK(y[0] == 12 * (1 << 27));
    CHECK(y[5] == 0);
}

TEST_CASE("ref: all threads inside one transform give the bits of one thread") {
    const uint64_t s = seed("ref threads");
    rng r(s);
    for (const int64_t n : {int64_t{1} << 14, int64_t{40} << 10, int64_t{1} << 17}) {
        wht_problem p{};
        p.x = scalar::f32;
        p.y = scalar::f64;
        p.scale = 0.3;
        p.axes = 2;
        p.axis[0] = {3, n, n, 0, 0, false, wht_factor::h1};
        p.axis[1] = {n, 1, 1, 0, 0, true, n % 40 == 0 ? wht_factor::h40 : wht_factor::h1};
        std::vector<float> x(static_cast<size_t>(3 * n));
        for (float &v : x) v = static_cast<float>(pick(r, -1000, 1000)) * 0.37f;
        const auto run = [&](int threads) {
            std::vector<double> y(x.size());
            std::vector<uint8_t> scratch(
                static_cast<size_t>(cpu::wht_ref_scratch_bytes(p, threads)) + 64);
            const cpu::wht_ref_args args =
                ref_args(x.data(), y.data(), nullptr, nullptr, nullptr,
                         reinterpret_cast<void *>(
                             (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64),
                         p);
            cpu::find_kernel("wht.ref")(&args, threads);
            return y;
        };
        REQUIRE(cpu::wht_ref_shares_transform(p, 4));
        const std::vector<double> one = run(1);
        CHECK(one == run(4));
        // Row 0 of H is all ones: the first output is the sum.
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < n; ++i) {
            const int h = wht_factor_sign(p.axis[1].factor, 0, static_cast<int>(i / (n / 40)));
            sum += n % 40 == 0 ? h * x[static_cast<size_t>(i)] : x[static_cast<size_t>(i)];
            magnitude += std::abs(x[static_cast<size_t>(i)]);
        }
        CHECK(std::abs(one[0] - 0.3 * sum) <= 1e-12 * magnitude);
    }
}
