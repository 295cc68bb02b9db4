// wht.finish: results of a transform -> Y: ROWS of them, conj(DIAG_IN) of an adjoint, division by
// SCALES, the one rounding to Y's type (E4M3: nearest even, saturating); on the way the largest
// magnitude of each group and HISTOGRAM. Any of these may be missing, Y too.
//   Traffic    each result in once, each element of Y out once; groups and bins stay on the chip
//              where lines are long. With SCALES the results are read twice: a group's largest
//              comes first. Bound by memory; 20 to 40 instructions an element.
//   Tiling     blocks walk over tiles of 2048 elements along the innermost axis of Y, eight of
//              them for a thread, loaded before the first is used.
//   Largest    by its bits: those of magnitudes are in their order, NaN above Inf. A thread, then a
//              warp, then one atomic maximum in memory: no order of threads changes it.
//   Histogram  counters of a block in shared memory where the bins of a tile fit, added to memory
//              where the transform changes: integers, so again no order changes it.
//   Offsets    64 bits.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/around.cuh"
#include "lib/cuda/wht/e4m3.cuh"

namespace plait::impl::cuda {

template <class T> struct wht_size { using type = unsigned long long; };
template <> struct wht_size<float> { using type = unsigned int; };

__device__ __forceinline__ unsigned int wht_size_of(float v) {
    return __float_as_uint(v) & 0x7fffffffu;
}
__device__ __forceinline__ unsigned long long wht_size_of(double v) {
    return static_cast<unsigned long long>(__double_as_longlong(v)) & ~(1ull << 63);
}
/// 2^63 as 2^63 - 1.
__device__ __forceinline__ unsigned long long wht_size_of(wht_whole v) {
    if (v.v >= 0) return static_cast<unsigned long long>(v.v);
    return static_cast<unsigned long long>(v.v == INT64_MIN ? INT64_MAX : -v.v);
}
template <class T> __device__ __forceinline__ unsigned long long wht_size_of(wht_pair<T>) {
    return 0; // AMAX is not for complex types
}

template <class B> __device__ __forceinline__ B wht_larger(B a, B b) { return a < b ? b : a; }

/// Largest magnitudes of groups: `top` is what a thread has seen of the group `group`.
template <class B> struct wht_largest {
    B *out;
    int64_t group;
    B top;

    /// By whole warps: what the lanes have seen goes to memory.
    __device__ __forceinline__ void flush() {
        B v = top;
#pragma unroll
        for (int s = 16; s > 0; s /= 2) v = wht_larger(v, __shfl_xor_sync(0xffffffffu, v, s));
        if (threadIdx.x % 32 == 0 && v > 0) atomicMax(out + group, v);
        top = 0;
    }
    /// By whole warps: lanes hold elements that follow one another, `left` of them on their line.
    __device__ __forceinline__ void add_lines(B v, int64_t of, int along, int left) const {
        const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
        for (int s = 1; s < 32; s *= 2) {
            const B other = __shfl_down_sync(0xffffffffu, v, static_cast<unsigned>(s));
            if (s < left && lane + s < 32) v = wht_larger(v, other);
        }
        if ((lane == 0 || along == 0) && v > 0) atomicMax(out + of, v);
    }
};

/// Counters of a tile: in shared memory where they fit, else in memory.
struct wht_bins {
    const wht_finish_args &a;
    unsigned int *counters;
    bool shared;

