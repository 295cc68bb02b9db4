// wht.diagonal: y[row] = scale * c * H_n (a * x[row]), or scale * c * H_n (b * H_n (a * x[row])),
// on contiguous rows, real or complex. a, b, c are 1 or diagonals, real or complex, that all rows
// share; SIGNS stand beside a or c.
//   Tiling     wht.block's, which hold a row in registers: a diagonal is a product there. A
//              second transform begins with the last phase, where the first has ended, and ends
//              with the first one: additions of different bits commute.
//   Traffic    each element once in, once out, where H D H alone would take two passes; diagonals
//              from L1 or L2.
//   Flops      log2(n) additions, 1 product for each diagonal (complex: 2), twice the additions and
//              exchanges of wht.block with b.
//   Bound      memory with sides alone; an H200, rows of 4096, time / copy: 1.04 (c64 1.08), with b
//              f32 1.08, c64 1.18 (1.18, 1.28 with the way back to where the first began).
//              Long rows (f64 from 2^12, f16 2^11, others 2^15) still take that: c128 1.54, c64
//              2^14 1.71: a block fills the SM, and no unit is above 62 %. bf16 2^12 took 1.93, f16
//              2^14 2.33, bf16 2^15 3.16 with it.
//   Precision  as wht.block; products in the accumulate type. Natural order.
//   Accesses   16 bytes where both sides allow it, else the same registers element by element.
//   In place   works: a tile is in registers before it is written.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/diagonal_layout.h"
#include "lib/cuda/wht/fused.cuh"

