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
#include "lib/cuda/wht/block_e4m3_groups.cuh"

namespace plait::impl::cuda {

template <scalar X, int LogN> struct wht_block_e4m3_case {
    PLAIT_HD static constexpr wht_block_config config() { return wht_block_e4m3_config(X, LogN); }
};

/// From the maxima of accesses to those of their groups, in every thread of a group; of a group
/// that has a thread's whole round, in its first.
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
    if (log_group >= v + 5 + chunk_bits) { // all that a thread has of a round is in one group
#pragma unroll
        for (int i = 0; i < Rounds; ++i) {
#pragma unroll
            for (int k = 0; k < 5; ++k)
                m[i][0] = wht_larger(m[i][0], __shfl_xor_sync(0xffffffffu, m[i][0], 1 << k));
        }
    } else {
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
        for (int i = 0; i < Rounds; ++i) m[i][0] = top;
    }
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
        const uint32_t thread = tile_thread_part(t, last, threadIdx.x);
        if (!grouped) { // fewer registers and instructions than with what follows
#pragma unroll
            for (int i = 0; i < rounds; ++i) {
#pragma unroll
                for (int q = 0; q < chunks; ++q) {
                    const uint32_t element = (thread | tile_item_part(t, last, q << v)) +
                                             (static_cast<uint32_t>(i) << t.log_tile);
                    const int in_tile = static_cast<int>(element >> c.log_n);
                    if (per_tile > 1 && in_tile >= rows.full) continue;
                    wht_block_e4m3_store<v>(args, rows.first + in_tile,
                                            element & bit_range(0, c.log_n), a[i] + (q << v),
                                            scale);
                }
            }
            continue;
        }
        float m[rounds][chunks] = {};
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
#pragma unroll
            for (int j = 0; j < items; ++j) m[i][j >> v] = wht_larger(m[i][j >> v], a[i][j]);
        }
        wht_block_group_maxima<Case>(m, args.log_group, tops);
        const int lane = static_cast<int>(threadIdx.x) & 31;
        // Groups that lie in 2^s lanes, as many as a round has accesses or more: lane q of them
        // works for access q. Longer ones: every thread for its own.
        const bool same = args.log_group >= 5 + t.log_items;
        const bool apart = !same && 1 << (args.log_group - v) >= chunks && args.log_group - v <= 5;
        float largest = 0, by = scale;
        wht_group_factors of{1.0f, 1.0f};
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const auto place = [&](int q) {
                return (thread | tile_item_part(t, last, q << v)) +
                       (static_cast<uint32_t>(i) << t.log_tile);
            };
            const auto note = [&](uint32_t element) {
                const int in_tile = static_cast<int>(element >> c.log_n);
                if (per_tile > 1 && in_tile >= rows.full) return;
                const uint32_t column = element & bit_range(0, c.log_n);
                wht_block_e4m3_note(args, rows.first + in_tile, column >> args.log_group, of.scale,
                                    largest);
            };
            if (apart) {
                const int in_group = lane & ((1 << (args.log_group - v)) - 1);
                float mine = m[i][0];
                uint32_t element = place(0);
#pragma unroll
                for (int q = 1; q < chunks; ++q) {
                    if (in_group != q) continue;
                    mine = m[i][q];
                    element = place(q);
                }
                largest = fabsf(mine * scale);
                of = wht_group_factors_of(largest);
                if (in_group < chunks) note(element);
            }
#pragma unroll
            for (int q = 0; q < chunks; ++q) {
                const uint32_t element = place(q), column = element & bit_range(0, c.log_n);
                const int in_tile = static_cast<int>(element >> c.log_n);
                float reciprocal = of.reciprocal;
                if (apart) {
                    const int from = (lane & -(1 << (args.log_group - v))) + q;
                    reciprocal = __shfl_sync(0xffffffffu, of.reciprocal, from);
                } else if (!same || q == 0) {
                    largest = fabsf(m[i][q] * scale);
                    of = wht_group_factors_of(largest);
                    reciprocal = of.reciprocal;
                    if ((column & ((1u << args.log_group) - 1u)) == 0) note(element);
                }
                if (args.scales) by = scale * reciprocal;
                if (per_tile > 1 && in_tile >= rows.full) continue;
                wht_block_e4m3_put<v>(args, rows.first + in_tile, column, a[i] + (q << v), scale,
                                      reciprocal, by);
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
