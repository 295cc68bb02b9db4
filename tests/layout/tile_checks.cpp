#include "tests/layout/tile_checks.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <set>

namespace plait_test {

using namespace plait::impl;

static uint32_t threads_of(const tile_layout &t) { return 1u << (t.log_tile - t.log_items); }
static uint32_t items_of(const tile_layout &t) { return 1u << t.log_items; }

void check_phases_are_bijections(const tile_layout &t) {
    for (int p = 0; p < t.phases; ++p) {
        INFO("phase " << p);
        std::vector<int> seen(size_t(1) << t.log_tile, 0);
        bool inside = true, additive = true;
        for (uint32_t thread = 0; thread < threads_of(t); ++thread) {
            for (uint32_t item = 0; item < items_of(t); ++item) {
                const uint32_t e = tile_element(t, p, thread, item);
                if (e >= seen.size()) {
                    inside = false;
                    continue;
                }
                ++seen[e];
                // kernels add an item's share to a thread's
                additive =
                    additive && tile_thread_part(t, p, thread) + tile_item_part(t, p, item) == e;
            }
        }
        bool once = true;
        for (const int count : seen) once = once && count == 1;
        CHECK(inside);
        CHECK(additive);
        CHECK(once);
    }
}

void check_butterflies(const tile_layout &t, uint32_t transformed) {
    uint32_t done = 0;
    for (int p = 0; p < t.phases; ++p) {
        const tile_phase &phase = t.phase[p];
        INFO("phase " << p);
        CHECK((phase.reg_stages & phase.lane_stages) == 0);
        CHECK(((phase.reg_stages | phase.lane_stages) & done) == 0);
        done |= phase.reg_stages | phase.lane_stages;
        for (int bit = 0; bit < t.log_tile; ++bit) {
            const uint32_t mask = 1u << bit;
            const bool lanes = (phase.lane_stages & mask) != 0;
            if (!lanes && (phase.reg_stages & mask) == 0) continue;
            // the ranks that the kernel shuffles by, or indexes registers by
            const int rank = bit_rank(lanes ? tile_thread_bits(t, p) : t.phase[p].regs, bit);
            bool partners = true;
            for (uint32_t thread = 0; thread < threads_of(t); ++thread) {
                for (uint32_t item = 0; item < items_of(t); ++item) {
                    const uint32_t other = lanes ? tile_element(t, p, thread ^ 1u << rank, item)
                                                 : tile_element(t, p, thread, item ^ 1u << rank);
                    partners = partners && other == (tile_element(t, p, thread, item) ^ mask);
                }
            }
            INFO("bit " << bit);
            CHECK(partners);
            if (lanes) CHECK(rank < 5);
        }
    }
    CHECK(done == transformed);
}

/// Passes over 32 banks of 4 bytes; 8-byte words go 16 lanes at a time.
static int passes(const tile_layout &t, int phase, uint32_t warp, uint32_t item, int word_bytes) {
    const int group = word_bytes == 8 ? 16 : 32;
    int total = 0;
    for (int first = 0; first < 32; first += group) {
        std::vector<std::set<uint32_t>> words(static_cast<size_t>(group));
        for (int lane = first; lane < first + group; ++lane) {
            const uint32_t thread = warp * 32 + static_cast<uint32_t>(lane);
            const uint32_t word = tile_word(t, tile_thread_part(t, phase, thread)) +
                                  tile_word(t, tile_item_part(t, phase, item));
            words[word % static_cast<uint32_t>(group)].insert(word);
        }
        size_t most = 0;
        for (const auto &bank : words) most = most < bank.size() ? bank.size() : most;
        total += static_cast<int>(most);
    }
    return total;
}

void check_exchanges(const tile_layout &t, int word_bytes) {
    if (t.phases == 1) {
        CHECK(tile_words(t) == 0);
        return;
    }
    std::vector<bool> used(static_cast<size_t>(tile_words(t)), false);
    bool inside = true, distinct = true;
    for (uint32_t e = 0; e < 1u << t.log_tile; ++e) {
        const uint32_t word = tile_word(t, e);
        if (word >= used.size()) {
            inside = false;
            continue;
        }
        distinct = distinct && !used[word];
        used[word] = true;
    }
    CHECK(inside);
    CHECK(distinct);

    for (int p = 0; p < t.phases; ++p) {
        INFO("phase " << p);
        int worst = 0;
        bool sums = true;
        for (uint32_t warp = 0; warp < threads_of(t) / 32; ++warp) {
            for (uint32_t item = 0; item < items_of(t); ++item) {
                const int n = passes(t, p, warp, item, word_bytes);
                worst = worst < n ? n : worst;
                const uint32_t a = tile_thread_part(t, p, warp * 32);
                const uint32_t b = tile_item_part(t, p, item);
                sums = sums && tile_word(t, a) + tile_word(t, b) == tile_word(t, a | b);
            }
        }
        CHECK(worst == word_bytes / 4);
        CHECK(sums);
        if (p == 0) {
            CHECK(t.phase[p].exchange == tile_exchange::none);
            continue;
        }
        if (t.phase[p].exchange == tile_exchange::warp) {
            std::vector<uint32_t> owner(size_t(1) << t.log_tile);
            for (uint32_t thread = 0; thread < threads_of(t); ++thread) {
                for (uint32_t item = 0; item < items_of(t); ++item) {
                    owner[tile_element(t, p - 1, thread, item)] = thread / 32;
                }
            }
            bool stays = true;
            for (uint32_t thread = 0; thread < threads_of(t); ++thread) {
                for (uint32_t item = 0; item < items_of(t); ++item) {
                    stays = stays && owner[tile_element(t, p, thread, item)] == thread / 32;
                }
            }
            CHECK(stays);
        } else {
            CHECK(t.phase[p].exchange == tile_exchange::block);
        }
    }
}

int sectors(const std::vector<int64_t> &addresses, int bytes) {
    std::set<int64_t> touched;
    bool aligned = true;
    for (const int64_t address : addresses) {
        aligned = aligned && address % bytes == 0;
        for (int64_t at = address; at < address + bytes; at += bytes < 32 ? bytes : 32) {
            touched.insert(at / 32);
        }
    }
    CHECK(aligned);
    return static_cast<int>(touched.size());
}

std::vector<int> stage_order(const plait::impl::tile_layout &t, int log_rounds, bool parked) {
    std::vector<int> order;
    if (log_rounds == 1 && !t.rounds_last) order.push_back(t.log_tile);
    for (int p = 0; p < t.phases; ++p)
        for (int i = 0; i < t.log_tile; ++i) {
            const int bit = plait::impl::tile_stage_bit(t, i);
            if ((t.phase[p].reg_stages | t.phase[p].lane_stages) >> bit & 1u) order.push_back(bit);
        }
    if (log_rounds == 1 && t.rounds_last) order.push_back(t.log_tile);
    if (parked) order.push_back(t.log_tile + log_rounds);
    return order;
}

} // namespace plait_test
