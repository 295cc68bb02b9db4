// y = scale * (H_m (x) I) x on [batch][outer][m = 2^log_m][inner = 2^log_inner]: the body that
// wht.columns_tiled and wht.columns_shuffle share. A block holds a tile of 2^c columns of all rows
// (the layout header says which thread holds what), reads each element once and writes it once:
// 2 * sizeof(element) bytes each. Blocks stride over tiles, neighbouring tiles in a row first.
// Limits: log_inner >= the tile's log_columns; batch entries contiguous; alignment of an access.
// In place works: a tile is in registers before it is written. Precision as in block.cuh.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/columns_layout.h"

namespace plait::impl::cuda {

/// Calls access(item, pointer) for every access of this thread. `block` points to the first element
/// of the block's, `first` is the tile's first element within them.
template <class Case, int Phase, int LogVec, class E, class Access>
__device__ __forceinline__ void wht_columns_each(E *block, int log_inner, uint32_t first,
                                                 Access access) {
    constexpr wht_columns_config c = Case::config();
    constexpr tile_layout t = c.tile;
    const uint32_t thread = tile_thread_part(t, Phase, threadIdx.x);
    if constexpr (t.phases == 1) {
        // or the offsets of the loads would stay in registers for the stores
        make_opaque(log_inner);
        E *p = block + wht_columns_offset(c, thread, log_inner);
#pragma unroll
        for (int j = 0; j < (1 << t.log_items); j += 1 << LogVec) {
            access(j, p + wht_columns_offset(c, first | tile_item_part(t, Phase, j), log_inner));
        }
    } else {
        // items are rows at one distance; the pointer is opaque, or all of them would be computed
        // ahead and take registers
        E *p = block + wht_columns_offset(c, thread | first, log_inner);
        constexpr int across = wht_columns_across(c); // columns of a row that a thread holds
        const int64_t step =
            wht_columns_offset(c, tile_item_part(t, Phase, 1u << across), log_inner);
#pragma unroll
        for (int j = 0; j < (1 << t.log_items); j += 1 << across) {
#pragma unroll
            for (int e = 0; e < (1 << across); e += 1 << LogVec) access(j + e, p + e);
            p += step;
            make_opaque(p);
        }
    }
}

/// Brings the rows of a tile, or half of them from `first_row` on, to L2. Where a line has the runs
/// of several tiles, which run at the same time, each asks for the lines of some rows.
template <class Case>
__device__ __forceinline__ void wht_columns_prefetch(const wht_columns_args &args, int64_t tile,
                                                     int first_row) {
    constexpr wht_columns_config c = Case::config();
    constexpr int size = sizeof(typename stored<c.x>::bits), run = size << c.log_run;
    constexpr int lines = run > prefetch_bytes ? run / prefetch_bytes : 1;
    constexpr int sharing = run < prefetch_bytes ? prefetch_bytes / run : 1;
    const char *p = static_cast<const char *>(args.x) +
                    wht_columns_tile_place(Case::config(), args, tile).x * size;
    constexpr int rows = 1 << (c.log_m - (c.parked ? 1 : 0));
    const int own = first_row + static_cast<int>(tile & (sharing - 1));
    for (int i = static_cast<int>(threadIdx.x); i < rows / sharing * lines;
         i += tile_threads(c.tile)) {
        const int64_t row = own + i / lines * sharing;
        prefetch_l2(p + (row << args.log_inner) * size + i % lines * prefetch_bytes);
    }
}

/// The tiles that registers hold, from element `first` of the block's on; `done` once everything is
/// loaded.
template <class Case, int Rounds, int Items, class T, class Done>
__device__ __forceinline__ void
wht_columns_rounds(const wht_columns_args &args, const wht_columns_place &place, uint32_t first,
                   T (&a)[Rounds][Items], char *words, bool in_use, Done done) {
    constexpr wht_columns_config c = Case::config();
    constexpr int v = c.tile.log_vec_x;
    using X = typename stored<c.x>::bits;
    const X *x = static_cast<const X *>(args.x) + place.x;
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        wht_columns_each<Case, 0, v>(
            x, args.log_inner, first | i << c.tile.log_tile,
            [&](int j, const X *p) { load_elements<Case::config().x, v>(p, 0, a[i] + j); });
    }
    done();
    transform_tiles<Case>(a, words, in_use);
}

