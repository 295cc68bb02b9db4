// Who computes what in the backward kernels of conv1d.
#include "lib/cuda/conv1d/bwd_any_layout.h"
#include "lib/cuda/conv1d/bwd_btc_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace plait::impl;

namespace {

constexpr int sms = 132;
constexpr int64_t smem_limit = 232448;

conv1d_problem problem_of(scalar x, bool bct, int64_t b, int64_t c, int64_t l, int64_t k) {
    conv1d_problem p{};
    p.direction = conv1d_direction::backward;
    p.silu = true;
    p.batch = b, p.channels = c, p.length = p.max_length = l, p.width = k;
    p.sequences = b;
    p.entries = k - 1;
    p.x = bct ? conv1d_view{x, 16, c * l, l, 1} : conv1d_view{x, 16, c * l, 1, c};
    p.dy = p.dx = p.x;
    p.w = p.dw = {x, 16, 0, k, 1};
    p.bias = p.dbias = {x, 16, 0, 1, 0};
    p.accumulator = scalar::f32;
    return p;
}

constexpr std::array<int64_t, 3> shapes[] = {{1, 1, 1},        {8, 4096, 4096}, {1, 4096, 32768},
                                             {1, 64, 1048576}, {64, 8192, 256}, {2, 5120, 2048},
                                             {3, 24, 2047},    {5, 7, 511},     {300, 2, 9}};

const std::vector<conv1d_problem> &problems() {
    static const std::vector<conv1d_problem> all = [] {
        std::vector<conv1d_problem> list;
        for (const scalar x : {scalar::f32, scalar::bf16})
            for (const bool bct : {true, false})
                for (const int64_t k : {2, 4, 7, 32})
                    for (const auto &[b, c, l] : shapes)
                        if (bct || k <= conv1d_bwd_btc_longest)
                            list.push_back(problem_of(x, bct, b, c, l, k));
        return list;
    }();
    return all;
}

bool time_contiguous(const conv1d_problem &p) { return p.x.t == 1 && p.x.c >= p.length; }

conv1d_launch fill(const conv1d_problem &p, conv1d_btc_args *a) {
    *a = {};
    static_cast<conv1d_bwd_args &>(*a) = conv1d_bwd_args_of(p);
    return time_contiguous(p) ? conv1d_bwd_bct_fill(p, sms, smem_limit, a)
                              : conv1d_bwd_btc_fill(p, sms, a);
}

} // namespace

TEST_CASE("conv1d.bwd_btc: walks cover every tile of every row once") {
    for (const conv1d_problem &p : problems()) {
        if (time_contiguous(p)) continue;
        conv1d_btc_args a;
        fill(p, &a);
        INFO(p.batch, ' ', p.channels, ' ', p.length, ' ', p.width);
        REQUIRE(p.batch * a.tiles < 1 << 24);
        std::vector<uint8_t> seen(static_cast<size_t>(p.batch * a.tiles));
        for (int64_t w = 0; w < a.walks + 9; ++w) {
            const conv1d_btc_walk walk = conv1d_btc_walk_of(a, w);
            CHECK(walk.step > 0);
            for (int part = walk.first; part < walk.limit; part += walk.step) {
                const conv1d_btc_tiles t = conv1d_btc_tiles_of(a, part);
                const int lead = conv1d_btc_lead_of(a, t);
                CHECK(t.low < t.high);
                CHECK((lead == t.high + 1 || (lead == t.high && t.high == a.tiles)));
                for (int i = t.low; i < t.high; ++i)
                    ++seen[static_cast<size_t>(t.row * a.tiles + i)];
            }
        }
        int64_t wrong = 0;
        for (const uint8_t n : seen) wrong += n != 1;
        CHECK(wrong == 0);
    }
}

