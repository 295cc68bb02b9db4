// wht.widen: X as the numbers of the transform, with SIGNS and DIAG_IN (adjoint: conj(DIAG)) where
// the passes cannot apply them; for the adjoint of ROWS element k is the sum of the entries of X
// that name it, in their order, 0 where there is none.
//   Traffic    each element of X in once, each number out once; the diagonal and SIGNS once each
//              where they differ per element. Nothing else is done: bound by memory.
//   Tiling     blocks walk over tiles of 2048 elements along the innermost axis of Y, eight of
//              them for a thread, loaded before the first is used. Chains are followed one by one.
//   Numbers    the accumulate type. Integers in 64 bits, a sum of entries in 96: a number that does
//              not fit the kept type raises the flag, since then some result does not fit either.
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

template <class T>
__global__ void __launch_bounds__(wht_walk_threads)
    wht_widen(const __grid_constant__ wht_widen_args a) {
    __shared__ int64_t base[wht_walk_most_lines][wht_widen_tensors];
    const auto &w = a.walk;
    bool lost = false;
    for (int64_t tile = blockIdx.x; tile < w.tiles; tile += gridDim.x) {
        wht_walk_find(w, tile, base);
        __syncthreads(); // the lines are found
        const int count = wht_walk_count(w, tile);
        const auto at = [&](int line, int along, int tensor) {
            return base[line][tensor] + along * w.step[tensor];
        };
        T v[wht_walk_each];
        if (!a.source.gathers) {
#pragma unroll
            for (int q = 0; q < wht_walk_each; ++q) {
                const int i = static_cast<int>(threadIdx.x) + q * wht_walk_threads;
                const int line = wht_walk_line(w, i), along = i - line * w.part;
                v[q] = T{};
                if (i < count)
                    v[q] = wht_source_load<T>(a.source.x, a.x, at(line, along, wht_widen_x));
            }
        }
#pragma unroll
        for (int q = 0; q < wht_walk_each; ++q) {
            const int i = static_cast<int>(threadIdx.x) + q * wht_walk_threads;
            const int line = wht_walk_line(w, i), along = i - line * w.part;
            if (i >= count) continue;
            const int64_t sign = at(line, along, wht_widen_signs);
            const int64_t diag = at(line, along, wht_widen_diag);
            if (a.source.gathers)
                v[q] = wht_widen_chain<T>(a, at(line, along, wht_widen_x), sign, diag,
                                          at(line, along, wht_widen_place), lost);
            else
                v[q] = wht_source_sides(a.source, v[q], a.signs, sign, a.diag, diag, lost);
            wht_number_store(a.source.w, a.w, at(line, along, wht_widen_w), v[q], lost);
        }
        __syncthreads(); // the lines are read
    }
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