namespace plait::impl::cuda {

template <scalar S, int LogN, int Parts, bool Mid> struct wht_diagonal_case {
    static constexpr bool mid = Mid;
    static constexpr bool back = Mid && wht_diagonal_back_exists(S, LogN);
    PLAIT_HD static constexpr wht_block_config config() {
        return wht_diagonal_config_of(S, LogN, Parts);
    }
};

/// Count values of a diagonal from `index` on, a multiple of Count.
template <scalar S, int Count, class T>
__device__ __forceinline__ void wht_diagonal_load(const void *diag, uint32_t index, T *by) {
    using bits = typename stored<S>::bits;
    using raw = typename raw_access<static_cast<int>(sizeof(bits)) * Count>::type;
    const bits *d = static_cast<const bits *>(diag) + index;
    if (reinterpret_cast<uintptr_t>(diag) % 16 == 0) {
        widen_raw<S, wht_log2_floor(Count)>(__ldg(reinterpret_cast<const raw *>(d)), by);
    } else {
#pragma unroll
        for (int i = 0; i < Count; ++i) by[i] = widen<S>(__ldg(d + i));
    }
}

/// A diagonal, to the items of a phase.
template <class Case, int Phase, int LogVec, int Items, class T>
__device__ __forceinline__ void
wht_diagonal_apply(const wht_diagonal_args &args, wht_diagonal_place place,
                   const wht_block_rows &rows, uint32_t column, T (&a)[Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr scalar S = c.x;
    constexpr int count = 1 << LogVec;
    const void *diag = args.diag[place];
    if (args.kind[place] == wht_diagonal_kind::none) return;
    if constexpr (c.parts == 1) {
        if (args.kind[place] == wht_diagonal_kind::paired) {
            const T sign = args.conjugate ? T(-1) : T(1);
            wht_fused_each<Case, Phase, LogVec>(rows, [&](int j, uint32_t e) {
                T by[count];
                wht_diagonal_load<S, count>(diag, column | (e & bit_range(0, Case::config().log_n)),
                                            by);
#pragma unroll
                for (int i = 0; i < count; i += 2) {
                    const T re = a[j + i], im = a[j + i + 1], turn = sign * by[i + 1];
                    a[j + i] = re * by[i] - im * turn;
                    a[j + i + 1] = re * turn + im * by[i];
                }
            });
            return;
        }
    }
    wht_fused_each<Case, Phase, LogVec>(rows, [&](int j, uint32_t e) {
        constexpr int parts = Case::config().parts;
        T by[count >> parts];
        const uint32_t at = column | (e & bit_range(0, Case::config().log_n));
        wht_diagonal_load<S, (count >> parts)>(diag, at >> parts, by);
#pragma unroll
        for (int i = 0; i < count; ++i) a[j + i] *= by[i >> parts];
    });
}

template <class Case, int Phase, int LogVec, int Items, class T>
__device__ __forceinline__ void wht_diagonal_signs(const wht_diagonal_args &args, bool out,
                                                   const wht_block_rows &rows, uint32_t column,
                                                   T (&a)[Items]) {
    if (args.signs == nullptr || args.signs_out != out) return;
    wht_fused_each<Case, Phase, LogVec>(rows, [&](int j, uint32_t e) {
        constexpr int parts = Case::config().parts;
        const uint32_t at = (column | (e & bit_range(0, Case::config().log_n))) >> parts;
        const uint32_t word =
            __ldg(static_cast<const uint32_t *>(args.signs) + (at >> 5)) >> (at & 31u);
#pragma unroll
        for (int i = 0; i < 1 << LogVec; ++i)
            a[j + i] = (word >> (i >> parts) & 1u) != 0 ? -a[j + i] : a[j + i];
    });
}

/// A transform whose phases run from the last to the first: it begins where another one has ended.
/// Each thread writes the words that it has read last, so that one barrier a phase is enough.
template <class Case, int Phase, int Rounds, int Items, class T>
__device__ __forceinline__ void wht_diagonal_back(T (&a)[Rounds][Items], T *words) {
    constexpr tile_layout t = Case::config().tile;
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        phase_butterflies<Case, Phase>(a[i]);
        if constexpr (Phase > 0) shared_write<Case, Phase>(a[i], words + i * tile_words(t));
    }
    if constexpr (Phase > 0) {
        exchange_barrier<t.phase[Phase].exchange>(); // all words of this phase are written
#pragma unroll
        for (int i = 0; i < Rounds; ++i)
            shared_read<Case, Phase - 1>(a[i], words + i * tile_words(t));
        wht_diagonal_back<Case, Phase - 1>(a, words);
    }
}

/// From where the first phase holds elements.
template <class Case, int Rounds, int Items, class T>
__device__ __forceinline__ void wht_diagonal_store(const wht_fused_args &args,
                                                   const wht_block_rows &rows, T scale,
                                                   T (&a)[Rounds][Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = wht_min(c.tile.log_vec_x, c.log_n);
    constexpr scalar S = c.y;
    int64_t stride = args.y_row_stride;
    make_opaque(stride); // or places of the loads would stay in registers
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        const int64_t origin = rows.first * stride + (i << c.tile.log_tile);
        wht_fused_each<Case, 0, v>(rows, [&](int j, uint32_t e) {
            wht_fused_put<S, v>(args, origin + wht_block_offset(Case::config(), e, stride), scale,
                                a[i] + j);
        });
    }
}

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_diagonal(const __grid_constant__ wht_diagonal_args args) {
    constexpr wht_block_config c = Case::config();
    static_assert(!c.parked, "a row is in registers");
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    constexpr int per_tile = wht_block_rows_per_tile(c), rounds = 1 << c.log_rounds;
    constexpr int last = c.tile.phases - 1, vec_in = wht_min(c.tile.log_vec_x, c.log_n),
                  vec_mid = wht_min(c.tile.log_vec_y, c.log_n);
    constexpr int end = Case::back ? 0 : last, vec_out = Case::back ? vec_in : vec_mid;
    const T scale = static_cast<T>(args.scale);
    const int64_t tiles = (args.rows - 1) / per_tile + 1;
    wht_fused_args moved{};
    moved.x = args.x, moved.y = args.y;
    moved.rows = args.rows;
    moved.x_row_stride = args.x_row_stride, moved.y_row_stride = args.y_row_stride;
    moved.vector[0] = args.vector[0], moved.vector[1] = args.vector[1];
    T a[rounds][1 << c.tile.log_items];
    start_successor();
    const int64_t first = wait_for_predecessor();
    for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
        const wht_block_rows rows = wht_block_tile_rows(c, tile, args.rows);
        const auto column = [](int i) {
            return static_cast<uint32_t>(i) << Case::config().tile.log_tile;
        };
#pragma unroll
        for (int i = 0; i < rounds; ++i) wht_fused_load<Case>(moved, rows, column(i), a[i]);
        if constexpr (c.prefetch) {
            const int64_t next = tile + tiles_ahead(c.blocks_per_sm);
            const wht_block_args ahead{args.x, nullptr, args.rows, args.x_row_stride, 0, 0};
            if (next < tiles) wht_block_prefetch<Case, c.log_n>(ahead, next, 0);
        }
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            wht_diagonal_signs<Case, 0, vec_in>(args, false, rows, column(i), a[i]);
            wht_diagonal_apply<Case, 0, vec_in>(args, wht_diagonal_in, rows, column(i), a[i]);
        }
        // behind one that ran back a thread begins with the words that it has read last
        transform_tiles<Case>(a, shared, !Case::back && tile != first);
        if constexpr (Case::mid) {
#pragma unroll
            for (int i = 0; i < rounds; ++i)
                wht_diagonal_apply<Case, last, vec_mid>(args, wht_diagonal_mid, rows, column(i),
                                                        a[i]);
            if constexpr (Case::back) {
                if constexpr (rounds == 2) butterfly_arrays(a[0], a[1]);
                wht_diagonal_back<Case, last>(a, reinterpret_cast<T *>(shared));
            } else {
                if constexpr (last > 0) {
                    T *words = reinterpret_cast<T *>(shared);
#pragma unroll
                    for (int i = 0; i < rounds; ++i)
                        shared_write<Case, last>(a[i], words + i * tile_words(c.tile));
                    __syncthreads(); // all words are written
#pragma unroll
                    for (int i = 0; i < rounds; ++i)
                        shared_read<Case, 0>(a[i], words + i * tile_words(c.tile));
                }
                transform_tiles<Case>(a, shared, true);
            }
        }
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            wht_diagonal_apply<Case, end, vec_out>(args, wht_diagonal_out, rows, column(i), a[i]);
            wht_diagonal_signs<Case, end, vec_out>(args, true, rows, column(i), a[i]);
        }
        if constexpr (Case::back) {
            wht_diagonal_store<Case>(moved, rows, scale, a);
        } else {
            wht_fused_store<Case>(moved, rows, wht_any_extra::none, scale, a);
        }
    }
}

template <scalar S, int LogN, int Parts, bool Mid> kernel_entry wht_diagonal_entry() {
    static_assert(wht_diagonal_exists(S, LogN, Parts),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_diagonal_variant(S, LogN, Parts, Mid);
    return make_kernel_entry<&wht_diagonal<wht_diagonal_case<S, LogN, Parts, Mid>>>("wht.diagonal",
                                                                                    name.text);
}

} // namespace plait::impl::cuda
