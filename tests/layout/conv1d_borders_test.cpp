// Which tokens conv1d.bwd_bct leaves to conv1d.bwd_bct_fix.
#include "lib/cuda/conv1d/bwd_bct_layout.h"

#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

using namespace plait::impl;

TEST_CASE("conv1d.bwd_bct_fix writes each dx that meets a token at a border") {
    for (const int64_t length : {1, 31, 32, 33, 700})
        for (const int width : {1, 2, 4, 8, 32}) {
            const int64_t words = conv1d_border_words(length);
            std::vector<uint32_t> row(static_cast<size_t>(words));
            std::vector<bool> border(static_cast<size_t>(length));
            for (int64_t t = 0; t < length; ++t) {
                border[static_cast<size_t>(t)] = t * t % 53 == 17 || t % 97 == 96;
                if (border[static_cast<size_t>(t)])
                    row[static_cast<size_t>(t / 32)] |= 1u << t % 32;
            }
            const auto word = [&](int64_t i) {
                return i < words ? row[static_cast<size_t>(i)] : 0;
            };
            for (int64_t t = 0; t < length; t += conv1d_bct_fix_each) {
                const uint32_t got =
                    conv1d_border_reach(word(t >> 5), word((t >> 5) + 1), t, width);
                for (int64_t j = 0; j < conv1d_bct_fix_each && t + j < length; ++j) {
                    bool want = false;
                    for (int64_t q = t + j; q < t + j + width && q < length; ++q)
                        want = want || border[static_cast<size_t>(q)];
                    CHECK((got >> j & 1u) == static_cast<uint32_t>(want));
                }
            }
        }
}
