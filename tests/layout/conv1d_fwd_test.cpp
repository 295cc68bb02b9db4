// conv1d forward and update: who computes what, and where the accesses lie.
#include "lib/cuda/conv1d/fwd_btc_layout.h"
#include "lib/cuda/conv1d/fwd_masks_layout.h"
#include "lib/cuda/conv1d/state_layout.h"
#include "lib/cuda/conv1d/update_layout.h"
#include "tests/layout/count_map.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <vector>

using namespace plait::impl;
using plait_test::count_map;

namespace {

constexpr scalar types[] = {scalar::f32, scalar::f16, scalar::bf16};

} // namespace

TEST_CASE("conv1d: quotients by a constant") {
    const int64_t most = INT32_MAX;
    bool right = true;
    const auto check = [&](int64_t n, int64_t d) {
        if (n < 0 || n > most) return;
        const conv1d_divisor by = conv1d_divisor_of(d);
        right = right && conv1d_quotient(static_cast<uint32_t>(n), by) == n / d;
    };
    std::vector<int64_t> divisors = {most, most - 1, most / 2, most / 2 + 1, most / 3, 1000003};
    for (int64_t d = 1; d < 3000; ++d) divisors.push_back(d);
    for (int bit = 1; bit < 31; ++bit)
        for (const int64_t near : {-1, 0, 1}) divisors.push_back((int64_t{1} << bit) + near);
    for (const int64_t d : divisors) {
        for (int64_t n = 0; n < 40; ++n) check(n, d);
        for (int64_t q = 1; q * d <= most; q = q * 3 + 1)
            for (const int64_t near : {-1, 0, 1}) check(q * d + near, d);
        for (const int64_t n : {most, most - 1, most / d * d, most / d * d - 1}) check(n, d);
    }
    CHECK(right);
}

TEST_CASE("conv1d: every item of every line has one thread") {
    for (const int64_t threads : {64, 128})
        for (const int64_t items : {1, 2, 3, 7, 63, 64, 65, 127, 128, 129, 500, 1000})
            for (const int64_t lines : {1, 2, 5, 129}) {
                CAPTURE(items);
                CAPTURE(lines);
                const conv1d_divisor by = conv1d_divisor_of(items);
                const int64_t blocks = conv1d_ceil_div(items * lines, threads);
                count_map map(items * lines);
                bool ordered = true;
                for (int64_t b = 0; b < blocks; ++b)
                    for (int64_t t = 0; t < threads; ++t) {
                        const conv1d_place at =
                            conv1d_place_of(by, static_cast<uint32_t>(b), static_cast<uint32_t>(t),
                                            static_cast<uint32_t>(threads));
                        // Threads side by side take items side by side.
                        ordered = ordered && at.line * items + at.item == b * threads + t;
                        if (at.line < lines) map.mark(at.line * items + at.item);
                    }
                CHECK(map.each_once());
                CHECK(ordered);
            }
    // The largest numbers that the planner lets through.
    for (const int64_t items : {conv1d_bct_most_lanes, conv1d_btc_most_groups}) {
        CHECK(items * conv1d_bct_threads <= int64_t{1} << 31);
        const conv1d_divisor by = conv1d_divisor_of(items);
        for (const int64_t block : {int64_t{0}, items / 128, conv1d_most_blocks - 1}) {
            const int64_t n = block * 128 + 127;
            const conv1d_place at = conv1d_place_of(by, static_cast<uint32_t>(block), 127, 128);
            CHECK(at.line == n / items);
            CHECK(at.item == n % items);
        }
    }
    CHECK(conv1d_update_most_groups * conv1d_update_threads <= int64_t{1} << 31);
}

