// wht.block: every instantiated size, type and access width.
#include "lib/cuda/wht/block_layout.h"
#include "lib/cuda/wht/diagonal_layout.h"
#include "tests/layout/tile_checks.h"

#include <cstddef>
#include <doctest/doctest.h>

using namespace plait::impl;

namespace {

constexpr scalar types[] = {scalar::f32,  scalar::f64, scalar::f16,
                            scalar::bf16, scalar::i32, scalar::i64};

template <class F> void for_each_config(F check) {
    int count = 0;
    for (const scalar x : types) {
        for (const scalar y : types) {
            for (int log_n = 0; log_n < 20; ++log_n) {
                if (!wht_block_exists(x, y, log_n)) continue;
                for (const bool vector : {false, true})
                    for (const int parts : {0, 1}) {
                        if (!wht_block_exists(x, y, log_n, parts)) continue;
                        ++count;
                        INFO(wht_block_variant(x, y, log_n, vector, parts).text);
                        check(wht_block_config_of(x, y, log_n, vector, parts));
                    }
            }
        }
    }
    CHECK(count == (4 * 17 + 2 * 16 + 16 + 15 + 2 * 6) * 2);
}

int bits_above_tile(const wht_block_config &c) { return c.log_rounds + (c.parked ? 1 : 0); }

} // namespace

TEST_CASE("wht.block: phases, butterflies, exchanges") {
    for_each_config([](const wht_block_config &c) {
        plait_test::check_phases_are_bijections(c.tile);
        // bits above the tile are butterflies between whole tiles
        const int in_tile = c.log_n < c.tile.log_tile ? c.log_n : c.tile.log_tile;
        plait_test::check_butterflies(c.tile, bit_range(c.parts, in_tile));
        if (c.log_n > c.tile.log_tile) CHECK(c.tile.log_tile + bits_above_tile(c) == c.log_n);
        if (c.log_n <= c.tile.log_tile) CHECK(bits_above_tile(c) == 0);
        plait_test::check_exchanges(c.tile, wht_is_wide(c.x) && !c.word_wise ? 8 : 4);
    });
}

TEST_CASE("wht.block: launch data") {
    CHECK(sizeof(wht_block_args) <= 256);
    for_each_config([](const wht_block_config &c) {
        wht_launch launch;
        REQUIRE(wht_block_launch(c.x, c.y, c.log_n, c.vector, &launch, c.parts));
        CHECK(launch.threads >= 32);
        CHECK(launch.threads <= 1024);
        CHECK(launch.threads * launch.min_blocks_per_sm <= 1024);
        CHECK(launch.min_blocks_per_sm >= 1);
        const int word = wht_is_wide(c.x) ? 8 : 4;
        const int parked = c.parked ? word << (c.tile.log_tile + c.log_rounds) : 0;
        const int sets = c.own_words ? 1 << c.log_rounds : 1;
        const int words = sets * (c.word_wise ? 4 : word) * tile_words(c.tile);
        CHECK(launch.smem_bytes == parked + words);
        CHECK(launch.smem_bytes <= 227 * 1024);
        const int64_t rows = int64_t(1) << (c.tile.log_tile + bits_above_tile(c) - c.log_n);
        CHECK(launch.rows_per_tile == rows);
        const int per = launch.rows_per_tile;
        CHECK(wht_block_grid(launch, 1, 132) == 1);
        CHECK(wht_block_grid(launch, per, 132) == 1);
        CHECK(wht_block_grid(launch, int64_t(per) + 1, 132) == 2);
        const int most = wht_block_grid(launch, int64_t(1) << 62, 132);
        CHECK(most == (launch.persistent ? 132 * launch.min_blocks_per_sm : INT32_MAX));
    });
    wht_launch launch;
    CHECK_FALSE(wht_block_launch(scalar::f32, scalar::f32, 17, true, &launch));
    CHECK_FALSE(wht_block_launch(scalar::f64, scalar::f64, 16, true, &launch));
    CHECK_FALSE(wht_block_launch(scalar::f32, scalar::f32, -1, true, &launch));
    CHECK_FALSE(wht_block_launch(scalar::f16, scalar::f32, 9, true, &launch));
    CHECK_FALSE(wht_block_launch(scalar::f32, scalar::f16, 12, true, &launch));
    CHECK_FALSE(wht_block_launch(scalar::i32, scalar::i64, 4, true, &launch));
}

// Phases, exchanges, and where the registers of ordered rows go: every place once, in stores whose
// lanes fill whole sectors.
TEST_CASE("wht.fused: tiles, and places in another order") {
    int count = 0;
    for (const scalar x : types)
        for (int log_n = 0; log_n < 17; ++log_n)
            for (const bool ordered : {false, true}) {
                if (!wht_fused_exists(x, log_n)) continue;
                ++count;
                INFO(wht_fused_variant(x, log_n, ordered).text);
                const wht_block_config c = wht_fused_config_of(x, log_n, ordered);
                const tile_layout &t = c.tile;
                plait_test::check_phases_are_bijections(t);
                plait_test::check_butterflies(
                    t, bit_range(0, log_n < t.log_tile ? log_n : t.log_tile));
                plait_test::check_exchanges(t, wht_is_wide(x) ? 8 : 4);
                CHECK(tile_threads(t) * c.blocks_per_sm <= 1024);
                CHECK(c.blocks_per_sm >= 1);
            }
    CHECK(count == 2 * (14 + 14 + 13 + 13));
}