TEST_CASE("conv1d.bwd_bct: passes have every item once, and share the device evenly") {
    for (const conv1d_problem &p : problems()) {
        if (!time_contiguous(p)) continue;
        conv1d_btc_args a;
        const conv1d_launch l = fill(p, &a);
        INFO(p.batch, ' ', p.channels, ' ', p.length, ' ', p.width);
        const int64_t tiles = conv1d_bwd_bct_channel_tiles(a);
        CHECK(a.items == p.channels * a.slots);
        // no item is empty, and together they are the channel
        CHECK((a.slots - 1) * a.tiles_per_walk < tiles);
        CHECK(a.slots * a.tiles_per_walk >= tiles);
        CHECK(static_cast<const conv1d_bwd_args &>(a).parts * (32 >> a.log_lanes) >= p.batch);
        int64_t next = 0, most = 0;
        for (int64_t n = 0; n < a.walks; ++n) {
            const conv1d_bwd_pass pass = conv1d_bwd_bct_pass(a, n);
            CHECK(pass.item == next);
            CHECK(pass.items >= 1);
            CHECK(pass.items <= conv1d_bwd_bct_most_items);
            CHECK(pass.items * a.tiles_per_walk <= int64_t{1} << 30);
            next += pass.items;
            most = std::max<int64_t>(most, pass.items);
        }
        CHECK(next == a.items);
        if (l.threads == 32 * conv1d_bwd_bct_small_warps && l.grid > sms) {
            // blocks that are dealt out one after the other: enough for an even end
            CHECK(l.grid == a.walks);
            CHECK(a.walks >= 4 * sms * conv1d_bwd_bct_warps(4) / conv1d_bwd_bct_small_warps);
            CHECK(most * a.tiles_per_walk * a.walks <
                  2 * a.items * a.tiles_per_walk + 2 * 64 * a.walks);
            continue;
        }
        CHECK(l.grid == std::min<int64_t>(a.walks, sms));
        // tiles of the busiest block against those of all
        const double share = static_cast<double>(p.channels * tiles) / sms;
        const double busy = static_cast<double>(most * a.tiles_per_walk * (a.walks / l.grid));
        if (p.batch * p.channels * p.length > 10000000) CHECK(busy < 1.05 * share + 64);
    }
}

TEST_CASE("conv1d.bwd_bct: each warp has a sum of its own in each item that it meets") {
    for (const int warps : {1, 3, 8, 20})
        for (const int items : {1, 2, 7, conv1d_bwd_bct_most_items})
            for (const int each : {1, 5, 16, 100}) {
                const int tiles = items * each, share = (tiles + warps - 1) / warps;
                std::vector<int> owners(
                    static_cast<size_t>(conv1d_bwd_bct_sums(warps, conv1d_bwd_bct_most_items)));
                for (int warp = 0; warp < warps; ++warp)
                    for (int item = 0; item < items; ++item)
                        if (std::max(warp * share, item * each) <
                            std::min({(warp + 1) * share, tiles, (item + 1) * each}))
                            ++owners[static_cast<size_t>(warp + item)];
                CHECK(*std::max_element(owners.begin(), owners.end()) == 1);
            }
}

TEST_CASE("conv1d.bwd: partial sums are few, and do not grow with the batch and the length") {
    for (const conv1d_problem &p : problems()) {
        conv1d_btc_args a, longer;
        fill(p, &a);
        INFO(p.batch, ' ', p.channels, ' ', p.length, ' ', p.width);
        const double elements =
            static_cast<double>(p.batch) * static_cast<double>(p.channels * p.length);
        const double partial =
            static_cast<double>(a.slots * (p.width + 1)) * static_cast<double>(p.channels) * 4;
        if (elements > 1e8 && p.width <= 4)
            CHECK(partial < 0.02 * elements * 3 * scalar_bytes(p.x.type));
        if (elements < 1e8) continue;
        conv1d_problem q = p;
        q.batch *= 64;
        fill(q, &longer);
        CHECK(longer.slots <= 2 * a.slots + 2 * sms);
    }
}

