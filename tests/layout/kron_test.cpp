// wht.kron_tf32, wht.kron_int8: operands and signs of both products, banks, moduli, launch data.
#include "lib/cuda/wht/kron_int8_layout.h"
#include "lib/cuda/wht/kron_tf32_layout.h"
#include "tests/layout/tile_checks.h"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

using namespace plait::impl;

namespace {

template <class F> void for_each_config(F check) {
    for (int log_n = 9; log_n <= 14; ++log_n) {
        INFO("n = 2^", log_n);
        check(wht_kron_config_of(log_n));
    }
}

/// Passes over the 32 banks that accesses of `each` words at these words take.
int passes(const std::vector<int> &words, int each) {
    std::vector<std::set<int>> banks(32);
    for (const int w : words)
        for (int i = 0; i < each; ++i) banks[static_cast<size_t>((w + i) % 32)].insert(w + i);
    size_t most = 0;
    for (const auto &b : banks) most = most < b.size() ? b.size() : most;
    return static_cast<int>(most);
}

/// The words of `lanes` lanes at a time take one pass.
template <class Word> bool no_conflicts(int lanes, int each, Word word) {
    for (int first = 0; first < 32; first += lanes) {
        std::vector<int> words;
        for (int lane = first; lane < first + lanes; ++lane) words.push_back(word(lane));
        for (const int w : words)
            if (w % each != 0) return false;
        if (passes(words, each) != 1) return false;
    }
    return true;
}

/// Is every number below `count` there once?
bool covers(std::vector<int> seen, int count) {
    std::vector<int> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    std::sort(seen.begin(), seen.end());
    return seen == all;
}

} // namespace

TEST_CASE("mma: every element of a TF32 and of a byte operand is in one lane") {
    std::vector<int> a, b, a8, b8;
    for (int lane = 0; lane < 32; ++lane) {
        for (int w = 0; w < mma_words_a; ++w) {
            const mma_place at = mma_tf32_place_a(lane, w);
            a.push_back(at.row * mma_inner_tf32 + at.column);
            for (int byte = 0; byte < 4; ++byte) {
                const mma_place at8 = mma_s8_place_a(lane, w, byte);
                a8.push_back(at8.row * mma_inner_s8 + at8.column);
            }
        }
        for (int w = 0; w < mma_words_b; ++w) {
            const mma_place at = mma_tf32_place_b(lane, w);
            b.push_back(at.row * mma_columns + at.column);
            for (int byte = 0; byte < 4; ++byte) {
                const mma_place at8 = mma_s8_place_b(lane, w, byte);
                b8.push_back(at8.row * mma_columns + at8.column);
            }
        }
    }
    CHECK(covers(a, mma_rows * mma_inner_tf32));
    CHECK(covers(b, mma_inner_tf32 * mma_columns));
    CHECK(covers(a8, mma_rows * mma_inner_s8));
    CHECK(covers(b8, mma_inner_s8 * mma_columns));
}

TEST_CASE("wht.kron: factors, and groups of lines and of rows that cover a tile once") {
    for_each_config([](const wht_kron_config &c) {
        CHECK(c.log_a + c.log_b == c.log_n);
        CHECK(c.log_a >= 4); // a tile of D within one transform: nothing leaks
        CHECK(c.log_b >= 5);
        CHECK(c.log_b <= 7);
        std::vector<int> lines, rows;
        for (int warp = 0; warp < wht_kron_threads(c) / 32; ++warp) {
            for (int g = 0; g < wht_kron_line_groups(c); ++g) {
                const wht_kron_place at = wht_kron_lines(c, warp, g);
                CHECK(at.row % (1 << c.log_a) == 0);
                for (int i = 0; i < 8; ++i)
                    lines.push_back((at.row >> c.log_a << c.log_b) + at.column + i);
            }
            for (int g = 0; g < wht_kron_row_groups(c); ++g)
                for (int i = 0; i < 8; ++i) rows.push_back(wht_kron_rows(c, warp, g).row + i);
        }
        CHECK(covers(lines, 1 << (c.log_tile - c.log_a)));
        CHECK(covers(rows, 1 << (c.log_tile - c.log_b)));
        std::vector<int> out;
        for (int lane = 0; lane < 32; lane += 4)
            for (int m = 0; m < 1 << (c.log_b - 4); ++m)
                for (int half = 0; half < 2; ++half) out.push_back(wht_kron_out(lane, m, half));
        CHECK(covers(out, 1 << c.log_b));
    });
}

