// M = (I + L)^-1 of kda.chunk64_prep: four triangles of 16 rows by substitution in f32, what lies
// below them by products on tensor cores of operands in two parts, bf16 and what that leaves.
#pragma once

#include "lib/cuda/kda/chunk64_common.cuh"
#include "lib/cuda/kda/chunk64_prep_layout.h"

namespace plait::impl::cuda {

/// A column of the inverse of a triangle of 16 rows. Pitch: floats of a row.
template <int Pitch>
__device__ __forceinline__ void kda64_substitute(const float *triangle, int column,
                                                 float (&x)[16]) {
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
    for (int m = 0; m < 16; m += 4) {
#pragma unroll
        for (int i = m + 1; i < 16; ++i) {
            const float4 l = *reinterpret_cast<const float4 *>(triangle + i * Pitch + m);
            x[i] = __fmaf_rn(-l.x, x[m], x[i]);
            if (i > m + 1) x[i] = __fmaf_rn(-l.y, x[m + 1], x[i]);
            if (i > m + 2) x[i] = __fmaf_rn(-l.z, x[m + 2], x[i]);
            if (i > m + 3) x[i] = __fmaf_rn(-l.w, x[m + 3], x[i]);
        }
    }
}

/// The triangle at its place in f becomes its inverse. A half warp has a triangle, a lane a column.
__device__ __forceinline__ void kda64_invert_triangle(float *triangle, int column) {
    float x[16];
    kda64_substitute<kda64_f_pitch>(triangle, column, x);
    __syncwarp(); // the triangle is read
#pragma unroll
    for (int i = 0; i < 16; ++i) triangle[i * kda64_f_pitch + column] = x[i];
}

/// A word of bf16 and what it leaves, as another.
__device__ __forceinline__ void kda64_split(float x, float y, uint32_t &word, uint32_t &rest) {
    float low, high;
    word = round_pair<scalar::bf16>(x, y);
    widen_pair<scalar::bf16>(word, low, high);
    rest = round_pair<scalar::bf16>(x - low, y - high);
}

/// d += a b^T for 16 rows at b, a in two parts.
__device__ __forceinline__ void kda64_multiply_split(const uint32_t (&a)[4],
                                                     const uint32_t (&a_rest)[4], const float *b,
                                                     int lane, float (&d)[2][mma_items_d]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        uint32_t w[2], rest[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float2 v = *reinterpret_cast<const float2 *>(
                b + (8 * n + lane / 4) * kda64_f_pitch + 8 * i + lane % 4 * 2);
            kda64_split(v.x, v.y, w[i], rest[i]);
        }
        mma_add<scalar::bf16>(d[n], a, w);
        mma_add<scalar::bf16>(d[n], a_rest, w);
        mma_add<scalar::bf16>(d[n], a, rest);
    }
}

/// Columns 16 q ... of M below their triangle, to the tile m; f has L and, on the diagonal,
/// inverses. A warp has them transposed, so that each sum is at once A of the next
/// product: M_r^T =
/// - (sum over rows q .. r - 1 of M_c^T L_rc^T) M_rr^T.
__device__ __forceinline__ void kda64_invert_columns(const float *f, char *m, int q, int lane) {
    uint32_t y[3][4] = {}, rest[3][4] = {};
    const float *triangle = f + 16 * q * kda64_f_pitch + 16 * q;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        if (c != q) continue;
#pragma unroll
        for (int w = 0; w < mma_words_a; ++w) {
            const mma_place in = mma_place_a(lane, w, 0);
            kda64_split(triangle[in.column * kda64_f_pitch + in.row],
                        triangle[(in.column + 1) * kda64_f_pitch + in.row], y[c][w], rest[c][w]);
        }
    }
#pragma unroll
    for (int r = 1; r < 4; ++r) {
        if (r <= q) continue;
        float z[2][mma_items_d] = {}, d[2][mma_items_d] = {};
#pragma unroll
        for (int c = 0; c < r; ++c)
            if (c >= q)
                kda64_multiply_split(y[c], rest[c], f + 16 * r * kda64_f_pitch + 16 * c, lane, z);
        uint32_t sum[4], sum_rest[4];
#pragma unroll
        for (int w = 0; w < 4; ++w)
            kda64_split(-z[w / 2][w % 2 * 2], -z[w / 2][w % 2 * 2 + 1], sum[w], sum_rest[w]);
        kda64_multiply_split(sum, sum_rest, f + 16 * r * kda64_f_pitch + 16 * r, lane, d);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < mma_items_d; ++i) {
                const mma_place in = mma_place_d(lane, i);
                *reinterpret_cast<uint16_t *>(
                    m + kda64_at(64, 16 * r + 8 * n + in.column, 16 * q + in.row)) =
                    round_half<scalar::bf16>(d[n][i]);
            }
        }
        if (r < 3) {
#pragma unroll
            for (int w = 0; w < 4; ++w)
                kda64_split(d[w / 2][w % 2 * 2], d[w / 2][w % 2 * 2 + 1], y[r < 3 ? r : 0][w],
                            rest[r < 3 ? r : 0][w]);
        }
    }
}

} // namespace plait::impl::cuda