TEST_CASE("conv1d.bwd: the partition depends on the problem and the device alone") {
    for (const conv1d_problem &p : problems()) {
        conv1d_btc_args a, b;
        conv1d_problem q = p;
        q.x.align = q.dy.align = q.dx.align = 2; // promises change accesses, never sums
        const conv1d_launch la = fill(p, &a), lb = fill(q, &b);
        if (time_contiguous(p)) {
            CHECK(a.slots == b.slots);
            CHECK(a.tiles_per_walk == b.tiles_per_walk);
            CHECK(std::string(la.variant) == lb.variant);
        }
        conv1d_btc_args again;
        fill(p, &again);
        CHECK(a.slots == again.slots);
        CHECK(a.items == again.items);
        CHECK(la.threads >= 32);
        CHECK(la.grid >= 1);
        CHECK(la.smem_bytes <= smem_limit);
    }
    CHECK(sizeof(conv1d_btc_args) <= 1024);
}

TEST_CASE("conv1d.bwd_bct: lanes cover a row and lie on multiples of 16 bytes") {
    for (const conv1d_problem &p : problems()) {
        if (!time_contiguous(p)) continue;
        conv1d_btc_args a;
        fill(p, &a);
        const int log_vec = conv1d_log_vec(p.x.type);
        CHECK(a.tile == int64_t{1} << (a.log_lanes + log_vec));
        // taps reach no further than the lanes of one tile
        CHECK(a.tile >= conv1d_bwd_taps(p.width) - 1);
        for (int64_t b = 0; b < std::min<int64_t>(p.batch, 3); ++b)
            for (int64_t c = 0; c < std::min<int64_t>(p.channels, 9); ++c) {
                const int32_t shift = conv1d_bwd_bct_shift(p.x, log_vec, b, c);
                CHECK((b * p.x.b + c * p.x.c - shift) % (1 << log_vec) == 0);
                CHECK(shift >= 0);
                CHECK(a.tiles * a.tile - shift >= p.length);
            }
    }
}

TEST_CASE("conv1d.bwd_bct: lanes of a ring have words of their own, behind their halo") {
    for (const int log_vec : {2, 3})
        for (const int taps : {2, 3, 4, 8, 32}) {
            constexpr int parts = 2, stages = conv1d_bwd_bct_stages;
            const int halo = conv1d_bwd_bct_halo(taps, log_vec);
            const int part = conv1d_bwd_bct_part(taps, log_vec);
            const int ring = conv1d_bwd_bct_ring(taps, log_vec);
            CHECK(halo >= (taps - 1) * (16 >> log_vec));
            CHECK(halo % 16 == 0);
            CHECK(ring % 16 == 0);
            CHECK(ring == stages * parts * part + conv1d_bwd_bct_ledger);
            const int warps = conv1d_bwd_bct_warps(taps);
            const int shared = conv1d_bwd_bct_smem_bytes(warps, ring, taps);
            CHECK(shared <= smem_limit);
            CHECK(shared - warps * ring >=
                  conv1d_bwd_bct_sums(warps, conv1d_bwd_bct_most_items) * (taps + 1) * 4);
            for (int log = 2; log <= 5; ++log) {
                if (1 << log < conv1d_bwd_bct_fewest(taps, log_vec)) continue;
                CHECK(halo / 16 <= (1 << log) - 1); // lanes that copy it
                std::vector<int> owners(static_cast<size_t>(warps * ring));
                for (int warp = 0; warp < warps; ++warp)
                    for (int lane = 0; lane < 32; ++lane)
                        for (int at = 0; at < stages * parts; ++at) {
                            const int slot =
                                conv1d_bwd_bct_slot(warp, ring, halo, lane, log) + at * part;
                            CHECK(slot % 16 == 0);
                            const bool first = lane % (1 << log) == 0;
                            const int before = first ? halo : 0; // of x; of others unused
                            CHECK(slot - before >= warp * ring + at * part);
                            CHECK(slot + 16 <= warp * ring + (at + 1) * part);
                            for (int i = slot - before; i < slot + 16; ++i)
                                ++owners[static_cast<size_t>(i)];
                        }
                CHECK(*std::max_element(owners.begin(), owners.end()) == 1);
            }
        }
}

