// The named Hadamard factor matrices, by construction (spec/wht.md, section 4). No tables: each
// entry follows from its generator. A constexpr wht_factor_table serves kernels on host and device.
#pragma once

#include "lib/common/hd.h"
#include "lib/common/wht_problem.h"

#include <cstdint>

namespace plait::impl {

/// Of the tables that kernels carry in their code (wht_factor_table): the order of h40.
constexpr int wht_factor_max_order = 40;
/// Of all named factors: the order of h172w.
constexpr int wht_factor_largest_order = 172;
/// Of a matrix that the caller gives.
constexpr int wht_factor_given_order = 256;

/// Order m of a named matrix; 1 without a factor. 0 for wht_factor::given, whose order stands in
/// wht_problem::given_order, and for a value that is no factor.
PLAIT_HD constexpr int wht_factor_order(wht_factor f) {
    switch (f) {
    case wht_factor::h1: return 1;
    case wht_factor::h4_regular: return 4;
    case wht_factor::h12_paley2:
    case wht_factor::h12_sloane: return 12;
    case wht_factor::h20_williamson:
    case wht_factor::h20_paley1: return 20;
    case wht_factor::h28_williamson:
    case wht_factor::h28_paley2: return 28;
    case wht_factor::h36_paley2: return 36;
    case wht_factor::h40: return 40;
    case wht_factor::h52_williamson: return 52;
    case wht_factor::h60_paley1: return 60;
    case wht_factor::h108_paley1: return 108;
    case wht_factor::h116_williamson: return 116;
    case wht_factor::h124_williamson: return 124;
    case wht_factor::h140_paley1: return 140;
    case wht_factor::h156_williamson: return 156;
    case wht_factor::h172_williamson: return 172;
    case wht_factor::given: return 0;
    }
    return 0;
}

/// Whether the matrix equals its transpose, so that the adjoint is the same product. A matrix that
/// the caller gives counts as one that does not.
PLAIT_HD constexpr bool wht_factor_symmetric(wht_factor f) {
    return f == wht_factor::h1 || f == wht_factor::h4_regular || f == wht_factor::h12_paley2 ||
           f == wht_factor::h28_paley2 || f == wht_factor::h36_paley2;
}

namespace factors {

/// Quadratic characters modulo an odd prime q: bit a is 1 where a is a square other than 0.
template <int q> struct square_set {
    uint64_t word[q / 64 + 1] = {};
    constexpr square_set() {
        for (int b = 1; b <= q / 2; ++b) {
            const int a = b * b % q;
            word[a / 64] |= uint64_t{1} << (a % 64);
        }
    }
};
template <int q> inline constexpr square_set<q> squares{};

template <int q> constexpr int chi(int a) {
    a %= q;
    if (a < 0) a += q;
    if (a == 0) return 0;
    return (squares<q>.word[a / 64] >> (a % 64) & 1u) != 0 ? 1 : -1;
}

/// Paley I, q = 3 mod 4, order q + 1, of skew type.
template <int q> constexpr int paley1(int i, int j) {
    if (i == 0) return j == 0 ? 1 : -1;
    if (j == 0 || i == j) return 1;
    return chi<q>(i - j);
}

/// Symmetric conference matrix, q = 1 mod 4, order q + 1, zero diagonal.
template <int q> constexpr int conference(int i, int j) {
    if (i == j) return 0;
    if (i == 0 || j == 0) return 1;
    return chi<q>(i - j);
}

/// Paley II, block form [[C + I, C - I], [C - I, -C - I]], order 2 (q + 1).
template <int q> constexpr int paley2(int i, int j) {
    const bool low = i > q, right = j > q;
    const int c = conference<q>(i % (q + 1), j % (q + 1));
    if (c == 0) return low || right ? -1 : 1;
    return low && right ? -c : c;
}

/// Paley II, interleaved form, order 2 (q + 1).
template <int q> constexpr int paley2x2(int i, int j) {
    const int c = conference<q>(i / 2, j / 2);
    const bool both = i % 2 == 1 && j % 2 == 1;
    if (c == 0) return i % 2 == 0 && j % 2 == 0 ? 1 : -1;
    return both ? -c : c;
}

/// First rows a, b, c, d of four circulants of order s, as bit masks whose bit k is 1 where entry k
/// is -1.
struct four_rows {
    int s;
    uint64_t row[4];
};

/// Williamson type, order 4 s.
constexpr int williamson(const four_rows &w, int i, int j) {
    // Which circulant stands in block (p, q), and whether negated: row p of the quaternion table.
    const int p = i / w.s, q = j / w.s;
    const uint32_t negated[4] = {0x0u, 0x5u, 0x9u, 0x3u}; // bit q of word p
    const int k = ((j % w.s) - (i % w.s) + w.s) % w.s;
    return ((w.row[p ^ q] >> k) ^ (negated[p] >> q)) & 1u ? -1 : 1;
}

/// From the text of the definition ("+--+-").
constexpr uint64_t row_mask(const char *signs) {
    uint64_t mask = 0;
    for (int k = 0; signs[k] != '\0'; ++k)
        if (signs[k] == '-') mask |= uint64_t{1} << k;
    return mask;
}
constexpr four_rows rows(int s, const char *a, const char *b, const char *c, const char *d) {
    return {s, {row_mask(a), row_mask(b), row_mask(c), row_mask(d)}};
}

// clang-format off
inline constexpr four_rows w20 = rows(5, "+----", "+----", "++--+", "+-++-");
inline constexpr four_rows w28 = rows(7, "+------", "++----+", "+-+--+-", "+--++--");
inline constexpr four_rows w52 = rows(13,
    "+-+--++++--+-", "+---++++++---", "++-+--++--+-+", "+----+--+----");
inline constexpr four_rows w116 = rows(29,
    "++--+--+-+++-++++-+++-+--+--+", "++++-++-+---++++++---+-++-+++",
    "+-+---++--+-++++++-+--++---+-", "+++---++--+-+----+-+--++---++");
inline constexpr four_rows w124 = rows(31,
    "+--+++-+--+----++----+--+-+++--", "+--+++-+--+----++----+--+-+++--",
    "+-----+++-+-+--++--+-+-+++-----", "++++++---+-+-++--++-+-+---+++++");
inline constexpr four_rows w156 = rows(39,
    "+++--+-+-----+--++----++--+-----+-+--++", "++++---+--++----+-+--+-+----++--+---+++",
    "+++--++-+---+-+--+----+--+-+---+-++--++", "+---++-+-+-----+++-++-+++-----+-+-++---");
inline constexpr four_rows w172 = rows(43,
    "+---++--++++-+-+++-++--++-+++-+-++++--++---", "++-++++++----+-+--++-++-++--+-+----++++++-+",
    "+++-+-++--+-+-++++-+----+-++++-+-+--++-+-++", "++---++++-+--+--++--------++--+--+-++++---+");
// clang-format on

} // namespace factors

/// Entry (i, j), +1 or -1, of a named matrix.
constexpr int wht_factor_sign(wht_factor f, int i, int j) {
    switch (f) {
    case wht_factor::h4_regular: return i + j == 3 ? -1 : 1;
    case wht_factor::h12_paley2: return factors::paley2x2<5>(i, j);
    case wht_factor::h12_sloane: return factors::paley1<11>(i, j);
    case wht_factor::h20_williamson: return factors::williamson(factors::w20, i, j);
    case wht_factor::h20_paley1: return factors::paley1<19>(i, j);
    case wht_factor::h28_williamson: return factors::williamson(factors::w28, i, j);
    case wht_factor::h28_paley2: return factors::paley2<13>(i, j);
    case wht_factor::h36_paley2: return factors::paley2<17>(i, j);
    case wht_factor::h40: {
        const int p = factors::paley1<19>(i % 20, j % 20);
        return i >= 20 && j >= 20 ? -p : p;
    }
    case wht_factor::h52_williamson: return factors::williamson(factors::w52, i, j);
    case wht_factor::h60_paley1: return factors::paley1<59>(i, j);
    case wht_factor::h108_paley1: return factors::paley1<107>(i, j);
    case wht_factor::h116_williamson: return factors::williamson(factors::w116, i, j);
    case wht_factor::h124_williamson: return factors::williamson(factors::w124, i, j);
    case wht_factor::h140_paley1: return factors::paley1<139>(i, j);
    case wht_factor::h156_williamson: return factors::williamson(factors::w156, i, j);
    case wht_factor::h172_williamson: return factors::williamson(factors::w172, i, j);
    default: return 1;
    }
}

/// A whole matrix of an order up to 40, row-major; a constexpr object of this type is a
/// compile-time table. The larger ones would not serve kernels as tables.
struct wht_factor_table {
    int order = 1;
    int8_t sign[wht_factor_max_order * wht_factor_max_order] = {};
};

constexpr wht_factor_table make_wht_factor_table(wht_factor f) {
    wht_factor_table t{};
    if (wht_factor_order(f) > wht_factor_max_order) return t;
    t.order = wht_factor_order(f);
    for (int i = 0; i < t.order; ++i)
        for (int j = 0; j < t.order; ++j)
            t.sign[i * t.order + j] = static_cast<int8_t>(wht_factor_sign(f, i, j));
    return t;
}

} // namespace plait::impl
