// wht.mma16_narrow: w[row] = H_n x[row] of bits (0: 1, 1: -1) and bytes, n = 2^7..2^15, on tensor
// cores: stored as i32, or only its largest magnitude (AMAX) and its counts (HISTOGRAM) of each
// row.
//   Tiling     wht.mma16's; elements are widened to f16 on their way to shared memory. A block has
//              whole rows, so that it writes their results once: no atomics in memory, nothing to
//              clear. Counters of a tile are in shared memory.
//   Traffic    1/8 or 1 byte an element in; 4 out where Y is stored, else a number or the bins of a
//              row.
//   Flops      about 13 instructions an element, 1 more for AMAX, 5 and an atomic for HISTOGRAM.
//   Bound      without Y instructions and their waits, 16 warps to a multiprocessor: bits have 1/32
//              of the bytes that hide them elsewhere. An H200, 2^26 bits in rows of 4096: AMAX
//              50 us (59 % of the issue slots), i32 and HISTOGRAM 98 us (a copy: 67 us; 191 us
//              while the loop that counts did not fit the cache of instructions); 2^26 bytes in
//              rows of 1024 to i32 1.22 of a copy.
//   Precision  exact: f16 holds the elements, f32 all sums, which end at 2^22.
//   Limits     8 elements at a time in, 16 bytes out; compute capability 8.0.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/mma16.cuh"
#include "lib/cuda/wht/mma16_narrow_layout.h"

namespace plait::impl::cuda {

template <scalar X, int LogN> struct wht_mma16_narrow_case {
    static constexpr scalar source = X;
    PLAIT_HD static constexpr wht_mma16_config config() { return wht_mma16_narrow_config(LogN); }
};

/// A sum as an integer: behind the addition it is in the low bits.
__device__ __forceinline__ int32_t wht_mma16_whole(float sum) {
    return static_cast<int32_t>(__float_as_uint(sum + 12582912.0f) - 0x4b400000u);
}

template <class Case> struct wht_mma16_narrow_part {
    static constexpr wht_mma16_config c = Case::config();
    static constexpr bool rows = c.log_n < c.log_part; ///< several
    const wht_mma16_narrow_args &args;
    int64_t row;     ///< first of the tile
    uint32_t thread; ///< element of the tile or half row at which this thread's eight begin

    __device__ __forceinline__ uint32_t element(int top) const {
        return thread | wht_mma16_store_item(Case::config(), top, 0);
    }
    __device__ __forceinline__ bool present(uint32_t e) const {
        return wht_mma16_present(Case::config(), args.rows - row, e);
    }

    __device__ __forceinline__ void store(int half, const float (&a)[8][8]) const {
        constexpr wht_mma16_config k = Case::config();
        int32_t *y = args.y + row * args.y_row_stride + (int64_t(half) << k.log_part);
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            const uint32_t e = element(top);
            uint32_t w[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) w[i] = static_cast<uint32_t>(wht_mma16_whole(a[top][i]));
            // Two lanes store the eight of one, then of the other: whole sectors.
            const bool odd = (threadIdx.x & 1u) != 0;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? w[i] : w[4 + i], 1);
                w[i] = odd ? other : w[i];
                w[4 + i] = odd ? w[4 + i] : other;
            }
            if (!present(e)) continue;
            int32_t *to = y + wht_mma16_offset(k, e & ~8u, args.y_row_stride) + (odd ? 4 : 0);
            store_elements<scalar::i32, 2>(to, 0, w, 1u);
            store_elements<scalar::i32, 2>(to, 8, w + 4, 1u);
        }
    }

    __device__ __forceinline__ void note(int64_t of, float largest) const {
        args.amax[of * args.amax_stride] = static_cast<int32_t>(largest);
    }
    /// `carried`: of the half before. `tops` are read before the next exchange, which meets before
    /// they are written.
    __device__ __forceinline__ void largest(int half, int warp, int lane, float *tops,
                                            float &carried, const float (&a)[8][8]) const {
        constexpr wht_mma16_config k = Case::config();
        float m[8];
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            m[top] = fabsf(a[top][0]);
#pragma unroll
            for (int i = 1; i < 8; ++i) m[top] = fmaxf(m[top], fabsf(a[top][i]));
        }
        if constexpr (k.log_warps == 0) { // bits 8, 9, 10 tell a thread's eights apart
#pragma unroll
            for (int b = 0; b < 3; ++b) {
                if (k.log_n <= 8 + b) continue;
#pragma unroll
                for (int q = 0; q < 8; ++q)
                    if (!(q >> b & 1)) m[q] = m[q | 1 << b] = fmaxf(m[q], m[q | 1 << b]);
            }
#pragma unroll
            for (int q = 0; q < 8; ++q) {
                if ((q << 8) % (1 << k.log_n) != 0) continue; // the row begins before
#pragma unroll
                for (int s = 0; s < 5; ++s)
                    if (k.log_n > 3 + s)
                        m[q] = fmaxf(m[q], __shfl_xor_sync(0xffffffffu, m[q], 1 << s));
                const uint32_t e = element(q);
                if ((e & bit_range(0, Case::config().log_n)) == 0 && present(e))
                    note(row + (e >> Case::config().log_n), m[q]);
            }
        } else {
#pragma unroll
            for (int q = 1; q < 8; ++q) m[0] = fmaxf(m[0], m[q]);
            carried = half == 0 ? m[0] : fmaxf(carried, m[0]);
            if (half < k.halves - 1) return;
            float all = carried;
#pragma unroll
            for (int s = 1; s < 32; s *= 2) all = fmaxf(all, __shfl_xor_sync(0xffffffffu, all, s));
            if (lane == 0) tops[warp] = all;
            __syncthreads(); // tops are written
            if (threadIdx.x != 0) return;
#pragma unroll
            for (int w = 1; w < wht_mma16_warps(Case::config()); ++w) all = fmaxf(all, tops[w]);
            note(row, all);
        }
    }

    template <bool Shift> __device__ __forceinline__ uint32_t bin_of(uint32_t above) const {
        if constexpr (Shift) return above >> args.bin_shift;
        // below 2^24: F32 is off by one at most
        auto q =
            static_cast<uint32_t>(static_cast<float>(above) / static_cast<float>(args.bin_width));
        if (q * args.bin_width > above) --q;
        if ((q + 1) * args.bin_width <= above) ++q;
        return q;
    }
    /// `Shift`: a division for every element would make the loop longer than the cache of
    /// instructions.
    template <bool Shift>
    __device__ __forceinline__ void count(unsigned int *counters, const float (&a)[8][8]) const {
#pragma unroll
        for (int top = 0; top < 8; ++top) {
            const uint32_t e = element(top);
            if (!present(e)) break;
            unsigned int *own = counters;
            if constexpr (rows)
                own += (e >> Case::config().log_n) * static_cast<uint32_t>(args.bins);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const uint32_t above = static_cast<uint32_t>(wht_mma16_whole(a[top][i])) -
                                       static_cast<uint32_t>(args.first_bin);
                if (above < args.bins_end) atomicAdd(own + bin_of<Shift>(above), 1u);
            }
        }
    }
    /// By the whole block, behind the last half of a row: the counters are 0 again at the next
    /// exchange.
    __device__ __forceinline__ void write_counts(unsigned int *counters) const {
        constexpr wht_mma16_config k = Case::config();
        wht_mma16_barrier<Case>(); // the tile is counted
        const int all = args.bins * wht_mma16_rows_per_tile(k);
        for (int i = static_cast<int>(threadIdx.x); i < all; i += wht_mma16_threads(k)) {
            const int of = rows ? i / args.bins : 0, bin = i - of * args.bins;
            if (row + of < args.rows)
                args.histogram[(row + of) * args.histogram_stride[0] +
                               bin * args.histogram_stride[1]] = counters[i];
            counters[i] = 0;
        }
    }
};

