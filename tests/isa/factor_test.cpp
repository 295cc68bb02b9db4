// The factor matrices against the facts of the specification: rows on sight, order, symmetry.
#include "lib/common/factor_matrices.h"

#include <doctest/doctest.h>
#include <string>

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
};

std::string text_of(int order, const int8_t *row) {
    std::string s;
    for (int j = 0; j < order; ++j) s += row[j] > 0 ? '+' : '-';
    return s;
}

} // namespace

TEST_CASE("factors: order, orthogonality, symmetry, a row on sight") {
    for (const facts &f : known) {
        const wht_factor_table t = make_wht_factor_table(f.factor);
        const int m = f.order;
        REQUIRE(t.order == m);
        REQUIRE(wht_factor_order(f.factor) == m);
        int unequal = 0;
        for (int i = 0; i < m; ++i) {
            bool plus = false, plus_column = false;
            for (int k = 0; k < m; ++k) {
                int dot = 0;
                for (int j = 0; j < m; ++j) dot += t.sign[i * m + j] * t.sign[k * m + j];
                CHECK(dot == (i == k ? m : 0));
                unequal += t.sign[i * m + k] != t.sign[k * m + i];
                plus |= t.sign[i * m + k] > 0;
                plus_column |= t.sign[k * m + i] > 0;
            }
            CHECK(plus); // the overflow rule needs a + in every row and column
            CHECK(plus_column);
        }
        CHECK(unequal == f.unequal_to_transpose);
        CHECK(wht_factor_symmetric(f.factor) == (unequal == 0));
        CHECK(text_of(m, t.sign + f.row * m) == f.signs);
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
