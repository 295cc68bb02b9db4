// The named Hadamard factor matrices, by construction (spec/wht.md, section 4). No tables: each
// entry follows from its generator. A constexpr wht_factor_table serves kernels on host and device.
#pragma once

#include "lib/common/hd.h"
#include "lib/common/wht_problem.h"

#include <cstdint>

namespace plait::impl {

constexpr int wht_factor_max_order = 40;

/// Order m of a factor matrix; 1 without a factor, 0 for a value that is no factor.
PLAIT_HD constexpr int wht_factor_order(wht_factor f) {
    switch (f) {
    case wht_factor::h1: return 1;
    case wht_factor::h12_paley2:
    case wht_factor::h12_sloane: return 12;
    case wht_factor::h20_williamson: return 20;
    case wht_factor::h28_williamson: return 28;
    case wht_factor::h40: return 40;
    }
    return 0;
}

/// Whether the matrix equals its transpose, so that the adjoint is the same product.
PLAIT_HD constexpr bool wht_factor_symmetric(wht_factor f) {
    return f == wht_factor::h1 || f == wht_factor::h12_paley2;
}

namespace factors {

/// Quadratic character modulo an odd prime q.
constexpr int chi(int a, int q) {
    a %= q;
    if (a < 0) a += q;
    if (a == 0) return 0;
    for (int b = 1; b <= q / 2; ++b)
        if (b * b % q == a) return 1;
    return -1;
}

/// Paley I, q = 3 mod 4, order q + 1, of skew type.
constexpr int paley1(int q, int i, int j) {
    if (i == 0) return j == 0 ? 1 : -1;
    if (j == 0 || i == j) return 1;
    return chi(i - j, q);
}

/// Symmetric conference matrix, q = 1 mod 4, order q + 1, zero diagonal.
constexpr int conference(int q, int i, int j) {
    if (i == j) return 0;
    if (i == 0 || j == 0) return 1;
    return chi(i - j, q);
}

/// Paley II, interleaved form, order 2 (q + 1).
constexpr int paley2x2(int q, int i, int j) {
    const int c = conference(q, i / 2, j / 2);
    const bool both = i % 2 == 1 && j % 2 == 1;
    if (c == 0) return i % 2 == 0 && j % 2 == 0 ? 1 : -1;
    return both ? -c : c;
}

/// Williamson type, order 4 s: circulants with the first rows a, b, c, d, given as bit masks whose
/// bit k is 1 where entry k is -1.
constexpr int williamson(int s, uint32_t a, uint32_t b, uint32_t c, uint32_t d, int i, int j) {
    // Which circulant stands in block (p, q), and whether negated: row p of the quaternion table.
    const int p = i / s, q = j / s;
    const int which = p ^ q;
    const uint32_t negated[4] = {0x0u, 0x5u, 0x9u, 0x3u}; // bit q of word p
    const uint32_t row = which == 0 ? a : which == 1 ? b : which == 2 ? c : d;
    const int k = ((j % s) - (i % s) + s) % s;
    const uint32_t minus = ((row >> k) ^ (negated[p] >> q)) & 1u;
    return minus ? -1 : 1;
}

/// A first row as a bit mask, from the text of the definition ("+--+-").
constexpr uint32_t row_mask(const char *signs) {
    uint32_t mask = 0;
    for (int k = 0; signs[k] != '\0'; ++k)
        if (signs[k] == '-') mask |= uint32_t{1} << k;
    return mask;
}

inline constexpr uint32_t w20[4] = {row_mask("+----"), row_mask("+----"), row_mask("++--+"),
                                    row_mask("+-++-")};
inline constexpr uint32_t w28[4] = {row_mask("+------"), row_mask("++----+"), row_mask("+-+--+-"),
                                    row_mask("+--++--")};

} // namespace factors

/// Entry (i, j), +1 or -1. Costs a search for a square root: make a table where it is used often.
constexpr int wht_factor_sign(wht_factor f, int i, int j) {
    switch (f) {
    case wht_factor::h12_paley2: return factors::paley2x2(5, i, j);
    case wht_factor::h12_sloane: return factors::paley1(11, i, j);
    case wht_factor::h20_williamson:
        return factors::williamson(5, factors::w20[0], factors::w20[1], factors::w20[2],
                                   factors::w20[3], i, j);
    case wht_factor::h28_williamson:
        return factors::williamson(7, factors::w28[0], factors::w28[1], factors::w28[2],
                                   factors::w28[3], i, j);
    case wht_factor::h40: {
        const int p = factors::paley1(19, i % 20, j % 20);
        return i >= 20 && j >= 20 ? -p : p;
    }
    default: return 1;
    }
}

/// A whole matrix, row-major; a constexpr object of this type is a compile-time table.
struct wht_factor_table {
    int order = 1;
    int8_t sign[wht_factor_max_order * wht_factor_max_order] = {};
};

constexpr wht_factor_table make_wht_factor_table(wht_factor f) {
    wht_factor_table t{};
    t.order = wht_factor_order(f);
    for (int i = 0; i < t.order; ++i)
        for (int j = 0; j < t.order; ++j)
            t.sign[i * t.order + j] = static_cast<int8_t>(wht_factor_sign(f, i, j));
    return t;
}

} // namespace plait::impl
