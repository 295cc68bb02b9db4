// conv1d forward by aligned vectors of rows that begin anywhere: who computes and stores what.
#include "lib/cuda/conv1d/fwd_bct_flat_layout.h"
#include "tests/layout/count_map.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <vector>

using namespace plait::impl;
using plait_test::count_map;

TEST_CASE("conv1d.fwd_bct_tiled, flat: every vector once, rows by a product") {
    for (const scalar s : {scalar::f32, scalar::f16, scalar::bf16}) {
        count_map map(conv1d_flat_elements(s) / conv1d_vector(s));
        for (uint32_t thread = 0; thread < conv1d_bct_threads; ++thread)
            for (int i = 0; i < conv1d_flat_vectors; ++i)
                map.mark(conv1d_flat_first(s, thread, i) / static_cast<uint32_t>(conv1d_vector(s)));
        CHECK(map.each_once());
    }
    // The upper word of a product, as the device has it.
    const auto high = [](uint64_t a, uint64_t b) {
        const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
        const uint64_t low = a0 * b0, one = a1 * b0 + (low >> 32);
        const uint64_t two = a0 * b1 + (one & 0xffffffffu);
        return a1 * b1 + (one >> 32) + (two >> 32);
    };
    bool right = true;
    for (const int64_t length : {4, 7, 511, 4099, 65536, 1048577, 1 << 30})
        for (uint64_t n = 0; n < uint64_t{1} << 60; n = n * 5 + 2048)
            for (const uint64_t near : {uint64_t{0}, uint64_t{2048}, n % 4096}) {
                const uint64_t at = n / 4096 * 4096 + near;
                const conv1d_flat_row row =
                    conv1d_flat_row_of(at, high(at, conv1d_inverse_of(length)), length);
                right = right &&
                        row.row == static_cast<int64_t>(at / static_cast<uint64_t>(length)) &&
                        row.rest == at % static_cast<uint64_t>(length);
            }
    for (const int64_t length : {4, 7, 511, 4099, 1 << 30})
        for (int64_t row = 1; row < 1 << 30; row *= 3)
            for (const int64_t off : {-1, 0, 1}) {
                const uint64_t at = static_cast<uint64_t>(row * length + off);
                const conv1d_flat_row r =
                    conv1d_flat_row_of(at, high(at, conv1d_inverse_of(length)), length);
                right = right && r.row == static_cast<int64_t>(at) / length &&
                        r.rest == at % static_cast<uint64_t>(length);
            }
    CHECK(right);
}
