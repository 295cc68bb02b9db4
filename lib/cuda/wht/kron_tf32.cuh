// wht.kron_tf32: y[row] = scale * (H_a (x) H_b) x[row], f32, n = a b, 2^9 <= n <= 2^14, as two
// matrix products on TF32 tensor cores between one read of memory and one write (kron_layout.h).
// Product 1 replaces the words of its own lines in shared memory, product 2 stores its D operands
// as they are, 16 bytes a lane: neither is transposed. Blocks walk over tiles; several blocks on a
// multiprocessor hide each other's waits; what runs next is prefetched to L2.
// Limits: 16-byte bases and row strides, row strides >= n, compute capability 8.0. In place works:
// a tile is in shared memory before any of it is written.
// Precision, Terms = 1: operands of both products are rounded to TF32, at most 2^-11 of each, and
// H / sqrt(n) keeps norms, so that the error is at most 2 * 2^-11 of the norm; f32 sums add little.
// Terms = 3: 11 + 11 + 2 bits of an operand are exact, the small parts are summed first, and sums
// of eight products are added in f32 with rounding, since tensor cores cut: errors as of f32 sums.
// +-1 is exact. No operand is zero that belongs to another row: nothing leaks. One multiplication
// by the scale. Bound: 128 multiply-adds an element and product, 16 for a step of wht.block.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/common/mma_kron.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/kron_tf32_layout.h"

namespace plait::impl::cuda {

template <int LogN, int Terms> struct wht_kron_tf32_case {
    PLAIT_HD static constexpr wht_kron_config config() { return wht_kron_config_of(LogN); }
    static constexpr int terms = Terms;
};

/// The four words that A operands are made of.
struct wht_kron_tf32_signs {
    uint32_t plus[2], minus[2]; ///< for the halves of the columns

    __device__ __forceinline__ wht_kron_tf32_signs(bool first, bool second) {
        constexpr uint32_t one = 0x3f800000u, sign = 0x80000000u;
        plus[0] = first ? one | sign : one;
        plus[1] = second ? one | sign : one;
        minus[0] = plus[0] ^ sign;
        minus[1] = plus[1] ^ sign;
    }

    __device__ __forceinline__ void operand(int m, int s, uint32_t (&a)[mma_words_a]) const {
#pragma unroll
        for (int w = 0; w < mma_words_a; ++w) {
            a[w] = wht_kron_tf32_step(m, w % 2, s) ? minus[w / 2] : plus[w / 2];
        }
    }
};

/// d[m] += H's tile (m, s) times two elements of B, for all m.
template <int Terms, int Tiles>
__device__ __forceinline__ void wht_kron_tf32_multiply(const wht_kron_tf32_signs &signs, int s,
                                                       float first, float second,
                                                       float (&d)[Tiles][mma_items_d]) {
    if constexpr (Terms == 1) {
        const uint32_t b[mma_words_b] = {round_tf32(first), round_tf32(second)};
#pragma unroll
        for (int m = 0; m < Tiles; ++m) {
            uint32_t a[mma_words_a];
            signs.operand(m, s, a);
            mma_add_tf32(d[m], a, b);
        }
    } else {
        static_assert(Terms == 3, "24 bits are 11 + 11 + 2");
        uint32_t b[3][mma_words_b];
#pragma unroll
        for (int t = 0; t < 2; ++t) b[t][0] = take_tf32(first), b[t][1] = take_tf32(second);
        b[2][0] = __float_as_uint(first), b[2][1] = __float_as_uint(second);
#pragma unroll
        for (int m = 0; m < Tiles; ++m) {
            uint32_t a[mma_words_a];
            signs.operand(m, s, a);
            float sum[mma_items_d] = {};
#pragma unroll
            for (int t = 2; t >= 0; --t) mma_add_tf32(sum, a, b[t]);
#pragma unroll
            for (int i = 0; i < mma_items_d; ++i) d[m][i] += sum[i];
        }
    }
}

/// Starts to bring a tile to shared memory.
template <class Case>
__device__ __forceinline__ void wht_kron_tf32_fill(const wht_kron_tf32_args &args, int64_t tile,
                                                   float *words) {
    constexpr wht_kron_config c = Case::config();
    const int64_t first = tile * wht_kron_rows_per_tile(c);
    const auto *x = static_cast<const float *>(args.x) + first * args.x_row_stride;
#pragma unroll
    for (int i = 0; i < 1 << c.log_tile; i += 4 * wht_kron_threads(c)) {
        const int at = i + 4 * static_cast<int>(threadIdx.x);
        const int row = at >> c.log_n;
        if (c.log_n < c.log_tile && first + row >= args.rows) break;
        async_copy<16>(
            shared_at_of(words + wht_kron_tf32_word(c, at >> c.log_b, at & ((1 << c.log_b) - 1))),
            x + row * args.x_row_stride + (at & ((1 << c.log_n) - 1)));
    }
}

/// Asks L2 for the tile that starts when this one is done.
template <class Case>
__device__ __forceinline__ void wht_kron_tf32_prefetch(const wht_kron_tf32_args &args,
                                                       int64_t tile) {
    constexpr wht_kron_config c = Case::config();
    constexpr int line = prefetch_bytes / 4;
    const int at = line * static_cast<int>(threadIdx.x);
    const int64_t row = tile * wht_kron_rows_per_tile(c) + (at >> c.log_n);
    static_assert(line * wht_kron_threads(c) == 1 << c.log_tile, "a line for each thread");
    if (row >= args.rows) return;
    prefetch_l2(static_cast<const float *>(args.x) + row * args.x_row_stride +
                (at & ((1 << c.log_n) - 1)));
}

/// Product 1, in place: no other warp has these lines.
template <class Case>
__device__ __forceinline__ void wht_kron_tf32_lines(int warp, int lane, float *words) {
    constexpr wht_kron_config c = Case::config();
    constexpr int tiles = 1 << (c.log_a - 4), steps = 1 << (c.log_a - 3);
    const wht_kron_tf32_signs signs(wht_kron_tf32_lane1(lane, 0), wht_kron_tf32_lane1(lane, 1));
#pragma unroll 1
    for (int group = 0; group < wht_kron_line_groups(c); ++group) {
        const wht_kron_place at = wht_kron_lines(c, warp, group);
        float *lines = words + wht_kron_tf32_word(c, at.row, at.column);
        const float *from = lines + wht_kron_tf32_word(c, wht_kron_tf32_in1(lane, 0, 0), lane / 4);
        float *to = lines + wht_kron_tf32_word(c, wht_kron_tf32_out1(lane, 0, 0), lane % 4 * 2);
        float d[tiles][mma_items_d] = {};
#pragma unroll
        for (int s = 0; s < steps; ++s) {
            if (Case::terms == 3 && s % 4 == 0) __syncwarp(); // bounds what is loaded ahead
            wht_kron_tf32_multiply<Case::terms>(
                signs, s, from[wht_kron_tf32_word(c, wht_kron_tf32_in1(0, s, 0), 0)],
                from[wht_kron_tf32_word(c, wht_kron_tf32_in1(0, s, 1), 0)], d);
        }
        __syncwarp(); // all lanes have read the lines
#pragma unroll
        for (int m = 0; m < tiles; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float2 *>(
                    to + wht_kron_tf32_word(c, wht_kron_tf32_out1(0, m, half), 0)) = {
                    d[m][2 * half], d[m][2 * half + 1]};
            }
        }
    }
}

