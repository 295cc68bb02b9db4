// y = scale * (H_m (x) I) x on [batch][outer][m = 2^log_m][inner = 2^log_inner]: the body that
// wht.columns_tiled and wht.columns_shuffle share. A block holds a tile of 2^c columns of all rows
// (the layout header says which thread holds what), reads each element once and writes it once:
// 2 * sizeof(element) bytes each. Blocks stride over tiles, neighbouring tiles in a row first.
// Limits: log_inner >= the tile's log_columns; batch entries contiguous; alignment of an access.
// In place works: a tile is in registers before it is written. Precision as in block.cuh.
#pragma once

#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/columns_layout.h"

namespace plait::impl::cuda {

struct wht_columns_place {
    int64_t x; ///< first element of the tile
    int64_t y;
};

template <class Case>
__device__ __forceinline__ wht_columns_place wht_columns_tile_place(const wht_columns_args &args,
                                                                    int64_t tile) {
    constexpr wht_columns_config c = Case::config();
    const int log_across = args.log_inner - c.log_columns;
    const int64_t slice = tile >> log_across;
    const int64_t column = (tile & ((int64_t(1) << log_across) - 1)) << c.log_columns;
    const int64_t entry = args.batch == 1 ? 0 : slice / args.outer;
    const int64_t inside = ((slice - entry * args.outer) << (c.log_m + args.log_inner)) + column;
    return {entry * args.x_batch_stride + inside, entry * args.y_batch_stride + inside};
}

/// Calls access(item, offset) for every access of this thread; offsets count elements from the
/// tile's first.
template <class Case, int Phase, int LogVec, class Access>
__device__ __forceinline__ void wht_columns_each(int log_inner, Access access) {
    constexpr wht_columns_config c = Case::config();
    constexpr tile_layout t = c.tile;
    const uint32_t thread = tile_thread_part(t, Phase, threadIdx.x);
    const int64_t base = (static_cast<int64_t>(wht_columns_row(c, thread)) << log_inner) +
                         wht_columns_column(c, thread);
#pragma unroll
    for (int j = 0; j < (1 << t.log_items); j += 1 << LogVec) {
        const uint32_t item = tile_item_part(t, Phase, j);
        access(j, base + (static_cast<int64_t>(wht_columns_row(c, item)) << log_inner) +
                      wht_columns_column(c, item));
    }
}

/// Brings the block's next tile to L2 while this one is transformed, sector by sector.
template <class Case>
__device__ __forceinline__ void wht_columns_prefetch(const wht_columns_args &args, int64_t origin) {
    constexpr wht_columns_config c = Case::config();
    constexpr int size = sizeof(typename stored<c.x>::bits);
    constexpr int log_sectors =
        wht_log_vec(c.x) + 1 < c.log_run ? c.log_run - wht_log_vec(c.x) - 1 : 0;
    const char *p = static_cast<const char *>(args.x) + origin * size;
    for (int at = static_cast<int>(threadIdx.x); at < (1 << (c.log_m + log_sectors));
         at += static_cast<int>(blockDim.x)) {
        const int64_t row = at >> log_sectors;
        prefetch_l2(p + (row << args.log_inner) * size + (at & ((1 << log_sectors) - 1)) * 32);
    }
}

template <class Case>
__device__ __forceinline__ void wht_columns_body(const wht_columns_args &args) {
    constexpr wht_columns_config c = Case::config();
    constexpr tile_layout t = c.tile;
    constexpr int items = 1 << t.log_items;
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    const T scale = static_cast<T>(args.scale);
    const int64_t tiles = (args.batch * args.outer) << (args.log_inner - c.log_columns);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const wht_columns_place place = wht_columns_tile_place<Case>(args, tile);
        T a[items];
        wht_columns_each<Case, 0, t.log_vec_x>(args.log_inner, [&](int j, int64_t offset) {
            load_elements<c.x, t.log_vec_x>(args.x, place.x + offset, a + j);
        });
        if constexpr (c.persistent) {
            if (tile + gridDim.x < tiles) {
                wht_columns_prefetch<Case>(args,
                                           wht_columns_tile_place<Case>(args, tile + gridDim.x).x);
            }
        }
        phase_butterflies<Case, 0>(a);
        if constexpr (t.phases == 2) {
            __syncthreads(); // all warps have read the previous tile's words
            exchange<Case, 1>(a, reinterpret_cast<T *>(shared));
            phase_butterflies<Case, 1>(a);
        }
        wht_columns_each<Case, t.phases - 1, t.log_vec_y>(
            args.log_inner, [&](int j, int64_t offset) {
                store_elements<c.y, t.log_vec_y>(args.y, place.y + offset, a + j, scale);
            });
    }
}

} // namespace plait::impl::cuda
