// wht.diagonal: y[row] = scale * c * H_n (a * x[row]), or scale * c * H_n (b * H_n (a * x[row])),
// on contiguous rows, real or complex. a, b, c are 1 or diagonals, real or complex, that all rows
// share; SIGNS stand beside a or c.
//   Tiling     wht.block's, which hold a row in registers: a diagonal is a product there. Between
//              two transforms a tile goes back through shared memory to where the first began;
//              every thread writes the words that it has read last, so that one barrier is enough.
//   Traffic    each element once in, once out, where H D H alone would take two passes; diagonals
//              from L1 or L2.
//   Flops      log2(n) additions, 1 product for each diagonal (complex: 2), twice the additions and
//              7/4 of the shared memory of wht.block with b.
//   Bound      memory with sides alone; an H200, rows of 4096, time / copy: 1.04 (c64 1.10), with b
//              f32 1.17, c64 1.30 (2^14: 1.73), c128 1.52.
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

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_diagonal(const __grid_constant__ wht_diagonal_args args) {
    constexpr wht_block_config c = Case::config();
    static_assert(!c.parked, "a row is in registers");
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    constexpr int per_tile = wht_block_rows_per_tile(c), rounds = 1 << c.log_rounds;
    constexpr int last = c.tile.phases - 1, vec_in = wht_min(c.tile.log_vec_x, c.log_n),
                  vec_out = wht_min(c.tile.log_vec_y, c.log_n);
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
        transform_tiles<Case>(a, shared, tile != first);
        if constexpr (Case::mid) {
#pragma unroll
            for (int i = 0; i < rounds; ++i)
                wht_diagonal_apply<Case, last, vec_out>(args, wht_diagonal_mid, rows, column(i),
                                                        a[i]);
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
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            wht_diagonal_apply<Case, last, vec_out>(args, wht_diagonal_out, rows, column(i), a[i]);
            wht_diagonal_signs<Case, last, vec_out>(args, true, rows, column(i), a[i]);
        }
        wht_fused_store<Case>(moved, rows, wht_any_extra::none, scale, a);
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
