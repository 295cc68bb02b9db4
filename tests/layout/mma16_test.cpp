// wht.mma16: operands of the matrix products, and every instantiated size, type and access width.
#include "lib/cuda/common/mma_layout.h"
#include "lib/cuda/wht/mma16_e4m3_layout.h"
#include "lib/cuda/wht/mma16_narrow_layout.h"
#include "tests/layout/tile_checks.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <map>
#include <set>

using namespace plait::impl;

namespace {

template <class F> void for_each_config(F check) {
    int count = 0;
    for (const scalar type : {scalar::f32, scalar::f64, scalar::f16, scalar::bf16}) {
        for (int log_n = 0; log_n < 20; ++log_n) {
            if (!wht_mma16_exists(type, type, log_n)) continue;
            for (const bool vector : {false, true}) {
                ++count;
                INFO(wht_variant(type, type, ".n", log_n, vector).text);
                check(wht_mma16_config_of(type, log_n, vector));
            }
        }
    }
    CHECK(count == 2 * 9 * 2);
}

/// Passes over the 32 banks that the words of some lanes need, `each` words of 4 bytes a lane.
int passes(const std::vector<uint32_t> &words, int each) {
    std::vector<std::set<uint32_t>> banks(32);
    for (const uint32_t w : words)
        for (uint32_t i = 0; i < static_cast<uint32_t>(each); ++i)
            banks[(w + i) % 32].insert(w + i);
    size_t most = 0;
    for (const auto &b : banks) most = most < b.size() ? b.size() : most;
    return static_cast<int>(most);
}

template <class Place> void check_operand(int rows, int columns, int words, Place place) {
    std::set<std::pair<int, int>> seen;
    for (int lane = 0; lane < 32; ++lane)
        for (int w = 0; w < words; ++w)
            for (int half = 0; half < 2; ++half) {
                const mma_place at = place(lane, w, half);
                CHECK(at.row >= 0);
                CHECK(at.row < rows);
                CHECK(at.column >= 0);
                CHECK(at.column < columns);
                CHECK(seen.insert({at.row, at.column}).second);
            }
    CHECK(seen.size() == static_cast<size_t>(rows * columns));
}

uint32_t bits_of_products(const wht_mma16_config &c) {
    return bit_range(3, 3 + c.dense) | (c.halves == 2 ? 1u << 14 : 0u);
}

} // namespace

TEST_CASE("mma: every element of an operand is in one lane") {
    check_operand(mma_rows, mma_inner, mma_words_a, mma_place_a);
    check_operand(mma_inner, mma_columns, mma_words_b, mma_place_b);
    check_operand(mma_rows, mma_columns, mma_items_d / 2,
                  [](int lane, int w, int half) { return mma_place_d(lane, 2 * w + half); });
    // two transposed 8 x 8 matrices are the halves of B
    for (int lane = 0; lane < 32; ++lane)
        for (int w = 0; w < mma_words_b; ++w)
            for (int half = 0; half < 2; ++half) {
                const mma_place b = mma_place_b(lane, w, half);
                const mma_place m = matrix_place_transposed(lane, half);
                CHECK(b.row == m.row + 8 * w);
                CHECK(b.column == m.column);
            }
}

TEST_CASE("wht.mma16: H_16 as an A operand is one word and its negative") {
    for (int lane = 0; lane < 32; ++lane)
        for (int half = 0; half < 2; ++half)
            for (int w = 0; w < mma_words_a; ++w) {
                const mma_place first = mma_place_a(lane, 0, half), at = mma_place_a(lane, w, half);
                CHECK(wht_mma16_minus(at.row, at.column) ==
                      (wht_mma16_minus(first.row, first.column) != (w == 3)));
            }
}

