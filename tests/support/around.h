// Random problems with what stands around the passes of a transform, and how their results are
// compared.
#pragma once

#include "tests/support/json_cases.h"
#include "tests/support/memory.h"
#include "tests/support/rng.h"
#include "tests/support/runner.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>

namespace plait::test {

/// Bytes of an element, of the types that other tests do not have too; 0 for bits.
inline int64_t size_of(plait_dtype t) {
    if (t == PLAIT_B1) return 0;
    return t == PLAIT_E4M3 ? 1 : bytes_of(t);
}

struct tensor_facts {
    plait_role role;
    plait_access access;
    plait_dtype dtype;
    int rank = 0;
    int64_t extents[PLAIT_MAX_RANK], strides[PLAIT_MAX_RANK];

    int64_t span() const {
        int64_t last = 0;
        for (int a = 0; a < rank; ++a) {
            if (extents[a] == 0) return 0;
            last += (extents[a] - 1) * strides[a];
        }
        return last + 1;
    }
    size_t bytes() const {
        if (dtype == PLAIT_B1) return static_cast<size_t>((span() + 31) / 32 * 4);
        return static_cast<size_t>(span() * size_of(dtype));
    }
};

inline std::vector<tensor_facts> tensors_of(const plait_desc *desc) {
    int count = 0;
    REQUIRE(plait_desc_num_tensors(desc, &count) == PLAIT_OK);
    std::vector<tensor_facts> all(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        tensor_facts &t = all[static_cast<size_t>(i)];
        REQUIRE(plait_desc_tensor(desc, i, &t.role, &t.access, &t.dtype, &t.rank, t.extents,
                                  t.strides) == PLAIT_OK);
    }
    return all;
}

enum class content { small, uniform, whole, infinite };

inline bytes filled(const tensor_facts &t, content how, int64_t places, rng &r) {
    bytes out(t.bytes());
    const auto n = static_cast<int64_t>(out.size());
    if (t.role == PLAIT_ROWS) {
        for (int64_t i = 0; i < t.span(); ++i)
            store_integer(t.dtype, out.data(), i, r.between(r.chance(0.1) ? -1 : 0, places));
    } else if (t.dtype == PLAIT_B1 || how == content::whole || t.dtype == PLAIT_I8) {
        for (std::byte &b : out) b = static_cast<std::byte>(r.next());
    } else if (is_integer(t.dtype)) {
        for (int64_t i = 0; i < t.span(); ++i)
            store_integer(t.dtype, out.data(), i, r.between(-9, 9));
    } else {
        const plait_dtype real = real_of(t.dtype);
        for (int64_t i = 0; i < n / bytes_of(real); ++i)
            store(real, out.data(), i,
                  how == content::uniform ? r.sign_unit() : static_cast<double>(r.between(-2, 2)));
        if (how == content::infinite && t.role == PLAIT_X && n > 0)
            store(real, out.data(), r.between(0, n / bytes_of(real) - 1), INFINITY);
    }
    return out;
}

inline double e4m3(std::byte b) {
    const int bits = static_cast<int>(b), exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7f) == 0x7f) return NAN;
    const double size =
        std::ldexp(exponent == 0 ? fraction : 8 + fraction, (exponent == 0 ? 1 : exponent) - 10);
    return bits & 0x80 ? -size : size;
}

/// The nearest value, ties to the even code; beyond the largest the largest.
inline std::byte to_e4m3(double v) {
    int best = 0;
    for (int code = 1; code < 0x7f; ++code) {
        const double here = std::fabs(e4m3(std::byte(code)) - std::fabs(v));
        const double before = std::fabs(e4m3(std::byte(best)) - std::fabs(v));
        if (here < before || (here == before && code % 2 == 0)) best = code;
    }
    return std::byte(best | (std::signbit(v) ? 0x80 : 0));
}

