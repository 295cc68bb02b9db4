// wht.block_e4m3: y[row] = E4M3(scale * H_n x[row] / s), n = 2^7..2^15, s = 1 or a scale for each
// row or group of a row: its largest / 448 (SCALES), which may be stored too (AMAX).
//   Tiling     wht.block's: a row is in registers when its last addition is done, so that nothing
//   is
//              read twice. Groups of up to 2^(5 + items) lie in one warp: maxima of an access, of a
//              thread, then by shuffles; a whole row meets in shared memory.
//   Traffic    sizeof(x) + 1 bytes an element, each once; a 16-bit row is 3/4 of a copy's bytes.
//   Flops      log2(n) additions, a maximum, two products and half a conversion an element: at 3
//              bytes an element an H200 has about 20 instructions, so that issue binds from 2^10
//              on.
//   Precision  f32; the product with 1 / s stands for the quotient, two roundings of F32 before the
//              one to E4M3 (nearest even, saturating). Maxima compare bits: NaN is above Inf.
//   Limits     16-byte accesses to X, rows of Y that are multiples of an access.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/block.cuh"
#include "lib/cuda/wht/block_e4m3_layout.h"
#include "lib/cuda/wht/e4m3.cuh"

namespace plait::impl::cuda {

template <scalar X, int LogN> struct wht_block_e4m3_case {
    PLAIT_HD static constexpr wht_block_config config() { return wht_block_e4m3_config(X, LogN); }
};

/// The larger magnitude, NaN above Inf; m is one already.
__device__ __forceinline__ float wht_larger(float m, float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(m), "f"(fabsf(v)));
    return larger;
#else
    const uint32_t a = __float_as_uint(m), b = __float_as_uint(v) & 0x7fffffffu;
    return __uint_as_float(a < b ? b : a);
#endif
}

/// The scale of a group and its reciprocal.
struct wht_group_factors {
    float scale, reciprocal;
};

/// wht_group_scale() without the branches of a division: for normal results the remainder of the
/// product with 1 / 448 is exact and corrects it; smaller ones are replaced.
__device__ __forceinline__ wht_group_factors wht_group_factors_of(float largest) {
    const float estimate = largest * (1.0f / 448.0f);
    const float rest = __fmaf_rn(-448.0f, estimate, largest);
    const float scale = __fmaf_rn(rest, 1.0f / 448.0f, estimate);
    const bool none = !(largest > 0) || largest > 3.4028234663852886e38f;
    const float s = none ? 1.0f : scale < 0x1p-126f ? 0x1p-126f : scale;
    return {s, 1.0f / s};
}

/// From the maxima of accesses to those of their groups, in every thread of a group.
template <class Case, int Rounds, int Chunks>
__device__ __forceinline__ void wht_block_group_maxima(float (&m)[Rounds][Chunks], int log_group,
                                                       float *tops) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = c.tile.log_vec_y, chunk_bits = c.tile.log_items - v;
#pragma unroll
    for (int k = 0; k < chunk_bits; ++k) {
        if (log_group <= v + 5 + k) continue;
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
#pragma unroll
            for (int q = 0; q < Chunks; ++q) {
                if (q & (1 << k)) continue;
                m[i][q] = m[i][q | 1 << k] = wht_larger(m[i][q], m[i][q | 1 << k]);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        if (log_group <= v + k) continue;
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
#pragma unroll
            for (int q = 0; q < Chunks; ++q)
                m[i][q] = wht_larger(m[i][q], __shfl_xor_sync(0xffffffffu, m[i][q], 1 << k));
        }
    }
    if constexpr (c.log_n > 5 + c.tile.log_items) {
        if (log_group < c.log_n) return;
        // A row is the whole tile, or both of them.
        constexpr int warps = tile_threads(c.tile) / 32;
        float top = m[0][0];
#pragma unroll
        for (int i = 1; i < Rounds; ++i) top = wht_larger(top, m[i][0]);
        if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
        __syncthreads(); // read before the next tile's exchanges, which meet before it is written
        top = tops[threadIdx.x % warps];
#pragma unroll
        for (int s = 1; s < warps; s *= 2)
            top = wht_larger(top, __shfl_xor_sync(0xffffffffu, top, s));
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
#pragma unroll
            for (int q = 0; q < Chunks; ++q) m[i][q] = top;
        }
    }
}

