// wht.mma16: y[row] = scale * H_n x[row], f16 and bf16, 2^7 <= n <= 2^15, on tensor cores.
// mma16_layout.h says who holds what. A warp copies its 2^11 raw elements to shared memory,
// multiplies them by H_(2^dense), finishes bits 6..10 by butterflies, and after one exchange of f32
// words those of bits 0..2 and 11..13. Several blocks on a multiprocessor hide each other's waits;
// what runs next is prefetched to L2. Each element is read once from memory and written once.
// Limits: row strides >= n; vector kernels need 16-byte bases and strides. Compute capability 8.0.
// In place works: all of a row is in shared memory before any of it is written.
// Precision: raw operands and +-1 are exact, so that no value is rounded before an f32 sum. A
// product of 16 terms drops what is below 2^-25 of the largest term and is cut to f32, not rounded
// (seen on an H200); all other additions round. Integer sums up to 2^24 are exact. No operand
// is zero that belongs to another row: nothing leaks. One multiplication by the scale, one
// rounding.
// Few rows, H200, replayed, bf16: 16 x 2^14 3.60 us without an early launch, 3.25 with it; 16 x
// 2^15 6.37, with both halves at once 5.17; 128 x 2^15 7.57 and 6.79 (copy 3.2). One block on an
// SM: its copies, its 11 instructions an element (by count 1.5 us where no warp waits) and its
// stores follow each other. Early blocks that share an SM with others cost more than the launch
// (128 x 2^13 2.93
// -> 3.79): hence one to an SM (planner).
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/common/mma.cuh"
#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/mma16_layout.h"
#include "lib/cuda/wht/mma16_widen.cuh"

