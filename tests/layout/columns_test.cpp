// wht.columns_tiled and wht.columns_shuffle: every instantiated size and type.
#include "lib/cuda/wht/columns_shuffle_layout.h"
#include "lib/cuda/wht/columns_tiled_layout.h"
#include "tests/layout/tile_checks.h"

#include <cstddef>
#include <doctest/doctest.h>

using namespace plait::impl;

namespace {

constexpr scalar types[] = {scalar::f32, scalar::f64, scalar::f16, scalar::bf16};

struct kernel {
    const char *name;
    bool tiled;
};
constexpr kernel kernels[] = {{"columns_tiled ", true}, {"columns_shuffle ", false}};

template <class F> void for_each_config(F check) {
    int count = 0;
    for (const kernel &k : kernels) {
        for (const scalar x : types) {
            for (const scalar y : types) {
                for (int log_m = 0; log_m < 20; ++log_m) {
                    for (const bool vector : {false, true}) {
                        const bool exists = k.tiled
                                                ? wht_columns_tiled_exists(x, y, log_m, vector)
                                                : vector && wht_columns_shuffle_exists(x, y, log_m);
                        if (!exists) continue;
                        ++count;
                        INFO(k.name << wht_variant(x, y, ".k", log_m, vector).text);
                        check(k, k.tiled ? wht_columns_tiled_config(x, y, log_m, vector)
                                         : wht_columns_shuffle_config(x, y, log_m));
                    }
                }
            }
        }
    }
    CHECK(count == 6 * 12 + 2 * 6 + 6 * 5);
}

int bits_above_tile(const wht_columns_config &c) { return c.log_rounds + (c.parked ? 1 : 0); }

} // namespace

TEST_CASE("wht.columns: phases, butterflies, exchanges") {
    for_each_config([](const kernel &, const wht_columns_config &c) {
        plait_test::check_phases_are_bijections(c.tile);
        // bits above the tile are row bits, butterflies between whole tiles
        const int rows = c.log_m - bits_above_tile(c);
        plait_test::check_butterflies(c.tile, bit_range(c.log_run, c.log_run + rows));
        plait_test::check_exchanges(c.tile, c.x == scalar::f64 && !c.word_wise ? 8 : 4);
        CHECK(c.tile.log_tile + bits_above_tile(c) == c.log_m + c.log_columns);
    });
}

TEST_CASE("wht.columns: launch data") {
    CHECK(sizeof(wht_columns_args) <= 256);
    for_each_config([](const kernel &k, const wht_columns_config &c) {
        wht_launch launch;
        const auto find = [&](int log_inner) {
            return k.tiled
                       ? wht_columns_tiled_launch(c.x, c.y, c.log_m, log_inner, c.vector, &launch)
                       : wht_columns_shuffle_launch(c.x, c.y, c.log_m, log_inner, true, &launch);
        };
        CHECK_FALSE(find(c.log_columns - 1));
        REQUIRE(find(c.log_columns));
        CHECK(launch.threads >= 32);
        CHECK(launch.threads <= 1024);
        CHECK(launch.threads * launch.min_blocks_per_sm <= 1024);
        CHECK(launch.min_blocks_per_sm >= 1);
        const int word = c.x == scalar::f64 ? 8 : 4;
        const int parked = c.parked ? word << (c.tile.log_tile + c.log_rounds) : 0;
        const int sets = c.own_words ? 1 << c.log_rounds : 1;
        CHECK(launch.smem_bytes == parked + sets * (c.word_wise ? 4 : word) * tile_words(c.tile));
        CHECK(launch.smem_bytes <= 227 * 1024);
        CHECK(launch.log_columns == c.log_columns);
        CHECK(wht_columns_grid(launch, 1, c.log_columns, 132) == 1);
        CHECK(wht_columns_grid(launch, 3, c.log_columns + 2, 132) == 12);
        CHECK(wht_columns_grid(launch, int64_t(1) << 40, c.log_columns, 132) == INT32_MAX);
    });
    wht_launch launch;
    CHECK_FALSE(wht_columns_tiled_launch(scalar::f32, scalar::f32, 13, 20, true, &launch));
    CHECK_FALSE(wht_columns_tiled_launch(scalar::f32, scalar::f32, 0, 20, true, &launch));
    CHECK_FALSE(wht_columns_tiled_launch(scalar::f64, scalar::f32, 4, 20, true, &launch));
    CHECK_FALSE(wht_columns_shuffle_launch(scalar::f32, scalar::f32, 6, 20, true, &launch));
    CHECK_FALSE(wht_columns_shuffle_launch(scalar::f32, scalar::f32, 4, 20, false, &launch));
}

