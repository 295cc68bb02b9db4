// Factor matrices as wht.lines multiplies by them: four inputs have 16 signed sums, and an output
// is one of these sums from every group of four. m / 4 + 5 additions for each output instead of m.
#pragma once

#include "lib/common/factor_matrices.h"

#include <cstdint>

namespace plait::impl::cpu {

/// code[k][g] = 16 g + s: output k takes of inputs 4 g .. 4 g + 3 the sum whose bit i of s is set
/// where input i is subtracted.
struct wht_lines_codes {
    int order = 0;
    int16_t code[wht_factor_max_order][wht_factor_max_order / 4] = {};
};

constexpr wht_lines_codes make_wht_lines_codes(wht_factor f, bool transposed) {
    const wht_factor_table t = make_wht_factor_table(f);
    wht_lines_codes c{};
    c.order = t.order;
    for (int k = 0; k < t.order; ++k)
        for (int g = 0; g < t.order / 4; ++g) {
            int s = 0;
            for (int i = 0; i < 4; ++i) {
                const int j = 4 * g + i;
                if (t.sign[transposed ? j * t.order + k : k * t.order + j] < 0) s |= 1 << i;
            }
            c.code[k][g] = static_cast<int16_t>(16 * g + s);
        }
    return c;
}

/// Made at compile time: an entry takes a search.
const wht_lines_codes &wht_lines_codes_of(wht_factor f, bool transposed);

} // namespace plait::impl::cpu
