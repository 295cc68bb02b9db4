// wht.mma16_e4m3: y[row] = E4M3(scale * H_n x[row] / s) of f16 and bf16 rows, n = 2^7..2^15, on
// tensor cores, s = 1 or a scale for each row or group: its largest / 448 (SCALES, AMAX).
//   Tiling     wht.mma16's: at the end a thread has 8 results in a row for each of 8 top bits, a
//              warp 2^8 in a row eight times. Maxima of groups in those: each step of shuffles
//              leaves a lane half of its values, so that a lane works for one group; rows of a
//              block meet in shared memory.
//   Traffic    3 bytes an element, each once.
//   Flops      about 14 instructions an element and 3 of groups, where wht.block_e4m3 has 20 and 8.
//   Bound      an H200 has time for about 20: waits of 16 warps to a multiprocessor bind. Time /
//              copy of bf16: 1.07 at 4096 (2^15: 1.44), groups of 128 1.24 (2^14: 1.32), rows of
//              8192 with scales 1.22; wht.block_e4m3 1.19, 1.56, 1.57.
//   Precision  wht.mma16's sums; product and rounding as wht.block_e4m3.
//   Limits     16-byte accesses to X, 8-byte ones to Y; compute capability 8.0.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/block_e4m3_groups.cuh"
#include "lib/cuda/wht/mma16.cuh"
#include "lib/cuda/wht/mma16_e4m3_layout.h"

namespace plait::impl::cuda {

/// One step of maxima over lanes: of `Count` values a lane keeps the half that its bit says.
template <int Bit, int Count>
__device__ __forceinline__ void wht_mma16_halve(float (&m)[8], int lane) {
    const bool upper = (lane >> Bit & 1) != 0;
#pragma unroll
    for (int q = 0; q < Count / 2; ++q) {
        const float mine = upper ? m[2 * q + 1] : m[2 * q];
        const float other = upper ? m[2 * q] : m[2 * q + 1];
        m[q] = wht_larger(mine, __shfl_xor_sync(0xffffffffu, other, 1 << Bit));
    }
}

/// The largest of a whole row, from what each thread has of it.
template <class Case>
__device__ __forceinline__ float wht_mma16_row_largest(const float (&m)[8], int warp, int lane,
                                                       float *tops) {
    constexpr int warps = wht_mma16_warps(Case::config());
    float top = m[0];
#pragma unroll
    for (int q = 1; q < 8; ++q) top = wht_larger(top, m[q]);
#pragma unroll
    for (int s = 1; s < 32; s *= 2) top = wht_larger(top, __shfl_xor_sync(0xffffffffu, top, s));
    if (lane == 0) tops[warp] = top;
    __syncthreads(); // read before the next tile's exchange, which meets before it is written
    top = tops[lane % warps];
#pragma unroll
    for (int s = 1; s < warps; s *= 2) top = wht_larger(top, __shfl_xor_sync(0xffffffffu, top, s));
    return top;
}

template <class Case> struct wht_mma16_e4m3_part {
    const wht_block_e4m3_args &args;
    int64_t row;     ///< first of the tile
    int64_t left;    ///< rows from it on
    uint32_t thread; ///< element of the tile or half row at which this thread's eight begin
    uint32_t column; ///< of the half row
    float scale;

    __device__ __forceinline__ uint32_t element(int top) const {
        return thread | wht_mma16_store_item(Case::config(), top, 0);
    }
    static constexpr bool rows = Case::config().log_n < Case::config().log_part; ///< several
    __device__ __forceinline__ uint32_t column_of(uint32_t e) const {
        if constexpr (!rows) return column + e;
        return e & bit_range(0, Case::config().log_n);
    }
    __device__ __forceinline__ bool present(uint32_t e) const {
        return wht_mma16_present(Case::config(), left, e);
    }
    __device__ __forceinline__ int64_t row_of(uint32_t e) const {
        if constexpr (!rows) return row;
        return row + (e >> Case::config().log_n);
    }

    __device__ __forceinline__ void note(uint32_t e, float largest, float by) const {
        const uint32_t c = column_of(e);
        if ((c & ((1u << args.log_group) - 1u)) != 0 || !present(e)) return;
        wht_block_e4m3_note(args, row_of(e), c >> args.log_group, by, largest);
    }
    /// times by(top).
    template <class By> __device__ __forceinline__ void store(float (&a)[8][8], By by) const {
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            const uint32_t e = element(top);
            const float factor = by(top);
            if (present(e)) wht_block_e4m3_store<3>(args, row_of(e), column_of(e), a[top], factor);
        }
    }
    /// What results are multiplied by: scale, or with SCALES the product with a reciprocal. Tiny
    /// results of any lane, which would need more than F32 has: they are made larger before.
    __device__ __forceinline__ void store_scaled(float (&a)[8][8], float reciprocal,
                                                 bool shared) const {
        float by = args.scales ? scale * reciprocal : scale;
        const int lane = static_cast<int>(threadIdx.x % 32);
        const auto of = [&](float v, int top) {
            return shared ? __shfl_sync(0xffffffffu, v, (lane & 24) | top) : v;
        };
        if (__any_sync(0xffffffffu, fabsf(by) > 3.4028234663852886e38f)) {
            const bool tiny = fabsf(by) > 3.4028234663852886e38f;
            const float before = tiny ? scale * 0x1p-64f * reciprocal : 1.0f;
            by = tiny ? 0x1p64f : by;
#pragma unroll
            for (int top = 0; top < 8; ++top) {
                const float factor = of(before, top);
#pragma unroll
                for (int i = 0; i < 8; ++i) a[top][i] *= factor;
            }
        }
        store(a, [&](int top) { return of(by, top); });
    }
    /// With the scales and largest magnitudes of groups.
    __device__ __forceinline__ void store_groups(float (&a)[8][8], int warp, int lane,
                                                 float *tops) const {
        constexpr wht_mma16_config c = Case::config();
        float m[8];
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            m[top] = fabsf(a[top][0]);
#pragma unroll
            for (int i = 1; i < 8; ++i) m[top] = wht_larger(m[top], a[top][i]);
        }
        if constexpr (c.log_warps > 0) {
            if (args.log_group > 8) { // the row
                const float largest =
                    fabsf(wht_mma16_row_largest<Case>(m, warp, lane, tops) * scale);
                const wht_group_factors of = wht_group_factors_of(largest);
                if (thread == 0) note(0, largest, of.scale);
                store_scaled(a, of.reciprocal, false);
                return;
            }
        } else { // bits 8, 9, 10 of the chunk tell a thread's eights apart
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                if (args.log_group <= 8 + k) continue;
#pragma unroll
                for (int q = 0; q < 8; ++q)
                    if (!(q >> k & 1)) m[q] = m[q | 1 << k] = wht_larger(m[q], m[q | 1 << k]);
            }
        }
        if (args.log_group < 6) { // fewer lanes to a group than a lane has eights
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                if (args.log_group <= 3 + s) continue;
#pragma unroll
                for (int q = 0; q < 8; ++q)
                    m[q] = wht_larger(m[q], __shfl_xor_sync(0xffffffffu, m[q], 1 << s));
            }
