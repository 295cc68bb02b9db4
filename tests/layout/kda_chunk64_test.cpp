// Tiles and pairs of the chunk64 kernels of kda.
#include "lib/cuda/kda/chunk64_bwd_scan_layout.h"
#include "lib/cuda/kda/chunk64_grad_layout.h"
#include "lib/cuda/kda/chunk64_near_layout.h"
#include "lib/cuda/kda/chunk64_scans_layout.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <set>

namespace plait::test {

TEST_CASE("kda chunk64: eight rows of ldmatrix lie in eight different groups of banks") {
    for (const int columns : {16, 32, 64, 128, 192, 256}) {
        std::set<int> all;
        for (int row = 0; row < 64; ++row)
            for (int column = 0; column < columns; ++column)
                all.insert(impl::kda64_at(columns, row, column));
        CHECK(all.size() == static_cast<size_t>(64 * columns));
        CHECK(*all.rbegin() == impl::kda64_tile_bytes(64, columns) - 2);
        for (int row = 0; row < 64; row += 8)
            for (int column = 0; column < columns; column += 8) {
                std::set<int> banks;
                for (int i = 0; i < 8; ++i) {
                    const int at = impl::kda64_at(columns, row + i, column);
                    CHECK(at % 16 == 0);
                    banks.insert(at / 16 % 8);
                }
                CHECK(banks.size() == 8);
            }
    }
}

TEST_CASE("kda chunk64: the chain of few heads has room for its rings and its words") {
    const impl::kda64_record r = impl::kda64_record_of(128);
    for (const bool pair : {false, true})
        for (int tiles = 1; tiles <= impl::kda64_split_most; ++tiles) {
            const impl::kda64_split_rings rings = impl::kda64_split_rings_of(tiles, pair);
            const impl::kda64_split_shape s = impl::kda64_split_shape_of(128, tiles, pair);
            CHECK(s.first == r.q); // the second part begins with q+
            CHECK(s.first + s.second == r.bytes);
            CHECK(s.first % 128 == 0); // rows keep their banks from stage to stage
            CHECK(s.second % 128 == 0);
            if (pair) {
                CHECK(s.rest + rings.second * s.second == s.words);
                CHECK(s.words + rings.words * impl::kda64_chunk_words(128, tiles) <= s.counters);
                CHECK(s.v == rings.first * s.first);
            } else {
                CHECK(s.rest == rings.first * s.first);
                CHECK(s.v - s.rest == rings.second * s.second);
            }
            CHECK(s.state - s.v == impl::kda64_split_v * 64 * s.values * 2);
            CHECK(s.written - s.state == 2 * 128 * s.values * 2);
            CHECK(s.residual - s.written == 2 * 64 * s.values * 2);
            CHECK(s.counters - s.residual == 64 * s.values * 2);
            CHECK(s.bytes <= impl::kda64_scan_shared_most);
        }
}

TEST_CASE("kda chunk64: every pair of rows has one level, whose anchor lies between them") {
    int seen[64][64] = {};
    for (int b = 0; b < 6; ++b)
        for (int upper = 0; upper < 32; ++upper)
            for (int lower = 0; lower < 32; ++lower) {
                if (!impl::kda64_meet(upper, lower, b)) continue;
                const int i = impl::kda64_upper(upper, b), j = impl::kda64_lower(lower, b);
                const int anchor = i >> b << b;
                CHECK(j < anchor);
                CHECK(anchor <= i);
                CHECK((j | ((1 << b) - 1)) + 1 == anchor);
                // From eight rows on a level's pairs are all those of two warps.
                if (b > 2) CHECK(impl::kda64_meet(upper / 8, lower / 8, b - 3));
                ++seen[i][j];
            }
    for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j) CHECK(seen[i][j] == (j < i ? 1 : 0));
}

TEST_CASE("kda chunk64: an element further on is an exclusive or away") {
    for (const int columns : {64, 128, 192})
        for (int row = 0; row < 8; ++row)
            for (int column = 0; column < 64; column += 2) {
                const int at = impl::kda64_at(columns, row, column);
                for (int more = 0; more < columns; more += 16) {
                    if ((more & column & 63) != 0 || column + more >= columns) continue;
                    CHECK(impl::kda64_from(columns, at, 8, more) ==
                          impl::kda64_at(columns, row + 8, column + more));
                    if (row == 0)
                        CHECK(impl::kda64_from(columns, at, 13, more) ==
                              impl::kda64_at(columns, 13, column + more));
                }
            }
}

TEST_CASE("kda chunk64: factors of a warp lie in rows of its own, within a level evenly") {
    int owner[impl::kda64_factor_rows] = {};
    for (int warp = 0; warp < impl::kda64_prep_warps; ++warp) {
        const int end = warp < 7 ? impl::kda64_region_row(warp + 1) : impl::kda64_region_rows;
        CHECK(impl::kda64_region_row(warp) + 24 <= end);
        for (int level = 3; level < 6; ++level) {
            const int first = impl::kda64_factor_row(level, warp);
            const int rows = warp >> (level - 3) & 1 ? 16 : 8;
            CHECK(first % 8 == 0);
            if (level > 3) CHECK(first >= impl::kda64_region_row(warp));
            if (level > 3) CHECK(first + rows <= end);
            for (int i = first; i < first + rows; ++i) CHECK(owner[i]++ == 0);
        }
    }
    // Lower ones, and upper ones of level 4, are read from an even distance.
    const auto step = [](int level, int warp) {
        return impl::kda64_factor_row(level, warp + 1) - impl::kda64_factor_row(level, warp);
    };
    CHECK(step(5, 1) == step(5, 0));
    CHECK(step(5, 2) == step(5, 0));
}