// The product takes element 8 * matrix row + column of matrix m from the chunk, and what D holds in
// its place is the same element transformed: bits 3.. of row and matrix are those of the element.
TEST_CASE("wht.mma16: operands are the elements that they should be") {
    for_each_config([](const wht_mma16_config &c) {
        for (int lane = 0; lane < 32; ++lane)
            for (int tile = 0; tile < wht_mma16_tiles; ++tile)
                for (int item = 0; item < mma_items_d; ++item) {
                    const mma_place at = mma_place_d(lane, item);
                    const uint32_t e =
                        wht_mma16_product_thread(0, lane) | wht_mma16_product_item(tile, item);
                    CHECK(e == static_cast<uint32_t>(tile * 128 + at.row * 8 + at.column));
                    // where a lane's address begins is a row of B: tile, row, column 0
                    const int matrix = 2 * tile + at.row / 8;
                    const uint32_t row = wht_mma16_copy(matrix % 4 * 8 + at.row % 8, matrix / 4);
                    CHECK(row + static_cast<uint32_t>(at.column) == e);
                }
        const int tiles = wht_mma16_product_tiles(c);
        CHECK(tiles >= 1);
        CHECK(tiles <= wht_mma16_tiles);
        for (int m = 0; m < tiles; ++m)
            for (int k = 0; k < tiles; ++k)
                CHECK(wht_mma16_minus(m, k) == (bit_count(static_cast<uint32_t>(m & k)) % 2 == 1));
    });
}

TEST_CASE("wht.mma16: every bit once, by the product or by butterflies") {
    for_each_config([](const wht_mma16_config &c) {
        const int in_chunk = c.log_n < wht_mma16_log_chunk ? c.log_n : wht_mma16_log_chunk;
        const uint32_t product = bits_of_products(c);
        const uint32_t tiles = bit_range(3 + c.dense, in_chunk); // registers of D
        const uint32_t low = bit_range(0, 3);                    // registers after the exchange
        const uint32_t top = bit_range(c.log_part - c.log_warps, c.log_part);
        CHECK((product & tiles) == 0);
        CHECK(((product | tiles) & (low | top)) == 0);
        CHECK((low & top) == 0);
        CHECK((product | tiles | low | top) == bit_range(0, c.log_n));
        CHECK(c.dense >= 4);
        CHECK(c.log_warps <= 3); // those are the three top bits that a thread has
        CHECK(c.log_part >= wht_mma16_log_chunk);
        CHECK(c.halves == (c.log_n > c.log_part ? 2 : 1));
    });
}

TEST_CASE("wht.mma16: copies, products, words and stores cover a part once") {
    for_each_config([](const wht_mma16_config &c) {
        const uint32_t part = 1u << c.log_part;
        std::vector<int> copied(part), made(part), word(part), stored(part);
        for (int warp = 0; warp < wht_mma16_warps(c); ++warp)
            for (int lane = 0; lane < 32; ++lane) {
                for (int i = 0; i < wht_mma16_copies; ++i)
                    for (uint32_t e = 0; e < 8; ++e)
                        ++copied[(static_cast<uint32_t>(warp) << wht_mma16_log_chunk |
                                  wht_mma16_copy(lane, i)) +
                                 e];
                for (int tile = 0; tile < wht_mma16_tiles; ++tile)
                    for (int item = 0; item < mma_items_d; ++item) {
                        const uint32_t e = wht_mma16_product_thread(warp, lane) |
                                           wht_mma16_product_item(tile, item);
                        ++made[e];
                        ++word[wht_mma16_word(e)];
                        // a constant distance in the words, and pairs beside each other
                        CHECK(wht_mma16_word(e) ==
                              wht_mma16_word(wht_mma16_product_thread(warp, lane)) +
                                  wht_mma16_product_item(tile, item));
                    }
                for (int top = 0; top < 8; ++top)
                    for (int low = 0; low < 8; ++low) {
                        const uint32_t e =
                            wht_mma16_store_thread(warp, lane) | wht_mma16_store_item(c, top, low);
                        ++stored[e];
                        CHECK(wht_mma16_word(e) ==
                              wht_mma16_word(wht_mma16_store_thread(warp, lane) |
                                             static_cast<uint32_t>(low & 4)) +
                                  wht_mma16_store_item(c, top, low & 3));
                    }
            }
        const std::vector<int> once(part, 1);
        CHECK(copied == once);
        CHECK(made == once);
        CHECK(word == once);
        CHECK(stored == once);
    });
}

