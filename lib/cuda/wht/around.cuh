// What the kernels around the passes of a transform share: walks, loads of every type, ROWS.
#pragma once

#include "lib/cuda/wht/any_number.cuh"
#include "lib/cuda/wht/around_layout.h"

namespace plait::impl::cuda {

/// Where the lines of a tile begin. A thread finds one line.
template <int K>
__device__ __forceinline__ void wht_walk_find(const wht_walk<K> &w, int64_t tile,
                                              int64_t (*base)[K]) {
    const int line = static_cast<int>(threadIdx.x);
    if (line >= w.lines_per_tile) return;
    int64_t rest = tile / w.chunks * w.lines_per_tile + line;
    if (rest >= w.lines) return;
    const int64_t begin = tile % w.chunks * w.part;
    int64_t sum[K];
#pragma unroll
    for (int k = 0; k < K; ++k) sum[k] = begin * w.step[k];
    for (int a = 0; a < w.axes; ++a) {
        const wht_walk_axis<K> &axis = w.axis[a];
        const int64_t next = rest / axis.length, at = rest - next * axis.length;
        rest = next;
#pragma unroll
        for (int k = 0; k < K; ++k) sum[k] += at * axis.stride[k];
    }
#pragma unroll
    for (int k = 0; k < K; ++k) base[line][k] = sum[k];
}

/// Places of the lines of a tile, of this one and of the next.
template <int K> using wht_walk_bases = int64_t[2][wht_walk_most_lines][K];

/// Calls use(tile, its lines) for each tile of this block. While a tile is in work the lines of the
/// next one are found, so that the divisions are not waited for. `use` may meet all threads.
template <int K, class Use>
__device__ __forceinline__ void wht_walk_tiles(const wht_walk<K> &w, wht_walk_bases<K> &base,
                                               Use use) {
    int now = 0;
    if (blockIdx.x < w.tiles) wht_walk_find(w, blockIdx.x, base[0]);
    __syncthreads(); // the lines of the first tile are found
    for (int64_t tile = blockIdx.x; tile < w.tiles; tile += gridDim.x) {
        if (tile + gridDim.x < w.tiles) wht_walk_find(w, tile + gridDim.x, base[now ^ 1]);
        use(tile, base[now]);
        __syncthreads(); // these lines are read, the next ones found
        now ^= 1;
    }
}

/// Elements of a thread on their way at a time. `Alone`: the tile is on one line.
template <bool Alone> constexpr int wht_walk_each = Alone ? 4 : 2;

/// Place of element i of a tile in tensor k.
template <bool Alone, int K>
__device__ __forceinline__ int64_t wht_walk_place(const wht_walk<K> &w, const int64_t (*base)[K],
                                                  int i, int k) {
    if constexpr (Alone) {
        return base[0][k] + i * w.step[k];
    } else {
        const int line = wht_walk_line(w, i);
        return base[line][k] + (i - line * w.part) * w.step[k];
    }
}

/// Integers in the widest type: narrower ones are checked where they are stored.
using wht_whole = wht_checked<int64_t>;

template <class I> struct wht_whole_load {
    static __device__ __forceinline__ wht_whole load(const void *base, int64_t i) {
        return {static_cast<int64_t>(__ldcs(static_cast<const I *>(base) + i))};
    }
};
template <class T> struct wht_bit_load {
    static __device__ __forceinline__ T load(const void *base, int64_t i) {
        const bool minus = wht_sign_at(base, i);
        if constexpr (std::is_same_v<T, wht_whole>) {
            return {minus ? -1 : 1};
        } else if constexpr (std::is_floating_point_v<T>) {
            return minus ? T(-1) : T(1);
        } else {
            return T{};
        }
    }
};
template <class Stored, class T> struct wht_number_load {
    static __device__ __forceinline__ T load(const void *base, int64_t i) {
        return Stored::load(base, i, false); // any alignment of pairs
    }
};

/// Calls use with what loads elements of X as numbers: a branch for many elements.
template <class T, class Use>
__device__ __forceinline__ void wht_source_types(scalar type, Use use) {
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (type == scalar::b1) {
            use(wht_bit_load<T>{});
        } else if (type == scalar::i8) {
            use(wht_whole_load<int8_t>{});
        } else if (type == scalar::i16) {
            use(wht_whole_load<int16_t>{});
        } else if (type == scalar::i32) {
            use(wht_whole_load<int32_t>{});
        } else {
            use(wht_whole_load<int64_t>{});
        }
    } else {
        if constexpr (std::is_floating_point_v<T>) {
            if (type == scalar::b1) return use(wht_bit_load<T>{});
        }
        wht_any_types<T>::pick(
            type, [&](auto stored_as) { use(wht_number_load<decltype(stored_as), T>{}); });
    }
}

/// An element of X as a number.
template <class T>
__device__ __forceinline__ T wht_source_load(scalar type, const void *base, int64_t i) {
    T v{};
    wht_source_types<T>(type, [&](auto from) { v = decltype(from)::load(base, i); });
    return v;
}

/// A number as it is kept between steps.
template <class T>
__device__ __forceinline__ void wht_number_store(scalar type, void *base, int64_t i, T v,
                                                 bool &lost) {
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (type == scalar::i32) {
            const auto narrow = static_cast<int32_t>(v.v);
            lost |= narrow != v.v;
            static_cast<int32_t *>(base)[i] = narrow;
            return;
        }
    }
    static_cast<T *>(base)[i] = v;
}

/// Element k of ROWS; -1 where it is no place of the transform.
__device__ __forceinline__ int64_t wht_row_at(scalar type, const void *rows, int64_t k,
                                              int64_t places) {
    const int64_t row = type == scalar::i32
                            ? static_cast<int64_t>(__ldg(static_cast<const int32_t *>(rows) + k))
                            : __ldg(static_cast<const int64_t *>(rows) + k);
    return row >= 0 && row < places ? row : -1;
}

/// SIGNS and the diagonal of the input side.
template <class T>
__device__ __forceinline__ T wht_source_sides(const wht_source &s, T v, const void *signs,
                                              int64_t sign, const void *diag, int64_t at,
                                              bool &lost) {
    if (s.signs && wht_sign_at(signs, sign)) v = wht_negative(v, lost);
    if (s.diag != scalar::none) v = wht_times_diag(v, s.diag, diag, at, s.conj);
    return v;
}

template <class T> struct wht_around_name;
template <> struct wht_around_name<float> { static constexpr const char *text = "f32"; };
template <> struct wht_around_name<double> { static constexpr const char *text = "f64"; };
template <> struct wht_around_name<wht_pair<float>> { static constexpr const char *text = "c64"; };
template <> struct wht_around_name<wht_pair<double>> {
    static constexpr const char *text = "c128";
};
template <> struct wht_around_name<wht_whole> { static constexpr const char *text = "integer"; };

} // namespace plait::impl::cuda
