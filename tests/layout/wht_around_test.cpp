// Walks of the kernels around the passes of wht, and the signs of their factor matrices.
#include "src/planner/wht_walks.h"

#include <doctest/doctest.h>
#include <set>

using namespace plait::impl;

TEST_CASE("wht walks: every element once, at its place, in order") {
    const std::vector<std::vector<int64_t>> shapes = {
        {},        {1},          {7},       {2048},    {2049},        {5, 1},      {3, 1000},
        {300, 7},  {2, 3, 2050}, {4, 4, 4}, {1025, 2}, {3, 5, 7, 11}, {1, 513, 1}, {2, 1300},
        {9000, 1}, {257, 1, 3},  {2, 0, 5}, {0},       {5, 0}};
    for (const std::vector<int64_t> &shape : shapes)
        for (const int tile : {1, 8, 32, 256, 2048}) {
            // The first tensor is packed; the second has gaps, so that nothing merges.
            wht_way<2> way;
            int64_t packed = 1, gapped = 2, count = 1;
            for (size_t a = shape.size(); a-- > 0;) {
                way.insert(way.begin(), {shape[a], {packed, gapped}});
                packed *= shape[a];
                gapped = gapped * shape[a] + 3;
                count *= shape[a];
            }
            wht_walk<2> w;
            REQUIRE(make_walk<2>(way, tile, &w));
            int64_t seen = 0, wrong = 0;
            std::set<int64_t> places;
            for (int64_t t = 0; t < w.tiles; ++t) {
                const int n = wht_walk_count(w, t);
                const int64_t first = wht_walk_number(w, t);
                wrong += n > tile || first != seen;
                for (int i = 0; i < n; ++i) {
                    const int line = wht_walk_line(w, i), along = i - line * w.part;
                    int64_t rest = t / w.chunks * w.lines_per_tile + line;
                    int64_t at[2] = {};
                    const int64_t k = t % w.chunks * w.part + along;
                    wrong += line >= w.lines_per_tile || rest >= w.lines || k >= w.length;
                    for (int s = 0; s < 2; ++s) at[s] = k * w.step[s];
                    for (int a = 0; a < w.axes; ++a) {
                        for (int s = 0; s < 2; ++s)
                            at[s] += rest % w.axis[a].length * w.axis[a].stride[s];
                        rest /= w.axis[a].length;
                    }
                    wrong += at[0] != seen++;
                    places.insert(at[1]);
                }
            }
            CAPTURE(tile);
            CHECK(wrong == 0);
            CHECK(seen == count);
            CHECK(static_cast<int64_t>(places.size()) == count);
        }
}

TEST_CASE("wht walks: packed axes are one line, too many others are refused") {
    wht_way<1> way = {{4, {64}}, {8, {8}}, {8, {1}}};
    wht_walk<1> w;
    CHECK(make_walk<1>(way, wht_walk_tile, &w));
    CHECK(w.axes == 0);
    CHECK(w.length == 256);
    way.assign(wht_walk_most_axes + 1, {2, {0}});
    for (size_t a = 0; a < way.size(); ++a) way[a].stride[0] = 3 << (2 * (way.size() - a));
    CHECK(make_walk<1>(way, wht_walk_tile, &w));
    way.insert(way.begin(), {2, {int64_t{1} << 60}});
    CHECK(!make_walk<1>(way, wht_walk_tile, &w));
}

TEST_CASE("wht.factor: the rule of a matrix gives its entries") {
    int matrices = 0;
    for (int f = 1; f <= static_cast<int>(wht_factor::h172_williamson); ++f) {
        const auto factor = static_cast<wht_factor>(f);
        const int m = wht_factor_order(factor);
        if (m <= 40) continue;
        const wht_factor_rule rule = wht_factor_rule_of(factor);
        int wrong = 0;
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j)
                wrong += wht_factor_minus(rule, i, j) != (wht_factor_sign(factor, i, j) < 0);
        CAPTURE(f);
        CHECK(wrong == 0);
        ++matrices;
    }
    CHECK(matrices == 8);
}