TEST_CASE(
    "wht.kron_tf32: the sign of every operand, inner indices and rows once, no bank conflict") {
    for_each_config([](const wht_kron_config &c) {
        bool signs = true;
        std::vector<int> in1, in2, out1;
        for (int lane = 0; lane < 32; ++lane)
            for (int half = 0; half < 2; ++half) {
                for (int s = 0; s < 1 << (c.log_a - 3); ++s) {
                    const int k = wht_kron_tf32_in1(lane, s, half);
                    // constant distances in the kernel
                    CHECK(k == wht_kron_tf32_in1(lane, 0, 0) + wht_kron_tf32_in1(0, s, half));
                    if (lane < 4) in1.push_back(k);
                    for (int m = 0; m < 1 << (c.log_a - 4); ++m)
                        for (int h = 0; h < 2; ++h)
                            signs &=
                                wht_kron_minus(wht_kron_tf32_out1(lane, m, h), k) ==
                                (wht_kron_tf32_lane1(lane, half) != wht_kron_tf32_step(m, h, s));
                }
                for (int s = 0; s < 1 << (c.log_b - 3); ++s) {
                    const int k = wht_kron_tf32_in2(lane, s, half);
                    CHECK(k == wht_kron_tf32_in2(lane, 0, 0) + wht_kron_tf32_in2(0, s, half));
                    if (lane < 4) in2.push_back(k);
                    for (int m = 0; m < 1 << (c.log_b - 4); ++m)
                        for (int h = 0; h < 2; ++h)
                            signs &=
                                wht_kron_minus(wht_kron_out(lane, m, h), k) ==
                                (wht_kron_tf32_lane2(lane, half) != wht_kron_tf32_step(m, h, s));
                }
                if (lane % 4 == 0)
                    for (int m = 0; m < 1 << (c.log_a - 4); ++m)
                        out1.push_back(wht_kron_tf32_out1(lane, m, half));
            }
        CHECK(signs);
        CHECK(covers(in1, 1 << c.log_a));
        CHECK(covers(in2, 1 << c.log_b));
        CHECK(covers(out1, 1 << c.log_a));
        CHECK(no_conflicts(32, 1, [&](int lane) {
            return wht_kron_tf32_word(c, wht_kron_tf32_in1(lane, 1, 1), 8 + lane / 4);
        }));
        CHECK(no_conflicts(16, 2, [&](int lane) {
            return wht_kron_tf32_word(c, wht_kron_tf32_out1(lane, 0, 1), lane % 4 * 2);
        }));
        CHECK(no_conflicts(8, 4, [&](int lane) {
            return wht_kron_tf32_word(c, 8 + lane / 4, wht_kron_tf32_in2(lane, 0, 1));
        }));
        for (const int terms : {1, 3}) {
            wht_launch l{};
            REQUIRE(wht_kron_tf32_launch(scalar::f32, scalar::f32, c.log_n, terms, &l));
            CHECK(l.threads <= 512);
            CHECK((l.smem_bytes + 1024) * l.min_blocks_per_sm <= 228 * 1024);
            CHECK((l.rows_per_tile << c.log_n) == (1 << c.log_tile));
        }
        // 16 bytes a lane, 128 bytes in a row of eight lanes
        std::vector<int64_t> to;
        for (int lane = 0; lane < 32; ++lane)
            to.push_back(4 * static_cast<int64_t>(
                                 wht_kron_element(c, lane % 4 * 2, wht_kron_out(lane, 0, 0))));
        CHECK(plait_test::sectors(to, 16) == 16);
    });
    wht_launch l;
    CHECK_FALSE(wht_kron_tf32_launch(scalar::f32, scalar::f32, 8, 1, &l));
    CHECK_FALSE(wht_kron_tf32_launch(scalar::f32, scalar::f32, 15, 1, &l));
    CHECK_FALSE(wht_kron_tf32_launch(scalar::f32, scalar::f16, 12, 1, &l));
    CHECK_FALSE(wht_kron_tf32_launch(scalar::f64, scalar::f64, 12, 3, &l));
    CHECK(sizeof(wht_kron_tf32_args) <= 256);
}