TEST_CASE("kda chunk64: eight rows of factors lie in eight different groups of banks") {
    for (const int keys : {64, 128, 192})
        for (int first = 0; first + 8 <= impl::kda64_factor_rows; first += 8) {
            std::set<int> banks;
            for (int i = first; i < first + 8; ++i) {
                CHECK(impl::kda64_factor_at(keys, i, 8) % 16 == 0);
                CHECK(impl::kda64_factor_at(keys, i, keys - 1) <
                      impl::kda64_factor_at(keys, i + 1, 0));
                banks.insert(impl::kda64_factor_at(keys, i, 8) / 16 % 8);
            }
            CHECK(banks.size() == 8);
        }
}

TEST_CASE("kda chunk64: 16 rows to a warp, factors and squares in different banks") {
    for (const int keys : {64, 128, 192}) {
        const impl::kda64_near_shared s = impl::kda64_near_shared_of(keys);
        CHECK(impl::kda64_near_blocks(keys, true) * (s.bytes + 1024) <= 228 * 1024);
        CHECK(impl::kda64_near_blocks(keys, false) * (s.bytes + 1024) <= 228 * 1024);
        for (const int at : {s.k, s.q, s.lower, s.tiles, s.squares, s.totals, s.norms, s.beta,
                             s.diagonal, s.tasks, s.sums})
            CHECK(at % 16 == 0);
        CHECK(s.q - s.k == 64 * impl::kda64_factor_pitch(keys));
        CHECK(6 * impl::kda64_square_bytes <= s.totals - s.squares);
        CHECK(impl::kda64_tiles * 16 * impl::kda64_factor_pitch(keys) <= s.totals - s.tiles);
        // A square of the diagonal, and 16 rows of A beside it.
        CHECK(impl::kda64_square_bytes + impl::kda64_part_bytes <= (s.tiles - s.lower) / 4);
    }
    for (const int pitch : {impl::kda64_lower_pitch, impl::kda64_part_pitch}) {
        std::set<int> banks;
        for (int row = 0; row < 8; ++row) banks.insert(row * pitch / 16 % 8);
        CHECK(pitch % 16 == 0);
        CHECK(banks.size() == 8);
    }
    std::set<int> squares;
    for (int r = 1; r < 4; ++r)
        for (int c = 0; c < r; ++c) squares.insert(impl::kda64_square_of(r, c));
    CHECK(squares == std::set<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("kda chunk64: records and shared memory") {
    for (const int keys : {64, 128, 192}) {
        const impl::kda64_record r = impl::kda64_record_of(keys);
        for (const int at : {r.kr, r.m, r.gamma, r.beta, r.q, r.a, r.bytes}) CHECK(at % 16 == 0);
        const impl::kda64_prep_shared s = impl::kda64_prep_shared_of(keys);
        CHECK(s.bytes <= impl::kda64_scan_shared_most);
        if (keys <= 128) CHECK(2 * (s.bytes + 1024) <= 228 * 1024); // two blocks of an SM
        CHECK(impl::kda64_tile_bytes(64, 64) <= s.f - s.m);
        for (const int at : {s.factors, s.f, s.a, s.totals, s.beta, s.scales}) CHECK(at % 128 == 0);
        for (const int tiles : {1, 2}) {
            if (keys != 128) continue; // not instantiated
            for (const bool reverse : {false, true}) {
                const impl::kda64_scans_ring ring = impl::kda64_scans_ring_of(keys, tiles, reverse);
                CHECK(ring.bytes <= impl::kda64_scan_shared_most);
                CHECK(ring.stages == 3); // of both directions
                CHECK(8 * ring.stages <= ring.begin);
                for (const int at : {ring.record, ring.stage, ring.begin, ring.share, ring.each})
                    CHECK(at % 16 == 0);
            }
        }
        for (const int warps : {4, 8}) {
            if (warps != 4 && keys != 128) continue; // not instantiated
            const impl::kda64_forward_shape shape = impl::kda64_forward_shape_of(keys, warps);
            CHECK(shape.bytes <= impl::kda64_scan_shared_most);
            CHECK(shape.stages >= 2);
            for (const int at : {shape.record, shape.v, shape.counters}) CHECK(at % 16 == 0);
            CHECK(shape.counters - shape.v == 2 * warps * impl::kda64_warp_values);
        }
    }
    for (const int keys : {64, 128})
        for (const int values : {64, 128})
            for (const bool shared_heads : {false, true}) {
                const impl::kda64_grad_shared s =
                    impl::kda64_grad_shared_of(keys, values, shared_heads);
                CHECK(s.bytes <= impl::kda64_scan_shared_most);
                // What halves say lies where states were, decays before tiles that are still read.
                CHECK(impl::kda64_grad_words(keys) <= s.written - s.states);
                CHECK(4 * 64 * keys <=
                      (s.decays == s.written ? s.q - s.decays : s.near - s.decays));
                CHECK(2 * 4 * 64 * (keys / 16) <= s.sums - s.pairs);
                CHECK(s.k - s.q == impl::kda64_tile_bytes(64, keys));
                CHECK(4 * impl::kda64_grad_threads(keys) / 32 <= s.totals - s.near);
                for (const int at : {s.gradients, s.d_o, s.q, s.pairs, s.sums, s.decays, s.near,
                                     s.totals, s.place, s.counter})
                    CHECK(at % 16 == 0);
            }
    CHECK(impl::kda64_record_of(128).bytes == 66304);
    // Two blocks of an SM, each with what the system takes.
    CHECK(2 * (impl::kda64_prep_shared_of(128).bytes + 1024) <= 228 * 1024);
}

} // namespace plait::test
