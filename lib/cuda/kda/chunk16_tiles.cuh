// Tiles of 16 x 16 elements in the registers of a warp, and their products (chunk16_layout.h). A
// lane holds eight elements: 2 w + h is half h of word w of an operand, and item 2 (w % 2) + h of
// the sum of columns 8 (w / 2) ...: what a product gives has the order of what one takes.
// bf16: tensor cores, f32 sums. f32: fused multiply-adds of f32, operands by shuffles.
#pragma once

#include "lib/cuda/common/mma.cuh"
#include "lib/cuda/kda/chunk16_layout.h"

namespace plait::impl::cuda {

template <scalar S> struct kda_tile { uint32_t w[4]; };
template <> struct kda_tile<scalar::f32> { float w[8]; };

constexpr unsigned kda_all_lanes = 0xffffffffu;

__device__ __forceinline__ int kda_lane() { return static_cast<int>(threadIdx.x % 32); }
__device__ __forceinline__ int kda_warp() { return static_cast<int>(threadIdx.x / 32); }

/// Row and column of element e of this lane.
__device__ __forceinline__ int kda_tile_row(int e) { return kda_lane() / 4 + e / 2 % 2 * 8; }
__device__ __forceinline__ int kda_tile_column(int e) {
    return kda_lane() % 4 * 2 + e % 2 + e / 4 * 8;
}

template <scalar S> __device__ __forceinline__ kda_tile<S> kda_make_tile(const float (&e)[8]) {
    kda_tile<S> t;
    if constexpr (S == scalar::f32) {
#pragma unroll
        for (int i = 0; i < 8; ++i) t.w[i] = e[i];
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) t.w[i] = round_pair<S>(e[2 * i], e[2 * i + 1]);
    }
    return t;
}

template <scalar S>
__device__ __forceinline__ void kda_widen_tile(const kda_tile<S> &t, float (&e)[8]) {
    if constexpr (S == scalar::f32) {
#pragma unroll
        for (int i = 0; i < 8; ++i) e[i] = t.w[i];
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) widen_pair<S>(t.w[i], e[2 * i], e[2 * i + 1]);
    }
}

/// `base`: the first of some tiles, in global or shared memory, on a multiple of 16 bytes.
template <scalar S>
__device__ __forceinline__ kda_tile<S> kda_load_tile(const char *base, int64_t tile) {
    constexpr int bytes = S == scalar::f32 ? 32 : 16;
    const uint4 *from = reinterpret_cast<const uint4 *>(base + (tile * 32 + kda_lane()) * bytes);
    kda_tile<S> t;
    const uint4 x = from[0];
    if constexpr (S == scalar::f32) {
        const uint4 y = from[1];
        t.w[0] = __uint_as_float(x.x), t.w[1] = __uint_as_float(x.y);
        t.w[2] = __uint_as_float(x.z), t.w[3] = __uint_as_float(x.w);
        t.w[4] = __uint_as_float(y.x), t.w[5] = __uint_as_float(y.y);
        t.w[6] = __uint_as_float(y.z), t.w[7] = __uint_as_float(y.w);
    } else {
        t.w[0] = x.x, t.w[1] = x.y, t.w[2] = x.z, t.w[3] = x.w;
    }
    return t;
}

template <scalar S>
__device__ __forceinline__ void kda_store_tile(char *base, int64_t tile, const kda_tile<S> &t) {
    constexpr int bytes = S == scalar::f32 ? 32 : 16;
    uint4 *to = reinterpret_cast<uint4 *>(base + (tile * 32 + kda_lane()) * bytes);
    if constexpr (S == scalar::f32) {
        to[0] = make_uint4(__float_as_uint(t.w[0]), __float_as_uint(t.w[1]),
                           __float_as_uint(t.w[2]), __float_as_uint(t.w[3]));
        to[1] = make_uint4(__float_as_uint(t.w[4]), __float_as_uint(t.w[5]),
                           __float_as_uint(t.w[6]), __float_as_uint(t.w[7]));
    } else {
        to[0] = make_uint4(t.w[0], t.w[1], t.w[2], t.w[3]);
    }
}