TEST_CASE("conv1d.fwd_bct_tiled: vectors cover a row once, from any address") {
    for (const scalar s : types)
        for (const int64_t rows : {1, 1 << 20})
            for (const int64_t length :
                 {1, 2, 7, 8, 15, 16, 17, 31, 33, 255, 256, 257, 511, 2047, 4099, 20000})
                for (int offset = 0; offset < conv1d_vector(s); ++offset) {
                    CAPTURE(offset);
                    CAPTURE(length);
                    const int v = conv1d_vector(s);
                    const conv1d_bct_cut cut = conv1d_bct_cut_of(s, rows, length, offset == 0);
                    const uint32_t lanes = static_cast<uint32_t>(cut.lanes);
                    count_map map(length);
                    bool aligned = true, inside = true, next = true;
                    for (uint32_t tile = 0; tile < static_cast<uint32_t>(cut.tiles); ++tile)
                        for (uint32_t lane = 0; lane < lanes; ++lane) {
                            const int32_t first =
                                conv1d_bct_first(s, tile, lanes, lane, cut.vectors, offset);
                            inside = inside && first > -v;
                            // Threads side by side access vectors side by side.
                            next = next && (lane + 1 == lanes ||
                                            conv1d_bct_first(s, tile, lanes, lane + 1, cut.vectors,
                                                             offset) == first + v);
                            for (int i = 0; i < cut.vectors; ++i) {
                                const int32_t t = first + i * cut.lanes * v;
                                aligned = aligned && (offset + t) % v == 0;
                                for (int32_t j = t; j < t + v; ++j)
                                    if (j >= 0 && j < length) map.mark(j);
                            }
                        }
                    CHECK(map.each_once());
                    CHECK(aligned);
                    CHECK(inside);
                    CHECK(next);
                    // No tile has a lane more than its share.
                    const int64_t all = cut.tiles * cut.lanes * cut.vectors;
                    const int64_t vectors = conv1d_ceil_div(length + v - 1, v);
                    CHECK(all < vectors + cut.vectors * cut.tiles);
                    CHECK(cut.vectors % conv1d_bct_batch(s, 4, false) == 0);
                    CHECK(cut.vectors <= 2 * conv1d_bct_vectors);
                }
    for (const int64_t items : {1, 2, 3, 17, 65, 1000}) {
        const conv1d_divisor by = conv1d_divisor_of(items);
        for (const uint32_t block : {0u, 1u, 64u, 70000u})
            for (const uint32_t thread : {0u, 1u, 127u}) {
                const conv1d_place wide = conv1d_place_of(by, block, thread, conv1d_bct_threads);
                const conv1d_bct_place at = conv1d_bct_place_of(by, block, thread);
                CHECK(at.line == wide.line);
                CHECK(at.item == wide.item);
            }
    }
    // The first token of a tile behind the longest row, and fwd_bct, which looks a chunk ahead.
    CHECK(conv1d_fwd_most_length + 16 * 128 * 8 < INT32_MAX);
}

TEST_CASE("conv1d.fwd_bct_tiled: odd rows load inside the tensor") {
    for (const scalar s : types)
        for (const int halo : {4, 8, 16, 32})
            for (const int64_t rows : {1, 2, 3, 50})
                for (const int32_t length : {1, 3, 4, 7, 8, 9, 31, 100, 511})
                    for (const bool packed : {false, true})
                        for (int64_t row = 0; row < rows; ++row) {
                            CAPTURE(length);
                            const int v = conv1d_vector(s);
                            const conv1d_bct_range r =
                                conv1d_bct_odd_range(s, halo, row, rows, length, true, packed);
                            const int64_t from = packed ? -row * length : 0;
                            const int64_t to = packed ? (rows - row) * length : length;
                            bool right = true;
                            for (int32_t t = 1 - v; t < length; ++t) // vectors of the row
                                right = right && (t - halo >= from && t + v <= to) ==
                                                     (t >= r.least && t <= r.most);
                            CHECK(right);
                            const conv1d_bct_range none =
                                conv1d_bct_odd_range(s, halo, row, rows, length, false, packed);
                            CHECK(none.least > none.most);
                        }
}

TEST_CASE("conv1d.fwd_bct_fix: pieces cover tokens and channels once") {
    for (const bool everywhere : {false, true})
        for (const int64_t batch : {1, 3})
            for (const int64_t channels : {1, 127, 128, 129, 300})
                for (const int64_t length : {1, 511, 512, 513, 2000}) {
                    conv1d_fwd_args a{};
                    a.x_type = scalar::bf16, a.batch = batch;
                    a.channels = channels, a.length = length;
                    const conv1d_launch l = conv1d_fwd_bct_fix_launch(a, everywhere);
                    CHECK(std::strcmp(l.variant, "bf16") == 0);
                    CHECK(l.grid == a.blocks);
                    // Beginnings of rows alone: one piece of time.
                    const int64_t covered =
                        everywhere ? length : std::min<int64_t>(length, conv1d_fix_tokens);
                    count_map map(batch * channels * covered);
                    for (uint32_t block = 0; block < a.blocks; ++block) {
                        const conv1d_fix_place at = conv1d_fix_place_of(a, block);
                        for (uint32_t c = 0; c < at.channels; ++c)
                            for (int t = 0; t < conv1d_fix_tokens; ++t)
                                if (at.token + t < length)
                                    map.mark((at.row * channels + at.channel + c) * covered +
                                             at.token + t);
                    }
                    CHECK(map.each_once());
                }
    CHECK(conv1d_fix_tokens >= 31); // what the widest taps of a row's first tokens lack
    CHECK(conv1d_fix_threads % 32 == 0);
}