/// The scale and the largest magnitude of a group to SCALES and AMAX.
__device__ __forceinline__ void wht_block_e4m3_note(const wht_block_e4m3_args &args, int64_t row,
                                                    int64_t group, float scale, float largest) {
    if (args.scales)
        args.scales[row * args.scales_stride[0] + group * args.scales_stride[1]] = scale;
    const int64_t at = row * args.amax_stride[0] + group * args.amax_stride[1];
    if (args.amax_type == scalar::f32)
        static_cast<float *>(args.amax)[at] = largest;
    else if (args.amax_type == scalar::f64)
        static_cast<double *>(args.amax)[at] = static_cast<double>(largest);
}

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_block_e4m3(const __grid_constant__ wht_block_e4m3_args args) {
    constexpr wht_block_config c = Case::config();
    constexpr tile_layout t = c.tile;
    constexpr int v = t.log_vec_y, per_tile = wht_block_rows_per_tile(c);
    constexpr int rounds = 1 << c.log_rounds, items = 1 << t.log_items, chunks = items >> v;
    constexpr int last = t.phases - 1;
    static_assert(!c.parked && c.log_row == c.log_n, "rows are in registers");
    extern __shared__ __align__(16) char shared[];
    __shared__ float tops[32];
    const wht_block_args rows_args{
        args.x, nullptr, args.rows, args.x_row_stride, args.y_row_stride, args.scale};
    const float scale = static_cast<float>(args.scale);
    const bool grouped = args.scales != nullptr || args.amax != nullptr;
    const int64_t tiles = (args.rows - 1) / per_tile + 1;
    float a[rounds][items];
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const wht_block_rows rows = wht_block_tile_rows(c, tile, args.rows);
        wht_block_rounds<Case>(rows_args, rows, 0, a, shared, tile != blockIdx.x, [&] {
            const int64_t next = tile + tiles_ahead(Case::config().blocks_per_sm);
            if (next < tiles) wht_block_prefetch<Case, c.log_n>(rows_args, next, 0);
        });
        float m[rounds][chunks] = {};
        if (grouped) {
#pragma unroll
            for (int i = 0; i < rounds; ++i) {
#pragma unroll
                for (int j = 0; j < items; ++j) m[i][j >> v] = wht_larger(m[i][j >> v], a[i][j]);
            }
            wht_block_group_maxima<Case>(m, args.log_group, tops);
        }
        const uint32_t thread = tile_thread_part(t, last, threadIdx.x);
        // a group has all that a thread holds
        const bool same = args.log_group >= v + 5 + t.log_items - v && per_tile == 1;
        float largest = 0, by = scale;
        wht_group_factors of{1.0f, 1.0f};
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
#pragma unroll
            for (int q = 0; q < chunks; ++q) {
                const uint32_t element = thread | tile_item_part(t, last, q << v);
                const int in_tile = static_cast<int>(element >> c.log_n);
                if (per_tile > 1 && in_tile >= rows.full) continue;
                const int64_t row = rows.first + in_tile;
                const uint32_t column =
                    (element & bit_range(0, c.log_n)) + (static_cast<uint32_t>(i) << t.log_tile);
                if (grouped) {
                    if (!same || (i == 0 && q == 0)) {
                        largest = fabsf(m[i][q] * scale);
                        of = wht_group_factors_of(largest);
                        if (args.scales) by = scale * of.reciprocal;
                    }
                    if ((column & ((1u << args.log_group) - 1u)) == 0)
                        wht_block_e4m3_note(args, row, column >> args.log_group, of.scale, largest);
                    if (fabsf(by) > 3.4028234663852886e38f) { // tiny results: by two products
#pragma unroll
                        for (int e = 0; e < (1 << v); ++e)
                            a[i][(q << v) + e] *= scale * 0x1p-64f * of.reciprocal;
                    }
                }
                const float last_by = fabsf(by) > 3.4028234663852886e38f ? 0x1p64f : by;
                uint16_t pair[1 << (v - 1)];
#pragma unroll
                for (int e = 0; e < (1 << v); e += 2)
                    pair[e / 2] = wht_round_e4m3_pair(a[i][(q << v) + e] * last_by,
                                                      a[i][(q << v) + e + 1] * last_by);
                auto *y = static_cast<uint8_t *>(args.y) + row * args.y_row_stride + column;
                if constexpr (v == 3) {
                    uint2 word;
                    word.x = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
                    word.y = pair[2] | static_cast<uint32_t>(pair[3]) << 16;
                    __stcs(reinterpret_cast<uint2 *>(y), word);
                } else if constexpr (v == 2) {
                    __stcs(reinterpret_cast<uint32_t *>(y), pair[0] | static_cast<uint32_t>(pair[1])
                                                                          << 16);
                } else {
                    __stcs(reinterpret_cast<uint16_t *>(y), pair[0]);
                }
            }
        }
    }
}

template <scalar X, int LogN> kernel_entry wht_block_e4m3_entry() {
    static_assert(wht_block_e4m3_exists(X, LogN), "the planner would not find this instantiation");
    static constexpr variant_name name = wht_variant(X, scalar::e4m3, ".n", LogN, true);
    return make_kernel_entry<&wht_block_e4m3<wht_block_e4m3_case<X, LogN>>>("wht.block_e4m3",
                                                                            name.text);
}

} // namespace plait::impl::cuda
