// wht.mma16: y[row] = scale * H_n x[row], f16 and bf16, 2^7 <= n <= 2^15, on tensor cores.
// mma16_layout.h says who holds what. A warp copies its 2^11 raw elements to shared memory (async,
// those of the next row as soon as the present ones are in registers), multiplies them by
// H_(2^dense), finishes bits 6..10 by butterflies, and after one exchange of f32 words those of
// bits 0..2 and 11..13. Blocks walk over rows; each element is read once and written once.
// Limits: row strides >= n; vector kernels need 16-byte bases and strides. Compute capability 8.0.
// In place works: all of a row is in shared memory before any of it is written.
// Precision: +-1 operands are exact, raw elements are not rounded, so that sums are the f32 sums of
// the other kernels but for the tensor core's own additions: up to 64 products are aligned to the
// largest of them and cut, not rounded, below 2^-24 of it. Integers stay exact. No operand is zero
// that belongs to another row: nothing leaks. One multiplication by the scale, one rounding.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/common/mma.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/mma16_layout.h"

namespace plait::impl::cuda {

template <scalar S, int LogN, bool Vector> struct wht_mma16_case {
    PLAIT_HD static constexpr wht_mma16_config config() {
        return wht_mma16_config_of(S, LogN, Vector);
    }
};

/// The two signs of an A operand: H_16 with bit 3 of row and column apart is (p, p, p, -p).
struct wht_mma16_signs {
    uint32_t plus, minus;

    __device__ __forceinline__ void operand(bool negative, uint32_t (&a)[mma_words_a]) const {
        a[0] = a[1] = a[2] = negative ? minus : plus;
        a[3] = negative ? plus : minus;
    }
};

template <class Case> __device__ __forceinline__ wht_mma16_signs wht_mma16_signs_of(int lane) {
    const auto minus = [lane](int half) {
        const mma_place at = mma_place_a(lane, 0, half);
        return wht_mma16_minus(at.row, at.column);
    };
    const uint32_t plus = pair_of_ones<Case::config().type>(minus(0), minus(1));
    return {plus, negate_pair(plus)};
}

/// Starts to bring one chunk of 2^11 elements to shared memory: `part` 0 or 1 of the row.
template <class Case>
__device__ __forceinline__ void wht_mma16_fill(const wht_mma16_args &args, int64_t tile, int part,
                                               int warp, int lane, char *chunk) {
    constexpr wht_mma16_config c = Case::config();
    const int64_t first = tile * wht_mma16_rows_per_tile(c);
    const uint32_t start = static_cast<uint32_t>(part << c.log_part | warp << wht_mma16_log_chunk);
    const auto *x = static_cast<const uint16_t *>(args.x) + first * args.x_row_stride + start;
#pragma unroll
    for (int i = 0; i < wht_mma16_copies; ++i) {
        const uint32_t at = wht_mma16_copy(lane, i);
        if (!wht_mma16_present(c, args.rows - first, at)) break;
        const auto *from = x + wht_mma16_offset(c, at, args.x_row_stride);
        if constexpr (c.vector) {
            async_copy_16(chunk + 2 * at, from);
        } else {
            uint32_t words[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                words[w] = __ldcs(from + 2 * w) | static_cast<uint32_t>(__ldcs(from + 2 * w + 1))
                                                      << 16;
            }
            *reinterpret_cast<uint4 *>(chunk + 2 * at) = {words[0], words[1], words[2], words[3]};
        }
    }
}

/// d += H (one chunk) with the signs that it has in this part of the output.
template <class Case>
__device__ __forceinline__ void wht_mma16_multiply(const wht_mma16_signs &signs, const char *chunk,
                                                   int lane,
                                                   float (&d)[wht_mma16_tiles][mma_items_d]) {
    constexpr wht_mma16_config c = Case::config();
    constexpr int tiles = wht_mma16_product_tiles(c);
    constexpr int loaded = tiles < 2 ? 2 : tiles; // ldmatrix brings two tiles of B
#pragma unroll
    for (int first = 0; first < wht_mma16_tiles; first += loaded) {
        uint32_t b[loaded][mma_words_b];
#pragma unroll
        for (int i = 0; i < loaded; i += 2) {
            uint32_t words[4];
            load_matrices_transposed(words, chunk + 2 * wht_mma16_copy(lane, (first + i) / 2));
            b[i][0] = words[0], b[i][1] = words[1];
            b[i + 1][0] = words[2], b[i + 1][1] = words[3];
        }
#pragma unroll
        for (int k = 0; k < loaded; ++k) {
#pragma unroll
            for (int m = k / tiles * tiles; m < (k / tiles + 1) * tiles; ++m) {
                uint32_t a[mma_words_a];
                signs.operand(wht_mma16_minus(m % tiles, k % tiles), a);
                mma_add<Case::config().type>(d[first + m], a, b[k]);
            }
        }
    }
}

template <class Case>
__device__ __forceinline__ void wht_mma16_store(const wht_mma16_args &args, int64_t tile, int part,
                                                int warp, int lane, float (&a)[8][8]) {
    constexpr wht_mma16_config c = Case::config();
    const int64_t first = tile * wht_mma16_rows_per_tile(c);
    const int64_t origin = first * args.y_row_stride + (int64_t(part) << c.log_part);
    const uint32_t thread = wht_mma16_store_thread(warp, lane);
    const float scale = static_cast<float>(args.scale);
#pragma unroll
    for (int top = 0; top < 8; ++top) {
        const uint32_t at = thread | wht_mma16_store_item(c, top, 0);
        if (!wht_mma16_present(c, args.rows - first, at)) break;
        const int64_t to = origin + wht_mma16_offset(c, at, args.y_row_stride);
        if constexpr (c.vector) {
            store_elements<Case::config().type, 3>(args.y, to, a[top], scale);
        } else {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                store_elements<Case::config().type, 0>(args.y, to + i, a[top] + i, scale);
            }
        }
    }
}