/// "" or where an output differs from that of the definition. `u`: of the accumulate type.
inline std::string differs(const tensor_facts &t, const bytes &got, const bytes &want, double u,
                           double depth) {
    if (is_integer(t.dtype)) return got == want ? "" : "an integer differs";
    const bool eight = t.dtype == PLAIT_E4M3;
    const plait_dtype real = eight ? PLAIT_F32 : real_of(t.dtype);
    const auto n = static_cast<int64_t>(got.size()) / (eight ? 1 : bytes_of(real));
    const auto at = [&](const bytes &b, int64_t i) {
        return eight ? e4m3(b[static_cast<size_t>(i)]) : load(real, b.data(), i);
    };
    double norm = 0, error = 0, stored = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double g = at(got, i), w = at(want, i);
        if (!std::isfinite(w) || !std::isfinite(g)) {
            if (std::isnan(w) ? std::isnan(g) : g == w) continue;
            return "[" + std::to_string(i) + "] is " + std::to_string(g) + ", must be " +
                   std::to_string(w);
        }
        norm += w * w;
        error += (g - w) * (g - w);
        const double step = eight ? std::fmax(0x1p-9, std::fabs(w) / 8) : 2 * half_ulp(real, w);
        if (eight && std::fabs(g - w) > 1.01 * step + 1e-5 * std::fabs(w))
            return "[" + std::to_string(i) + "] is " + std::to_string(g) + ", must be near " +
                   std::to_string(w);
        stored += step * step;
    }
    if (eight) return ""; // a step at a tie of rounding
    const double allowed = depth * u * std::sqrt(norm) + std::sqrt(stored);
    if (error <= allowed * allowed) return "";
    return "error " + std::to_string(std::sqrt(error)) + " of norm " +
           std::to_string(std::sqrt(norm));
}

/// Elements of one transform: the product of the fields n<length>.
inline int64_t places_of(const std::string &token) {
    int64_t n = 1;
    for (size_t at = token.find(":n"); at != token.npos; at = token.find(":n", at + 1))
        n *= std::strtoll(token.c_str() + at + 2, nullptr, 10);
    return n;
}

/// A random descriptor; null where its options contradict each other.
struct random_problem {
    desc_ptr desc;
    int64_t places = 1; ///< of one transform
    int64_t depth = 0;  ///< additions in a row, at most
    content how = content::small;

