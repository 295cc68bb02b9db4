// wht.factor: a dense matrix of +1 and -1 along one axis: factors of orders beyond those of wht.any
// and the caller's own (FACTOR), with the input side of wht.widen. In place where w == x.
//   y[k] = sum_j M[k][j] x[j], M or its transpose of order m up to 256.
//   Tiling     m numbers of up to 32 columns in shared memory, 64 KB at most. f32: the matrix
//   beside
//              them in floats where it fits, a lane has a column, a warp eight rows or more. Else a
//              thread has eight rows of a column and their signs in a byte (wht_any_factor). Either
//              table is made once for a block. Blocks walk over tiles.
//   Traffic    each element once in, once out.
//   Flops      m - 1 additions a number; by count f32 takes 1.3 instructions each, others 4 to 6:
//              bound by arithmetic from about m = 50 on.
//   Numbers    the accumulate type; integers wrap, or a whole sum that does not fit raises the
//   flag. Offsets    64 bits.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/any.cuh"
#include "lib/cuda/wht/around.cuh"

namespace plait::impl::cuda {

/// Numbers of the sums in the form in which they are loaded and kept.
template <class T> struct wht_kept { using type = T; };
template <> struct wht_kept<uint32_t> { using type = wht_whole; };
template <> struct wht_kept<uint64_t> { using type = wht_whole; };
template <> struct wht_kept<wht_checked<int32_t>> { using type = wht_whole; };

template <class T>
__device__ __forceinline__ T wht_narrow(typename wht_kept<T>::type v, bool &lost) {
    if constexpr (std::is_same_v<T, typename wht_kept<T>::type>) {
        return v;
    } else if constexpr (std::is_same_v<T, wht_checked<int32_t>>) {
        const auto narrow = static_cast<int32_t>(v.v);
        lost |= narrow != v.v;
        return {narrow};
    } else {
        return static_cast<T>(v.v);
    }
}
template <class T> __device__ __forceinline__ typename wht_kept<T>::type wht_wide(T v) {
    if constexpr (std::is_same_v<T, typename wht_kept<T>::type>) {
        return v;
    } else if constexpr (std::is_same_v<T, wht_checked<int32_t>>) {
        return {v.v};
    } else { // the sign goes on
        return {static_cast<int64_t>(static_cast<std::make_signed_t<T>>(v))};
    }
}

/// Whether entry [k][j] of the matrix that is applied is -1.
__device__ __forceinline__ bool wht_factor_entry(const wht_factor_args &a, int k, int j) {
    const int row = a.transposed ? j : k, column = a.transposed ? k : j;
    return a.matrix ? wht_sign_at(a.matrix, row * a.matrix_stride[0] + column * a.matrix_stride[1])
                    : wht_factor_minus(a.rule, row, column);
}

__device__ __forceinline__ void wht_factor_signs(const wht_factor_args &a, uint8_t *signs) {
    const int m = a.order, count = (m + 7) / 8 * m;
    for (int n = static_cast<int>(threadIdx.x); n < count; n += wht_walk_threads) {
        const int block = n / m, j = n % m;
        uint32_t bits = 0;
        for (int q = 0; q < 8 && 8 * block + q < m; ++q)
            bits |= static_cast<uint32_t>(wht_factor_entry(a, 8 * block + q, j)) << q;
        signs[n] = static_cast<uint8_t>(bits);
    }
}

__device__ __forceinline__ void wht_factor_floats(const wht_factor_args &a, float *entries) {
    const int padded = wht_factor_padded(a.order), count = padded * a.order;
    for (int n = static_cast<int>(threadIdx.x); n < count; n += wht_walk_threads) {
        const int j = n / padded, k = n % padded;
        entries[n] = k >= a.order ? 0.0f : wht_factor_entry(a, k, j) ? -1.0f : 1.0f;
    }
}

/// A lane has a column, a warp `Blocks` of eight rows. A product with +-1 is exact: the bits are
/// those of additions.
template <int Blocks>
__device__ __forceinline__ void wht_factor_products(int m, const float *entries, float *words) {
    constexpr int warps = wht_walk_threads / 32, rows = wht_factor_rows;
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int padded = wht_factor_padded(m);
    float sum[Blocks][rows] = {};
    int first[Blocks];
#pragma unroll
    for (int b = 0; b < Blocks; ++b) first[b] = (warp + b * warps) * rows;
#pragma unroll 4
    for (int j = 0; j < m; ++j) {
        const float v = words[wht_any_word(static_cast<uint32_t>(j << 5 | lane))];
#pragma unroll
        for (int b = 0; b < Blocks; ++b) {
            if (first[b] >= m) continue;
            const auto *e = reinterpret_cast<const float4 *>(entries + j * padded + first[b]);
            const float4 low = e[0], high = e[1];
            const float by[rows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (int q = 0; q < rows; ++q) sum[b][q] = __fmaf_rn(v, by[q], sum[b][q]);
        }
    }
    __syncthreads(); // the columns are read
#pragma unroll
    for (int b = 0; b < Blocks; ++b) {
#pragma unroll
        for (int q = 0; q < rows; ++q)
            if (first[b] + q < m)
                words[wht_any_word(static_cast<uint32_t>((first[b] + q) << 5 | lane))] = sum[b][q];
    }
    __syncthreads(); // all columns are written
}

template <wht_any_number N>
__global__ void __launch_bounds__(wht_walk_threads)
    wht_factor_pass(const __grid_constant__ wht_factor_args a) {
    using T = typename wht_any_type<N>::type;
    using K = typename wht_kept<T>::type;
    extern __shared__ __align__(16) char shared[];
    __shared__ wht_walk_bases<wht_widen_tensors> base;
    T *words = reinterpret_cast<T *>(shared);
    auto *signs = reinterpret_cast<uint8_t *>(shared + wht_factor_signs_at(a, sizeof(T)));
    const auto &w = a.walk;
    const int slots = a.order << a.bits, columns = 1 << a.bits;
    bool lost = false;
    if (a.products)
        wht_factor_floats(a, reinterpret_cast<float *>(signs));
    else
        wht_factor_signs(a, signs);
    /// Slots of a thread, `each` on their way at a time, lanes along the smaller stride.
    constexpr int each = 4;
    struct slot {
        uint32_t word;
        int line, along, j;
        bool inside;
    };
    const auto slots_from = [&](int first, int count, slot(&s)[each]) {
#pragma unroll
        for (int q = 0; q < each; ++q) {
            const int n = first + q * wht_walk_threads;
            const int column = a.along ? n / a.order : n & (columns - 1);
            s[q].j = a.along ? n % a.order : n >> a.bits;
            s[q].line = wht_walk_line(w, column);
            s[q].along = column - s[q].line * w.part;
            s[q].word = wht_any_word(static_cast<uint32_t>(s[q].j << a.bits | column));
            s[q].inside = n < slots && column < count;
        }
    };
    const auto place = [&](const slot &s, const int64_t(*lines)[wht_widen_tensors], int tensor) {
        return lines[s.line][tensor] + s.along * w.step[tensor] + s.j * a.step[tensor];
    };
    wht_walk_tiles(w, base, [&](int64_t tile, const int64_t(*lines)[wht_widen_tensors]) {
        const int count = wht_walk_count(w, tile);
        for (int n = static_cast<int>(threadIdx.x); n < slots; n += each * wht_walk_threads) {
            slot s[each];
            slots_from(n, count, s);
            K v[each];
            wht_source_types<K>(a.source.x, [&](auto from) {
#pragma unroll
                for (int q = 0; q < each; ++q) {
                    v[q] = K{};
                    if (s[q].inside)
                        v[q] = decltype(from)::load(a.x, place(s[q], lines, wht_widen_x));
                }
            });
#pragma unroll
            for (int q = 0; q < each; ++q) {
                if (s[q].inside && (a.source.signs || a.source.diag != scalar::none))
                    v[q] = wht_source_sides(a.source, v[q], a.signs,
                                            place(s[q], lines, wht_widen_signs), a.diag,
                                            place(s[q], lines, wht_widen_diag), lost);
                if (n + q * wht_walk_threads < slots) words[s[q].word] = wht_narrow<T>(v[q], lost);
            }
        }
        __syncthreads(); // the tile is loaded, the signs are there
        bool done = false;
        if constexpr (N == wht_any_number::f32) {
            const auto *entries = reinterpret_cast<const float *>(signs);
            done = a.products;
            if (done && a.order <= 64) {
                wht_factor_products<1>(a.order, entries, words);
            } else if (done && a.order <= 128) {
                wht_factor_products<2>(a.order, entries, words);
            } else if (done && a.order <= 192) {
                wht_factor_products<3>(a.order, entries, words);
            } else if (done) {
                wht_factor_products<4>(a.order, entries, words);
            }
        }
        if (!done) wht_any_factor(a.order, a.bits, signs, words, lost);
        for (int n = static_cast<int>(threadIdx.x); n < slots; n += each * wht_walk_threads) {
            slot s[each];
            slots_from(n, count, s);
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (s[q].inside)
                    wht_number_store(a.source.w, a.w, place(s[q], lines, wht_widen_w),
                                     wht_wide(words[s[q].word]), lost);
        }
    });
    if constexpr (wht_any_is_checked(N)) {
        if (lost) atomicOr(a.overflow, 1);
    }
}

template <wht_any_number N> static kernel_entry entry() {
    return make_kernel_entry<&wht_factor_pass<N>>("wht.factor", wht_any_number_name(N));
}

kernel_list list_wht_factor() {
    static const kernel_entry entries[] = {
        entry<wht_any_number::f32>(),       entry<wht_any_number::f64>(),
        entry<wht_any_number::c64>(),       entry<wht_any_number::c128>(),
        entry<wht_any_number::i32>(),       entry<wht_any_number::i64>(),
        entry<wht_any_number::checked32>(), entry<wht_any_number::checked64>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
