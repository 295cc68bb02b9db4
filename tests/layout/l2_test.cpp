// wht.l2: every instantiated size and type; tickets and slots at many numbers of rows.
#include "lib/cuda/wht/l2_layout.h"
#include "tests/layout/tile_checks.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <set>

using namespace plait::impl;

namespace {

constexpr scalar types[] = {scalar::f32, scalar::f64, scalar::f16, scalar::bf16};

template <class F> void for_each_config(F check) {
    int count = 0;
    for (const scalar x : types)
        for (int log_n = 0; log_n < 30; ++log_n) {
            if (!wht_l2_exists(x, log_n)) continue;
            ++count;
            INFO(wht_variant(x, x, ".n", log_n, true).text);
            check(wht_l2_config_of(x, log_n));
        }
    CHECK(count == 7 + 6 + 5 + 5);
}

/// The tile as the shared accesses see it: a chunk is one element, a word has 16 bytes.
tile_layout of_chunks(tile_layout t) {
    const int v = t.log_vec_x;
    CHECK(t.pad_words[0] % (1 << v) == 0);
    t.log_tile -= v;
    t.log_items -= v;
    t.pad_shift[0] -= v;
    t.pad_words[0] >>= v;
    for (int p = 0; p < t.phases; ++p) {
        CHECK((t.phase[p].regs & bit_range(0, v)) == bit_range(0, v));
        t.phase[p].regs >>= v;
    }
    return t;
}

/// Eight lanes make one pass over the banks with 16 bytes each.
bool no_conflicts(const tile_layout &chunks, int phase) {
    for (uint32_t first = 0; first < static_cast<uint32_t>(tile_threads(chunks)); first += 8)
        for (uint32_t item = 0; item < 1u << chunks.log_items; ++item) {
            std::set<uint32_t> banks;
            for (uint32_t lane = 0; lane < 8; ++lane)
                banks.insert(tile_word(chunks, tile_element(chunks, phase, first + lane, item)) %
                             8);
            if (banks.size() != 8) return false;
        }
    return true;
}

/// 32-byte sectors of the worst access of a warp, beyond the fewest. `bytes` of one element.
int extra_sectors(const wht_l2_config &c, int pass, int phase, int bytes) {
    const tile_layout &t = c.pass[pass].tile;
    const int access = bytes << t.log_vec_x;
    int worst = 0;
    for (int warp = 0; warp < tile_threads(t) / 32; ++warp)
        for (uint32_t item = 0; item < 1u << t.log_items; item += 1u << t.log_vec_x) {
            std::vector<int64_t> places;
            for (int lane = 0; lane < 32; ++lane) {
                const auto thread = static_cast<uint32_t>(warp * 32 + lane);
                places.push_back(bytes *
                                 wht_l2_offset(c, pass, tile_element(t, phase, thread, item)));
            }
            const int extra = plait_test::sectors(places, access) - access;
            worst = worst < extra ? extra : worst;
        }
    return worst;
}

} // namespace

TEST_CASE("wht.l2: phases, butterflies, exchanges") {
    for_each_config([](const wht_l2_config &c) {
        CHECK(c.log_tile + c.log_m == c.log_n);
        for (int pass = 0; pass < 2; ++pass) {
            INFO("pass " << pass);
            const tile_layout &t = c.pass[pass].tile;
            plait_test::check_phases_are_bijections(t);
            plait_test::check_butterflies(t, pass == 0
                                                 ? bit_range(0, c.log_tile)
                                                 : bit_range(c.log_tile - c.log_m, t.log_tile));
            const tile_layout chunks = of_chunks(t);
            plait_test::check_phases_are_bijections(chunks);
            for (int p = 0; p < t.phases; ++p) CHECK(no_conflicts(chunks, p));
            CHECK(tile_words(t) <= tile_words(c.pass[0].tile));
            std::set<uint32_t> words;
            for (uint32_t e = 0; e < 1u << chunks.log_tile; ++e) words.insert(tile_word(chunks, e));
            CHECK(words.size() == size_t{1} << chunks.log_tile);
            if (t.phases > 1)
                CHECK((static_cast<int>(*words.rbegin() + 1) << t.log_vec_x) == tile_words(t));
        }
        // phase 2 of pass 1 reads what its own warp wrote
        const tile_layout &t = c.pass[0].tile;
        std::vector<uint32_t> owner(size_t{1} << t.log_tile);
        bool stays = true;
        for (const int phase : {1, 2})
            for (uint32_t thread = 0; thread < static_cast<uint32_t>(tile_threads(t)); ++thread)
                for (uint32_t item = 0; item < 1u << t.log_items; ++item) {
                    uint32_t &warp = owner[tile_element(t, phase, thread, item)];
                    if (phase == 1) warp = thread / 32;
                    stays = stays && warp == thread / 32;
                }
        CHECK(stays);
        CHECK(t.phase[1].exchange == tile_exchange::block);
        CHECK(t.phase[2].exchange == tile_exchange::warp);
        CHECK(c.pass[1].tile.phase[1].exchange == tile_exchange::block);
    });
}

