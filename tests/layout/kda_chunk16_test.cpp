// kda.bwd_c16_*: tiles as operands of matrix products, records, shared memory.
#include "lib/cuda/kda/chunk16_layout.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

using namespace plait::impl;

namespace {

/// What fits three blocks of an SM, and the most of one block.
constexpr int third = 72 * 1024, most = 227 * 1024;

} // namespace

TEST_CASE("kda chunk16: a tile is a left operand, two right ones, and what a product gives") {
    for (int lane = 0; lane < 32; ++lane)
        for (int word = 0; word < mma_words_a; ++word)
            for (int half = 0; half < 2; ++half) {
                const mma_place at = mma_place_a(lane, word, half);
                CHECK(kda_c16_place(at.row, at.column) == lane * 8 + word * 2 + half);
                // Words x and x + 2 of a lane are B of rows 8 x ... of the tile.
                const mma_place b = mma_place_b(lane, word / 2, half);
                CHECK(at.row == b.column + word % 2 * 8);
                CHECK(at.column == b.row);
                // Item i of the sum of columns 8 y ... is element 4 y + i.
                const mma_place d = mma_place_d(lane, word % 2 * 2 + half);
                CHECK(at.row == d.row);
                CHECK(at.column == d.column + word / 2 * 8);
            }
}

TEST_CASE("kda chunk16: records hold every tile once, and what is copied is aligned") {
    for (int kt = 1; kt <= 16; ++kt)
        for (int vt = 1; vt <= 16; ++vt)
            for (const bool wide : {false, true}) {
                const kda_c16_record r = kda_c16_record_of(kt, vt, wide);
                const int tile = r.tile_bytes();
                std::vector<std::pair<int, int>> pieces = {{r.kr(), kt * tile},
                                                           {r.turned_qp(), kt * tile},
                                                           {r.turned_kp(), kt * tile},
                                                           {r.turned_a, tile},
                                                           {r.turned_m, tile},
                                                           {r.floats, (kt + 1) * 64},
                                                           {r.kp, kt * tile},
                                                           {r.turned_kr, kt * tile},
                                                           {r.n, tile},
                                                           {r.turned_do, vt * tile},
                                                           {r.d_o, vt * tile}};
                std::sort(pieces.begin(), pieces.end());
                int at = 0;
                for (const auto &[from, bytes] : pieces) {
                    CHECK(from == at);
                    CHECK(from % 16 == 0);
                    at = from + bytes;
                }
                CHECK(at == r.size);
                CHECK(r.reverse_bytes() == r.floats + (kt + 1) * 64);
                CHECK(r.floats + r.forward_bytes() == r.n + tile);
            }
}

TEST_CASE("kda chunk16: blocks of an SM") {
    for (int kt = 1; kt <= 16; ++kt) {
        CHECK(kda_c16_rows_bytes(kt, kda_c16_prep_spare) <= third);
        CHECK(kda_c16_rows_bytes(kt, kda_c16_b3_spare) <= third);
        for (const bool wide : {false, true}) {
            const kda_c16_record r = kda_c16_record_of(kt, 1, wide);
            for (const int stage : {r.forward_bytes(), r.reverse_bytes()}) {
                const int ring = stage * kda_c16_stages(stage);
                CHECK(ring <= (kda_c16_held(kt) > 8 ? most / 2 : third));
            }
        }
    }
}

TEST_CASE("kda chunk16: names of scans") {
    kda_c16_args a{};
    for (const auto &[kt, name] :
         {std::pair{1, "bf16.k4"}, {4, "bf16.k4"}, {5, "bf16.k8"}, {16, "bf16.k16"}}) {
        a.kt = kt;
        a.vt = 4;
        CHECK(std::string(kda_c16_scan_launch(a, false, true).variant) == name);
    }
}
