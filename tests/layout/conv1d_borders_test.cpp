// Which tokens conv1d.bwd_bct leaves to conv1d.bwd_bct_fix.
#include "lib/cuda/conv1d/bwd_bct_layout.h"

#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

using namespace plait::impl;

TEST_CASE("conv1d.bwd_bct_fix writes each dx that meets a token at a border") {
    for (const int64_t length : {1, 31, 32, 33, 700})
        for (const int width : {1, 2, 4, 8, 32}) {
            const int64_t words = conv1d_border_words(length);
            std::vector<uint32_t> row(static_cast<size_t>(words));
            std::vector<bool> border(static_cast<size_t>(length));
            for (int64_t t = 0; t < length; ++t) {
                border[static_cast<size_t>(t)] = t * t % 53 == 17 || t % 97 == 96;
                if (border[static_cast<size_t>(t)])
                    row[static_cast<size_t>(t / 32)] |= 1u << t % 32;
            }
            const auto word = [&](int64_t i) {
                return i < words ? row[static_cast<size_t>(i)] : 0;
            };
            for (int64_t t = 0; t < length; t += conv1d_bct_fix_each) {
                const uint32_t got =
                    conv1d_border_reach(word(t >> 5), word((t >> 5) + 1), t, width);
                for (int64_t j = 0; j < conv1d_bct_fix_each && t + j < length; ++j) {
                    bool want = false;
                    for (int64_t q = t + j; q < t + j + width && q < length; ++q)
                        want = want || border[static_cast<size_t>(q)];
                    CHECK((got >> j & 1u) == static_cast<uint32_t>(want));
                }
            }
        }
}

TEST_CASE("conv1d.bwd_bct: pairs of fields for all lanes of all tiles") {
    for (const scalar x : {scalar::bf16, scalar::f32})
        for (const int64_t b : {1, 3, 8, 33})
            for (const int64_t length : {1, 31, 64, 511, 2047, 4096})
                for (const int64_t width : {1, 2, 4, 5}) {
                    conv1d_problem p{};
                    p.batch = b, p.channels = 5, p.length = length, p.width = width;
                    p.x = p.dy = p.dx = conv1d_view{x, 16, 5 * length, length, 1};
                    p.varlen = true;
                    conv1d_bwd_args a = conv1d_bwd_args_of(p);
                    conv1d_bwd_bct_fill(p, 132, 227 * 1024, &a);
                    CHECK((a.fields != 0) == (width >= 2 && width <= 4));
                    CHECK(a.borders_at == (a.fields != 0 ? -1 : 0));
                    if (a.fields == 0) continue;
                    const int log_vec = conv1d_log_vec(x);
                    CHECK(a.fields == 1 << log_vec);
                    CHECK(a.field_rows >= b);
                    CHECK(a.field_rows == a.parts << (5 - a.log_lanes));
                    const bool even = length % a.fields == 0;
                    for (int64_t shift = 0; shift < (even ? 1 : a.fields); ++shift) {
                        const int64_t last = a.tiles * a.tile - a.fields - shift;
                        CHECK((-shift >> log_vec) + 1 >= 0);
                        CHECK((last >> log_vec) + 1 + (even ? 0 : 1) < a.field_pairs);
                    }
                    const int64_t made = 32 * conv1d_mark_pieces(length, a.fields, a.field_pairs);
                    CHECK(made - 32 >= length);
                    CHECK(made - 32 >= int64_t{a.field_pairs} * a.fields);
                    CHECK(a.flags_at == a.field_rows * a.field_pairs * 8);
                    CHECK(conv1d_bwd_bct_marks_bytes(p, a) == a.flags_at + a.parts * a.tiles);
                }
}