TEST_CASE("wht.mma16: banks, sectors, alignment") {
    for_each_config([](const wht_mma16_config &c) {
        for (int warp = 0; warp < wht_mma16_warps(c); ++warp) {
            // 8-byte writes: 16 lanes at a time; 16-byte reads and rows of matrices: 8 lanes
            for (int tile = 0; tile < wht_mma16_tiles; ++tile)
                for (int first = 0; first < 32; first += 16) {
                    std::vector<uint32_t> at;
                    for (int lane = first; lane < first + 16; ++lane)
                        at.push_back(wht_mma16_word(wht_mma16_product_thread(warp, lane) |
                                                    wht_mma16_product_item(tile, 2)));
                    for (const uint32_t w : at) CHECK(w % 2 == 0);
                    CHECK(passes(at, 2) == 1);
                }
            if (c.halves == 2) { // even elements and odd ones, each in half as many words
                std::set<uint32_t> words;
                for (int tile = 0; tile < wht_mma16_tiles; ++tile)
                    for (int item = 0; item < mma_items_d; item += 2) {
                        std::vector<uint32_t> at;
                        for (int lane = 0; lane < 32; ++lane)
                            at.push_back(wht_mma16_half_word(wht_mma16_product_thread(warp, lane) |
                                                             wht_mma16_product_item(tile, item)));
                        words.insert(at.begin(), at.end());
                        CHECK(passes(at, 1) == 1);
                    }
                CHECK(words.size() == 1u << (wht_mma16_log_chunk - 1));
                CHECK(*words.rbegin() < 1u << (c.log_part - 1));
                for (int first = 0; first < 32; first += 8) {
                    std::vector<uint32_t> at;
                    for (int lane = first; lane < first + 8; ++lane)
                        at.push_back(wht_mma16_half_word(wht_mma16_store_thread(warp, lane) |
                                                         wht_mma16_store_item(c, 3, 0)));
                    for (const uint32_t w : at) CHECK(w % 4 == 0);
                    CHECK(passes(at, 4) == 1);
                }
            }
            for (int first = 0; first < 32; first += 8) {
                std::vector<uint32_t> read, row;
                for (int lane = first; lane < first + 8; ++lane) {
                    read.push_back(wht_mma16_word(wht_mma16_store_thread(warp, lane) | 4u |
                                                  wht_mma16_store_item(c, 5, 0)));
                    row.push_back(wht_mma16_copy(lane, 3) / 2);
                }
                for (const uint32_t w : read) CHECK(w % 4 == 0);
                CHECK(passes(read, 4) == 1);
                CHECK(passes(row, 4) == 1);
            }
            if (!c.vector) continue;
            for (const int64_t gap : {0, 8})
                for (int i = 0; i < 8; ++i) {
                    const int64_t stride = (int64_t(1) << c.log_n) + gap;
                    std::vector<int64_t> from, to;
                    for (int lane = 0; lane < 32; ++lane) {
                        from.push_back(2 * wht_mma16_offset(c, wht_mma16_copy(lane, i), stride));
                        to.push_back(2 * wht_mma16_offset(c,
                                                          wht_mma16_store_thread(warp, lane) |
                                                              wht_mma16_store_item(c, i, 0),
                                                          stride));
                    }
                    const int more = gap == 0 ? 0 : c.log_n < 8 ? 2 : 1; // rows that begin half way
                    CHECK(plait_test::sectors(from, 16) <= 16 + more);
                    CHECK(plait_test::sectors(to, 16) <= 16 + more);
                }
        }
    });
}

