// wht.block: y[row] = scale * H_n x[row], n = 2^log_n, 0 <= log_n <= 16 (f64, i64: 15), also of
// complex numbers (block_layout.h); 64-bit strides.
// One block holds a tile of one or more rows (block_layout.h says which thread holds what), reads
// each element once and writes it once: 2 * sizeof(element) bytes each. Blocks stride over tiles.
// Limits: row strides >= n; vector kernels need 16-byte bases and strides, and packed rows where n
// elements have less than 16 bytes. In place works: a tile is in registers before it is written.
// Precision: 16-bit types and f32 accumulate in f32, f64 in f64; one multiplication by the scale
// and one rounding at the store. Integers wrap; they have no scale.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/block_layout.h"

namespace plait::impl::cuda {

template <scalar X, scalar Y, int LogN, bool Vector, int Parts> struct wht_block_case {
    PLAIT_HD static constexpr wht_block_config config() {
        return wht_block_config_of(X, Y, LogN, Vector, Parts);
    }
};

/// Calls access(item, offset) for every access of this thread that exists, partial(item, offset,
/// count) for the one that the last packed rows fill in part. Offsets count elements from the
/// tile's first row.
template <class Case, int Phase, int LogVec, class Access, class Partial>
__device__ __forceinline__ void wht_block_each(const wht_block_rows &rows, int64_t stride,
                                               Access access, Partial partial) {
    constexpr wht_block_config c = Case::config();
    constexpr tile_layout t = c.tile;
    if constexpr (t.log_tile > c.log_row) {
        // or the offsets of the loads would stay in registers for the stores
        make_opaque(stride);
    }
    const uint32_t thread = tile_thread_part(t, Phase, threadIdx.x);
    const int64_t base = wht_block_offset(c, thread, stride);
    if constexpr (c.log_row > c.log_n) {
        if (rows.full == 1 << (t.log_tile - c.log_row)) { // all but the last tile: no branches
#pragma unroll
            for (int j = 0; j < (1 << t.log_items); j += 1 << LogVec) {
                access(j, base + wht_block_offset(c, tile_item_part(t, Phase, j), stride));
            }
            return;
        }
    }
#pragma unroll
    for (int j = 0; j < (1 << t.log_items); j += 1 << LogVec) {
        const uint32_t item = tile_item_part(t, Phase, j);
        const int64_t offset = base + wht_block_offset(c, item, stride);
        const int count = wht_block_present(c, rows, thread | item, LogVec);
        if (count == 1 << LogVec) {
            access(j, offset);
        } else if constexpr (c.log_row > c.log_n) {
            if (count > 0) partial(j, offset, count);
        }
    }
}

template <class Case, int Items, class T>
__device__ __forceinline__ void wht_block_load(const wht_block_args &args,
                                               const wht_block_rows &rows, int64_t column,
                                               T (&a)[Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = c.tile.log_vec_x;
    const int64_t stride = wht_block_stride(c, args.x_row_stride);
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
    const int64_t stride = wht_block_stride(c, args.y_row_stride);
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

/// Brings `1 << LogLength` elements of each row of a tile to L2; of rows that are shorter than a
/// line and do not lie packed, only some.
template <class Case, int LogLength>
__device__ __forceinline__ void wht_block_prefetch(const wht_block_args &args, int64_t tile,
                                                   int64_t column) {
    constexpr wht_block_config c = Case::config();
    constexpr int size = sizeof(typename stored<c.x>::bits);
    constexpr int per_tile = wht_block_rows_per_tile(c);
    constexpr int elements = prefetch_bytes / size; // of a line
    constexpr int lines = (per_tile << LogLength) / elements;
    static_assert(lines > 0, "shorter tiles are not worth it");
    for (int i = static_cast<int>(threadIdx.x); i < lines; i += tile_threads(c.tile)) {
        const int64_t row = tile * per_tile + (i * elements >> LogLength);
        if (per_tile > 1 && row >= args.rows) return;
        prefetch_l2(static_cast<const char *>(args.x) +
                    (row * args.x_row_stride + column + (i * elements & ((1 << LogLength) - 1))) *
                        size);
    }
}

/// The tiles that registers hold, from `column` of a row on; `done` once everything is loaded.
template <class Case, int Rounds, int Items, class T, class Done>
__device__ __forceinline__ void
wht_block_rounds(const wht_block_args &args, const wht_block_rows &rows, int64_t column,
                 T (&a)[Rounds][Items], char *words, bool in_use, Done done) {
    constexpr wht_block_config c = Case::config();
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        wht_block_load<Case>(args, rows, column + (i << c.tile.log_tile), a[i]);
    }
    done();
    transform_tiles<Case>(a, words, in_use);
}

template <class Case, int Rounds, int Items, class T>
__device__ __forceinline__ void wht_block_store_rounds(const wht_block_args &args,
                                                       const wht_block_rows &rows, int64_t column,
                                                       T scale, const T (&a)[Rounds][Items]) {
    constexpr wht_block_config c = Case::config();
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        wht_block_store<Case>(args, rows, column + (i << c.tile.log_tile), scale, a[i]);
    }
}

/// A transform in two halves: the first waits in shared memory, in words of its own thread.
template <class Case, int Rounds, int Items, class T>
__device__ __forceinline__ void wht_block_halves(const wht_block_args &args, int64_t row, T scale,
                                                 T (&a)[Rounds][Items], char *shared, bool in_use) {
    constexpr wht_block_config c = Case::config();
    constexpr int64_t half = int64_t(1) << (c.log_n - 1);
    constexpr int threads = tile_threads(c.tile);
    const wht_block_rows rows{row, 1, 0};
    T *parked = reinterpret_cast<T *>(shared) + threadIdx.x;
    char *words = shared + wht_block_parked_bytes(c);
    wht_block_rounds<Case>(args, rows, 0, a, words, in_use, [&] {
        wht_block_prefetch<Case, Case::config().log_n - 1>(args, row, half);
    });
#pragma unroll
    for (int i = 0; i < Rounds * Items; ++i) parked[i * threads] = a[i / Items][i % Items];
    wht_block_rounds<Case>(args, rows, half, a, words, true, [&] {
        const int64_t next = row + tiles_ahead(Case::config().blocks_per_sm);
        if (next < args.rows) wht_block_prefetch<Case, Case::config().log_n - 1>(args, next, 0);
    });
    constexpr int v = c.tile.log_vec_y;
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        const int64_t origin = row * args.y_row_stride + (i << c.tile.log_tile);
        wht_block_each<Case, c.tile.phases - 1, v>(
            rows, args.y_row_stride,
            [&](int j, int64_t offset) {
                T sum[1 << v];
#pragma unroll
                for (int e = 0; e < (1 << v); ++e) {
                    const T low = parked[(i * Items + j + e) * threads];
                    sum[e] = low + a[i][j + e];
                    a[i][j + e] = low - a[i][j + e];
                }
                store_elements<Case::config().y, v>(args.y, origin + offset, sum, scale);
            },
            [](int, int64_t, int) {});
    }
    wht_block_store_rounds<Case>(args, rows, half, scale, a);
}

