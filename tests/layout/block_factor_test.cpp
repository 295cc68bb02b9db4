// Places of wht.block_factor in shared memory.
#include "lib/cuda/wht/block_factor_layout.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <set>

using namespace plait::impl;

namespace {

/// 16-byte units that eight lanes access at a time, out of the eight of 128 bytes.
size_t units_of(scalar x, const uint32_t (&elements)[8]) {
    std::set<uint32_t> units;
    for (const uint32_t e : elements)
        units.insert(wht_block_factor_word(x, e) >> wht_block_factor_shape_of(x).log_unit & 7u);
    return units.size();
}

} // namespace

TEST_CASE("wht.block_factor: every element has a place of its own, accesses have no conflicts") {
    for (const scalar x : {scalar::f16, scalar::f32, scalar::f64}) {
        CAPTURE(scalar_name(x));
        const int log_segment = wht_block_factor_log_segment(x);
        const uint32_t all = bit_range(0, log_segment);
        std::set<uint32_t> words;
        for (uint32_t e = 0; e <= all; ++e) words.insert(wht_block_factor_word(x, e));
        CHECK(words.size() == all + 1);
        CHECK(*words.rbegin() == all);
        for (int phase = 0; phase < 2; ++phase) {
            const uint32_t regs = wht_block_factor_regs(x, phase);
            CHECK(bit_count(regs) == wht_block_factor_shape_of(x).log_items);
            CHECK((regs & ~all) == 0);
            for (uint32_t eight = 0; eight < 32; eight += 8) {
                uint32_t lanes[8];
                for (uint32_t l = 0; l < 8; ++l) lanes[l] = bit_deposit(eight + l, all & ~regs);
                CHECK(units_of(x, lanes) == 8);
            }
        }
    }
}

TEST_CASE("wht.block_factor: products with the factor are written without conflicts") {
    for (int log_k = 6; log_k <= wht_block_factor_log_k; ++log_k)
        for (uint32_t i = 0; i < 40; i += 2)
            for (uint32_t column = 0; column < 1u << log_k; column += 64) {
                uint32_t lanes[8]; // 4 i + l: a row, 16 columns
                for (uint32_t l = 0; l < 8; ++l)
                    lanes[l] = ((i + l / 4) << log_k) + column + l % 4 * 16;
                CAPTURE(log_k);
                CHECK(units_of(scalar::bf16, lanes) == 8);
            }
}

TEST_CASE("wht.block_factor: signs of a row in the order of a product") {
    for (const bool adjoint : {false, true}) {
        const wht_factor f = wht_factor::h28_williamson;
        for (int i = 0; i < 28; ++i) {
            const uint64_t signs = wht_block_factor_signs(f, adjoint, i);
            for (int j = 0; j < 28; ++j) {
                const int s = j % 7;
                const bool minus = (signs >> (j / 7 * 16 + s % 2 * 8 + s / 2) & 1u) != 0;
                const int sign = adjoint ? wht_factor_sign(f, j, i) : wht_factor_sign(f, i, j);
                CHECK(minus == (sign < 0));
            }
        }
    }
}
