// wht.fused: y[row] = scale * b * H_n (a * x[row]) on contiguous rows, where a and b are 1, SIGNS
// or DIAG (real, shared by all rows), with Y in natural, sequency or dyadic order. wht.block's
// tiles and additions (fused_layout.h says what an order changes).
//   Traffic    each element once in, once out; SIGNS and DIAG from L1 or L2.
//   Precision  as wht.block; a product with DIAG in the accumulate type before it, or before the
//              scale behind it.
//   Accesses   16 bytes where both sides allow it, else the same registers element by element: the
//              last bits do not depend on the alignment.
//   In place   works: a tile is in registers before it is written.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/block.cuh"
#include "lib/cuda/wht/fused_layout.h"

#include <utility>

namespace plait::impl::cuda {

template <scalar S, int LogN, bool Ordered> struct wht_fused_case {
    static constexpr bool ordered = Ordered;
    PLAIT_HD static constexpr wht_block_config config() {
        return wht_fused_config_of(S, LogN, Ordered);
    }
};

/// v[i] times element i + index of the side's SIGNS or DIAG. `index` is a multiple of Count.
template <scalar S, int Count, class T>
__device__ __forceinline__ void wht_fused_apply(const wht_fused_args &args, wht_any_extra extra,
                                                uint32_t index, T *v) {
    if (extra == wht_any_extra::signs) {
        const uint32_t word =
            __ldg(static_cast<const uint32_t *>(args.signs) + (index >> 5)) >> (index & 31u);
#pragma unroll
        for (int i = 0; i < Count; ++i) v[i] = (word >> i & 1u) != 0 ? -v[i] : v[i];
    } else {
        using bits = typename stored<S>::bits;
        using raw = typename raw_access<static_cast<int>(sizeof(bits)) * Count>::type;
        const bits *d = static_cast<const bits *>(args.diag) + index;
        T by[Count];
        if (reinterpret_cast<uintptr_t>(args.diag) % 16 == 0) {
            widen_raw<S, wht_log2_floor(Count)>(__ldg(reinterpret_cast<const raw *>(d)), by);
        } else {
#pragma unroll
            for (int i = 0; i < Count; ++i) by[i] = widen<S>(__ldg(d + i));
        }
#pragma unroll
        for (int i = 0; i < Count; ++i) v[i] *= by[i];
    }
}

/// The thread's part of elements. Found again for each tile and side: places would stay in
/// registers all along.
template <class Case, int Phase> __device__ __forceinline__ uint32_t wht_fused_thread() {
    uint32_t thread = threadIdx.x;
    make_opaque(thread);
    return tile_thread_part(Case::config().tile, Phase, thread);
}

/// Calls access(item, element) for every 2^LogVec items of this thread whose row exists; `element`
/// counts from the tile's first.
template <class Case, int Phase, int LogVec, class Access>
__device__ __forceinline__ void wht_fused_each(const wht_block_rows &rows, Access access) {
    constexpr wht_block_config c = Case::config();
    const uint32_t thread = wht_fused_thread<Case, Phase>();
#pragma unroll
    for (int j = 0; j < (1 << c.tile.log_items); j += 1 << LogVec) {
        const uint32_t element = thread | tile_item_part(c.tile, Phase, j);
        if (wht_block_present(c, rows, element, LogVec) > 0) access(j, element);
    }
}

template <class Case, int Items, class T>
__device__ __forceinline__ void wht_fused_load(const wht_fused_args &args,
                                               const wht_block_rows &rows, uint32_t column,
                                               T (&a)[Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = wht_min(c.tile.log_vec_x, c.log_n);
    constexpr scalar S = c.x;
    const int64_t stride = args.x_row_stride;
    const int64_t origin = rows.first * stride + column;
    if constexpr (c.tile.log_tile > c.log_n) {
#pragma unroll
        for (int j = 0; j < Items; ++j) a[j] = T(0); // rows that do not exist
    }
    if (args.vector[0]) {
        wht_fused_each<Case, 0, v>(rows, [&](int j, uint32_t e) {
            load_elements<S, v>(args.x, origin + wht_block_offset(Case::config(), e, stride),
                                a + j);
        });
    } else {
        wht_fused_each<Case, 0, v>(rows, [&](int j, uint32_t e) {
            const int64_t at = origin + wht_block_offset(Case::config(), e, stride);
#pragma unroll
            for (int i = 0; i < (1 << v); ++i) load_elements<S, 0>(args.x, at + i, a + j + i);
        });
    }
}

/// SIGNS or DIAG of the side, to the items of a phase in natural order.
template <class Case, int Phase, int LogVec, int Items, class T>
__device__ __forceinline__ void wht_fused_extra(const wht_fused_args &args, wht_any_extra extra,
                                                const wht_block_rows &rows, uint32_t column,
                                                T (&a)[Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr scalar S = c.x;
    if (extra == wht_any_extra::none) return;
    wht_fused_each<Case, Phase, LogVec>(rows, [&](int j, uint32_t e) {
        wht_fused_apply<S, 1 << LogVec>(args, extra, column | (e & bit_range(0, c.log_n)), a + j);
    });
}

/// SIGNS of all that a thread holds in a phase in natural order, a bit for each element: the same
/// for every tile of a block that walks over long rows.
template <class Case> struct wht_fused_mask {
    static constexpr int items = 1 << Case::config().tile.log_items;
    static constexpr int count = items << Case::config().log_rounds;
    uint32_t bits[(count + 31) / 32] = {};

    /// The words that have the bits of each 2^LogVec elements, shifted down.
    template <int Phase, int LogVec>
    __device__ __forceinline__ void ask(const wht_fused_args &args, uint32_t (&some)[count]) {
        constexpr wht_block_config c = Case::config();
        const auto *words = static_cast<const uint32_t *>(args.signs);
        const uint32_t thread = wht_fused_thread<Case, Phase>();
#pragma unroll
        for (int n = 0; n < count; n += 1 << LogVec) {
            constexpr wht_block_config k = Case::config();
            const uint32_t index = thread | tile_item_part(k.tile, Phase, n % items) |
                                   static_cast<uint32_t>(n / items) << k.tile.log_tile;
            some[n] = __ldg(words + (index >> 5));
        }
        static_assert(c.tile.log_tile <= c.log_n, "one row");
    }
    template <int Phase, int LogVec>
    __device__ __forceinline__ void keep(const uint32_t (&some)[count]) {
        constexpr wht_block_config c = Case::config();
        // an item or a round adds a multiple of 32, or of an access
        const uint32_t thread = wht_fused_thread<Case, Phase>();
#pragma unroll
        for (int n = 0; n < count; n += 1 << LogVec) {
            constexpr wht_block_config k = Case::config();
            const uint32_t at = (thread | tile_item_part(k.tile, Phase, n % items)) & 31u;
            bits[n / 32] |= (some[n] >> at & bit_range(0, 1 << LogVec)) << (n % 32);
        }
        static_assert(c.tile.log_tile >= 5, "rounds are whole words");
    }
    template <int Phase, int LogVec>
    __device__ __forceinline__ void load(const wht_fused_args &args) {
        uint32_t some[count];
        ask<Phase, LogVec>(args, some);
        keep<Phase, LogVec>(some);
    }

    template <class T, int Rounds>
    __device__ __forceinline__ void apply(T (&a)[Rounds][items]) const {
        uint32_t word = 0;
#pragma unroll
        for (int n = 0; n < count; ++n) {
            if (n % 32 == 0) { // or registers would keep the sign of each element
                word = bits[n / 32];
                make_opaque(word);
            }
            T &v = a[n / items][n % items];
            if constexpr (sizeof(T) == 4) {
                v = __uint_as_float(__float_as_uint(v) ^ (word << (31 - n % 32) & 0x80000000u));
            } else {
                v = (word >> (n % 32) & 1u) != 0 ? -v : v;
            }
        }
    }
};

template <scalar S, int LogVec, class T>
__device__ __forceinline__ void wht_fused_put(const wht_fused_args &args, int64_t at, T scale,
                                              const T *v) {
    if (args.vector[1]) {
        store_elements<S, LogVec>(args.y, at, v, scale);
        return;
    }
#pragma unroll
    for (int i = 0; i < (1 << LogVec); ++i) store_elements<S, 0>(args.y, at + i, v + i, scale);
}

template <class Case, int Rounds, int Items, class T>
__device__ __forceinline__ void wht_fused_store(const wht_fused_args &args,
                                                const wht_block_rows &rows, wht_any_extra extra,
                                                T scale, T (&a)[Rounds][Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int v = wht_min(c.tile.log_vec_y, c.log_n), last = c.tile.phases - 1;
    constexpr scalar S = c.y;
    const int64_t stride = args.y_row_stride;
#pragma unroll
    for (int i = 0; i < Rounds; ++i) {
        const auto column = static_cast<uint32_t>(i) << c.tile.log_tile;
        wht_fused_extra<Case, last, v>(args, extra, rows, column, a[i]);
        const int64_t origin = rows.first * stride + column;
        wht_fused_each<Case, last, v>(rows, [&](int j, uint32_t e) {
            wht_fused_put<S, v>(args, origin + wht_block_offset(Case::config(), e, stride), scale,
                                a[i] + j);
        });
    }
}

/// A store: group G of the registers, turned where the parity of the row's other bits is odd.
template <class Case, bool Sequency, int G, int Rounds, int Items, class T>
__device__ __forceinline__ void
wht_fused_store_group(const wht_fused_args &args, const wht_block_rows &rows, uint32_t thread,
                      uint32_t own, bool odd, T scale, const T (&a)[Rounds][Items]) {
    constexpr wht_block_config c = Case::config();
    constexpr int w = wht_fused_store_bits(c);
    constexpr wht_order order = Sequency ? wht_order::sequency : wht_order::dyadic;
    constexpr wht_fused_group<w> group = wht_fused_group_of<w>(c, order, G);
    constexpr scalar S = c.y;
    const bool turned = odd != group.odd;
    T v[1 << w];
#pragma unroll
    for (int t = 0; t < (1 << w); ++t) {
        constexpr wht_fused_group<w> k = wht_fused_group_of<w>(Case::config(), order, G);
        v[t] = a[k.straight[t] / Items][k.straight[t] % Items];
        if constexpr (Sequency && w > 0) {
            if (turned) v[t] = a[k.turned[t] / Items][k.turned[t] % Items];
        }
    }
    int64_t row = rows.first;
    if constexpr (c.tile.log_tile > c.log_n) {
        const uint32_t element = thread | group.element;
        if (wht_block_present(c, rows, element, 0) == 0) return;
        row += element >> c.log_n;
    }
    const uint32_t index = (own ^ group.place) & ~((1u << w) - 1u);
    if (args.extra[1] != wht_any_extra::none)
        wht_fused_apply<S, 1 << w>(args, args.extra[1], index, v);
    wht_fused_put<S, w>(args, row * args.y_row_stride + index, scale, v);
}

template <class Case, bool Sequency, int Rounds, int Items, class T, int... G>
__device__ __forceinline__ void
wht_fused_store_ordered(const wht_fused_args &args, const wht_block_rows &rows, T scale,
                        const T (&a)[Rounds][Items], std::integer_sequence<int, G...>) {
    constexpr wht_block_config c = Case::config();
    constexpr wht_order order = Sequency ? wht_order::sequency : wht_order::dyadic;
    const uint32_t thread = wht_fused_thread<Case, Case::config().tile.phases - 1>();
    const uint32_t in_row = thread & bit_range(0, c.log_n);
    const auto own = static_cast<uint32_t>(wht_any_row(order, in_row, c.log_n));
    const bool odd = (__popc(in_row) & 1) != 0;
    (wht_fused_store_group<Case, Sequency, G>(args, rows, thread, own, odd, scale, a), ...);
}

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_fused(const __grid_constant__ wht_fused_args args) {
    constexpr wht_block_config c = Case::config();
    using T = accumulator<c.x>;
    extern __shared__ __align__(16) char shared[];
    const T scale = static_cast<T>(args.scale);
    constexpr int per_tile = wht_block_rows_per_tile(c), rounds = 1 << c.log_rounds;
    const int64_t tiles = (args.rows - 1) / per_tile + 1;
    T a[rounds][1 << c.tile.log_items];
    start_successor();
    const int64_t first = wait_for_predecessor();
    // Long rows: few blocks, which would all wait for the bits of each tile.
    constexpr bool masked = wht_fused_masks(c), walks = wht_fused_walks(c);
    wht_any_extra in = args.extra[0], out = args.extra[1];
    const bool mask_in = masked && in == wht_any_extra::signs;
    const bool mask_out = masked && !Case::ordered && out == wht_any_extra::signs;
    wht_fused_mask<Case> mask;
    constexpr int last = c.tile.phases - 1, vec_out = Case::ordered ? 0 : c.tile.log_vec_y;
    if constexpr (masked) {
        if (walks && mask_in) mask.template load<0, c.tile.log_vec_x>(args);
        if (walks && mask_out) mask.template load<last, vec_out>(args);
        if (mask_in) in = wht_any_extra::none;
        if (mask_out) out = wht_any_extra::none;
    }
    for (int64_t tile = first; tile < tiles; tile += gridDim.x) {
        const wht_block_rows rows = wht_block_tile_rows(c, tile, args.rows);
        constexpr bool asks = masked && !walks;
        uint32_t some[asks ? wht_fused_mask<Case>::count : 1];
        if constexpr (asks) { // before the elements: the bits are there first
            if (mask_in) mask.template ask<0, c.tile.log_vec_x>(args, some);
            if (mask_out) mask.template ask<last, vec_out>(args, some);
        }
#pragma unroll
        for (int i = 0; i < rounds; ++i)
            wht_fused_load<Case>(args, rows, static_cast<uint32_t>(i) << c.tile.log_tile, a[i]);
        if constexpr (asks) {
            mask = {};
            if (mask_in) mask.template keep<0, c.tile.log_vec_x>(some);
            if (mask_out) mask.template keep<last, vec_out>(some);
        }
        if constexpr (c.prefetch) {
            const int64_t next = tile + tiles_ahead(c.blocks_per_sm);
            const wht_block_args ahead{args.x, nullptr, args.rows, args.x_row_stride, 0, 0};
            if (next < tiles) wht_block_prefetch<Case, c.log_n>(ahead, next, 0);
        }
#pragma unroll
        for (int i = 0; i < rounds; ++i)
            wht_fused_extra<Case, 0, wht_min(c.tile.log_vec_x, c.log_n)>(
                args, in, rows, static_cast<uint32_t>(i) << c.tile.log_tile, a[i]);
        if constexpr (masked) {
            if (mask_in) mask.apply(a);
        }
        transform_tiles<Case>(a, shared, tile != first);
        if constexpr (!Case::ordered) {
            if constexpr (masked) {
                if (mask_out) mask.apply(a);
            }
            wht_fused_store<Case>(args, rows, out, scale, a);
        } else {
            constexpr int groups = rounds << c.tile.log_items >> wht_fused_store_bits(c);
            constexpr auto each = std::make_integer_sequence<int, groups>();
            if (args.order == wht_order::sequency) {
                wht_fused_store_ordered<Case, true>(args, rows, scale, a, each);
            } else {
                wht_fused_store_ordered<Case, false>(args, rows, scale, a, each);
            }
        }
    }
}

} // namespace plait::impl::cuda
