// wht.finish: results of a transform -> Y: ROWS of them, conj(DIAG_IN) of an adjoint, division by
// SCALES, the one rounding to Y's type (E4M3: nearest even, saturating); on the way the largest
// magnitude of each group and HISTOGRAM. Any of these may be missing, Y too.
//   Traffic    each result in once, each element of Y out once; groups and bins stay on the chip
//              where lines are long. With SCALES the results are read twice: a group's largest
//              comes first. Bound by memory; 20 to 40 instructions an element.
//   Tiling     blocks walk over tiles of 2048 elements along the innermost axis of Y; a
//              thread loads four before it uses the first.
//   Largest    by its bits: those of magnitudes are in their order, NaN above Inf. A thread, then a
//              warp, then one atomic maximum in memory: no order of threads changes it.
//   Histogram  counters of a block in shared memory where the bins of a tile fit, added to memory
//              where the transform changes: integers, so again no order changes it.
//   Halves     numbers of sums beyond 64 bits are put together, before SIGNS of an adjoint: only
//              then is it known whether a result fits.
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

/// Numbers as they are kept.
template <class T> struct wht_kept_load {
    static __device__ __forceinline__ T load(const void *base, int64_t i) {
        return static_cast<const T *>(base)[i];
    }
};
template <class T, class Use> __device__ __forceinline__ void wht_kept_types(scalar type, Use use) {
    if constexpr (!std::is_same_v<T, wht_whole>) {
        use(wht_kept_load<T>{});
    } else if (type == scalar::i32) {
        use(wht_whole_load<int32_t>{});
    } else {
        use(wht_whole_load<int64_t>{});
    }
}

/// What a block carries from tile to tile.
template <class T> struct wht_finish_state {
    wht_largest<typename wht_size<T>::type> largest;
    wht_bins bins;
    int64_t counted; ///< where the counters of a single line belong
    bool lost;
};

