// y[row] = scale * H_n x[row], n = 2^log_n, 0 <= log_n <= 15; rows and strides are 64-bit.
// One block holds a tile of one or more rows (block_layout.h says which thread holds what), reads
// each element once and writes it once: 2 * sizeof(element) bytes each. Blocks stride over tiles.
// Limits: row strides >= n; vector kernels need 16-byte bases and strides, and packed rows where n
// elements have less than 16 bytes. In place works: a tile is in registers before it is written.
// Precision: 16-bit types and f32 accumulate in f32, f64 in f64; one multiplication by the scale
// and one rounding at the store.
#pragma once

#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/block_layout.h"

namespace plait::impl::cuda {

template <scalar X, scalar Y, int LogN, bool Vector> struct wht_block_case {
    PLAIT_HD static constexpr wht_block_config config() {
        return wht_block_config_of(X, Y, LogN, Vector);
    }
};

/// Rows of the tile that exist. A kernel for rows shorter than an access counts groups of packed
/// rows that fill an access; `tail` are the elements of the last, partial group.
struct wht_block_rows {
    int64_t first;
    int full;
    int tail;
};

template <class Case>
__device__ __forceinline__ wht_block_rows wht_block_tile_rows(int64_t tile, int64_t rows) {
    constexpr wht_block_config c = Case::config();
    constexpr int per_tile = c.parked ? 1 : 1 << (c.tile.log_tile - c.log_row);
    constexpr int log_group = c.log_row - c.log_n;
    const int64_t first = tile * per_tile;
    const int64_t left = (rows >> log_group) - first;
    wht_block_rows r{first, left < per_tile ? static_cast<int>(left) : per_tile, 0};
    if constexpr (log_group > 0) {
        r.tail = static_cast<int>(rows & ((1 << log_group) - 1)) << c.log_n;
    }
    return r;
}

/// Calls access(item, offset) for every access of this thread that exists, partial(item, offset,
/// count) for the one that the last packed rows fill in part. Offsets count elements from the
/// tile's first row.
template <class Case, int Phase, int LogVec, class Access, class Partial>
__device__ __forceinline__ void wht_block_each(const wht_block_rows &rows, int64_t stride,
                                               Access access, Partial partial) {
    constexpr wht_block_config c = Case::config();
    constexpr tile_layout t = c.tile;
    constexpr uint32_t in_row = bit_range(0, c.log_row);
    const uint32_t thread = tile_thread_part(t, Phase, threadIdx.x);
    const int64_t base = static_cast<int64_t>(thread >> c.log_row) * stride + (thread & in_row);
#pragma unroll
    for (int j = 0; j < (1 << t.log_items); j += 1 << LogVec) {
        const uint32_t item = tile_item_part(t, Phase, j);
        const int64_t offset = base + (item >> c.log_row) * stride + (item & in_row);
        if constexpr (t.log_tile <= c.log_row) { // one row, which exists
            access(j, offset);
        } else {
            const int row = static_cast<int>((thread | item) >> c.log_row);
            if (row < rows.full) {
                access(j, offset);
            } else if constexpr (c.log_row > c.log_n) {
                if (row == rows.full && rows.tail > 0) partial(j, offset, rows.tail);
            }
        }
    }
}

/// Row stride of packed groups of short rows, else the caller's.
template <class Case> __device__ __forceinline__ int64_t wht_block_stride(int64_t row_stride) {
    constexpr wht_block_config c = Case::config();
    return c.log_row > c.log_n ? int64_t(1) << c.log_row : row_stride;
}

template <class Case, int Items, class T>
__device__ __forceinline__ void wht_block_load(const wht_block_args &args,
                                               const wht_block_rows &rows, int64_t column,
                                               T (&a)[Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = c.tile.log_vec_x;
    const int64_t stride = wht_block_stride<Case>(args.x_row_stride);
    const int64_t origin = rows.first * stride + column;
    if constexpr (c.tile.log_tile > c.log_row) {
#pragma unroll
        for (int j = 0; j < Items; ++j) a[j] = T(0); // rows that do not exist
    }
    wht_block_each<Case, 0, v>(
        rows, stride,
        [&](int j, int64_t offset) { load_elements<c.x, v>(args.x, origin + offset, a + j); },
        [&](int j, int64_t offset, int count) {
#pragma unroll
            for (int i = 0; i < (1 << v); ++i) {
                if (i < count) load_elements<c.x, 0>(args.x, origin + offset + i, a + j + i);
            }
        });
}

template <class Case, int Items, class T>
__device__ __forceinline__ void wht_block_store(const wht_block_args &args,
                                                const wht_block_rows &rows, int64_t column, T scale,
                                                const T (&a)[Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = c.tile.log_vec_y;
    const int64_t stride = wht_block_stride<Case>(args.y_row_stride);
    const int64_t origin = rows.first * stride + column;
    wht_block_each<Case, c.tile.phases - 1, v>(
        rows, stride,
        [&](int j, int64_t offset) {
            store_elements<c.y, v>(args.y, origin + offset, a + j, scale);
        },
        [&](int j, int64_t offset, int count) {
#pragma unroll
            for (int i = 0; i < (1 << v); ++i) {
                if (i < count)
                    store_elements<c.y, 0>(args.y, origin + offset + i, a + j + i, scale);
            }
        });
}

/// Brings the row of the block's next tile to L2 while this one is transformed.
template <class Case>
__device__ __forceinline__ void wht_block_prefetch(const wht_block_args &args, int64_t row,
                                                   int64_t first, int log_length) {
    constexpr wht_block_config c = Case::config();
    constexpr int size = sizeof(typename stored<c.x>::bits);
    const char *p = static_cast<const char *>(args.x) + (row * args.x_row_stride + first) * size;
    const int bytes = size << log_length;
    for (int at = static_cast<int>(threadIdx.x) * 32; at < bytes;
         at += static_cast<int>(blockDim.x) * 32) {
        prefetch_l2(p + at);
    }
}

/// Butterflies and exchanges of a tile in registers.
template <class Case, int Items, class T>
__device__ __forceinline__ void wht_block_tile(T (&a)[Items], char *shared) {
    constexpr wht_block_config c = Case::config();
    phase_butterflies<Case, 0>(a);
    if constexpr (c.tile.phases == 3) {
        __syncthreads(); // all warps have read the previous tile's words
        if constexpr (c.word_wise) {
            exchange_by_words<Case, 1>(a, reinterpret_cast<int *>(shared));
            phase_butterflies<Case, 1>(a);
            // a word is rewritten by the thread that read it last
            exchange_by_words<Case, 2>(a, reinterpret_cast<int *>(shared));
        } else {
            exchange<Case, 1>(a, reinterpret_cast<T *>(shared));
            phase_butterflies<Case, 1>(a);
            exchange<Case, 2>(a, reinterpret_cast<T *>(shared));
        }
        phase_butterflies<Case, 2>(a);
    }
}

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_block(const __grid_constant__ wht_block_args args) {
    constexpr wht_block_config c = Case::config();
    constexpr int items = 1 << c.tile.log_items;
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    const T scale = static_cast<T>(args.scale);
    constexpr int per_tile = wht_block_rows_per_tile(c);
    const int64_t tiles = (args.rows - 1) / per_tile + 1;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const wht_block_rows rows = wht_block_tile_rows<Case>(tile, args.rows);
        T a[items];
        if constexpr (!c.parked) {
            wht_block_load<Case>(args, rows, 0, a);
            if constexpr (c.persistent) {
                if (tile + gridDim.x < tiles) {
                    wht_block_prefetch<Case>(args, tile + gridDim.x, 0, c.log_n);
                }
            }
            wht_block_tile<Case>(a, shared);
            wht_block_store<Case>(args, rows, 0, scale, a);
        } else {
            constexpr int half = 1 << c.tile.log_tile;
            constexpr int threads = tile_threads(c.tile);
            T *parked = reinterpret_cast<T *>(shared) + threadIdx.x; // this thread's words only
            char *words = shared + sizeof(T) * half;
            wht_block_load<Case>(args, rows, 0, a);
            wht_block_prefetch<Case>(args, tile, half, c.tile.log_tile);
            wht_block_tile<Case>(a, words);
#pragma unroll
            for (int j = 0; j < items; ++j) parked[j * threads] = a[j];
            wht_block_load<Case>(args, rows, half, a);
            if (tile + gridDim.x < tiles) {
                wht_block_prefetch<Case>(args, tile + gridDim.x, 0, c.tile.log_tile);
            }
            wht_block_tile<Case>(a, words);
            T sum[items];
#pragma unroll
            for (int j = 0; j < items; ++j) {
                const T low = parked[j * threads];
                sum[j] = low + a[j];
                a[j] = low - a[j];
            }
            wht_block_store<Case>(args, rows, 0, scale, sum);
            wht_block_store<Case>(args, rows, half, scale, a);
        }
    }
}

} // namespace plait::impl::cuda