TEST_CASE("wht.mma16: launch data") {
    CHECK(sizeof(wht_mma16_args) <= 256);
    for_each_config([](const wht_mma16_config &c) {
        wht_launch l;
        REQUIRE(wht_mma16_launch(c.type, c.type, c.log_n, c.vector, &l));
        CHECK(l.threads == 32 * wht_mma16_warps(c));
        CHECK(l.threads * l.min_blocks_per_sm == 512);
        CHECK(l.smem_bytes == (2 * c.halves + 4 / c.halves) << c.log_part);
        CHECK(l.smem_bytes <= 227 * 1024);
        CHECK((l.smem_bytes + 1024) * l.min_blocks_per_sm <= 228 * 1024);
        CHECK(l.rows_per_tile == (c.log_n < 11 ? 1 << (11 - c.log_n) : 1));
        CHECK(wht_mma16_grid(l, 1, 132) == 1);
        CHECK(wht_mma16_grid(l, l.rows_per_tile, 132) == 1);
        CHECK(wht_mma16_grid(l, l.rows_per_tile + 1, 132) == 2);
        CHECK(wht_mma16_grid(l, int64_t(1) << 62, 132) == INT32_MAX);
    });
    wht_launch l;
    CHECK_FALSE(wht_mma16_launch(scalar::f32, scalar::f32, 12, true, &l));
    CHECK_FALSE(wht_mma16_launch(scalar::f16, scalar::f32, 12, true, &l));
    CHECK_FALSE(wht_mma16_launch(scalar::f16, scalar::bf16, 12, true, &l));
    CHECK_FALSE(wht_mma16_launch(scalar::f16, scalar::f16, 6, true, &l));
    CHECK_FALSE(wht_mma16_launch(scalar::bf16, scalar::bf16, 16, true, &l));
}

TEST_CASE("wht.mma16_narrow: launches, and counters behind the words of the exchange") {
    int count = 0;
    for (const scalar x : {scalar::b1, scalar::i8, scalar::i16, scalar::i32, scalar::f16})
        for (int log_n = 0; log_n < 18; ++log_n) {
            wht_launch l;
            if (!wht_mma16_narrow_launch(x, log_n, 0, &l)) continue;
            ++count;
            const wht_mma16_config c = wht_mma16_narrow_config(log_n);
            CHECK(l.smem_bytes == wht_mma16_smem_bytes(c));
            CHECK(l.persistent);
            const int64_t most = wht_mma16_narrow_counters / l.rows_per_tile;
            wht_launch counting;
            REQUIRE(wht_mma16_narrow_launch(x, log_n, most, &counting));
            CHECK(counting.smem_bytes == l.smem_bytes + 4 * most * l.rows_per_tile);
            CHECK(counting.smem_bytes <= 227 * 1024);
            // Sums are exact in f32, and their integers are within the low bits of 1.5 * 2^23.
            const int64_t largest = int64_t{x == scalar::i8 ? 128 : 1} << log_n;
            CHECK(largest <= int64_t{1} << 22);
            CHECK(2 * largest <= wht_mma16_narrow_reach);
        }
    CHECK(count == 2 * 9);
    CHECK(sizeof(wht_mma16_narrow_args) <= 256);
}

TEST_CASE("wht.mma16_e4m3: what a group of results has in one warp, or in one block") {
    for_each_config([](const wht_mma16_config &c) {
        if (!c.vector) return;
        for (int g = 0; g < 17; ++g) {
            INFO(g);
            // Of every aligned group: how many warps, and how many parts of a row, hold some of it.
            bool warp = g <= c.log_n, part = g <= c.log_part, access = g >= 3;
            std::map<uint32_t, std::set<int>> warps;
            for (int w = 0; w < wht_mma16_warps(c); ++w)
                for (int top = 0; top < 8; ++top)
                    for (int lane = 0; lane < 32; ++lane)
                        warps[(wht_mma16_store_thread(w, lane) | wht_mma16_store_item(c, top, 0)) >>
                              g]
                            .insert(w);
            for (const auto &[group, of] : warps) warp = warp && of.size() == 1;
            // More than the warp: only a row that is all of the block's tile.
            const bool row = part && g == c.log_n && c.log_n == c.log_part;
            const bool held = access && (row || (warp && (g <= 8 || c.log_warps == 0)));
            CHECK(wht_mma16_e4m3_group(c, g) == held);
        }
        wht_launch l;
        REQUIRE(wht_mma16_e4m3_launch(c.type, c.log_n, false, &l));
        CHECK_FALSE(l.persistent);
        REQUIRE(wht_mma16_e4m3_launch(c.type, c.log_n, true, &l));
        CHECK(l.persistent);
        const int tops = 4 * wht_mma16_warps(c);
        CHECK((l.smem_bytes + tops + 1024) * l.min_blocks_per_sm <= 228 * 1024);
        CHECK(wht_mma16_grid(l, int64_t(1) << 62, 132) == 132 * l.min_blocks_per_sm);
    });
}