/// Elements first, first + 256, ... of a thread, below `count` of a tile.
template <class T, bool Alone> struct wht_finish_part {
    static constexpr int each = wht_walk_each<Alone>;
    const wht_finish_args &a;
    const int64_t (*base)[wht_finish_tensors];
    int first, count;
    T v[each];

    __device__ __forceinline__ int element(int q) const { return first + q * wht_walk_threads; }
    __device__ __forceinline__ bool has(int q) const { return element(q) < count; }
    __device__ __forceinline__ int64_t at(int q, int tensor) const {
        return wht_walk_place<Alone>(a.walk, base, element(q), tensor);
    }

    /// A carry of the low half goes to the high one, which must then be of 32 bits.
    __device__ __forceinline__ wht_whole whole(int64_t place, int64_t sign, bool &lost) const {
        const auto *w = static_cast<const int64_t *>(a.w) + place;
        int64_t high = w[0], low = w[a.half];
        if (a.signs && wht_sign_at(a.diag, sign)) high = -high, low = -low;
        high += low >> 32;
        lost |= high != static_cast<int32_t>(high);
        return {static_cast<int64_t>(static_cast<uint64_t>(high) << 32 |
                                     (static_cast<uint64_t>(low) & 0xffffffffu))};
    }
    __device__ __forceinline__ void load_halves(bool &lost) {
#pragma unroll
        for (int q = 0; q < each; ++q) {
            v[q] = T{};
            if (!has(q)) continue;
            int64_t place = 0;
            if (a.rows_type != scalar::none)
                place = wht_row_at(a.rows_type, a.rows, at(q, wht_finish_rows), a.places);
            if (place >= 0)
                v[q] =
                    whole(at(q, wht_finish_w) + place * a.place_step, at(q, wht_finish_diag), lost);
        }
    }

    __device__ __forceinline__ void load(bool &lost) {
        if constexpr (std::is_same_v<T, wht_whole>) {
            if (a.half > 0) return load_halves(lost);
        }
        wht_kept_types<T>(a.w_type, [&](auto from) {
            if (a.rows_type == scalar::none) {
#pragma unroll
                for (int q = 0; q < each; ++q) {
                    v[q] = T{};
                    if (has(q)) v[q] = decltype(from)::load(a.w, at(q, wht_finish_w));
                }
                return;
            }
#pragma unroll
            for (int q = 0; q < each; ++q) {
                v[q] = T{};
                if (!has(q)) continue;
                const int64_t place =
                    wht_row_at(a.rows_type, a.rows, at(q, wht_finish_rows), a.places);
                if (place >= 0)
                    v[q] = decltype(from)::load(a.w, at(q, wht_finish_w) + place * a.place_step);
            }
        });
        if (a.diag_type == scalar::none) return;
#pragma unroll
        for (int q = 0; q < each; ++q)
            if (has(q))
                v[q] = wht_times_diag(v[q], a.diag_type, a.diag, at(q, wht_finish_diag), true);
    }

    /// AMAX and HISTOGRAM see what Y has.
    __device__ __forceinline__ void wrap(bool &lost) {
        if (a.y_type != scalar::i32) return;
#pragma unroll
        for (int q = 0; q < each; ++q) {
            const auto wrapped = static_cast<int32_t>(static_cast<uint64_t>(v[q].v));
            lost |= wrapped != v[q].v;
            v[q].v = wrapped;
        }
    }
    __device__ __forceinline__ void count_bins(const wht_bins &bins) const {
#pragma unroll
        for (int q = 0; q < each; ++q)
            if (has(q))
                bins.add(v[q].v, Alone ? 0 : wht_walk_line(a.walk, element(q)),
                         at(q, wht_finish_bins));
    }

    /// Before the rounding; by whole warps.
    template <class B> __device__ __forceinline__ void sizes(wht_largest<B> &largest) const {
        if (a.walk.step[wht_finish_group] != 0) { // neighbours are in groups of their own
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (has(q) && wht_size_of(v[q]) > 0)
                    atomicMax(largest.out + at(q, wht_finish_group), wht_size_of(v[q]));
        } else if constexpr (Alone) {
#pragma unroll
            for (int q = 0; q < each; ++q) // 0 behind the tile
                largest.top = wht_larger(largest.top, wht_size_of(v[q]));
        } else {
#pragma unroll
            for (int q = 0; q < each; ++q) {
                const int line = has(q) ? wht_walk_line(a.walk, element(q)) : 0;
                const int along = element(q) - line * a.walk.part;
                largest.add_lines(wht_size_of(v[q]), base[line][wht_finish_group], along,
                                  has(q) ? a.walk.part - along : 1);
            }
        }
    }

    __device__ __forceinline__ void store(bool &lost) {
        if constexpr (std::is_floating_point_v<T>) {
            if (a.scales) {
#pragma unroll
                for (int q = 0; q < each; ++q)
                    if (has(q)) v[q] /= static_cast<T>(__ldg(a.scales + at(q, wht_finish_group)));
            }
            if (a.y_type == scalar::e4m3) {
#pragma unroll
                for (int q = 0; q < each; ++q)
                    if (has(q))
                        static_cast<uint8_t *>(a.y)[at(q, wht_finish_y)] = wht_round_e4m3(v[q]);
                return;
            }
        }
        const bool paired = reinterpret_cast<uintptr_t>(a.y) % sizeof(T) == 0;
        wht_any_types<T>::pick(a.y_type, [&](auto stored_as) {
#pragma unroll
            for (int q = 0; q < each; ++q)
                if (has(q))
                    decltype(stored_as)::store(a.y, at(q, wht_finish_y), v[q], paired, lost);
        });
    }
};

/// Only the largest magnitude of packed numbers of 4 bytes on a line: four of them an access.
template <class T>
__device__ __forceinline__ bool wht_finish_packs(const wht_finish_args &a, int count,
                                                 const int64_t *base) {
    constexpr scalar type = std::is_same_v<T, float> ? scalar::f32 : scalar::i32;
    return a.largest && !a.stores && !a.histogram && a.w_type == type &&
           a.rows_type == scalar::none && a.diag_type == scalar::none &&
           (type == scalar::f32 || a.y_type == scalar::i32) && a.walk.step[wht_finish_w] == 1 &&
           a.walk.step[wht_finish_group] == 0 && count % 4 == 0 && base[wht_finish_w] % 4 == 0 &&
           reinterpret_cast<uintptr_t>(a.w) % 16 == 0;
}
template <class T>
__device__ __forceinline__ uint32_t wht_finish_largest(const wht_finish_args &a, int count,
                                                       const int64_t *base) {
    const auto *from = static_cast<const uint32_t *>(a.w) + base[wht_finish_w];
    uint32_t top = 0;
    for (int i = 4 * static_cast<int>(threadIdx.x); i < count; i += 4 * wht_walk_threads) {
        const uint4 v = __ldcs(reinterpret_cast<const uint4 *>(from + i));
        const uint32_t four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const bool minus = four[q] >> 31 != 0;
            const uint32_t size = std::is_same_v<T, float> ? four[q] & 0x7fffffffu
                                  : minus                  ? 0u - four[q]
                                                           : four[q];
            top = wht_larger(top, size);
        }
    }
    return top;
}