namespace plait::impl::cuda {

template <scalar S, int LogN, bool Vector, bool Both = false> struct wht_mma16_case {
    static constexpr scalar source = S; ///< stored type of X
    PLAIT_HD static constexpr wht_mma16_config config() {
        return wht_mma16_config_of(S, LogN, Vector, Both);
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

/// Starts to bring the chunk of 2^11 elements of this warp to shared memory, in half `half` of a
/// row.
template <class Case>
__device__ __forceinline__ void wht_mma16_fill(const wht_mma16_args &args, int64_t tile, int half,
                                               int warp, int lane, char *chunk) {
    constexpr wht_mma16_config c = Case::config();
    const int64_t first = tile * wht_mma16_rows_per_tile(c);
    const uint32_t start = static_cast<uint32_t>(half << c.log_part | warp << wht_mma16_log_chunk);
    const auto *x = static_cast<const uint16_t *>(args.x) + first * args.x_row_stride + start;
    if constexpr (Case::source != c.type) {
#pragma unroll
        for (int i = 0; i < wht_mma16_copies; ++i) {
            const uint32_t at = wht_mma16_copy(lane, i);
            if (!wht_mma16_present(c, args.rows - first, at)) break;
            *reinterpret_cast<uint4 *>(chunk + 2 * at) = wht_mma16_widened<Case::source>(
                args.x,
                first * args.x_row_stride + start + wht_mma16_offset(c, at, args.x_row_stride));
        }
    } else if constexpr (c.vector) {
#pragma unroll
        for (int i = 0; i < wht_mma16_copies; ++i) {
            const uint32_t at = wht_mma16_copy(lane, i);
            if (!wht_mma16_present(c, args.rows - first, at)) break;
            async_copy<16>(shared_at_of(chunk + 2 * at),
                           x + wht_mma16_offset(c, at, args.x_row_stride));
        }
    } else {
        auto *to = reinterpret_cast<uint16_t *>(chunk);
#pragma unroll 8
        for (int i = 0; i < 1 << wht_mma16_log_chunk; i += 32) {
            const uint32_t at = static_cast<uint32_t>(i + lane);
            if (!wht_mma16_present(c, args.rows - first, at)) break;
            to[at] = __ldcs(x + wht_mma16_offset(c, at, args.x_row_stride));
        }
    }
}

/// Asks L2 for the same chunk of the tile that starts when this one is done.
template <class Case>
__device__ __forceinline__ void wht_mma16_prefetch(const wht_mma16_args &args, int64_t tile,
                                                   int half, int warp, int lane) {
    constexpr wht_mma16_config c = Case::config();
    static_assert(2 << wht_mma16_log_chunk == 32 * prefetch_bytes, "a line for each lane");
    const int64_t first = tile * wht_mma16_rows_per_tile(c);
    const uint32_t at = static_cast<uint32_t>(half << c.log_part | warp << wht_mma16_log_chunk |
                                              lane * (prefetch_bytes / 2));
    if (first >= args.rows || !wht_mma16_present(c, args.rows - first, at)) return;
    prefetch_l2(static_cast<const uint16_t *>(args.x) + first * args.x_row_stride +
                wht_mma16_offset(c, at, args.x_row_stride));
}

/// d += H (chunk of this warp) for one half of the outputs.
template <class Case>
__device__ __forceinline__ void wht_mma16_multiply(const wht_mma16_signs &signs, int half,
                                                   const char *chunk, int lane,
                                                   float (&d)[wht_mma16_tiles][mma_items_d]) {
    constexpr wht_mma16_config c = Case::config();
    constexpr int tiles = wht_mma16_product_tiles(c);
    constexpr int loaded = tiles < 2 ? 2 : tiles; // ldmatrix brings two tiles of B
    const wht_mma16_signs upper = {half ? signs.minus : signs.plus,
                                   half ? signs.plus : signs.minus};
#pragma unroll
    for (int first = 0; first < wht_mma16_tiles; first += loaded) {
#pragma unroll
        for (int from = 0; from < c.halves; ++from) {
            uint32_t b[loaded][mma_words_b];
#pragma unroll
            for (int i = 0; i < loaded; i += 2) {
                uint32_t words[4];
                load_matrices_transposed(words, chunk + (2 * from << c.log_part) +
                                                    2 * wht_mma16_copy(lane, (first + i) / 2));
                b[i][0] = words[0], b[i][1] = words[1];
                b[i + 1][0] = words[2], b[i + 1][1] = words[3];
            }
#pragma unroll
            for (int k = 0; k < loaded; ++k) {
#pragma unroll
                for (int m = k / tiles * tiles; m < (k / tiles + 1) * tiles; ++m) {
                    uint32_t a[mma_words_a];
                    (from ? upper : signs).operand(wht_mma16_minus(m % tiles, k % tiles), a);
                    mma_add<Case::config().type>(d[first + m], a, b[k]);
                }
            }
        }
    }
}

template <class Case>
__device__ __forceinline__ void wht_mma16_store(const wht_mma16_args &args, int64_t tile, int half,
                                                int warp, int lane, char *staging,
                                                const float (&a)[8][8]) {
    constexpr wht_mma16_config c = Case::config();
    const int64_t first = tile * wht_mma16_rows_per_tile(c);
    const int64_t origin = first * args.y_row_stride + (int64_t(half) << c.log_part);
    const uint32_t thread = wht_mma16_store_thread(warp, lane);
    const float scale = static_cast<float>(args.scale);
    if constexpr (c.vector) {
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            const uint32_t at = thread | wht_mma16_store_item(c, top, 0);
            if (!wht_mma16_present(c, args.rows - first, at)) break;
            store_elements<Case::config().type, 3>(
                args.y, origin + wht_mma16_offset(c, at, args.y_row_stride), a[top], scale);
        }
    } else { // through shared memory, or every lane would write to 16-byte segments of its own
        auto *words = reinterpret_cast<uint16_t *>(staging);
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            uint32_t pair[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                pair[i] = round_pair<Case::config().type>(a[top][2 * i] * scale,
                                                          a[top][2 * i + 1] * scale);
            }
            const uint32_t at = thread | wht_mma16_store_item(c, top, 0);
            *reinterpret_cast<uint4 *>(words + at) = {pair[0], pair[1], pair[2], pair[3]};
        }
        __syncwarp();
#pragma unroll
        for (int top = 0; top < 8; ++top) {
#pragma unroll
            for (int i = 0; i < 256; i += 32) {
                const uint32_t at =
                    static_cast<uint32_t>(warp << 8 | i | lane) | wht_mma16_store_item(c, top, 0);
                if (!wht_mma16_present(c, args.rows - first, at)) break;
                __stcs(static_cast<uint16_t *>(args.y) + origin +
                           wht_mma16_offset(c, at, args.y_row_stride),
                       words[at]);
            }
        }
    }
}

/// The warps of a part meet.
template <class Case> __device__ __forceinline__ void wht_mma16_barrier() {
    if constexpr (Case::config().log_warps == 0) {
        __syncwarp();
    } else if constexpr (Case::config().both) {
        constexpr int warps = wht_mma16_warps(Case::config());
        part_barrier(1 + warps + static_cast<int>(threadIdx.x) / (32 * warps), 32 * warps);
    } else {
        __syncthreads();
    }
}

/// From D operands to eight elements in a row.
template <class Case>
__device__ __forceinline__ void wht_mma16_exchange(int warp, int lane, float *words,
                                                   const float (&d)[wht_mma16_tiles][mma_items_d],
                                                   float (&a)[8][8]) {
    constexpr wht_mma16_config c = Case::config();
    const uint32_t made = wht_mma16_product_thread(warp, lane);
    const uint32_t thread = wht_mma16_store_thread(warp, lane);
    if constexpr (c.halves == 2 && !c.both) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            wht_mma16_barrier<Case>(); // the words before are read
#pragma unroll
            for (int i = 0; i < wht_mma16_tiles; ++i) {
#pragma unroll
                for (int j = 0; j < mma_items_d; j += 2) {
                    words[wht_mma16_half_word(made | wht_mma16_product_item(i, j))] = d[i][j + odd];
                }
            }
            wht_mma16_barrier<Case>(); // all words are written
#pragma unroll
            for (int top = 0; top < 8; ++top) {
                const float4 four = *reinterpret_cast<const float4 *>(
                    words + wht_mma16_half_word(thread | wht_mma16_store_item(c, top, 0)));
                a[top][odd] = four.x, a[top][2 + odd] = four.y;
                a[top][4 + odd] = four.z, a[top][6 + odd] = four.w;
            }
        }
    } else {
        float *to = words + wht_mma16_word(made);
        wht_mma16_barrier<Case>(); // the words before are read
#pragma unroll
        for (int i = 0; i < wht_mma16_tiles; ++i) {
#pragma unroll
            for (int j = 0; j < mma_items_d; j += 2) {
                *reinterpret_cast<float2 *>(to + wht_mma16_product_item(i, j)) = {d[i][j],
                                                                                  d[i][j + 1]};
            }
        }
        wht_mma16_barrier<Case>(); // all words are written
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

/// One part of the output, in registers: a tile of rows, or half a row. `read` once the chunk is.
template <class Case, class Read>
__device__ __forceinline__ void wht_mma16_part(const wht_mma16_signs &signs, int half, int warp,
                                               int lane, const char *chunk, float *words,
                                               float (&a)[8][8], Read read) {
    constexpr wht_mma16_config c = Case::config();
    float d[wht_mma16_tiles][mma_items_d] = {};
    wht_mma16_multiply<Case>(signs, half, chunk, lane, d);
    read();
    wht_mma16_between<c.dense - 4,
                      (c.log_n < wht_mma16_log_chunk ? c.log_n : wht_mma16_log_chunk) - 7>(d);
    wht_mma16_exchange<Case>(warp, lane, words, d, a);
#pragma unroll
    for (int top = 0; top < 8; ++top) {
        butterfly_items<0>(a[top]);
        butterfly_items<1>(a[top]);
        butterfly_items<2>(a[top]);
    }
    wht_mma16_between<3 - c.log_warps, 3>(a);
}

template <class Case>
__device__ __forceinline__ void wht_mma16_fill_tile(const wht_mma16_args &args, int64_t tile,
                                                    int warp, int lane, char *chunk) {
    constexpr wht_mma16_config c = Case::config();
    __syncwarp(); // the chunks before are read
#pragma unroll
    for (int half = 0; half < c.halves; ++half)
        wht_mma16_fill<Case>(args, tile, half, warp, lane, chunk + (2 * half << c.log_part));
    async_commit();
}

/// Transforms the tiles of this block from `first` on: store(tile, half, warp, lane, words, a) for
/// each part.
/// `Ahead`: blocks walk, and a warp fills its chunk again as soon as the products have read it.
template <class Case, bool Ahead, class Store>
__device__ __forceinline__ void wht_mma16_walk(const wht_mma16_args &args, int64_t first,
                                               char *shared, Store store) {
    constexpr wht_mma16_config c = Case::config();
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    char *chunk = shared + (2 * warp << wht_mma16_log_chunk);
    auto *words = reinterpret_cast<float *>(shared + wht_mma16_raw_bytes(c));
    const wht_mma16_signs signs = wht_mma16_signs_of<Case>(lane);
    const int64_t tiles = (args.rows - 1) / wht_mma16_rows_per_tile(c) + 1;
    if (Ahead && first < tiles) wht_mma16_fill_tile<Case>(args, first, warp, lane, chunk);
    for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
        if constexpr (!Ahead) wht_mma16_fill_tile<Case>(args, tile, warp, lane, chunk);
        async_wait<0>();
        __syncwarp(); // those of other lanes too
#pragma unroll 1
        for (int half = 0; half < c.halves; ++half) {
            float a[8][8];
            wht_mma16_part<Case>(signs, half, warp, lane, chunk, words, a, [&] {
                constexpr wht_mma16_config k = Case::config();
                if constexpr (!Ahead) {
                    wht_mma16_prefetch<Case>(args, tile + tiles_ahead(k.blocks_per_sm), half, warp,
                                             lane);
                } else if (half == k.halves - 1 && tile + gridDim.x < tiles) {
                    wht_mma16_fill_tile<Case>(args, tile + gridDim.x, warp, lane, chunk);
                }
            });
            store(tile, half, warp, lane, words, a);
        }
    }
}

