// wht.cluster: every instantiated size and type.
#include "lib/cuda/wht/cluster_layout.h"
#include "tests/layout/tile_checks.h"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <set>

using namespace plait::impl;

namespace {

template <class F> void for_each_config(F check) {
    int count = 0;
    for (const scalar x : {scalar::f32, scalar::f64, scalar::f16, scalar::bf16})
        for (int log_n = 0; log_n < 32; ++log_n) {
            if (!wht_cluster_exists(x, log_n)) continue;
            ++count;
            INFO(wht_variant(x, x, ".n", log_n, true).text);
            check(wht_cluster_config_of(x, log_n));
        }
    CHECK(count == 4 + 4 + 2 * 4);
}

uint32_t threads(const wht_cluster_config &c) {
    return static_cast<uint32_t>(tile_threads(c.tile));
}
uint32_t units(const wht_cluster_config &c) { return static_cast<uint32_t>(wht_cluster_units(c)); }
uint32_t blocks(const wht_cluster_config &c) {
    return static_cast<uint32_t>(wht_cluster_blocks(c));
}
int word_bytes(const wht_cluster_config &c) { return c.x == scalar::f64 ? 8 : 4; }

/// Passes over the banks of 16-byte accesses, 8 lanes at a time, or 8-byte ones, 16 at a time.
int passes(const std::vector<uint32_t> &bytes, uint32_t size) {
    const size_t group = 128 / size;
    int total = 0;
    for (size_t first = 0; first < bytes.size(); first += group) {
        std::vector<std::set<uint32_t>> banks(group);
        for (size_t i = first; i < first + group; ++i)
            banks[bytes[i] / size % group].insert(bytes[i]);
        size_t most = 0;
        for (const auto &bank : banks) most = most < bank.size() ? bank.size() : most;
        total += static_cast<int>(most);
    }
    return total;
}

} // namespace

TEST_CASE("wht.cluster: phases, butterflies, exchanges within a part") {
    for_each_config([](const wht_cluster_config &c) {
        CHECK(c.tile.log_tile + c.log_rounds + c.log_cluster == c.log_n);
        CHECK(c.tile.rounds_last);
        plait_test::check_phases_are_bijections(c.tile);
        plait_test::check_butterflies(c.tile, bit_range(0, c.tile.log_tile));
        CHECK(c.word_wise == (c.x == scalar::f64));
        plait_test::check_exchanges(c.tile, 4);
        CHECK(c.tile.log_vec_y == c.log_unit);
        CHECK((word_bytes(c) << c.log_unit) == 16);
    });
}

// What a block sends: each word of each owner is written once, and the owner reads there, for each
// part, the element that the kernel stores it as.
TEST_CASE("wht.cluster: what blocks send is what owners take") {
    for_each_config([](const wht_cluster_config &c) {
        const uint32_t part = 1u << wht_cluster_log_part(c), slice = part >> c.log_cluster;
        // every owner: element of the part + 1, by word of part 0
        std::vector<std::vector<uint32_t>> kept(blocks(c), std::vector<uint32_t>(slice, 0));
        bool once = true, aligned = true, parts = true;
        for (uint32_t t = 0; t < threads(c); ++t)
            for (uint32_t u = 0; u < units(c); ++u) {
                const uint32_t word = wht_cluster_word(c, 0, t, u);
                const uint32_t owner = wht_cluster_owner(c, t, u);
                aligned = aligned && word % (1u << c.log_unit) == 0;
                for (uint32_t p = 0; p < blocks(c); ++p)
                    parts = parts && wht_cluster_word(c, p, t, u) == p * slice + word;
                // a unit is a constant beside the thread
                parts =
                    parts && wht_cluster_word(c, 0, t, 0) + wht_cluster_word(c, 0, 0, u) == word;
                for (uint32_t i = 0; i < 1u << c.log_unit; ++i) {
                    uint32_t &place = kept.at(owner).at(word + i);
                    once = once && place == 0;
                    place = wht_cluster_unit_place(c, t, u) + i + 1;
                }
            }
        CHECK(once);
        CHECK(aligned);
        CHECK(parts);
        CHECK(wht_cluster_kept_bytes(c) == static_cast<int>(part) * word_bytes(c));
        CHECK(wht_cluster_kept_at(c) >= 4 * tile_words(c.tile));
        CHECK(wht_cluster_kept_at(c) % 128 == 0);
        CHECK(wht_cluster_counter_at(c) >= wht_cluster_kept_at(c) + wht_cluster_kept_bytes(c));
        CHECK(wht_cluster_counter_at(c) % 8 == 0);
        CHECK(wht_cluster_smem_bytes(c) >= wht_cluster_counter_at(c) + 8);
        CHECK(wht_cluster_kept_bytes(c) < 1 << 20); // what an mbarrier can count

        bool same = true;
        std::vector<int> taken(part, 0);
        for (uint32_t owner = 0; owner < blocks(c); ++owner)
            for (uint32_t t = 0; t < threads(c); ++t)
                for (int r = 0; r < wht_cluster_rounds(c); ++r) {
                    const uint32_t word = wht_cluster_take(c, t, static_cast<uint32_t>(r));
                    const uint32_t element = wht_cluster_element(c, owner, word);
                    for (uint32_t i = 0; i < 1u << c.log_take; ++i) {
                        same = same && kept.at(owner).at(word + i) == element + i + 1;
                        ++taken.at(element + i);
                    }
                }
        CHECK(same);
        bool all = true;
        for (const int count : taken) all = all && count == 1;
        CHECK(all);
    });
}