TEST_CASE("wht.l2: accesses are whole sectors, tiles cover a row once in both passes") {
    for_each_config([](const wht_l2_config &c) {
        const int ends = scalar_bytes(c.x), middle = scalar_bytes(c.mid);
        CHECK(extra_sectors(c, 0, 0, ends) == 0);
        CHECK(extra_sectors(c, 0, c.pass[0].tile.phases - 1, middle) == 0);
        CHECK(extra_sectors(c, 1, 0, middle) == 0);
        CHECK(extra_sectors(c, 1, c.pass[1].tile.phases - 1, ends) == 0);
        CHECK((middle << c.pass[1].log_run) >= 128);
        for (int pass = 0; pass < 2; ++pass) {
            std::vector<bool> seen(size_t{1} << c.log_n, false);
            size_t count = 0;
            for (int32_t tile = 0; tile < 1 << c.log_m; ++tile)
                for (uint32_t e = 0; e < 1u << c.log_tile; ++e) {
                    const auto at = static_cast<size_t>(wht_l2_tile_offset(c, pass, tile) +
                                                        wht_l2_offset(c, pass, e));
                    if (at >= seen.size()) continue;
                    count += seen[at] ? 0 : 1;
                    seen[at] = true;
                }
            CHECK(count == seen.size());
        }
    });
}

TEST_CASE("wht.l2: every tile has one ticket, and waits for smaller ones only") {
    for (const int log_m : {2, 5, 8})
        for (const int64_t resident : {1, 3, 132, 660})
            for (const int64_t rows : {1, 2, 3, 5, 8, 40}) {
                INFO("log_m " << log_m << " resident " << resident << " rows " << rows);
                wht_l2_config c{};
                c.log_m = log_m;
                const auto tiles = static_cast<int32_t>(rows << log_m);
                const auto lead = static_cast<int32_t>(wht_l2_lead(c, rows, resident));
                const int64_t slots = wht_l2_slots(c, rows, resident);
                CHECK(slots >= 1);
                CHECK(slots <= rows);
                std::vector<int32_t> ticket_of[2];
                for (auto &of : ticket_of) of.assign(static_cast<size_t>(tiles), -1);
                for (int32_t ticket = 0; ticket < 2 * tiles; ++ticket) {
                    const wht_l2_job j = wht_l2_job_of(ticket, lead, tiles);
                    REQUIRE((j.tile >= 0 && j.tile < tiles));
                    int32_t &of = ticket_of[j.pass][static_cast<size_t>(j.tile)];
                    CHECK(of == -1);
                    of = ticket;
                }
                bool after = true, free = true;
                for (int32_t tile = 0; tile < tiles; ++tile) {
                    const int32_t row = tile >> log_m;
                    const auto last = static_cast<size_t>(((row + 1) << log_m) - 1);
                    after = after && ticket_of[0][last] < ticket_of[1][static_cast<size_t>(tile)];
                    if (row + slots >= rows) continue;
                    const auto first = static_cast<size_t>((row + slots) << log_m);
                    free = free && ticket_of[1][static_cast<size_t>(tile)] < ticket_of[0][first];
                }
                CHECK(after);
                CHECK(free);
            }
}

TEST_CASE("wht.l2: launch data") {
    CHECK(sizeof(wht_l2_args) <= 256);
    for_each_config([](const wht_l2_config &c) {
        wht_launch l{};
        REQUIRE(wht_l2_launch(c.x, c.x, c.log_n, &l));
        CHECK(l.threads == (1 << (c.log_tile - c.pass[0].tile.log_items)) + 32);
        CHECK((l.smem_bytes + 1024) * l.min_blocks_per_sm <= 228 * 1024);
        CHECK(l.smem_bytes <= 99 * 1024); // of a block on 8.6, 8.9 and 12.0
        CHECK(l.threads * l.min_blocks_per_sm * 96 <= 65536);
        CHECK(wht_l2_rows_fit(c, int64_t{1} << (28 - c.log_m)));
        CHECK_FALSE(wht_l2_rows_fit(c, int64_t{1} << (30 - c.log_m)));
    });
    wht_launch l{};
    CHECK_FALSE(wht_l2_launch(scalar::f16, scalar::f32, 20, &l));
    CHECK_FALSE(wht_l2_launch(scalar::f32, scalar::f32, 15, &l));
    CHECK_FALSE(wht_l2_launch(scalar::i32, scalar::i32, 20, &l));
}