// Every warp-wide access is aligned and touches the fewest sectors; runs are whole sectors.
TEST_CASE("wht.columns: global accesses") {
    for_each_config([](const kernel &, const wht_columns_config &c) {
        for (const bool store : {false, true}) {
            INFO((store ? "store" : "load"));
            const int phase = store ? c.tile.phases - 1 : 0;
            const int vec = store ? c.tile.log_vec_y : c.tile.log_vec_x;
            const int size = scalar_bytes(store ? c.y : c.x);
            const int bytes = size << vec;
            CHECK(bytes <= 16);
            const int run = size << c.log_run;
            CHECK(run >= 32);
            CHECK((c.tile.phase[phase].regs & bit_range(0, vec)) == bit_range(0, vec));
            // Element by element a thread takes the columns that it holds one after the other.
            const int turns = c.tile.phases == 1 ? 1 : 1 << (wht_columns_across(c) - vec);
            for (const int log_inner : {c.log_columns, c.log_columns + 3}) {
                int worst = 0;
                for (int warp = 0; warp < tile_threads(c.tile) / 32; ++warp) {
                    for (int item = 0; item < 1 << c.tile.log_items; item += 1 << vec) {
                        std::vector<int64_t> at;
                        for (int lane = 0; lane < 32; ++lane) {
                            const uint32_t e =
                                tile_element(c.tile, phase, static_cast<uint32_t>(warp * 32 + lane),
                                             static_cast<uint32_t>(item));
                            at.push_back(wht_columns_offset(c, e, log_inner) * size);
                        }
                        const int n = plait_test::sectors(at, bytes);
                        worst = worst < n ? n : worst;
                    }
                }
                CHECK(worst == bytes * turns);
            }
        }
    });
}

// Alignment must not change the last bits of a result: both variants add in one order.
TEST_CASE("wht.columns_tiled: element-wise and vector variants add in the same order") {
    int compared = 0;
    for (const scalar x : {scalar::f16, scalar::bf16})
        for (int k = 1; k <= 12; ++k) {
            if (!wht_columns_tiled_exists(x, x, k, true)) continue;
            INFO(scalar_name(x), " m=2^", k);
            const auto order = [&](bool vector) {
                const wht_columns_config c = wht_columns_tiled_config(x, x, k, vector);
                std::vector<int> bits = plait_test::stage_order(c.tile, c.log_rounds, c.parked);
                for (int &bit : bits) bit -= c.log_run;
                return bits;
            };
            CHECK(order(true) == order(false));
            CHECK(order(true).size() == static_cast<size_t>(k));
            ++compared;
        }
    CHECK(compared == 12);
}

// The kernels of two phases walk over the rows of a thread with one pointer.
TEST_CASE("wht.columns: rows of a thread at one distance") {
    for_each_config([](const kernel &, const wht_columns_config &c) {
        if (c.tile.phases == 1) return;
        bool even = true;
        for (int phase = 0; phase < 2; ++phase) {
            const int across = wht_columns_across(c);
            const auto at = [&](uint32_t item) {
                return wht_columns_offset(c, tile_item_part(c.tile, phase, item << across), 20);
            };
            for (uint32_t i = 0; i < 1u << (c.tile.log_items - across); ++i) {
                even = even && at(i) == i * at(1);
            }
        }
        CHECK(even);
    });
}

// The blocks of a grid take every element of every batch entry once, and nothing between entries.
TEST_CASE("wht.columns: every element once") {
    for_each_config([](const kernel &, const wht_columns_config &c) {
        for (const int log_inner : {c.log_columns, c.log_columns + 1}) {
            wht_columns_args args{};
            args.batch = c.log_m > 8 ? 2 : 3;
            args.outer = c.log_m > 8 ? 1 : 2;
            args.log_m = c.log_m;
            args.log_inner = log_inner;
            const int64_t entry = args.outer << (c.log_m + log_inner);
            args.x_batch_stride = entry + 8;
            args.y_batch_stride = entry + 24;
            std::vector<uint8_t> x(static_cast<size_t>(args.batch * args.x_batch_stride), 0);
            std::vector<uint8_t> y(static_cast<size_t>(args.batch * args.y_batch_stride), 0);
            const int64_t tiles = (args.batch * args.outer) << (log_inner - c.log_columns);
            for (int64_t tile = 0; tile < tiles; ++tile) {
                const wht_columns_place place = wht_columns_tile_place(c, args, tile);
                for (uint32_t e = 0; e < 1u << (c.log_m + c.log_columns); ++e) {
                    const int64_t offset = wht_columns_offset(c, e, log_inner);
                    ++x.at(static_cast<size_t>(place.x + offset));
                    ++y.at(static_cast<size_t>(place.y + offset));
                }
            }
            bool once = true;
            for (int64_t i = 0; i < args.batch * args.x_batch_stride; ++i) {
                once = once && x[static_cast<size_t>(i)] == (i % args.x_batch_stride < entry);
            }
            for (int64_t i = 0; i < args.batch * args.y_batch_stride; ++i) {
                once = once && y[static_cast<size_t>(i)] == (i % args.y_batch_stride < entry);
            }
            INFO("log_inner " << log_inner);
            CHECK(once);
        }
    });
}