/// The same where both halves are made at once: a warp fills the chunk of its own half, and reads
/// that of its fellow in the other too.
template <class Case, class Store>
__device__ __forceinline__ void wht_mma16_both(const wht_mma16_args &args, int64_t first,
                                               char *shared, Store store) {
    constexpr wht_mma16_config c = Case::config();
    constexpr int warps = wht_mma16_warps(c);
    const int lane = static_cast<int>(threadIdx.x % 32), all = static_cast<int>(threadIdx.x / 32);
    const int warp = all % warps, half = all / warps;
    char *chunk = shared + (2 * warp << wht_mma16_log_chunk);
    char *words = shared + wht_mma16_raw_bytes(c) + half * wht_mma16_word_bytes(c);
    const wht_mma16_signs signs = wht_mma16_signs_of<Case>(lane);
    const auto meet = [warp] { part_barrier(1 + warp, 64); };
    for (int64_t tile = first; tile < args.rows; tile += gridDim.x) {
        if (tile != first) meet(); // both have read their chunks
        wht_mma16_fill<Case>(args, tile, half, warp, lane, chunk + (2 * half << c.log_part));
        async_commit();
        async_wait<0>();
        meet(); // both have filled them
        float a[8][8];
        wht_mma16_part<Case>(signs, half, warp, lane, chunk, reinterpret_cast<float *>(words), a,
                             [] {});
        store(tile, half, warp, lane, reinterpret_cast<float *>(words), a);
    }
}

template <class Case>
__global__ void __launch_bounds__(wht_mma16_threads(Case::config()), Case::config().blocks_per_sm)
    wht_mma16(const __grid_constant__ wht_mma16_args args) {
    extern __shared__ __align__(16) char shared[];
    start_successor();
    const int64_t first = wait_for_predecessor();
    const auto store = [&](int64_t tile, int half, int warp, int lane, float *words,
                           const float(&a)[8][8]) {
        if constexpr (!Case::config().vector) wht_mma16_barrier<Case>(); // the words are read
        wht_mma16_store<Case>(args, tile, half, warp, lane, reinterpret_cast<char *>(words), a);
    };
    if constexpr (Case::config().both) {
        wht_mma16_both<Case>(args, first, shared, store);
    } else {
        wht_mma16_walk<Case, false>(args, first, shared, store);
    }
}

} // namespace plait::impl::cuda