template <class Case, int Items, class T>
__device__ __forceinline__ void wht_columns_store(const wht_columns_args &args,
                                                  const wht_columns_place &place, uint32_t first,
                                                  T scale, const T (&a)[Items]) {
    constexpr wht_columns_config c = Case::config();
    constexpr int v = c.tile.log_vec_y;
    using Y = typename stored<c.y>::bits;
    wht_columns_each<Case, c.tile.phases - 1, v>(
        static_cast<Y *>(args.y) + place.y, args.log_inner, first,
        [&](int j, Y *p) { store_elements<Case::config().y, v>(p, 0, a + j, scale); });
}

/// Columns in two halves: the first waits in shared memory, in words of its own thread.
template <class Case, int Rounds, int Items, class T>
__device__ __forceinline__ void wht_columns_halves(const wht_columns_args &args, int64_t tile,
                                                   int64_t tiles, T scale, T (&a)[Rounds][Items],
                                                   char *shared, bool in_use) {
    constexpr wht_columns_config c = Case::config();
    constexpr int log_half = c.tile.log_tile + c.log_rounds;
    constexpr int threads = tile_threads(c.tile);
    const wht_columns_place place = wht_columns_tile_place(Case::config(), args, tile);
    T *parked = reinterpret_cast<T *>(shared) + threadIdx.x;
    char *words = shared + wht_columns_parked_bytes(c);
    wht_columns_rounds<Case>(args, place, 0, a, words, in_use, [&] {
        if constexpr (Case::config().prefetch)
            wht_columns_prefetch<Case>(args, tile, 1 << (c.log_m - 1));
    });
#pragma unroll
    for (int i = 0; i < Rounds * Items; ++i) parked[i * threads] = a[i / Items][i % Items];
    wht_columns_rounds<Case>(args, place, 1u << log_half, a, words, true, [&] {
        if constexpr (Case::config().prefetch) {
            const int64_t next = tile + tiles_ahead(Case::config().blocks_per_sm);
            if (next < tiles) wht_columns_prefetch<Case>(args, next, 0);
        }
    });
    constexpr int v = c.tile.log_vec_y;
    using Y = typename stored<c.y>::bits;
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        const uint32_t first = static_cast<uint32_t>(i) << c.tile.log_tile;
        wht_columns_each<Case, c.tile.phases - 1, v>(
            static_cast<Y *>(args.y) + place.y, args.log_inner, first, [&](int j, Y *p) {
                T sum[1 << v];
#pragma unroll
                for (int e = 0; e < (1 << v); ++e) {
                    const T low = parked[(i * Items + j + e) * threads];
                    sum[e] = low + a[i][j + e];
                    a[i][j + e] = low - a[i][j + e];
                }
                store_elements<Case::config().y, v>(p, 0, sum, scale);
            });
        wht_columns_store<Case>(args, place, first | 1u << log_half, scale, a[i]);
    }
}

template <class Case>
__device__ __forceinline__ void wht_columns_body(const wht_columns_args &args) {
    constexpr wht_columns_config c = Case::config();
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    const T scale = static_cast<T>(args.scale);
    const int64_t tiles = (args.batch * args.outer) << (args.log_inner - c.log_columns);
    T a[1 << c.log_rounds][1 << c.tile.log_items];
    start_successor();
    const int64_t first = wait_for_predecessor();
    for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
        const bool again = tile != first;
        if constexpr (c.parked) {
            wht_columns_halves<Case>(args, tile, tiles, scale, a, shared, again);
        } else {
            const wht_columns_place place = wht_columns_tile_place(Case::config(), args, tile);
            wht_columns_rounds<Case>(args, place, 0, a, shared, again, [&] {
                if constexpr (Case::config().prefetch) {
                    const int64_t next = tile + tiles_ahead(Case::config().blocks_per_sm);
                    if (next < tiles) wht_columns_prefetch<Case>(args, next, 0);
                }
            });
#pragma unroll
            for (int i = 0; i < (1 << c.log_rounds); ++i) {
                wht_columns_store<Case>(args, place, static_cast<uint32_t>(i) << c.tile.log_tile,
                                        scale, a[i]);
            }
        }
    }
}

} // namespace plait::impl::cuda