TEST_CASE("conv1d.bwd_btc: vectors of channels are whole and aligned") {
    for (const conv1d_problem &p : problems()) {
        if (time_contiguous(p)) continue;
        for (const int64_t extra : {0, 1, 2}) {
            conv1d_problem q = p;
            q.channels += extra;
            q.x.t += extra;
            q.x.b = q.x.t * q.length;
            q.dy = q.dx = q.x;
            conv1d_btc_args a;
            const std::string name = fill(q, &a).variant;
            const int vec = name.back() - '0';
            const bool loose = name[name.size() - 2] == 'l';
            CHECK(vec == 1 << conv1d_bwd_btc_log_vec(q.x.type, conv1d_bwd_taps(q.width)));
            const int wide = 16 / scalar_bytes(q.x.type);
            if (!loose) CHECK(q.channels % wide == 0);
            if (!loose) CHECK(q.x.t % wide == 0);
            if (extra == 1 && p.channels % 2 == 0) CHECK(loose);
            // loose: the last lane has none
            CHECK(a.group == ((1 << a.log_lanes) - (loose ? 1 : 0)) * vec);
            const int64_t groups = a.groups.d;
            CHECK(groups * a.slots == a.items);
            CHECK(groups * a.group >= q.channels);
            CHECK((groups - 1) * a.group < q.channels);
        }
    }
}

TEST_CASE("conv1d.bwd_btc: lanes of a warp copy what they read, each byte once") {
    for (const scalar x : {scalar::f32, scalar::bf16})
        for (const int taps : {2, 3, 4, 8})
            for (const bool loose : {false, true}) {
                const int cell = conv1d_bwd_btc_cell(x, taps), row = 32 * cell;
                const int chunk = conv1d_bwd_btc_chunk(x, taps, loose), each = chunk / cell;
                CHECK(taps % each == 0);
                for (int log = 1; log <= 5; ++log) {
                    if (cell << log < chunk) continue;
                    // who wrote a byte, and which byte of which token of its walk it is
                    std::vector<int> from(static_cast<size_t>(conv1d_bwd_btc_slot(x, taps)), -1);
                    for (int thread = 0; thread < conv1d_bwd_btc_threads; ++thread) {
                        const conv1d_btc_spot s =
                            conv1d_btc_spot_of(thread, log, taps, cell, chunk);
                        CHECK(s.put % chunk == 0);
                        CHECK(s.get % cell == 0);
                        for (int r = 0; r < 2 * taps; r += each)
                            for (int i = 0; i < chunk; ++i) {
                                int &byte = from[static_cast<size_t>(s.put + r * row + i)];
                                CHECK(byte == -1);
                                byte =
                                    ((thread >> log) * 2 * taps + r + s.token) * row + s.chunk + i;
                            }
                    }
                    int wrong = 0;
                    for (int thread = 0; thread < conv1d_bwd_btc_threads; ++thread) {
                        const conv1d_btc_spot s =
                            conv1d_btc_spot_of(thread, log, taps, cell, chunk);
                        for (int r = 0; r < 2 * taps; ++r)
                            for (int i = 0; i < cell; ++i)
                                wrong += from[static_cast<size_t>(s.get + r * row + i)] !=
                                         ((thread >> log) * 2 * taps + r) * row + s.lane * cell + i;
                    }
                    CHECK(wrong == 0);
                }
            }
}

TEST_CASE("conv1d.bwd_btc: tiles that are copied without tests lie in the tensor") {
    for (const conv1d_problem &p : problems()) {
        if (time_contiguous(p)) continue;
        for (const int64_t extra : {0, 1, 2, 3, 5}) {
            conv1d_problem q = p;
            q.channels += extra;
            q.x.t = q.channels;
            q.x.b = q.x.t * q.length;
            q.dy = q.dx = q.x;
            conv1d_btc_args a;
            const std::string name = fill(q, &a).variant;
            const bool loose = name[name.size() - 2] == 'l';
            const int taps = conv1d_bwd_taps(q.width), size = scalar_bytes(q.x.type);
            const int cell = conv1d_bwd_btc_cell(q.x.type, taps);
            if (a.tile_low >= a.tile_high) continue;
            const int64_t first = int64_t{a.tile_low} * taps - (taps - 1);
            const int64_t last = int64_t{a.tile_high} * taps - 1;
            CHECK(first >= 0);
            CHECK(last < q.length);
            // the lanes' chunks, from the aligned one before a row's group
            const int64_t low = first * q.x.t * size - (loose ? cell - 1 : 0);
            const int64_t groups = a.groups.d - 1;
            const int64_t high = (last * q.x.t + groups * a.group) * size + (cell << a.log_lanes);
            CHECK(low >= 0);
            if (loose) CHECK(high <= q.channels * q.length * size);
        }
    }
}