TEST_CASE("wht.kron_int8: the sign of every byte, inner indices and rows once, no bank conflict") {
    for_each_config([](const wht_kron_config &c) {
        if (c.log_n < 10) return;
        const auto minus = [](int m, int h, int s, int byte) {
            const uint32_t one = wht_kron_int8_step(m, h, s) >> (8 * byte) & 0xffu;
            REQUIRE((one == 1 || one == 0xff));
            return one == 0xff;
        };
        bool signs = true;
        std::vector<int> in1, in2, out1;
        for (int lane = 0; lane < 32; ++lane)
            for (int half = 0; half < 2; ++half)
                for (int byte = 0; byte < 4; ++byte) {
                    for (int s = 0; s < 1 << (c.log_a - 5); ++s) {
                        const int k = wht_kron_int8_in1(lane, s, half, byte);
                        CHECK(k == wht_kron_int8_in1(lane, 0, 0, 0) +
                                       wht_kron_int8_in1(0, s, half, byte));
                        if (lane < 4) in1.push_back(k);
                        for (int m = 0; m < 1 << (c.log_a - 4); ++m)
                            for (int h = 0; h < 2; ++h)
                                signs &= wht_kron_minus(wht_kron_int8_out1(lane, m, h), k) ==
                                         (wht_kron_int8_lane1(lane, half) != minus(m, h, s, byte));
                    }
                    for (int s = 0; s < 1 << (c.log_b - 5); ++s) {
                        const int k = wht_kron_int8_in2(lane, s, half) + byte;
                        if (lane < 4) in2.push_back(k);
                        for (int m = 0; m < 1 << (c.log_b - 4); ++m)
                            for (int h = 0; h < 2; ++h)
                                signs &= wht_kron_minus(wht_kron_out(lane, m, h), k) ==
                                         (wht_kron_int8_lane2(lane, half) != minus(m, h, s, byte));
                    }
                    if (lane % 4 == 0 && byte == 0)
                        for (int m = 0; m < 1 << (c.log_a - 4); ++m)
                            out1.push_back(wht_kron_int8_out1(lane, m, half));
                }
        CHECK(signs);
        CHECK(covers(in1, 1 << c.log_a));
        CHECK(covers(in2, 1 << c.log_b));
        CHECK(covers(out1, 1 << c.log_a));
        CHECK(no_conflicts(32, 1, [&](int lane) {
            return wht_kron_int8_word(c, false, wht_kron_int8_in1(lane, 0, 1, 1), 8 + lane / 4);
        }));
        CHECK(no_conflicts(16, 2, [&](int lane) {
            return 2 * wht_kron_int8_word(c, true, wht_kron_int8_in1(lane, 0, 1, 1), 8 + lane / 4);
        }));
        CHECK(no_conflicts(32, 1, [&](int lane) { // two lanes write one word
            return wht_kron_int8_byte(c, wht_kron_int8_out1(lane, 0, 1), lane % 4 * 2) / 4;
        }));
        CHECK(no_conflicts(32, 1, [&](int lane) {
            return wht_kron_int8_byte(c, lane / 4, wht_kron_int8_in2(lane, 0, 1)) / 4;
        }));
        for (const scalar type : {scalar::i32, scalar::f32, scalar::f64}) {
            wht_launch l{};
            REQUIRE(wht_kron_int8_launch(type, type, c.log_n, &l));
            CHECK(wht_kron_int8_bytes_at(c, type == scalar::f64) % 16 == 0);
            CHECK((l.smem_bytes + 1024) * l.min_blocks_per_sm <= 228 * 1024);
            CHECK((l.rows_per_tile << c.log_n) == (1 << c.log_tile));
        }
    });
    wht_launch l;
    CHECK_FALSE(wht_kron_int8_launch(scalar::i32, scalar::i32, 9, &l));
    CHECK_FALSE(wht_kron_int8_launch(scalar::i64, scalar::i64, 12, &l));
    CHECK_FALSE(wht_kron_int8_launch(scalar::f32, scalar::f64, 12, &l));
    CHECK(sizeof(wht_kron_int8_args) <= 256);
}

TEST_CASE(
    "wht.kron_int8: moduli without common divisors, digits below 2^32, the documented range") {
    const wht_kron_moduli t = wht_kron_moduli_table();
    uint64_t weight = 1;
    for (int i = 0; i < wht_kron_most_moduli; ++i) {
        const wht_kron_modulus &m = t.list[i];
        const auto p = static_cast<uint32_t>(m.p);
        INFO("p = ", m.p);
        CHECK(p % 2 == 1);
        CHECK(p <= 127); // residues 0 .. p are bytes
        for (int j = 0; j < i; ++j) CHECK(std::gcd(m.p, t.list[j].p) == 1);
        CHECK(m.weight == weight);
        CHECK(weight % p * m.inverse % p == 1);
        CHECK(m.lift % m.p == 0);
        const int sums = 128 * 127;
        CHECK(m.lift > sums + 2 * m.p);
        // floor(v magic / 2^32) is floor(v / p) up to this v, and at most one more for four moduli
        const uint64_t largest = static_cast<uint64_t>(m.lift + sums + m.p) * m.inverse;
        const uint64_t excess = static_cast<uint64_t>(m.magic) * p - (uint64_t{1} << 32);
        CHECK(excess >= 1);
        CHECK(largest * excess < uint64_t{1} << 32);
        if (i < 4) CHECK(weight * excess < uint64_t{1} << 32);
        CHECK(m.wide_magic == ~uint64_t{0} / p);
        weight *= p;
        CHECK(wht_kron_whole(i + 1) == weight);
    }
    CHECK(wht_kron_whole(4) == 167375713);
    CHECK(wht_kron_reach(4) == 83687856);
    CHECK(wht_kron_reach(9) > int64_t{1} << 59);
    CHECK(wht_kron_whole(9) < uint64_t{1} << 63);
    // x of any n stays in the range of its remainder: 2^24 by integers, 2^53 by doubles
    CHECK(wht_kron_reach(4) / 1024 < 1 << 24);
    CHECK(wht_kron_reach(9) / 1024 < int64_t{1} << 53);
}