/// Product 2 and the stores.
template <class Case>
__device__ __forceinline__ void wht_kron_tf32_finish(const wht_kron_tf32_args &args, int64_t tile,
                                                     int warp, int lane, const float *words) {
    constexpr wht_kron_config c = Case::config();
    constexpr int tiles = 1 << (c.log_b - 4), steps = 1 << (c.log_b - 3);
    const wht_kron_tf32_signs signs(wht_kron_tf32_lane2(lane, 0), wht_kron_tf32_lane2(lane, 1));
    const int64_t first = tile * wht_kron_rows_per_tile(c);
    const float scale = static_cast<float>(args.scale);
#pragma unroll 1
    for (int group = 0; group < wht_kron_row_groups(c); ++group) {
        const int row = wht_kron_rows(c, warp, group).row;
        __syncwarp(); // lanes part where rows end
        const float *from =
            words + wht_kron_tf32_word(c, row + lane / 4, wht_kron_tf32_in2(lane, 0, 0));
        float d[tiles][mma_items_d] = {};
#pragma unroll
        for (int s = 0; s < steps; s += 4) {
            if (Case::terms == 3) __syncwarp(); // as above
            float b[2][4];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float4 four =
                    *reinterpret_cast<const float4 *>(from + wht_kron_tf32_in2(0, s, half));
                b[half][0] = four.x, b[half][1] = four.y, b[half][2] = four.z, b[half][3] = four.w;
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                wht_kron_tf32_multiply<Case::terms>(signs, s + i, b[0][i], b[1][i], d);
            }
        }
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const uint32_t at = wht_kron_element(Case::config(), row + lane % 4 * 2 + odd,
                                                 wht_kron_out(lane, 0, 0));
            const int64_t to = first + (at >> c.log_n);
            if (c.log_n < c.log_tile && to >= args.rows) break;
#pragma unroll
            for (int m = 0; m < tiles; m += 2) {
                const float four[4] = {d[m][odd], d[m][2 + odd], d[m + 1][odd], d[m + 1][2 + odd]};
                store_elements<scalar::f32, 2>(
                    args.y,
                    to * args.y_row_stride + (at & ((1u << c.log_n) - 1u)) + wht_kron_out(0, m, 0),
                    four, scale);
            }
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(wht_kron_threads(Case::config()),
                                  wht_kron_tf32_blocks_per_sm(Case::config(), Case::terms))
    wht_kron_tf32(const __grid_constant__ wht_kron_tf32_args args) {
    constexpr wht_kron_config c = Case::config();
    extern __shared__ __align__(16) char shared[];
    auto *words = reinterpret_cast<float *>(shared);
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int64_t tiles = (args.rows - 1) / wht_kron_rows_per_tile(c) + 1;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        wht_kron_tf32_fill<Case>(args, tile, words);
        async_commit();
        wht_kron_tf32_prefetch<Case>(
            args, tile + tiles_ahead(wht_kron_tf32_blocks_per_sm(c, Case::terms)));
        async_wait<0>();
        __syncthreads(); // the tile is here
        wht_kron_tf32_lines<Case>(warp, lane, words);
        __syncthreads(); // all lines are transformed
        wht_kron_tf32_finish<Case>(args, tile, warp, lane, words);
        __syncthreads(); // the words are read
    }
}

} // namespace plait::impl::cuda
