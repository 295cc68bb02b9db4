// What the convolution kernels share and the planner knows: strides, launches, divisions by
// constants of a plan.
#pragma once

#include "lib/common/conv1d_problem.h"
#include "lib/common/hd.h"

namespace plait::impl {

/// Of a tensor [row][channel][time], in elements; states have entries in t.
struct conv1d_strides {
    int64_t b, c, t;
};

constexpr conv1d_strides conv1d_strides_of(const conv1d_view &v) { return {v.b, v.c, v.t}; }

/// n / d for n < 2^31 and 1 <= d < 2^31 as a product and a shift: with l = ceil(log2 d) the
/// multiplier ceil(2^(31+l) / d) is above 2^(31+l) / d by less than 2^l / d, which is too little
/// to reach the next quotient.
struct conv1d_divisor {
    uint32_t d, multiplier;
    int32_t shift;
};

constexpr conv1d_divisor conv1d_divisor_of(int64_t d) {
    int l = 0;
    while ((int64_t{1} << l) < d) ++l;
    const uint64_t power = uint64_t{1} << (31 + l);
    const uint64_t n = static_cast<uint64_t>(d);
    return {static_cast<uint32_t>(d), static_cast<uint32_t>((power + n - 1) / n), 31 + l};
}

PLAIT_HD constexpr uint32_t conv1d_quotient(uint32_t n, const conv1d_divisor &by) {
    return static_cast<uint32_t>((static_cast<uint64_t>(n) * by.multiplier) >> by.shift);
}

/// Number block * threads + thread = line * d + item.
struct conv1d_place {
    int64_t line;
    uint32_t item;
};

/// Without a 64-bit division: block = rounds * d + rest, and threads * d are whole lines. For
/// d * threads <= 2^31 and block < 2^31.
PLAIT_HD constexpr conv1d_place conv1d_place_of(const conv1d_divisor &by, uint32_t block,
                                                uint32_t thread, uint32_t threads) {
    const uint32_t rounds = conv1d_quotient(block, by);
    const uint32_t n = (block - rounds * by.d) * threads + thread;
    const uint32_t lines = conv1d_quotient(n, by);
    return {static_cast<int64_t>(rounds) * threads + lines, n - lines * by.d};
}

/// How the planner launches an instantiated kernel of this folder.
struct conv1d_launch {
    char variant[32]; ///< names the instantiation in the kernel table
    int threads;      ///< per block
    int64_t grid;
    int smem_bytes;
};

struct conv1d_name {
    char text[32];
};

constexpr void conv1d_append(conv1d_name &name, int &at, const char *text) {
    for (; *text != 0; ++text) name.text[at++] = *text;
    name.text[at] = 0;
}

constexpr void conv1d_append(conv1d_name &name, int &at, int number) {
    if (number >= 10) name.text[at++] = static_cast<char>('0' + number / 10);
    name.text[at++] = static_cast<char>('0' + number % 10);
    name.text[at] = 0;
}

constexpr int64_t conv1d_most_blocks = INT32_MAX; ///< of a grid; beyond that blocks walk

constexpr int64_t conv1d_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Blocks for `work` threads, which walk where that is more than a grid holds.
constexpr int64_t conv1d_grid(int64_t work, int threads) {
    const int64_t blocks = conv1d_ceil_div(work, threads);
    return blocks < 1 ? 1 : blocks < conv1d_most_blocks ? blocks : conv1d_most_blocks;
}

PLAIT_HD constexpr bool conv1d_is_half(scalar s) { return s == scalar::f16 || s == scalar::bf16; }

} // namespace plait::impl
