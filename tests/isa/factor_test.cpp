// The factor matrices against the facts of the specification: rows on sight, order, symmetry.
#include "lib/common/factor_matrices.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace plait::impl;

namespace {

struct facts {
    wht_factor factor;
    int order;
    int unequal_to_transpose; ///< entries
    int row;
    std::string signs;
};

const facts known[] = {
    {wht_factor::h12_paley2, 12, 0, 0, "+-++++++++++"},
    {wht_factor::h12_sloane, 12, 132, 1, "++-+---+++-+"},
    {wht_factor::h20_williamson, 20, 300, 0, "+----+----++--++-++-"},
    {wht_factor::h28_williamson, 28, 588, 0, "+------++----++-+--+-+--++--"},
    {wht_factor::h40, 40, 1520, 1, "++-++----+-+-++++--+++-++----+-+-++++--+"},
    {wht_factor::h4_regular, 4, 0, 0, "+++-"},
    {wht_factor::h20_paley1, 20, 380, 1, "++-++----+-+-++++--+"},
    {wht_factor::h28_paley2, 28, 0, 0, "++++++++++++++-+++++++++++++"},
    {wht_factor::h36_paley2, 36, 0, 0, "++++++++++++++++++-+++++++++++++++++"},
    // A skew Paley matrix differs from its transpose everywhere but on the diagonal.
    {wht_factor::h60_paley1, 60, 60 * 59, 0,
     "+-----------------------------------------------------------"},
    {wht_factor::h108_paley1, 108, 108 * 107, -1, ""},
    {wht_factor::h140_paley1, 140, 140 * 139, -1, ""},
    // -1: not known beforehand
    {wht_factor::h52_williamson, 52, -1, 0, "+-+--++++--+-+---++++++---++-+--++--+-++----+--+----"},
    {wht_factor::h116_williamson, 116, -1, -1, ""},
    {wht_factor::h124_williamson, 124, -1, -1, ""},
    {wht_factor::h156_williamson, 156, -1, -1, ""},
    {wht_factor::h172_williamson, 172, -1, -1, ""},
};

std::string text_of(wht_factor f, int row) {
    std::string s;
    for (int j = 0; j < wht_factor_order(f); ++j) s += wht_factor_sign(f, row, j) > 0 ? '+' : '-';
    return s;
}

} // namespace

TEST_CASE("factors: order, orthogonality, symmetry, a row on sight") {
    for (const facts &f : known) {
        INFO(f.order, " ", f.signs);
        const int m = f.order;
        REQUIRE(wht_factor_order(f.factor) == m);
        std::vector<int> sign(static_cast<size_t>(m * m));
        const wht_factor_table t = make_wht_factor_table(f.factor);
        CHECK(t.order == (m <= wht_factor_max_order ? m : 1));
        bool same_table = true;
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) {
                const int entry = wht_factor_sign(f.factor, i, j);
                sign[static_cast<size_t>(i * m + j)] = entry;
                same_table &= t.order == 1 || t.sign[i * m + j] == entry;
            }
        CHECK(same_table);
        int unequal = 0, wrong_products = 0, without_plus = 0;
        for (int i = 0; i < m; ++i) {
            bool plus = false, plus_column = false;
            for (int k = 0; k < m; ++k) {
                const int *const a = sign.data() + i * m, *const b = sign.data() + k * m;
                int dot = 0;
                for (int j = 0; j < m; ++j) dot += a[j] * b[j];
                wrong_products += dot != (i == k ? m : 0);
                unequal += a[k] != b[i];
                plus |= a[k] > 0;
                plus_column |= b[i] > 0;
            }
            without_plus += !plus || !plus_column; // the overflow rule needs one in every line
        }
        CHECK(wrong_products == 0);
        CHECK(without_plus == 0);
        if (f.unequal_to_transpose >= 0) CHECK(unequal == f.unequal_to_transpose);
        CHECK(wht_factor_symmetric(f.factor) == (unequal == 0));
        if (f.row >= 0) CHECK(text_of(f.factor, f.row) == f.signs);
    }
    CHECK(wht_factor_order(wht_factor::h1) == 1);
}

TEST_CASE("factors: block structure of the Williamson and doubled matrices") {
    for (const wht_factor f : {wht_factor::h20_williamson, wht_factor::h28_williamson}) {
        const int m = wht_factor_order(f), s = m / 4;
        const int block[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
        const int sign[4][4] = {{1, 1, 1, 1}, {-1, 1, -1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}};
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) {
                const int first =
                    wht_factor_sign(f, 0, block[i / s][j / s] * s + ((j % s) - (i % s) + s) % s);
                CHECK(wht_factor_sign(f, i, j) == sign[i / s][j / s] * first);
            }
    }
    for (int i = 0; i < 20; ++i)
        for (int j = 0; j < 20; ++j) {
            const int p = wht_factor_sign(wht_factor::h40, i, j);
            CHECK(wht_factor_sign(wht_factor::h40, i, j + 20) == p);
            CHECK(wht_factor_sign(wht_factor::h40, i + 20, j) == p);
            CHECK(wht_factor_sign(wht_factor::h40, i + 20, j + 20) == -p);
        }
    // h12p2 has its first row in its first column too.
    for (int i = 0; i < 12; ++i)
        CHECK(wht_factor_sign(wht_factor::h12_paley2, i, 0) ==
              wht_factor_sign(wht_factor::h12_paley2, 0, i));
}