template <class Case>
__global__ void __launch_bounds__(wht_mma16_threads(Case::config()), Case::config().blocks_per_sm)
    wht_mma16_narrow(const __grid_constant__ wht_mma16_narrow_args args) {
    constexpr wht_mma16_config c = Case::config();
    extern __shared__ __align__(16) char shared[];
    __shared__ float tops[wht_mma16_warps(c)];
    auto *counters =
        reinterpret_cast<unsigned int *>(shared + wht_mma16_raw_bytes(c) + wht_mma16_word_bytes(c));
    if (args.histogram != nullptr) // the first exchange meets before they are used
        for (int i = static_cast<int>(threadIdx.x); i < args.bins * wht_mma16_rows_per_tile(c);
             i += wht_mma16_threads(c))
            counters[i] = 0;
    const wht_mma16_args rows{args.x, nullptr, args.rows, args.x_row_stride, 0, 1.0};
    float carried = 0;
    wht_mma16_walk<Case, true>(
        rows, blockIdx.x, shared,
        [&](int64_t tile, int half, int warp, int lane, float *, const float(&a)[8][8]) {
            constexpr wht_mma16_config k = Case::config();
            const wht_mma16_narrow_part<Case> part{args, tile * wht_mma16_rows_per_tile(k),
                                                   wht_mma16_store_thread(warp, lane)};
            if (args.y != nullptr) part.store(half, a);
            if (args.amax != nullptr) part.largest(half, warp, lane, tops, carried, a);
            if (args.histogram != nullptr) {
                if (args.bin_shift >= 0)
                    part.template count<true>(counters, a);
                else
                    part.template count<false>(counters, a);
                if (half == k.halves - 1) part.write_counts(counters);
            }
        });
}

template <scalar X, int LogN> kernel_entry wht_mma16_narrow_entry() {
    static_assert(wht_mma16_narrow_exists(X, LogN), "the planner would not find this one");
    static constexpr variant_name name = wht_variant(X, scalar::i32, ".n", LogN, true);
    return make_kernel_entry<&wht_mma16_narrow<wht_mma16_narrow_case<X, LogN>>>("wht.mma16_narrow",
                                                                                name.text);
}

} // namespace plait::impl::cuda