TEST_CASE("conv1d.fwd_masks: fields of a row, and words around it") {
    for (const int taps : {4, 8, 16, 32})
        for (const int32_t length : {1, 7, 8, 9, 100, 1023}) {
            CAPTURE(taps);
            CAPTURE(length);
            const int64_t words = conv1d_masks_words(length, taps);
            count_map bits(words * 32);
            for (int32_t t = 0; t < length; ++t) {
                const conv1d_mask_place at = conv1d_mask_place_of(t, taps);
                CHECK(at.bit + taps <= 32);
                for (int d = 0; d < taps; ++d) bits.mark(at.word * int64_t{32} + at.bit + d);
            }
            CHECK(!bits.outside);
            // What the kernel calls token t of a word.
            const int per_word = 32 / taps;
            const conv1d_mask_place first = conv1d_mask_place_of(0, taps);
            CHECK(first.word == conv1d_masks_margin);
            CHECK(first.bit == 0);
            for (int64_t w = 0; w < words; ++w)
                for (int j = 0; j < per_word; ++j) {
                    const int64_t t = (w - conv1d_masks_margin) * per_word + j;
                    const int64_t bit = w * 32 + j * taps;
                    CHECK(bits.seen[static_cast<size_t>(bit)] == (t >= 0 && t < length ? 1 : 0));
                }
            // Vectors that begin in front of the row or end behind it, and the word behind theirs.
            for (const int v : {4, 8}) {
                CHECK(conv1d_mask_place_of(1 - v, taps).word >= 0);
                const conv1d_mask_place last = conv1d_mask_place_of(length - 1, taps);
                CHECK(last.word + (taps == 32 ? v - 1 : std::max(1, v * taps / 32)) < words);
            }
            CHECK(conv1d_masks_bytes(3, length, taps) == 3 * words * 4);
        }
    conv1d_fwd_args a{};
    a.batch = 2, a.length = 100;
    CHECK(conv1d_fwd_masks_launch(a, 8).grid == 3); // 2 rows of 25 + 16 words of 4 tokens
    CHECK(a.mask_taps == 8);
}

TEST_CASE("conv1d.fwd_btc: strips cover the tokens in whole waves") {
    for (const int longest : {16, 32, 64, 256, 512, 1024})
        for (const int64_t rows : {1, 8, 64})
            for (const int64_t length : {1, 15, 16, 17, 256, 2047, 4096, 1048576})
                for (const int64_t groups : {1, 8, 512, 2048})
                    for (const int64_t threads : {128, 33792, 50688, 118272}) {
                        CAPTURE(longest);
                        CAPTURE(rows);
                        CAPTURE(length);
                        CAPTURE(groups);
                        CAPTURE(threads);
                        const int32_t strip =
                            conv1d_btc_strip(longest, rows, length, groups, threads);
                        CHECK(strip >= conv1d_btc_shortest_strip);
                        CHECK(strip <= longest);
                        CHECK(strip % conv1d_btc_shortest_strip == 0);
                        const int64_t strips = conv1d_ceil_div(length, strip);
                        CHECK((strips - 1) * strip < length);
                        CHECK(strips * strip >= length);
                        // No more waves than strips of the largest length take.
                        const int64_t lines = rows * groups;
                        const int64_t waves =
                            conv1d_ceil_div(conv1d_ceil_div(lines * length, threads), longest);
                        if (waves < conv1d_btc_many_waves && strip < longest && strips > 1)
                            CHECK(lines * strips <= waves * threads);
                    }
    for (const scalar s : types)
        for (const int taps : {4, 8, 16, 32})
            for (const int vector : {1, 4})
                CHECK(conv1d_btc_longest_strip(s, taps, vector) % conv1d_btc_shortest_strip == 0);
    for (const int taps : {4, 8, 16, 32}) {
        CHECK(conv1d_btc_taps(taps) == taps);
        CHECK(conv1d_btc_taps(taps + 1) == (taps == 32 ? 0 : 2 * taps));
        CHECK(conv1d_btc_group(taps) % taps == 0);
        CHECK(conv1d_btc_group(taps) % conv1d_btc_part(taps) == 0);
    }
}

