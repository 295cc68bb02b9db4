// What the kernels around the passes of a transform share: walks, loads of every type, ROWS.
#pragma once

#include "lib/cuda/wht/any_number.cuh"
#include "lib/cuda/wht/around_layout.h"

namespace plait::impl::cuda {

/// Where the lines of a tile begin. A thread finds one line; the caller meets all threads before
/// it reads them, and again before the next tile.
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

/// Integers in the widest type: narrower ones are checked where they are stored.
using wht_whole = wht_checked<int64_t>;

/// An element of X as a number.
template <class T>
__device__ __forceinline__ T wht_source_load(scalar type, const void *base, int64_t i) {
    T v{};
    if (type == scalar::b1) {
        const bool minus = wht_sign_at(base, i);
        if constexpr (std::is_floating_point_v<T>) {
            v = minus ? T(-1) : T(1);
        } else if constexpr (std::is_same_v<T, wht_whole>) {
            v.v = minus ? -1 : 1;
        }
        return v;
    }
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (type == scalar::i8) {
            v.v = __ldcs(static_cast<const int8_t *>(base) + i);
        } else if (type == scalar::i16) {
            v.v = __ldcs(static_cast<const int16_t *>(base) + i);
        } else if (type == scalar::i32) {
            v.v = __ldcs(static_cast<const int32_t *>(base) + i);
        } else {
            v.v = __ldcs(static_cast<const int64_t *>(base) + i);
        }
    } else {
        wht_any_types<T>::pick(type, [&](auto stored_as) {
            v = decltype(stored_as)::load(base, i, false); // any alignment of pairs
        });
    }
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