TEST_CASE("conv1d.bwd_btc: loose stores of a warp write every channel once, and none outside") {
    for (const auto &[vec, each] : {std::pair{2, 1}, {2, 2}, {4, 2}})
        for (int left = 1; left <= 31 * vec; ++left)
            for (int h = 0; h < vec; ++h) {
                std::vector<int> seen(static_cast<size_t>(34 * vec), 0); // from element -vec on
                for (int lane = 0; lane < 32; ++lane) {
                    const uint32_t byte = conv1d_bwd_btc_alone(lane, left, vec, each) >> (8 * h);
                    for (int e = 0; e < vec; ++e) {
                        const uint32_t of_word = byte >> (1 + 3 * (e / each));
                        const bool alone = of_word & 1u || of_word >> (1 + e % each) & 1u;
                        if ((byte & 1u) != 0 || (alone && (each == 2 || (of_word & 1u) != 0)))
                            ++seen[static_cast<size_t>(vec + lane * vec - h + e)];
                    }
                }
                int wrong = 0;
                for (int i = 0; i < static_cast<int>(seen.size()); ++i)
                    wrong += seen[static_cast<size_t>(i)] != (i >= vec && i < vec + left);
                INFO(vec, ' ', each, ' ', left, ' ', h);
                CHECK(wrong == 0);
            }
}

TEST_CASE("conv1d.bwd_btc: large problems run in whole waves, with room for many copies") {
    for (const conv1d_problem &p : problems()) {
        if (time_contiguous(p) || p.batch * p.channels * p.length < 10000000) continue;
        INFO(p.batch, ' ', p.channels, ' ', p.length, ' ', p.width);
        conv1d_btc_args a;
        const conv1d_launch l = fill(p, &a);
        const int taps = conv1d_bwd_taps(p.width);
        const int64_t resident = sms * conv1d_bwd_btc_blocks(p.x.type, taps, false);
        const int64_t waves = conv1d_ceil_div(a.items, resident);
        CHECK(static_cast<double>(a.items) > 0.85 * static_cast<double>(waves * resident));
        // an H200 has 227 KiB of shared memory; each block has all slots but one on their way
        const int64_t blocks = resident / sms;
        CHECK(blocks * (l.smem_bytes + 1024) <= 227 * 1024);
        const int64_t slot = conv1d_bwd_btc_slot(p.x.type, taps);
        CHECK(blocks * slot * (conv1d_bwd_btc_depth(p.x.type, taps) - 1) >= 40 * 1024);
    }
}

TEST_CASE("conv1d.bwd_any: shared memory within limits, threads divided among taps") {
    for (conv1d_problem p : problems())
        for (const int64_t k : {1, 4, 31, 256, 5000, 100000}) {
            p.width = k;
            conv1d_bwd_args a = conv1d_bwd_args_of(p);
            const conv1d_launch l = conv1d_bwd_any_fill(p, sms, 232448, &a);
            CHECK(l.smem_bytes <= 232448);
            CHECK(a.log_lanes + a.log_group <= 8);
            CHECK(a.tile * a.tiles >= p.length);
            CHECK(a.slots <= a.tiles * p.batch);
            // one thread for each sum, or no slices
            CHECK(((int64_t{1} << a.log_group) > k || a.log_lanes + a.log_group == 8));
            CHECK((a.g_shared || k > 1000));
        }
}
