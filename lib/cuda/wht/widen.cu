// wht.widen: X as the numbers of the transform, with SIGNS and DIAG_IN (adjoint: conj(DIAG)) where
// the passes cannot apply them; for the adjoint of ROWS element k is the sum of the entries of X
// that name it, in their order, 0 where there is none.
//   Traffic    each element of X in once, each number out once; the diagonal and SIGNS once each
//              where they differ per element. Nothing else is done: bound by memory.
//   Tiling     blocks walk over tiles of 2048 elements along the innermost axis of Y; a
//              thread loads four before it uses the first. Chains are followed one by one.
//   Numbers    the accumulate type. Integers in 64 bits, a sum of entries in 96: a number that does
//              not fit the kept type raises the flag, since then some result does not fit either.
//              Where sums beyond 64 bits count (`half`) 32 bits of a number each in 64.
//   Offsets    64 bits.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/around.cuh"

namespace plait::impl::cuda {

/// The entries of X that name a place.
template <class T>
__device__ T wht_widen_chain(const wht_widen_args &a, int64_t x, int64_t sign, int64_t diag,
                             int64_t place, bool &lost) {
    wht_sum<T> sum;
    for (int64_t r = a.chains[place]; r >= 0; r = a.chains[a.places + r]) {
        const T v = wht_source_load<T>(a.source.x, a.x, x + r * a.source.x_step);
        sum.add(wht_source_sides(a.source, v, a.signs, sign, a.diag, diag, lost), false);
    }
    return sum.result(lost);
}

/// 2^32 v[0] + v[1] with 0 <= v[1] < 2^32, before any sign is lost.
__device__ __forceinline__ void wht_widen_halves(const wht_widen_args &a, int64_t x, int64_t sign,
                                                 int64_t place, int64_t w) {
    wht_sum<wht_whole> sum;
    if (a.source.gathers) {
        for (int64_t r = a.chains[place]; r >= 0; r = a.chains[a.places + r])
            sum.add(wht_source_load<wht_whole>(a.source.x, a.x, x + r * a.source.x_step), false);
    } else {
        sum.add(wht_source_load<wht_whole>(a.source.x, a.x, x),
                a.source.signs && wht_sign_at(a.signs, sign));
    }
    auto *out = static_cast<int64_t *>(a.w) + w;
    out[0] = int64_t{sum.high} * (int64_t{1} << 32) + static_cast<int64_t>(sum.low >> 32);
    out[a.half] = static_cast<int64_t>(sum.low & 0xffffffffu);
}

/// Elements first, first + 256, ... of the thread, below `count`.
template <bool Alone, class T>
__device__ __forceinline__ void wht_widen_part(const wht_widen_args &a, int first, int count,
                                               const int64_t (*base)[wht_widen_tensors],
                                               bool &lost) {
    constexpr int each = wht_walk_each<Alone>;
    const auto element = [&](int q) { return first + q * wht_walk_threads; };
    const auto at = [&](int q, int tensor) {
        return wht_walk_place<Alone>(a.walk, base, element(q), tensor);
    };
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (a.half > 0) {
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (element(q) < count)
                    wht_widen_halves(a, at(q, wht_widen_x), at(q, wht_widen_signs),
                                     at(q, wht_widen_place), at(q, wht_widen_w));
            return;
        }
    }
    T v[each];
    if (a.source.gathers) {
#pragma unroll
        for (int q = 0; q < each; ++q)
            if (element(q) < count)
                v[q] = wht_widen_chain<T>(a, at(q, wht_widen_x), at(q, wht_widen_signs),
                                          at(q, wht_widen_diag), at(q, wht_widen_place), lost);
    } else {
        wht_source_types<T>(a.source.x, [&](auto from) {
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (element(q) < count) v[q] = decltype(from)::load(a.x, at(q, wht_widen_x));
        });
        if (a.source.signs) {
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (element(q) < count && wht_sign_at(a.signs, at(q, wht_widen_signs)))
                    v[q] = wht_negative(v[q], lost);
        }
        if (a.source.diag != scalar::none) {
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (element(q) < count)
                    v[q] = wht_times_diag(v[q], a.source.diag, a.diag, at(q, wht_widen_diag),
                                          a.source.conj);
        }
    }
#pragma unroll
    for (int q = 0; q < each; ++q)
        if (element(q) < count) wht_number_store(a.source.w, a.w, at(q, wht_widen_w), v[q], lost);
}