    /// above / width, both below 2^63: by F64, which is off by one at most, since there are fewer
    /// bins than 2^50. A division of 64 bits would be a call in the middle of the loop.
    __device__ __forceinline__ uint64_t quotient(uint64_t above, uint64_t width) const {
        if (a.bin_shift >= 0) return above >> a.bin_shift;
        uint64_t q = static_cast<uint64_t>(static_cast<double>(above) / static_cast<double>(width));
        if (q * width > above) --q;
        if ((q + 1) * width <= above) ++q;
        return q;
    }
    __device__ __forceinline__ void add(int64_t y, int line, int64_t at) const {
        if (y < a.first_bin) return;
        const uint64_t above = static_cast<uint64_t>(y) - static_cast<uint64_t>(a.first_bin);
        if (above >= static_cast<uint64_t>(a.bins) * static_cast<uint64_t>(a.bin_width)) return;
        const uint64_t bin = quotient(above, static_cast<uint64_t>(a.bin_width));
        if (shared)
            atomicAdd(counters + static_cast<uint64_t>(line) * static_cast<uint64_t>(a.bins) + bin,
                      1u);
        else
            atomicAdd(a.histogram + at + static_cast<int64_t>(bin) * a.bin_stride, 1ull);
    }
    /// By the whole block: counters of `lines` go to memory and are 0 again; at[line] has the
    /// place.
    template <class At> __device__ __forceinline__ void flush(int lines, const At &at) const {
        const int count = lines * static_cast<int>(a.bins);
        for (int i = static_cast<int>(threadIdx.x); i < count; i += wht_walk_threads) {
            const unsigned int n = counters[i];
            const int line = i / static_cast<int>(a.bins), bin = i % static_cast<int>(a.bins);
            counters[i] = 0;
            if (n > 0) atomicAdd(a.histogram + at(line) + bin * a.bin_stride, 1ull * n);
        }
    }
};

template <class T>
__device__ __forceinline__ T wht_result_load(const wht_finish_args &a, int64_t i) {
    if constexpr (std::is_same_v<T, wht_whole>) {
        return wht_source_load<T>(a.w_type, a.w, i);
    } else {
        return static_cast<const T *>(a.w)[i];
    }
}

/// The result as Y has it, its largest magnitude counting before the rounding.
template <class T>
__device__ __forceinline__ void wht_result_store(const wht_finish_args &a, int64_t i, T v,
                                                 int64_t group, bool paired, bool &lost) {
    if constexpr (std::is_floating_point_v<T>) {
        if (a.scales) v /= static_cast<T>(__ldg(a.scales + group));
        if (a.y_type == scalar::e4m3) {
            static_cast<uint8_t *>(a.y)[i] = wht_round_e4m3(v);
            return;
        }
    }
    wht_any_types<T>::pick(
        a.y_type, [&](auto stored_as) { decltype(stored_as)::store(a.y, i, v, paired, lost); });
}

template <class T>
__global__ void __launch_bounds__(wht_walk_threads)
    wht_finish(const __grid_constant__ wht_finish_args a) {
    using B = typename wht_size<T>::type;
    __shared__ int64_t base[wht_walk_most_lines][wht_finish_tensors];
    __shared__ unsigned int counters[wht_finish_most_bins];
    const auto &w = a.walk;
    const bool alone = w.lines_per_tile == 1;
    const bool sized = a.largest != nullptr, binned = a.histogram != nullptr;
    const bool paired = reinterpret_cast<uintptr_t>(a.y) % sizeof(T) == 0;
    wht_largest<B> largest{static_cast<B *>(a.largest), -1, 0};
    const wht_bins bins{a, counters,
                        w.step[wht_finish_bins] == 0 &&
                            a.bins * w.lines_per_tile <= wht_finish_most_bins};
    int64_t counted = -1; // where the counters of a single line belong
    bool lost = false;
    if (binned)
        for (int i = static_cast<int>(threadIdx.x); i < wht_finish_most_bins; i += wht_walk_threads)
            counters[i] = 0;
    for (int64_t tile = blockIdx.x; tile < w.tiles; tile += gridDim.x) {
        wht_walk_find(w, tile, base);
        __syncthreads(); // the lines are found, the counters are 0
        const int count = wht_walk_count(w, tile);
        const auto at = [&](int line, int along, int tensor) {
            return base[line][tensor] + along * w.step[tensor];
        };
        if (alone && sized && w.step[wht_finish_group] == 0 &&
            largest.group != base[0][wht_finish_group]) {
            if (largest.group >= 0) largest.flush();
            largest.group = base[0][wht_finish_group];
        }
        if (alone && binned && bins.shared && counted != base[0][wht_finish_bins]) {
            if (counted >= 0) {
                bins.flush(1, [&](int) { return counted; });
                __syncthreads(); // the counters are 0
            }
            counted = base[0][wht_finish_bins];
        }
        T v[wht_walk_each];
#pragma unroll
        for (int q = 0; q < wht_walk_each; ++q) {
            const int i = static_cast<int>(threadIdx.x) + q * wht_walk_threads;
            const int line = wht_walk_line(w, i), along = i - line * w.part;
            v[q] = T{};
            if (i >= count) continue;
            int64_t from = at(line, along, wht_finish_w);
            if (a.rows_type != scalar::none) {
                const int64_t place =
                    wht_row_at(a.rows_type, a.rows, at(line, along, wht_finish_rows), a.places);
                if (place < 0) continue; // 0
                from += place * a.place_step;
            }
            v[q] = wht_result_load<T>(a, from);
        }
#pragma unroll
        for (int q = 0; q < wht_walk_each; ++q) {
            const int i = static_cast<int>(threadIdx.x) + q * wht_walk_threads;
            const bool active = i < count;
            const int line = active ? wht_walk_line(w, i) : 0, along = i - line * w.part;
            const int64_t group = at(line, along, wht_finish_group);
            if (active && a.diag_type != scalar::none)
                v[q] = wht_times_diag(v[q], a.diag_type, a.diag, at(line, along, wht_finish_diag),
                                      true);
            if constexpr (std::is_same_v<T, wht_whole>) {
                if (a.y_type == scalar::i32) { // AMAX and HISTOGRAM see what Y has
                    const auto wrapped = static_cast<int32_t>(static_cast<uint64_t>(v[q].v));
                    lost |= wrapped != v[q].v;
                    v[q].v = wrapped;
                }
                if (active && binned) bins.add(v[q].v, line, at(line, along, wht_finish_bins));
            }
            if (sized) {
                const B size = active ? wht_size_of(v[q]) : 0;
                if (w.step[wht_finish_group] != 0) {
                    if (active && size > 0) atomicMax(largest.out + group, size);
                } else if (alone) {
                    largest.top = wht_larger(largest.top, size);
                } else {
                    largest.add_lines(size, group, along, active ? w.part - along : 1);
                }
            }
            if (active && a.stores)
                wht_result_store(a, at(line, along, wht_finish_y), v[q], group, paired, lost);
        }
        __syncthreads(); // the lines are read, the tile is counted
        if (!alone && binned && bins.shared) {
            const int64_t left = w.lines - tile * w.lines_per_tile;
            bins.flush(left < w.lines_per_tile ? static_cast<int>(left) : w.lines_per_tile,
                       [&](int line) { return base[line][wht_finish_bins]; });
            __syncthreads(); // the lines are read again
        }
    }
    if (largest.group >= 0) largest.flush();
    if (counted >= 0) bins.flush(1, [&](int) { return counted; });
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (lost && a.overflow) atomicOr(a.overflow, 1);
    }
}

template <class T> static kernel_entry entry() {
    return make_kernel_entry<&wht_finish<T>>("wht.finish", wht_around_name<T>::text);
}

kernel_list list_wht_finish() {
    static const kernel_entry entries[] = {entry<float>(), entry<double>(),
                                           entry<wht_pair<float>>(), entry<wht_pair<double>>(),
                                           entry<wht_whole>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
