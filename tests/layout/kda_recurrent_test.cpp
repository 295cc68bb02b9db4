// Who holds which entry of a state in the recurrent kernels of kda, their shared memory, chunk
// slots.
#include "lib/cuda/kda/bwd_recurrent_layout.h"
#include "lib/cuda/kda/fwd_recurrent_layout.h"

#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <random>
#include <vector>

using namespace plait::impl;

namespace {

kda_problem problem_of(int64_t n, int64_t t, int64_t heads, int64_t k, int64_t v) {
    kda_problem p{};
    p.batch = p.sequences = n;
    p.length = p.max_length = t;
    p.heads = p.value_heads = heads;
    p.dim_k = k, p.dim_v = v;
    return p;
}

constexpr std::array<int64_t, 2> widths[] = {{1, 1},     {64, 64},   {96, 96},   {128, 128},
                                             {128, 256}, {192, 192}, {256, 256}, {100, 7}};

} // namespace

TEST_CASE("kda: every entry of a tile has one thread, which holds quads of keys") {
    for (int quads = 1; quads <= kda_tile_quads; ++quads)
        for (const int warps : {1, 2, 4, 8}) {
            std::vector<int> seen(static_cast<size_t>(64 * quads * warps * kda_warp_columns), 0);
            for (int thread = 0; thread < 32 * warps; ++thread) {
                const int lane = thread % 32, column = kda_tile_column(thread / 32, lane);
                for (int i = 0; i < 4 * quads; ++i) {
                    const int key = kda_tile_key(lane, i);
                    CHECK(key == kda_tile_key(lane, i / 4 * 4) + i % 4);
                    for (int c = 0; c < 4; ++c)
                        ++seen[static_cast<size_t>((column + c) * 64 * quads + key)];
                }
            }
            for (const int s : seen) CHECK(s == 1);
        }
}

TEST_CASE("kda: rows of a batch do not overlap, and quads of them are aligned") {
    for (const int keys : {64, 128, 192, 256})
        for (const int columns : {8, 16, 32, 64})
            for (const int tokens : {1, 2, 5, 8}) {
                const kda_batch_layout lay{keys, columns, tokens};
                std::vector<int> seen(static_cast<size_t>(lay.floats()), 0);
                const auto mark = [&](int at, int count) {
                    for (int i = 0; i < count; ++i) ++seen.at(static_cast<size_t>(at + i));
                };
                for (int t = 0; t < tokens; ++t) {
                    for (const int row : {lay.q(t), lay.k(t), lay.decay(t)}) {
                        CHECK(row % 4 == 0);
                        mark(row, keys);
                    }
                    CHECK(lay.o(t) % 4 == 0);
                    mark(lay.v(t), columns);
                    mark(lay.o(t), columns);
                    mark(lay.beta(t), 1);
                    mark(lay.kq(t), 1);
                }
                for (const int s : seen) CHECK(s <= 1);
            }
}

TEST_CASE("kda: forward tiles cover the columns, and their batch fits without opt-in") {
    for (const auto &[k, v] : widths)
        for (const int64_t n : {1, 8, 300}) {
            kda_fwd_recurrent_args a{};
            a.problem = problem_of(n, 1, 4, k, v);
            const kda_launch l = kda_fwd_recurrent_launch(a, 132);
            const int64_t columns = l.threads / 32 * kda_warp_columns;
            CHECK(a.tiles * columns >= v);
            CHECK((a.tiles - 1) * columns < v);
            CHECK(a.blocks == n * 4 * a.tiles);
            CHECK(l.smem_bytes <= 48 * 1024);
        }
}

TEST_CASE("kda: backward chunks fit the shared memory of every device") {
    for (const auto &[k, v] : widths)
        for (const int64_t smem : {232448, 166912, 101376, 65536})
            for (const int64_t t : {0, 1, 8, 1000, 65536}) {
                kda_bwd_recurrent_args a{};
                a.problem = problem_of(2, t, 4, k, v);
                const kda_launch l = kda_bwd_recurrent_launch(a, 132, smem);
                const kda_bwd_shape s = kda_bwd_recurrent_shape(a.problem, smem);
                CHECK(l.smem_bytes <= smem);
                CHECK(a.chunk >= (smem > 70000 ? 4 : 1));
                CHECK(a.group * a.segments * a.chunk >= t);
                const kda_bwd_smem parts(s.quads, s.warps, s.chunk);
                CHECK(parts.batch == s.chunk * s.quads * 16 * l.threads);
                CHECK(parts.batch % 4 == 0);
                CHECK(parts.sums >=
                      parts.batch + kda_batch_layout{64 * s.quads, 8 * s.warps, s.chunk}.floats());
                CHECK(4 * parts.floats == l.smem_bytes);
                CHECK(a.block_floats == (a.group + a.segments) * s.quads * 16 * l.threads);
                CHECK(l.grid <= a.blocks);
            }
}

TEST_CASE("kda: chunk slots are enough for any lengths") {
    std::mt19937 random(1);
    for (int i = 0; i < 2000; ++i) {
        kda_problem p = problem_of(0, random() % 300, 1, 4, 4);
        p.varlen = true;
        const int64_t chunk = 1 + random() % 70;
        int64_t left = p.length, used = 0;
        for (p.sequences = 0; p.sequences < 9; ++p.sequences) {
            const int64_t length = random() % 3 ? random() % (left + 1) : left % 5;
            used += kda_ceil_div(length, chunk);
            left -= length;
        }
        CHECK(used <= kda_chunk_slots(p, chunk));
    }
}

TEST_CASE("kda: accesses of four only where base, strides and extents allow them") {
    kda_problem p = problem_of(3, 1, 2, 64, 32);
    const auto how = [&](kda_state_view v) { return kda_access_of(p, v); };
    CHECK(how({scalar::f32, 16, 4096, 2048, 32, 1}) == kda_state_access::columns);
    CHECK(how({scalar::f32, 16, 4096, 2048, 1, 64}) == kda_state_access::keys);
    CHECK(how({scalar::f32, 8, 4096, 2048, 32, 1}) == kda_state_access::elements);
    CHECK(how({scalar::bf16, 8, 4096, 2048, 32, 1}) == kda_state_access::columns);
    CHECK(how({scalar::f32, 16, 4097, 2048, 32, 1}) == kda_state_access::elements);
    CHECK(how({scalar::f32, 16, 4224, 2112, 33, 1}) == kda_state_access::elements);
    CHECK(how({scalar::f32, 16, 4224, 2112, 1, 66}) == kda_state_access::elements);
    p.dim_v = 30;
    CHECK(how({scalar::f32, 16, 4096, 2048, 32, 1}) == kda_state_access::elements);
    CHECK(how({scalar::none, 0, 0, 0, 0, 0}) == kda_state_access::elements);
}