/// The accesses of one row that this thread makes, as stored.
template <class Case> struct wht_block_raw {
    static constexpr wht_block_config c = Case::config();
    static constexpr int vec = c.tile.log_vec_x;
    static constexpr int each = 1 << (c.tile.log_items - vec);
    static constexpr int count = each << c.log_rounds;
    raw_elements<c.x, vec> data[count];

    __device__ __forceinline__ void load(const wht_block_args &args, int64_t row) {
        const int64_t origin =
            row * args.x_row_stride + tile_thread_part(Case::config().tile, 0, threadIdx.x);
#pragma unroll
        for (int i = 0; i < count; ++i) {
            constexpr wht_block_config k = Case::config();
            const uint32_t item = tile_item_part(k.tile, 0, (i % each) << vec);
            data[i] = load_raw<k.x, vec>(
                args.x, origin + item + (static_cast<uint32_t>(i / each) << k.tile.log_tile));
        }
    }

    template <int Rounds, int Items, class T>
    __device__ __forceinline__ void widen(T (&a)[Rounds][Items]) const {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            widen_raw<Case::config().x, vec>(data[i], &a[i / each][(i % each) << vec]);
        }
    }
};

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_block(const __grid_constant__ wht_block_args args) {
    constexpr wht_block_config c = Case::config();
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    const T scale = static_cast<T>(args.scale);
    constexpr int per_tile = wht_block_rows_per_tile(c);
    const int64_t tiles = (args.rows - 1) / per_tile + 1;
    T a[1 << c.log_rounds][1 << c.tile.log_items];
    start_successor();
    const int64_t first = wait_for_predecessor();
    const auto again = [first](int64_t tile) { return tile != first; };
    if constexpr (c.pipelined) {
        static_assert(per_tile == 1 && !c.parked, "a tile is one row");
        wht_block_raw<Case> raw;
        if (first < tiles) raw.load(args, first);
        for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
            raw.widen(a);
            if (tile + gridDim.x < tiles) raw.load(args, tile + gridDim.x);
            transform_tiles<Case>(a, shared, again(tile));
            wht_block_store_rounds<Case>(args, {tile, 1, 0}, 0, scale, a);
        }
    } else {
        for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
            if constexpr (c.parked) {
                wht_block_halves<Case>(args, tile, scale, a, shared, again(tile));
            } else {
                const wht_block_rows rows = wht_block_tile_rows(c, tile, args.rows);
                wht_block_rounds<Case>(args, rows, 0, a, shared, again(tile), [&] {
                    if constexpr (Case::config().prefetch) {
                        const int64_t next = tile + tiles_ahead(Case::config().blocks_per_sm);
                        if (next < tiles) wht_block_prefetch<Case, c.log_n>(args, next, 0);
                    }
                });
                wht_block_store_rounds<Case>(args, rows, 0, scale, a);
            }
        }
    }
}

} // namespace plait::impl::cuda