TEST_CASE("conv1d.fwd_btc: threads have each channel once") {
    for (const scalar s : types) {
        CHECK(conv1d_btc_vector(s, 4) * scalar_bytes(s) == (s == scalar::f32 ? 16 : 8));
        CHECK(conv1d_btc_vector(s, 8) * scalar_bytes(s) == (s == scalar::f32 ? 16 : 8));
        CHECK(conv1d_btc_vector(s, 16) * scalar_bytes(s) == (s == scalar::f32 ? 8 : 4));
        CHECK(conv1d_btc_vector(s, 32) == 1);
        CHECK(conv1d_btc_tile(4) % 4 == 0); // the window of a token is known at compile time
        for (const int taps : {4, 8, 16}) {
            // Cells of all threads, tokens and slots, one after the other; all blocks of an SM.
            const int bytes = conv1d_btc_slots(s, taps) * conv1d_btc_slot(s, taps);
            CHECK(conv1d_btc_slot(s, taps) ==
                  taps * conv1d_btc_threads * conv1d_btc_vector(s, taps) * scalar_bytes(s));
            CHECK(conv1d_btc_slots(s, taps) >= 2);
            CHECK(bytes <= 48 * 1024);
            for (const bool full : {false, true}) {
                const int blocks =
                    conv1d_btc_blocks_per_sm(s, taps, conv1d_btc_vector(s, taps), full);
                CHECK(blocks * (bytes + 1024) <= 227 * 1024);
                // What is on its way into an SM.
                CHECK(blocks * (bytes - conv1d_btc_slot(s, taps)) >= 48 * 1024);
            }
        }
    }
    for (const int taps : {4, 8, 16, 32})
        for (const int64_t channels : {1, 3, 31, 32, 33, 63, 64, 65, 97, 2001, 4093}) {
            CAPTURE(taps);
            CAPTURE(channels);
            const int n = conv1d_btc_strided(taps);
            const int64_t groups = conv1d_btc_groups(channels, taps, 1);
            count_map map(channels);
            for (int64_t item = 0; item < groups; ++item)
                for (int i = 0; i < n; ++i) {
                    const int64_t first =
                        conv1d_btc_strided_channel(static_cast<uint32_t>(item), n);
                    const int64_t channel = first + i * conv1d_btc_stride;
                    if (channel < channels) map.mark(channel);
                    // Threads side by side access elements side by side.
                    if (item % 32 != 31)
                        CHECK(conv1d_btc_strided_channel(static_cast<uint32_t>(item) + 1, n) ==
                              first + 1);
                }
            CHECK(map.each_once());
        }
}

TEST_CASE("conv1d.fwd_btc: words of pairs cover the channels once") {
    for (const bool odd : {false, true})
        for (const int channels :
             {48, 49, 61, 62, 63, 64, 123, 124, 125, 126, 127, 128, 2001, 4093})
            for (const int second : {0, 1}) {
                if (second == 1 && !odd) continue;
                CAPTURE(channels);
                count_map map(channels);
                const int64_t groups = conv1d_btc_pairs_groups(channels, odd);
                CHECK(groups % 32 == 0);
                for (int64_t item = 0; item < groups; ++item)
                    for (int r = 0; r < conv1d_btc_runs; ++r) {
                        const conv1d_btc_pair at =
                            conv1d_btc_pair_of(static_cast<uint32_t>(item), odd);
                        CHECK(at.lane == item % 32);
                        const conv1d_btc_words w = conv1d_btc_words_of(at, r, channels, odd);
                        const int c = at.channel + r * conv1d_btc_run - second;
                        const bool full = w.full >> second & 1u, half = w.half >> second & 1u;
                        CHECK(!(full && half));
                        if (full) map.mark(c), map.mark(c + 1);
                        if (half) map.mark(second == 1 && at.lane == 0 && r == 0 ? c + 1 : c);
                    }
                CHECK(map.each_once());
            }
    CHECK(conv1d_btc_pairs_tile % 4 == 0);
}