template <class T, bool Alone>
__device__ __forceinline__ void wht_finish_tile(const wht_finish_args &a, int64_t tile,
                                                const int64_t (*base)[wht_finish_tensors],
                                                wht_finish_state<T> &s) {
    const auto &w = a.walk;
    const int count = wht_walk_count(w, tile);
    const bool shared_bins = a.histogram != nullptr && s.bins.shared;
    if (Alone && shared_bins && s.counted != base[0][wht_finish_bins]) {
        if (s.counted >= 0) {
            s.bins.flush(1, [&](int) { return s.counted; });
            __syncthreads(); // the counters are 0
        }
        s.counted = base[0][wht_finish_bins];
    }
    if (Alone && a.largest && w.step[wht_finish_group] == 0 &&
        s.largest.group != base[0][wht_finish_group]) {
        if (s.largest.group >= 0) s.largest.flush();
        s.largest.group = base[0][wht_finish_group];
    }
    if constexpr (Alone && (std::is_same_v<T, float> || std::is_same_v<T, wht_whole>)) {
        if (wht_finish_packs<T>(a, count, base[0])) {
            using B = typename wht_size<T>::type;
            s.largest.top = wht_larger<B>(s.largest.top, wht_finish_largest<T>(a, count, base[0]));
            return;
        }
    }
    constexpr int step = wht_walk_each<Alone> * wht_walk_threads;
    for (int i = 0; i < count; i += step) {
        wht_finish_part<T, Alone> part{a, base, i + static_cast<int>(threadIdx.x), count, {}};
        part.load(s.lost);
        if constexpr (std::is_same_v<T, wht_whole>) {
            part.wrap(s.lost);
            if (a.histogram) part.count_bins(s.bins);
        }
        if (a.largest) part.sizes(s.largest);
        if (a.stores) part.store(s.lost);
    }
    if (Alone || !shared_bins) return;
    __syncthreads(); // the tile is counted
    const int64_t left = w.lines - tile * w.lines_per_tile;
    s.bins.flush(left < w.lines_per_tile ? static_cast<int>(left) : w.lines_per_tile,
                 [&](int line) { return base[line][wht_finish_bins]; });
}

template <class T>
__global__ void __launch_bounds__(wht_walk_threads)
    wht_finish(const __grid_constant__ wht_finish_args a) {
    using B = typename wht_size<T>::type;
    constexpr int most_bins = std::is_same_v<T, wht_whole> ? wht_finish_most_bins : 1;
    __shared__ wht_walk_bases<wht_finish_tensors> base;
    __shared__ unsigned int counters[most_bins];
    wht_finish_state<T> s{
        {static_cast<B *>(a.largest), -1, 0},
        {a, counters,
         a.walk.step[wht_finish_bins] == 0 && a.bins * a.walk.lines_per_tile <= most_bins},
        -1,
        false};
    for (int i = static_cast<int>(threadIdx.x); i < most_bins; i += wht_walk_threads)
        counters[i] = 0; // the walk begins with a barrier
    wht_walk_tiles(a.walk, base, [&](int64_t tile, const int64_t(*lines)[wht_finish_tensors]) {
        if (a.walk.lines_per_tile == 1)
            wht_finish_tile<T, true>(a, tile, lines, s);
        else
            wht_finish_tile<T, false>(a, tile, lines, s);
    });
    if (s.largest.group >= 0) s.largest.flush();
    if constexpr (std::is_same_v<T, wht_whole>) {
        if (s.counted >= 0) s.bins.flush(1, [&](int) { return s.counted; });
        if (s.lost && a.overflow) atomicOr(a.overflow, 1);
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
