// Which problems conv1d.fwd_btc takes by words of two channels.
#pragma once

#include "lib/cuda/conv1d/fwd_btc_layout.h"

namespace plait::impl {

/// Variants "even" and "odd".
enum class btc_pairs { none, even, odd };

/// Of problems without states, ids and packed sequences.
inline btc_pairs conv1d_btc_pairs_of(const conv1d_problem &p) {
    constexpr auto none = btc_pairs::none;
    if (!conv1d_is_half(p.x.type) || p.width > 4) return none;
    if (p.channels < conv1d_btc_pairs_least || p.length < conv1d_btc_pairs_tile) return none;
    // Rows of x that lie behind one another: words at the end of one are of the tensor.
    const bool ascend = p.x.t >= p.channels && (p.batch <= 1 || p.x.b >= p.length * p.x.t);
    if (!ascend || p.x.align < 4 || p.y.align < 4) return none;
    // Offsets of w and bias are of 32 bits there.
    for (const int64_t reach : {p.w.c * p.channels + p.w.t * p.width, p.bias.c * p.channels})
        if (reach > INT32_MAX || reach < INT32_MIN) return none;
    const auto odd = [](int64_t n) { return n % 2 != 0; };
    if (odd(p.x.t) != odd(p.y.t)) return none;
    if (p.batch > 1 && (odd(p.x.b) != odd(p.y.b) || (!odd(p.x.t) && odd(p.x.b)))) return none;
    return odd(p.x.t) ? btc_pairs::odd : btc_pairs::even;
}

} // namespace plait::impl