/// Bits of a line that lie in a row, to packed numbers of 4 bytes: four of them an access.
__device__ __forceinline__ bool wht_widen_packs(const wht_widen_args &a, int count,
                                                const int64_t *base) {
    return a.source.x == scalar::b1 && (a.source.w == scalar::i32 || a.source.w == scalar::f32) &&
           !a.source.gathers && !a.source.signs && a.source.diag == scalar::none &&
           a.walk.step[wht_widen_x] == 1 && a.walk.step[wht_widen_w] == 1 && count % 4 == 0 &&
           base[wht_widen_x] % 4 == 0 && base[wht_widen_w] % 4 == 0 &&
           reinterpret_cast<uintptr_t>(a.w) % 16 == 0;
}
__device__ __forceinline__ void wht_widen_bits(const wht_widen_args &a, int count,
                                               const int64_t *base) {
    const uint32_t one = a.source.w == scalar::i32 ? 1u : 0x3f800000u;
    const uint32_t minus = a.source.w == scalar::i32 ? 0xffffffffu : 0xbf800000u;
    auto *to = static_cast<uint32_t *>(a.w) + base[wht_widen_w];
    for (int i = 4 * static_cast<int>(threadIdx.x); i < count; i += 4 * wht_walk_threads) {
        const int64_t bit = base[wht_widen_x] + i;
        const uint32_t four = __ldg(static_cast<const uint8_t *>(a.x) + (bit >> 3)) >> (bit & 7);
        const uint4 v = make_uint4((four & 1u) != 0 ? minus : one, (four & 2u) != 0 ? minus : one,
                                   (four & 4u) != 0 ? minus : one, (four & 8u) != 0 ? minus : one);
        *reinterpret_cast<uint4 *>(to + i) = v;
    }
}

template <bool Alone, class T>
__device__ __forceinline__ void wht_widen_tile(const wht_widen_args &a, int count,
                                               const int64_t (*base)[wht_widen_tensors],
                                               bool &lost) {
    if constexpr (Alone && (std::is_same_v<T, float> || std::is_same_v<T, wht_whole>)) {
        if (wht_widen_packs(a, count, base[0])) return wht_widen_bits(a, count, base[0]);
    }
    constexpr int step = wht_walk_each<Alone> * wht_walk_threads;
    for (int i = 0; i < count; i += step)
        wht_widen_part<Alone, T>(a, i + static_cast<int>(threadIdx.x), count, base, lost);
}

template <class T>
__global__ void __launch_bounds__(wht_walk_threads)
    wht_widen(const __grid_constant__ wht_widen_args a) {
    __shared__ wht_walk_bases<wht_widen_tensors> base;
    bool lost = false;
    wht_walk_tiles(a.walk, base, [&](int64_t tile, const int64_t(*lines)[wht_widen_tensors]) {
        const int count = wht_walk_count(a.walk, tile);
        if (a.walk.lines_per_tile == 1)
            wht_widen_tile<true, T>(a, count, lines, lost);
        else
            wht_widen_tile<false, T>(a, count, lines, lost);
    });
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (lost && a.overflow) atomicOr(a.overflow, 1);
    }
}

template <class T> static kernel_entry entry() {
    return make_kernel_entry<&wht_widen<T>>("wht.widen", wht_around_name<T>::text);
}

kernel_list list_wht_widen() {
    static const kernel_entry entries[] = {entry<float>(), entry<double>(),
                                           entry<wht_pair<float>>(), entry<wht_pair<double>>(),
                                           entry<wht_whole>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
