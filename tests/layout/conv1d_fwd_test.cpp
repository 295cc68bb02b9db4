// conv1d forward and update: who computes what, and where the accesses lie.
#include "lib/cuda/conv1d/fwd_btc_layout.h"
#include "lib/cuda/conv1d/state_layout.h"
#include "lib/cuda/conv1d/update_layout.h"

#include <cstring>
#include <doctest/doctest.h>
#include <vector>

using namespace plait::impl;

namespace {

constexpr scalar types[] = {scalar::f32, scalar::f16, scalar::bf16};

struct count_map {
    explicit count_map(int64_t n) : seen(static_cast<size_t>(n), 0) {}
    void mark(int64_t i) {
        if (i < 0 || i >= static_cast<int64_t>(seen.size()))
            outside = true;
        else
            ++seen[static_cast<size_t>(i)];
    }
    bool each_once() const {
        if (outside) return false;
        for (const int s : seen)
            if (s != 1) return false;
        return true;
    }
    std::vector<int> seen;
    bool outside = false;
};

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
    for (const int64_t items : {conv1d_bct_most_tiles, conv1d_btc_most_groups}) {
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

TEST_CASE("conv1d.fwd_bct_tiled: tiles cover a row once, from any address") {
    for (const scalar s : types) {
        const int v = conv1d_vector(s), n = conv1d_bct_tile(s);
        CHECK(v * scalar_bytes(s) == 16);
        for (int offset = 0; offset < v; ++offset)
            for (const int64_t length : {1, 2, 7, 8, 15, 16, 17, 31, 33, 255, 256, 257, 2047}) {
                CAPTURE(offset);
                CAPTURE(length);
                const int64_t tiles = conv1d_bct_tiles(s, length, offset == 0);
                count_map map(length);
                bool aligned = true;
                for (int64_t tile = 0; tile < tiles; ++tile) {
                    const int32_t first = conv1d_bct_first(s, static_cast<uint32_t>(tile), offset);
                    aligned = aligned && (offset + first) % v == 0;
                    CHECK(first > -v);
                    for (int32_t t = first; t < first + n; ++t)
                        if (t >= 0 && t < length) map.mark(t);
                }
                CHECK(map.each_once());
                CHECK(aligned);
                // No more than one tile beyond the shortest cover.
                CHECK(tiles <= conv1d_ceil_div(length, n) + (offset == 0 ? 0 : 1));
            }
    }
    CHECK(int64_t{conv1d_bct_tile(scalar::bf16)} * conv1d_bct_most_tiles < INT32_MAX);
    CHECK(conv1d_fwd_most_length + 2048 < INT32_MAX); // fwd_bct looks a chunk ahead
}

TEST_CASE("conv1d.fwd_btc: strips cover the tokens, warps whole sectors") {
    for (const int64_t rows : {1, 8})
        for (const int64_t length : {1, 15, 16, 17, 4096})
            for (const int64_t groups : {1, 8, 512})
                for (const int64_t threads : {1, 10000, 400000}) {
                    const int32_t strip = conv1d_btc_strip(rows, length, groups, threads);
                    CHECK(strip >= conv1d_btc_shortest_strip);
                    CHECK(strip <= conv1d_btc_longest_strip);
                    CHECK(strip % conv1d_btc_step == 0);
                    const int64_t strips = conv1d_ceil_div(length, strip);
                    CHECK((strips - 1) * strip < length);
                    CHECK(strips * strip >= length);
                    const bool enough = rows * strips * groups >= threads;
                    CHECK((enough || strip == conv1d_btc_shortest_strip));
                }
    for (const scalar s : types) {
        CHECK(conv1d_btc_vector(s, 4) * scalar_bytes(s) == 16);
        CHECK(conv1d_btc_vector(s, 8) * scalar_bytes(s) == 8);
        CHECK(conv1d_btc_vector(s, 32) == 1);
    }
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
                    CHECK(v * scalar_bytes(s) == (few ? 4 : 16));
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
    CHECK(conv1d_offsets_launch().smem_bytes >= conv1d_offsets_threads / 32 * 8);
    CHECK(conv1d_grid(0, 128) == 1);
    CHECK(conv1d_grid(129, 128) == 2);
    CHECK(conv1d_grid(int64_t{1} << 62, 128) == INT32_MAX);
    CHECK(conv1d_fwd_taps(1) == 4);
    CHECK(conv1d_fwd_taps(4) == 4);
    CHECK(conv1d_fwd_taps(5) == 8);
    CHECK(conv1d_fwd_taps(9) == 32);
    CHECK(conv1d_fwd_taps(33) == 0);
    CHECK(std::strcmp(conv1d_fwd_variant(scalar::bf16, 4, true).text, "bf16.k4.full") == 0);
    CHECK(std::strcmp(conv1d_btc_variant(scalar::f32, 32, 1, true).text, "f32.k32.v1.full") == 0);
    CHECK(std::strcmp(conv1d_update_variant(scalar::bf16, 4, 8, conv1d_update_state::lines).text,
                      "bf16.k4.v8.lines") == 0);
    conv1d_fwd_args a{};
    a.x_type = scalar::bf16;
    a.batch = 2, a.channels = 3, a.length = 2047, a.width = 4;
    const conv1d_launch tiled = conv1d_fwd_bct_tiled_launch(a, false, false);
    CHECK(tiled.grid * tiled.threads >= 2 * 3 * 129); // 128 tiles of 16, and one more unaligned
    CHECK(a.across.d == 129);
    CHECK(a.channel_count.d == 3);
    CHECK(conv1d_fwd_bct_launch(a).grid == 6);
    a.channels = 24;
    const conv1d_launch btc = conv1d_fwd_btc_launch(a, 8, 64, false);
    CHECK(a.across.d == 3);
    CHECK(a.strips.d == 32);
    CHECK(btc.grid == conv1d_ceil_div(2 * 32 * 3, 128));
}