#pragma unroll
            for (int top = 0; top < 8; ++top) {
                const float largest = fabsf(m[top] * scale);
                const wht_group_factors of = wht_group_factors_of(largest);
                const uint32_t e = element(top);
                note(e, largest, of.scale);
                const float by = args.scales ? scale * of.reciprocal : scale;
                if (present(e))
                    wht_block_e4m3_put<3>(args, row_of(e), column_of(e), a[top], scale,
                                          of.reciprocal, by);
            }
            return;
        }
        wht_mma16_halve<0, 8>(m, lane); // a lane works for the eight of its lowest three bits
        wht_mma16_halve<1, 4>(m, lane);
        wht_mma16_halve<2, 2>(m, lane);
#pragma unroll
        for (int s = 3; s < 5; ++s)
            if (args.log_group > 3 + s)
                m[0] = wht_larger(m[0], __shfl_xor_sync(0xffffffffu, m[0], 1 << s));
        const float largest = fabsf(m[0] * scale);
        const wht_group_factors of = wht_group_factors_of(largest);
        const int in_group = lane & (args.log_group < 8 ? (1 << (args.log_group - 3)) - 1 : 31);
        if (in_group < 8) {
            const auto top = static_cast<uint32_t>(in_group);
            note((thread - static_cast<uint32_t>(in_group << 3)) | top << (c.log_part - 3), largest,
                 of.scale);
        }
        store_scaled(a, of.reciprocal, true);
    }
};

template <class Case>
__global__ void __launch_bounds__(wht_mma16_threads(Case::config()), Case::config().blocks_per_sm)
    wht_mma16_e4m3(const __grid_constant__ wht_block_e4m3_args args) {
    constexpr wht_mma16_config c = Case::config();
    static_assert(c.vector, "16-byte accesses");
    extern __shared__ __align__(16) char shared[];
    __shared__ float tops[wht_mma16_warps(c)];
    const wht_mma16_args rows{args.x,    nullptr, args.rows, args.x_row_stride, args.y_row_stride,
                              args.scale};
    const auto part = [&](int64_t tile, int half, int warp, int lane) {
        constexpr wht_mma16_config k = Case::config();
        const int64_t first = tile * wht_mma16_rows_per_tile(k);
        return wht_mma16_e4m3_part<Case>{args,
                                         first,
                                         args.rows - first,
                                         wht_mma16_store_thread(warp, lane),
                                         static_cast<uint32_t>(half << k.log_part),
                                         static_cast<float>(args.scale)};
    };
    // Blocks that walk are the faster with groups, those that do not without: seen on an H200.
    if (args.scales != nullptr || args.amax != nullptr) {
        wht_mma16_walk<Case, true>(
            rows, blockIdx.x, shared,
            [&](int64_t tile, int half, int warp, int lane, float *, float(&a)[8][8]) {
                part(tile, half, warp, lane).store_groups(a, warp, lane, tops);
            });
    } else {
        wht_mma16_walk<Case, false>(
            rows, blockIdx.x, shared,
            [&](int64_t tile, int half, int warp, int lane, float *, float(&a)[8][8]) {
                const auto p = part(tile, half, warp, lane);
                p.store(a, [&](int) { return p.scale; });
            });
    }
}

template <scalar X, int LogN> kernel_entry wht_mma16_e4m3_entry() {
    static constexpr variant_name name = wht_variant(X, scalar::e4m3, ".n", LogN, true);
    return make_kernel_entry<&wht_mma16_e4m3<wht_mma16_case<X, LogN, true>>>("wht.mma16_e4m3",
                                                                             name.text);
}

} // namespace plait::impl::cuda
