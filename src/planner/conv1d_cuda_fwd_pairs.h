// Which problems conv1d.fwd_btc takes by words of two channels, or by vectors that are shifted.
#pragma once

#include "lib/cuda/conv1d/fwd_btc_shift_layout.h"

namespace plait::impl {

/// Variants "even", "odd" and "shift".
enum class btc_pairs { none, even, odd, shift };

/// Taps of all channels, and biases, are of the type of x, without gaps, at multiples of 16 bytes.
inline bool conv1d_dense_taps(const conv1d_problem &p) {
    const bool w = p.w.type == p.x.type && p.w.align >= 16 && p.w.t == 1 && p.w.c == p.width;
    return w &&
           (!p.bias.used() || (p.bias.type == p.x.type && p.bias.align >= 16 && p.bias.c == 1));
}

/// Tokens at odd strides that lie alike in x and y to 16 bytes.
inline bool conv1d_btc_shifts(const conv1d_problem &p) {
    const auto alike = [](int64_t a, int64_t b) { return (a - b) % conv1d_shift_vector == 0; };
    return p.width == 4 && p.channels >= conv1d_shift_least && p.x.align >= 16 && p.y.align >= 16 &&
           alike(p.x.t, p.y.t) && (p.batch <= 1 || alike(p.x.b, p.y.b));
}

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
    if (!odd(p.x.t)) return btc_pairs::even;
    return conv1d_btc_shifts(p) ? btc_pairs::shift : btc_pairs::odd;
}

} // namespace plait::impl