TEST_CASE("conv1d.fwd_any and conv1d.state: every output, every channel of a state once") {
    conv1d_fwd_args a{};
    a.batch = 3, a.channels = 5, a.length = 7;
    for (const bool inner : {false, true}) {
        a.channels_inner = inner;
        count_map map(105);
        for (int64_t i = 0; i < 105; ++i) {
            const conv1d_fwd_output o = conv1d_fwd_output_of(a, i);
            map.mark((o.row * 5 + o.channel) * 7 + o.time);
            const conv1d_fwd_output next = conv1d_fwd_output_of(a, i + 1);
            if (inner && o.channel < 4) CHECK(next.channel == o.channel + 1);
            if (!inner && o.time < 6) CHECK(next.time == o.time + 1);
        }
        CHECK(map.each_once());
    }
    conv1d_state_args s{};
    s.channels = 5;
    count_map map(15);
    for (int64_t i = 0; i < 15; ++i) {
        const conv1d_state_place at = conv1d_state_place_of(s, i);
        map.mark(at.sequence * 5 + at.channel);
    }
    CHECK(map.each_once());
}

TEST_CASE("conv1d.update: history of a thread's channels") {
    for (const auto how : {conv1d_update_state::rows, conv1d_update_state::lines})
        for (const scalar s : types)
            for (const bool few : {true, false})
                for (int width = 2; width <= 4; ++width) {
                    const int v = conv1d_update_vector(s, few);
                    CHECK(v * scalar_bytes(s) == (few ? 4 : s == scalar::f32 ? 16 : 8));
                    count_map map(v * (width - 1));
                    for (int channel = 0; channel < v; ++channel)
                        for (int d = 1; d < width; ++d) {
                            const int e = conv1d_update_element(how, v, width, channel, d);
                            map.mark(e);
                            // What a packed state holds at this element of the thread's accesses.
                            const int entry = width - 1 - d;
                            if (how == conv1d_update_state::rows) {
                                CHECK(e / v == entry);
                                CHECK(e % v == channel);
                            } else {
                                CHECK(e == channel * (width - 1) + entry);
                            }
                        }
                    CHECK(map.each_once());
                }
}

TEST_CASE("conv1d.update: every row and channel has one thread, and sets of rows are even") {
    for (const scalar s : types)
        for (const bool few : {true, false})
            for (const int64_t batch : {1, 7, 64, 257, 5000})
                for (const int64_t channels : {8, 40, 4096})
                    for (const int64_t sms : {1, 24, 132}) {
                        conv1d_update_args a{};
                        a.batch = batch;
                        a.channels = channels;
                        a.x_type = s;
                        a.width = 4;
                        const int v = conv1d_update_vector(s, few);
                        const conv1d_launch l =
                            conv1d_update_launch(a, v, conv1d_update_state::rows, sms);
                        const int64_t groups = channels / v;
                        CHECK(l.grid * l.threads >= a.row_sets * groups);
                        CHECK((l.grid - 1) * l.threads < a.row_sets * groups);
                        CHECK(a.row_sets >= 1);
                        CHECK(a.row_sets <= batch);
                        const int64_t most = conv1d_ceil_div(batch, a.row_sets);
                        CHECK(a.row_sets * most - batch <
                              a.row_sets); // the last round is not empty
                        if (few) CHECK(most == 1);
                    }
}

TEST_CASE("conv1d.update: threads of single samples have each row and channel once") {
    for (const auto how :
         {conv1d_update_state::rows, conv1d_update_state::lines, conv1d_update_state::ring})
        for (const scalar s : types)
            for (const bool few : {true, false})
                for (const int64_t batch : {1, 2, 7, 65})
                    for (const int64_t channels : {8, 40, 1024}) {
                        conv1d_update_args a{};
                        a.batch = batch;
                        a.channels = channels;
                        a.entries = 7;
                        a.x_type = s;
                        const int v = conv1d_update_vector(s, few);
                        const conv1d_launch l = conv1d_update_single_launch(a, v, how, 2);
                        const uint32_t threads = static_cast<uint32_t>(l.threads);
                        const int together = conv1d_update_single_together(v);
                        count_map map(batch * channels / v);
                        for (uint32_t n = 0; n < static_cast<uint32_t>(l.grid) * threads; ++n) {
                            const uint32_t set = conv1d_quotient(n, a.groups);
                            if (set >= a.row_sets) continue;
                            if (together == 1) CHECK(set + a.row_sets >= batch);
                            for (int64_t row = set; row < batch; row += a.row_sets)
                                map.mark(row * (channels / v) + n - set * a.groups.d);
                        }
                        CHECK(map.each_once());
                        CHECK(a.blocks == l.grid);
                        CHECK(l.threads == conv1d_update_single_threads);
                        if (how == conv1d_update_state::ring) CHECK(a.entries_by.d == 7);
                    }
    CHECK(std::strcmp(conv1d_update_single_variant(scalar::bf16, 2, conv1d_update_state::ring).text,
                      "bf16.v2.ring.single") == 0);
    // Entries of a ring of negative positions: the rest of -1 - n from the end.
    for (const int64_t entries : {3, 4, 7})
        for (int64_t position = -20; position < 0; ++position)
            CHECK(entries - 1 - ~position % entries == conv1d_ring_start(position, entries));
}

