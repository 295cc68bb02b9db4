// wht.any: words of a tile, rows of ordered axes, parts of shared memory.
#include "lib/cuda/wht/any_layout.h"

#include <doctest/doctest.h>
#include <set>
#include <vector>

using namespace plait::impl;

TEST_CASE("wht.any: words of slots") {
    std::set<uint32_t> words;
    for (uint32_t slot = 0; slot < 1u << wht_any_most_bits; ++slot) {
        words.insert(wht_any_word(slot));
        const uint32_t low = slot & 0x155u, high = slot & ~0x155u;
        CHECK_UNARY(wht_any_word(slot) == wht_any_word(low) + wht_any_word(high));
    }
    CHECK(words.size() == 1u << wht_any_most_bits);
    CHECK(*words.rbegin() <= static_cast<uint32_t>(wht_any_words(1 << wht_any_most_bits)) - 1);
    // Lanes on five neighbouring bits, wherever these are.
    for (int low = 0; low + 5 <= wht_any_most_bits; ++low) {
        std::vector<int> banks(32);
        for (uint32_t lane = 0; lane < 32; ++lane) ++banks[wht_any_word(lane << low) % 32];
        for (const int lanes : banks) CHECK(lanes <= (low == 0 || low == 5 ? 1 : 4));
    }
}

TEST_CASE("wht.any: rows of ordered axes") {
    const int64_t sequency16[] = {0, 8, 12, 4, 6, 14, 10, 2, 3, 11, 15, 7, 5, 13, 9, 1};
    for (int64_t row = 0; row < 16; ++row)
        CHECK(wht_any_row(wht_order::sequency, sequency16[row], 4) == row);
    for (const wht_order order : {wht_order::natural, wht_order::dyadic, wht_order::sequency}) {
        // linear over single bits, which is what tiles add up
        for (int64_t k = 0; k < 1 << 10; ++k) {
            int64_t sum = 0;
            for (int b = 0; b < 10; ++b)
                if (k >> b & 1) sum ^= wht_any_row(order, int64_t{1} << b, 10);
            CHECK(sum == wht_any_row(order, k, 10));
        }
        CHECK(wht_any_row(order, (int64_t{1} << 40) - 1, 40) < int64_t{1} << 40);
    }
}

TEST_CASE("wht.any: parts of shared memory") {
    wht_any_args a{};
    a.bits = 8;
    a.factor = 28;
    a.axes = 2;
    a.extra[wht_any_out] = wht_any_extra::diag;
    const wht_any_memory m = wht_any_memory_of(a, 16);
    const int entries = 64 + (28 << 2);
    CHECK(wht_any_entries(a) == entries);
    CHECK(m.entries[0] >= 16 * wht_any_words(28 << 8));
    CHECK(m.entries[0] % 16 == 0);
    CHECK(m.entries[1] == m.entries[0] + 16 * entries);
    CHECK(m.extras[1] == m.entries[1] + 16 * entries);
    CHECK(m.rows == m.extras[1] + 8 * entries);
    CHECK(m.signs == m.rows + 2 * 8 * entries);
    CHECK(m.bytes >= m.signs + 4 * 28);
}