    random_problem(const std::string &token, int64_t n, content filling) : places(n), how(filling) {
        plait_desc *d = nullptr;
        REQUIRE_MESSAGE(plait_desc_from_token(&d, token.c_str()) == PLAIT_OK, plait_last_error());
        desc.reset(d);
        for (; n > 1; n /= 2) depth += 2;
    }
    random_problem(rng &r, int log_limit) {
        const plait_dtype x =
            r.pick({PLAIT_F32, PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16, PLAIT_BF16, PLAIT_C64,
                    PLAIT_C128, PLAIT_I32, PLAIT_I64, PLAIT_I8, PLAIT_I16, PLAIT_B1});
        const bool complex = is_complex(x);
        const bool whole = is_integer(x);
        const bool factor = r.chance(0.3);
        const int order = static_cast<int>(r.pick<int64_t>({2, 3, 12, 20, 33, 64, 100}));
        const auto named = r.pick({PLAIT_H52_WILLIAMSON, PLAIT_H60_PALEY1, PLAIT_H36_PALEY2,
                                   PLAIT_H116_WILLIAMSON, PLAIT_H108_PALEY1});
        const int of_name[] = {52, 60, 108, 116, 124, 140, 156, 172};
        const bool given = r.chance(0.5);
        int64_t m = 1;
        if (factor)
            m = given                       ? order
                : named == PLAIT_H36_PALEY2 ? 36
                                            : of_name[named - PLAIT_H52_WILLIAMSON];
        const int64_t n = m << r.between(0, std::max(0, log_limit - (m > 1 ? 5 : 0)));
        const int64_t b = r.between(1, 1 + (int64_t{1} << log_limit) / n % 64 + 4);
        std::vector<int64_t> extents = {b, n};
        uint32_t axes = 2;
        switch (r.between(0, 4)) {
        case 0: extents = {n, b}, axes = 1; break;
        case 1: extents = {r.between(1, 3), n, r.between(1, 9)}, axes = 2; break;
        case 2: extents = {r.between(1, 2), int64_t{1} << r.between(0, 3), n}, axes = 6; break;
        default: break;
        }
        plait_desc *d = nullptr;
        const int rank = static_cast<int>(extents.size());
        REQUIRE(plait_wht_create(&d, x, rank, extents.data()) == PLAIT_OK);
        desc.reset(d);
        plait_wht_set_axes(d, axes);
        const int axis = axes == 1 ? 0 : axes == 6 ? 2 : 1;
        for (int a = 0; a < rank; ++a)
            if (axes >> a & 1u) places *= extents[static_cast<size_t>(a)];
        depth = 2 * (m + 16);
        for (int64_t k = places; k > 1; k /= 2) depth += 2;
        if (factor && given) plait_wht_set_factor_order(d, axis, order);
        if (factor && !given) plait_wht_set_factor(d, axis, named);
        if (!factor && r.chance(0.25))
            plait_wht_set_order(d, r.pick({PLAIT_SEQUENCY, PLAIT_DYADIC}));
        if (r.chance(0.35)) plait_wht_set_adjoint(d, 1);
        plait_dtype y = x;
        if (whole || x == PLAIT_B1) y = r.pick({PLAIT_I32, PLAIT_I64});
        if (complex) y = r.pick({PLAIT_C64, PLAIT_C128});
        if (!whole && !complex && (x != PLAIT_B1 || r.chance(0.4)))
            y = r.pick({PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16, PLAIT_E4M3, PLAIT_E4M3});
        plait_desc_set_dtype(d, PLAIT_Y, y);
        const bool floats = !is_integer(y);
        if (floats && r.chance(0.6)) plait_wht_set_scale(d, r.pick({0.5, 0.0625, -0.3}));
        if (r.chance(0.3)) plait_desc_use(d, PLAIT_SIGNS, 1);
        if (floats && x != PLAIT_B1)
            for (const plait_role role : {PLAIT_DIAG, PLAIT_DIAG_IN, PLAIT_DIAG_MID}) {
                if (!r.chance(0.3)) continue;
                plait_desc_use(d, role, 1);
                if (complex && r.chance(0.5)) plait_desc_set_dtype(d, role, real_of(x));
                if (r.chance(0.3)) { // values of its own for each transform
                    std::vector<int64_t> s(extents.size(), 1);
                    for (size_t a = s.size(); a-- > 1;) s[a - 1] = s[a] * extents[a];
                    plait_desc_set_strides(d, role, rank, s.data());
                }
            }
        int64_t results = n;
        bool gathers = false;
        if (axes != 6 && r.chance(0.3)) {
            gathers = true;
            results = r.between(1, 2 * n);
            plait_wht_set_rows(d, results);
            plait_desc_set_dtype(d, PLAIT_ROWS, r.pick({PLAIT_I32, PLAIT_I64}));
            if (r.chance(0.5)) plait_desc_use(d, PLAIT_STATUS, 1);
        }
        if (!floats && r.chance(0.4)) plait_desc_use(d, PLAIT_OVERFLOW, 1);
        const bool amax = !complex && r.chance(0.5), bins = !floats && r.chance(0.5);
        const bool scales = y == PLAIT_E4M3 && r.chance(0.6);
        if (amax) plait_desc_use(d, PLAIT_AMAX, 1);
        if (amax && floats && r.chance(0.3)) plait_desc_set_dtype(d, PLAIT_AMAX, PLAIT_F64);
        if (bins)
            plait_wht_set_histogram(d, r.between(1, 80), r.between(-40, 0),
                                    r.pick<int64_t>({1, 2, 3, 7}));
        if (scales) plait_desc_use(d, PLAIT_SCALES, 1);
        if ((amax || scales) && axes != 6 && r.chance(0.5))
            for (const int64_t g : {16, 7, 4, 2})
                if (results % g == 0) {
                    plait_wht_set_group(d, g);
                    break;
                }
        if ((amax || bins) && !scales && r.chance(0.3)) {
            plait_desc_use(d, PLAIT_Y, 0);
        } else if (!gathers && size_of(x) == size_of(y) && r.chance(0.2)) {
            plait_desc_set_alias(d, PLAIT_Y, PLAIT_X);
        } else if (r.chance(0.3) && !gathers) {
            std::vector<int64_t> s(extents.size(), r.between(1, 2));
            for (size_t a = s.size(); a-- > 1;) s[a - 1] = s[a] * extents[a] + r.between(0, 3);
            plait_desc_set_strides(d, r.pick({PLAIT_X, PLAIT_Y}), rank, s.data());
        }
        how = r.pick({content::small, content::uniform, content::infinite});
        if (whole) how = r.pick({content::small, content::whole});
        if (plait_desc_check(d) != PLAIT_OK) desc.reset();
    }
};

} // namespace plait::test