/// A group's own barrier, or that of one warp of each group, which share their chunks.
template <class Case> __device__ __forceinline__ void wht_mma16_barrier(int group) {
    constexpr int warps = wht_mma16_warps(Case::config());
    if constexpr (warps == 1) {
        __syncwarp();
    } else if constexpr (Case::config().groups == 1) {
        __syncthreads();
    } else {
        barrier_among(1 + group, 32 * warps);
    }
}
template <class Case> __device__ __forceinline__ void wht_mma16_pair_barrier(int warp) {
    if constexpr (Case::config().groups == 1) {
        __syncwarp();
    } else {
        barrier_among(3 + warp, 64);
    }
}

/// From D operands to eight elements in a row.
template <class Case>
__device__ __forceinline__ void wht_mma16_exchange(int group, int warp, int lane, float *words,
                                                   const float (&d)[wht_mma16_tiles][mma_items_d],
                                                   float (&a)[8][8]) {
    constexpr wht_mma16_config c = Case::config();
    float *to = words + wht_mma16_word(wht_mma16_product_thread(warp, lane));
    wht_mma16_barrier<Case>(group); // the words of the row before are read
#pragma unroll
    for (int i = 0; i < wht_mma16_tiles; ++i) {
#pragma unroll
        for (int j = 0; j < mma_items_d; j += 2) {
            *reinterpret_cast<float2 *>(to + wht_mma16_product_item(i, j)) = {d[i][j], d[i][j + 1]};
        }
    }
    wht_mma16_barrier<Case>(group); // all words are written
    const uint32_t thread = wht_mma16_store_thread(warp, lane);
#pragma unroll
    for (int low = 0; low < 8; low += 4) {
        const float *from = words + wht_mma16_word(thread | static_cast<uint32_t>(low));
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            const float4 four =
                *reinterpret_cast<const float4 *>(from + wht_mma16_store_item(c, top, 0));
            a[top][low] = four.x, a[top][low + 1] = four.y;
            a[top][low + 2] = four.z, a[top][low + 3] = four.w;
        }
    }
}

/// Butterflies among arrays whose number has this bit, for those of `From` .. `To` - 1.
template <int From, int To, int Count, int Items>
__device__ __forceinline__ void wht_mma16_between(float (&a)[Count][Items]) {
#pragma unroll
    for (int bit = From; bit < To; ++bit) {
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            if (!(i >> bit & 1)) butterfly_arrays(a[i], a[i | 1 << bit]);
        }
    }
}

template <class Case>
__global__ void __launch_bounds__(wht_mma16_threads(Case::config()), Case::config().blocks_per_sm)
    wht_mma16(const __grid_constant__ wht_mma16_args args) {
    constexpr wht_mma16_config c = Case::config();
    extern __shared__ __align__(16) char shared[];
    const int lane = static_cast<int>(threadIdx.x % 32),
              number = static_cast<int>(threadIdx.x / 32);
    const int warp = number % wht_mma16_warps(c);
    const int group = c.groups == 1 ? 0 : number / wht_mma16_warps(c);
    char *chunk = shared + (2 * warp << wht_mma16_log_chunk);
    auto *words =
        reinterpret_cast<float *>(shared + wht_mma16_raw_bytes(c)) + (group << c.log_part);
    const wht_mma16_signs signs = wht_mma16_signs_of<Case>(lane);
    const int64_t tiles = (args.rows - 1) / wht_mma16_rows_per_tile(c) + 1;
    const auto fill = [&](int64_t tile) {
        if (tile >= tiles) return;
        wht_mma16_fill<Case>(args, tile, group, warp, lane, chunk + (2 * group << c.log_part));
    };
    fill(blockIdx.x);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float d[wht_mma16_tiles][mma_items_d] = {};
        async_copies_arrived();
        wht_mma16_pair_barrier<Case>(warp); // those of other threads too
        wht_mma16_multiply<Case>(signs, chunk, lane, d);
        if constexpr (c.groups == 2) {
            const wht_mma16_signs second = {group ? signs.minus : signs.plus,
                                            group ? signs.plus : signs.minus};
            wht_mma16_multiply<Case>(second, chunk + (2 << c.log_part), lane, d);
        }
        wht_mma16_pair_barrier<Case>(warp); // the chunks are read
        fill(tile + gridDim.x);
        constexpr int last = c.log_n < wht_mma16_log_chunk ? c.log_n : wht_mma16_log_chunk;
        wht_mma16_between<c.dense - 4, last - 7>(d);
        float a[8][8];
        wht_mma16_exchange<Case>(group, warp, lane, words, d, a);
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            butterfly_items<0>(a[top]);
            butterfly_items<1>(a[top]);
            butterfly_items<2>(a[top]);
        }
        wht_mma16_between<3 - c.log_warps, 3>(a);
        wht_mma16_store<Case>(args, tile, group, warp, lane, a);
    }
}

} // namespace plait::impl::cuda