TEST_CASE("wht.cluster: no bank conflicts, here and in the other blocks") {
    for_each_config([](const wht_cluster_config &c) {
        const auto bytes = static_cast<uint32_t>(word_bytes(c));
        int sends = 0, takes = 0;
        std::set<uint32_t> first_owners;
        for (uint32_t warp = 0; warp < threads(c) / 32; ++warp) {
            first_owners.insert(wht_cluster_owner(c, warp * 32, 0));
            for (uint32_t u = 0; u < units(c); ++u) {
                std::vector<uint32_t> at;
                std::set<uint32_t> owners;
                for (uint32_t t = warp * 32; t < warp * 32 + 32; ++t) {
                    at.push_back(wht_cluster_word(c, 0, t, u) * bytes);
                    owners.insert(wht_cluster_owner(c, t, u));
                }
                CHECK(owners.size() == 1);
                sends = std::max(sends, passes(at, 16));
            }
            for (int r = 0; r < wht_cluster_rounds(c); ++r) {
                std::vector<uint32_t> at;
                for (uint32_t t = warp * 32; t < warp * 32 + 32; ++t)
                    at.push_back(wht_cluster_take(c, t, static_cast<uint32_t>(r)) * bytes);
                takes = std::max(takes, passes(at, bytes << c.log_take));
            }
        }
        CHECK(sends == 4); // 512 bytes
        CHECK(takes == std::max(1, static_cast<int>(bytes << c.log_take) / 4));
        // warps that run side by side do not all write to one block
        CHECK(first_owners.size() == std::min(threads(c) / 32, blocks(c)));
    });
}

// Warp-wide accesses of memory touch the fewest sectors.
TEST_CASE("wht.cluster: global accesses") {
    for_each_config([](const wht_cluster_config &c) {
        const int size = scalar_bytes(c.x);
        const int load = size << c.tile.log_vec_x, store = size << c.log_take;
        CHECK(load >= 2 * size);
        CHECK(store >= 8);
        int worst_load = 0, worst_store = 0;
        for (uint32_t warp = 0; warp < threads(c) / 32; ++warp) {
            for (uint32_t j = 0; j < 1u << c.tile.log_items; j += 1u << c.tile.log_vec_x) {
                std::vector<int64_t> at;
                for (uint32_t t = warp * 32; t < warp * 32 + 32; ++t)
                    at.push_back(int64_t(tile_element(c.tile, 0, t, j)) * size);
                worst_load = std::max(worst_load, plait_test::sectors(at, load));
            }
            for (uint32_t owner = 0; owner < blocks(c); ++owner)
                for (int r = 0; r < wht_cluster_rounds(c); ++r) {
                    std::vector<int64_t> at;
                    for (uint32_t t = warp * 32; t < warp * 32 + 32; ++t)
                        at.push_back(
                            int64_t(wht_cluster_element(
                                c, owner, wht_cluster_take(c, t, static_cast<uint32_t>(r)))) *
                            size);
                    worst_store = std::max(worst_store, plait_test::sectors(at, store));
                }
        }
        CHECK(worst_load == load);
        CHECK(worst_store == store);
    });
}

TEST_CASE("wht.cluster: launch data") {
    CHECK(sizeof(wht_cluster_args) <= 256);
    for_each_config([](const wht_cluster_config &c) {
        wht_launch launch;
        REQUIRE(wht_cluster_launch(c.x, c.log_n, &launch));
        CHECK(launch.threads >= 32);
        CHECK(launch.threads * launch.min_blocks_per_sm == 512); // of 128 registers
        CHECK(launch.min_blocks_per_sm >= 1);
        CHECK(launch.smem_bytes % 16 == 0);
        CHECK((launch.smem_bytes + 1024) * launch.min_blocks_per_sm <= 228 * 1024);
        CHECK(launch.cluster >= 2);
        CHECK(launch.cluster <= 16);
        CHECK(wht_cluster_grid(launch, 1) == launch.cluster);
        CHECK(wht_cluster_grid(launch, 5) == 5 * launch.cluster);
        const int most = wht_cluster_grid(launch, int64_t(1) << 62);
        CHECK(most % launch.cluster == 0);
        CHECK(most > INT32_MAX - 16);
    });
    wht_launch launch;
    CHECK_FALSE(wht_cluster_launch(scalar::f32, 15, &launch));
    CHECK_FALSE(wht_cluster_launch(scalar::i32, 16, &launch));
}