/// d[m][n] += sum over k of a[m][k] b[n][k], all lanes together.
template <scalar S>
__device__ __forceinline__ void kda_product(float (&d)[8], const kda_tile<S> &a,
                                            const kda_tile<S> &b) {
    if constexpr (S != scalar::f32) {
#pragma unroll
        for (int y = 0; y < 2; ++y) {
            float part[4] = {d[4 * y], d[4 * y + 1], d[4 * y + 2], d[4 * y + 3]};
            const uint32_t right[2] = {b.w[y], b.w[y + 2]};
            mma_add<S>(part, a.w, right);
#pragma unroll
            for (int i = 0; i < 4; ++i) d[4 * y + i] = part[i];
        }
        return;
    } else {
#ifdef __CUDACC__
#    pragma unroll 1
        for (int from = 0; from < 4; ++from) { // columns 2 from, + 1, + 8, + 9
            const int left = (kda_lane() & 28) + from, right = kda_lane() % 4 * 8 + from;
#    pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int x = i / 2 * 4 + i % 2; // of a's row l / 4, and of b's
                const float a0 = __shfl_sync(kda_all_lanes, a.w[x], left);
                const float a1 = __shfl_sync(kda_all_lanes, a.w[x + 2], left);
                const float b00 = __shfl_sync(kda_all_lanes, b.w[x], right);
                const float b01 = __shfl_sync(kda_all_lanes, b.w[x], right + 4);
                const float b10 = __shfl_sync(kda_all_lanes, b.w[x + 2], right);
                const float b11 = __shfl_sync(kda_all_lanes, b.w[x + 2], right + 4);
                d[0] = __fmaf_rn(a0, b00, d[0]);
                d[1] = __fmaf_rn(a0, b01, d[1]);
                d[2] = __fmaf_rn(a1, b00, d[2]);
                d[3] = __fmaf_rn(a1, b01, d[3]);
                d[4] = __fmaf_rn(a0, b10, d[4]);
                d[5] = __fmaf_rn(a0, b11, d[5]);
                d[6] = __fmaf_rn(a1, b10, d[6]);
                d[7] = __fmaf_rn(a1, b11, d[7]);
            }
        }
#else
        // The order of the sum is that of the device.
        struct both {
            const float *a, *b;
        } mine{a.w, b.w};
        const both *all[32];
        const emulation::met &here =
            emulation::meet(emulation::meeting::shuffle, ~0u, reinterpret_cast<uint64_t>(&mine));
        for (int l = 0; l < 32; ++l) all[l] = reinterpret_cast<const both *>(here.value[l]);
        float sum[8];
        for (int e = 0; e < 8; ++e) {
            const int m = kda_tile_row(e), n = kda_tile_column(e);
            sum[e] = d[e];
            for (int from = 0; from < 4; ++from)
                for (int i = 0; i < 4; ++i) {
                    const int column = 2 * from + i % 2 + i / 2 * 8;
                    const int x = kda_c16_place(m, column), y = kda_c16_place(n, column);
                    sum[e] = __fmaf_rn(all[x / 8]->a[x % 8], all[y / 8]->b[y % 8], sum[e]);
                }
        }
        emulation::meet(emulation::meeting::shuffle, ~0u, 0); // nobody looks any more
        for (int e = 0; e < 8; ++e) d[e] = sum[e];
#endif
    }
}

/// Rows become columns.
template <scalar S> __device__ __forceinline__ kda_tile<S> kda_turned(const kda_tile<S> &t) {
    kda_tile<S> out;
#ifndef __CUDACC__
    const auto *own = &t;
    const kda_tile<S> *all[32];
    const emulation::met &here =
        emulation::meet(emulation::meeting::shuffle, ~0u, reinterpret_cast<uint64_t>(own));
    for (int l = 0; l < 32; ++l) all[l] = reinterpret_cast<const kda_tile<S> *>(here.value[l]);
    for (int e = 0; e < 8; ++e) {
        const int x = kda_c16_place(kda_tile_column(e), kda_tile_row(e));
        if constexpr (S == scalar::f32) {
            out.w[e] = all[x / 8]->w[x % 8];
        } else {
            const uint32_t half = all[x / 8]->w[x % 8 / 2] >> (16 * (x % 2)) & 0xffffu;
            out.w[e / 2] = e % 2 == 0 ? half : out.w[e / 2] | half << 16;
        }
    }
    emulation::meet(emulation::meeting::shuffle, ~0u, 0);
#else
    if constexpr (S == scalar::f32) {
        const int from = kda_lane() % 4 * 8 + kda_lane() / 8; // of row 2 c, lanes 4 on row 2 c + 1
        const bool odd = kda_lane() / 4 % 2 != 0;
#    pragma unroll
        for (int e = 0; e < 8; ++e) {
            // Word x + 2 y has what word y + 2 x of other lanes holds.
            const int w = e / 2, other = 2 * (w / 2 + w % 2 * 2), lane = from + e % 2 * 4;
            const float even_half = __shfl_sync(kda_all_lanes, t.w[other], lane);
            const float odd_half = __shfl_sync(kda_all_lanes, t.w[other + 1], lane);
            out.w[e] = odd ? odd_half : even_half;
        }
    } else {
#    pragma unroll
        for (int w = 0; w < 4; ++w)
            asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
                : "=r"(out.w[w])
                : "r"(t.w[w / 2 + w % 2 * 2]));
    }
#endif
    return out;
}

/// A tile whose elements are element(row, column).
template <scalar S, class Element>
__device__ __forceinline__ kda_tile<S> kda_tile_of(Element element) {
    float e[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) e[i] = element(kda_tile_row(i), kda_tile_column(i));
    return kda_make_tile<S>(e);
}

} // namespace plait::impl::cuda