TEST_CASE("conv1d.update: entries of a ring") {
    for (const int64_t entries : {1, 3, 4, 7})
        for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{INT32_MAX},
                                       int64_t{-1}, int64_t{INT32_MIN}}) {
            const int64_t start = conv1d_ring_start(position, entries);
            CHECK(start >= 0);
            CHECK(start < entries);
            CHECK((position - start) % entries == 0);
            count_map map(entries);
            for (int64_t p = -entries; p < 0; ++p) {
                const int64_t e = conv1d_ring_entry(start, p, entries);
                CHECK((position + p - e) % entries == 0);
                map.mark(e);
            }
            CHECK(map.each_once());
        }
    // Linear: the samples lie behind all entries.
    for (int64_t p = -3; p < 0; ++p) CHECK(conv1d_ring_entry(3, p, 3) == p + 3);
}

TEST_CASE("conv1d: launch data") {
    CHECK(sizeof(conv1d_fwd_args) <= 512);
    CHECK(sizeof(conv1d_update_args) <= 512);
    CHECK(sizeof(conv1d_state_args) <= 512);
    CHECK(sizeof(conv1d_offsets_args) <= 256);
    CHECK(conv1d_offsets_launch(1).smem_bytes >= conv1d_offsets_threads / 32 * 8);
    CHECK(conv1d_grid(0, 128) == 1);
    CHECK(conv1d_grid(129, 128) == 2);
    CHECK(conv1d_grid(int64_t{1} << 62, 128) == INT32_MAX);
    CHECK(conv1d_fwd_taps(1) == 4);
    CHECK(conv1d_fwd_taps(4) == 4);
    CHECK(conv1d_fwd_taps(5) == 8);
    CHECK(conv1d_fwd_taps(9) == 32);
    CHECK(conv1d_fwd_taps(33) == 0);
    CHECK(conv1d_fwd_bct_taps(8) == 8);
    CHECK(conv1d_fwd_bct_taps(9) == 16);
    CHECK(conv1d_fwd_bct_taps(17) == 32);
    CHECK(conv1d_fwd_bct_taps(33) == 0);
    CHECK(std::strcmp(conv1d_fwd_variant(scalar::bf16, 4, conv1d_bct_rows::odd).text,
                      "bf16.k4.odd") == 0);
    CHECK(std::strcmp(conv1d_fwd_variant(scalar::f16, 32, conv1d_bct_rows::masked).text,
                      "f16.k32.masked") == 0);
    CHECK(std::strcmp(conv1d_btc_variant(scalar::f32, 32, 1, true).text, "f32.k32.v1.full") == 0);
    CHECK(std::strcmp(conv1d_update_variant(scalar::bf16, 4, 8, conv1d_update_state::lines).text,
                      "bf16.k4.v8.lines") == 0);
    conv1d_fwd_args a{};
    a.x_type = scalar::bf16;
    a.batch = 2, a.channels = 3, a.length = 2047, a.width = 4;
    const conv1d_launch tiled = conv1d_fwd_bct_tiled_launch(a, false, false);
    CHECK(tiled.grid == conv1d_ceil_div(2 * 3 * 65, 128)); // 257 vectors, four a thread
    CHECK(a.across.d == 65);
    CHECK(a.strips.d == 65);
    CHECK(conv1d_fwd_bct_tiled_launch(a, true, false).grid == conv1d_ceil_div(2 * 3 * 64, 128));
    CHECK(a.channel_count.d == 3);
    CHECK(conv1d_fwd_bct_launch(a).grid == 6);
    a.channels = 24;
    const conv1d_launch btc = conv1d_fwd_btc_launch(a, 4, conv1d_btc_tile(4), false);
    CHECK(a.across.d == 6);
    CHECK(a.strips.d == 256); // the last tile begins a token earlier
    CHECK(btc.grid == conv1d_ceil_div(2 * 256 * 6, 128));
    CHECK(btc.smem_bytes == 0);
    a.channels = 33;
    CHECK(conv1d_fwd_btc_launch(a, 1, 64, false).grid == conv1d_ceil_div(2 * 32 * 32, 128));
}