TEST_CASE("wht.diagonal: tiles of real and of complex rows") {
    CHECK(sizeof(wht_diagonal_args) <= 256);
    int count = 0;
    for (const scalar x : types)
        for (int log_n = 0; log_n < 17; ++log_n)
            for (const int parts : {0, 1})
                for (const bool mid : {false, true}) {
                    wht_launch l;
                    const bool there = wht_diagonal_launch(x, log_n, parts, mid, &l);
                    CHECK(there == wht_diagonal_exists(x, log_n, parts));
                    if (!there) continue;
                    ++count;
                    INFO(l.variant);
                    const wht_block_config c = wht_diagonal_config_of(x, log_n, parts);
                    const tile_layout &t = c.tile;
                    plait_test::check_phases_are_bijections(t);
                    plait_test::check_butterflies(
                        t, bit_range(parts, log_n < t.log_tile ? log_n : t.log_tile));
                    plait_test::check_exchanges(t, wht_is_wide(x) ? 8 : 4);
                    // Both parts of a complex number, and a row whole, are in one thread's access.
                    CHECK(wht_min(t.log_vec_x, log_n) >= parts);
                    CHECK(wht_min(t.log_vec_y, log_n) >= parts);
                    CHECK(c.log_row == c.log_n);
                    CHECK_FALSE(c.parked);
                    CHECK((t.phases == 1 || c.log_rounds == 0 || c.own_words));
                    CHECK(l.threads * l.min_blocks_per_sm <= 1024);
                    CHECK(l.smem_bytes <= 227 * 1024);
                }
    CHECK(count == 2 * 13 + 2 * 13 + 4 * 14 + 4 * 14);
}

template <int W> static void check_places(const wht_block_config &c, wht_order order) {
    const int last = c.tile.phases - 1, items = 1 << c.tile.log_items;
    const int64_t n = int64_t(1) << c.log_n;
    const int rows = wht_block_rows_per_tile(c);
    std::vector<int> seen(static_cast<size_t>(n * rows), 0);
    bool right = true;
    int worst = 0;
    const auto threads = static_cast<uint32_t>(tile_threads(c.tile));
    for (int number = 0; number < (items << c.log_rounds) >> W; ++number) {
        const wht_fused_group<W> g = wht_fused_group_of<W>(c, order, number);
        std::vector<int64_t> at;
        for (uint32_t thread = 0; thread < threads; ++thread) {
            const uint32_t element = tile_thread_part(c.tile, last, thread);
            const uint32_t in_row = element & bit_range(0, c.log_n);
            const auto own = static_cast<uint32_t>(wht_any_row(order, in_row, c.log_n));
            const int64_t base = (own ^ g.place) & ~bit_range(0, W);
            const bool turned = (bit_count(in_row) % 2 != 0) != g.odd;
            const int64_t row = (element | g.element) >> c.log_n;
            at.push_back((row * n + base) * scalar_bytes(c.y));
            for (int i = 0; i < 1 << W; ++i) {
                const int reg = turned ? g.turned[i] : g.straight[i];
                const uint32_t k =
                    (element | tile_item_part(c.tile, last, static_cast<uint32_t>(reg % items)) |
                     static_cast<uint32_t>(reg / items) << c.tile.log_tile) &
                    bit_range(0, c.log_n);
                right = right && wht_any_row(order, k, c.log_n) == base + i;
                ++seen[static_cast<size_t>(row * n + base + i)];
            }
            if (thread % 32 == 31) {
                const int touched = plait_test::sectors(at, scalar_bytes(c.y) << W);
                worst = worst < touched ? touched : worst;
                at.clear();
            }
        }
    }
    CHECK(right);
    bool once = true;
    for (const int times : seen) once = once && times == 1;
    CHECK(once);
    if (c.log_n > 8) CHECK(worst == scalar_bytes(c.y) << W);
}

TEST_CASE("wht.fused: every place once, those of three phases in whole sectors") {
    for (const scalar x : types)
        for (int log_n = 0; log_n < 17; ++log_n) {
            if (!wht_fused_exists(x, log_n)) continue;
            INFO(wht_fused_variant(x, log_n, true).text);
            const wht_block_config c = wht_fused_config_of(x, log_n, true);
            for (const wht_order order : {wht_order::dyadic, wht_order::sequency})
                switch (wht_fused_store_bits(c)) {
                case 0: check_places<0>(c, order); break;
                case 1: check_places<1>(c, order); break;
                case 2: check_places<2>(c, order); break;
                default: check_places<3>(c, order); break;
                }
        }
}

// Every warp-wide access of memory is aligned and touches the fewest sectors: in a tile of whole
// rows for the strides that give the most and the least room between them.
TEST_CASE("wht.block: global accesses") {
    for_each_config([](const wht_block_config &c) {
        for (const bool store : {false, true}) {
            INFO((store ? "store" : "load"));
            const int phase = store ? c.tile.phases - 1 : 0;
            const int vec = store ? c.tile.log_vec_y : c.tile.log_vec_x;
            const int size = scalar_bytes(store ? c.y : c.x);
            const int bytes = size << vec;
            CHECK(bytes <= 16);
            CHECK((c.tile.phase[phase].regs & bit_range(0, vec)) == bit_range(0, vec));
            const int64_t row = int64_t(1) << c.log_row;
            const int warps = tile_threads(c.tile) / 32;
            for (const int64_t gap : {int64_t(0), int64_t(16 / size)}) {
                int64_t worst = 0;
                for (int warp = 0; warp < warps; ++warp) {
                    for (int item = 0; item < 1 << c.tile.log_items; item += 1 << vec) {
                        std::vector<int64_t> at;
                        for (int lane = 0; lane < 32; ++lane) {
                            const uint32_t e =
                                tile_element(c.tile, phase, static_cast<uint32_t>(warp * 32 + lane),
                                             static_cast<uint32_t>(item));
                            at.push_back(wht_block_offset(c, e, row + gap) * size);
                        }
                        const int64_t n = plait_test::sectors(at, bytes);
                        worst = worst < n ? n : worst;
                    }
                }
                // rows that end within a sector start one more each
                const int64_t rows = (int64_t(32) << vec) >> c.log_row;
                // Element by element a thread may take what it holds one after the other.
                int held = vec;
                if (wht_block_as_vector(c.x, c.log_n))
                    while (c.tile.phase[phase].regs >> held & 1u) ++held;
                const int64_t fewest = int64_t(bytes) << (held - vec);
                if (gap == 0) CHECK(worst == fewest);
                if (gap != 0) CHECK(worst <= fewest + (rows > 1 ? rows : 1));
            }
        }
    });
}

// Alignment must not change the last bits of a result: both variants add in one order.
TEST_CASE("wht.block: element-wise and vector variants add in the same order") {
    int compared = 0;
    for_each_config([&](const wht_block_config &c) {
        const auto order = [&](bool vector) {
            const wht_block_config k = wht_block_config_of(c.x, c.y, c.log_n, vector, c.parts);
            return plait_test::stage_order(k.tile, k.log_rounds, k.parked);
        };
        CHECK(order(true) == order(false));
        CHECK(order(true).size() == static_cast<size_t>(c.log_n - c.parts));
        ++compared;
    });
    CHECK(compared > 60);
}

// Around tile edges: the blocks of a grid take every element of every row once, and nothing else.
TEST_CASE("wht.block: every element once") {
    for_each_config([](const wht_block_config &c) {
        const int per = wht_block_rows_per_tile(c);
        const int64_t n = int64_t(1) << c.log_n;
        const int group = 1 << (c.log_row - c.log_n);
        for (const int64_t rows : {int64_t(1), int64_t(per - 1), int64_t(per), int64_t(per) + 1,
                                   int64_t(2) * per + group + 1}) {
            if (rows < 1 || rows * n > 1 << 17) continue;
            const int64_t stride = group > 1 ? n : n + 16;
            for (const bool store : {false, true}) {
                INFO(rows << " rows, " << (store ? "store" : "load"));
                const int vec = store ? c.tile.log_vec_y : c.tile.log_vec_x;
                std::vector<int> seen(static_cast<size_t>(rows * stride), 0);
                bool inside = true;
                for (int64_t tile = 0; tile < (rows - 1) / per + 1; ++tile) {
                    const wht_block_rows present = wht_block_tile_rows(c, tile, rows);
                    const int64_t step = wht_block_stride(c, stride);
                    for (int above = 0; above < 1 << bits_above_tile(c); ++above) {
                        const int64_t origin =
                            present.first * step + (int64_t(above) << c.tile.log_tile);
                        for (uint32_t e = 0; e < 1u << c.tile.log_tile; e += 1u << vec) {
                            const int count = wht_block_present(c, present, e, vec);
                            for (int i = 0; i < count; ++i) {
                                const int64_t at = origin + wht_block_offset(c, e, step) + i;
                                if (at < 0 || at >= rows * stride)
                                    inside = false;
                                else
                                    ++seen[static_cast<size_t>(at)];
                            }
                        }
                    }
                }
                CHECK(inside);
                bool once = true;
                for (int64_t i = 0; i < rows * stride; ++i) {
                    once = once && seen[static_cast<size_t>(i)] == (i % stride < n ? 1 : 0);
                }
                CHECK(once);
            }
        }
    });
}
