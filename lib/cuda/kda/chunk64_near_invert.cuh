// M = (I + L)^-1 of kda.chunk64_prep, variants `near`, by squares of 16 rows that lie in two parts,
// bf16 and what that leaves: those of the diagonal by substitution in f32, what lies below by
// products of both parts.
#pragma once

#include "lib/cuda/kda/chunk64_near_layout.h"
#include "lib/cuda/kda/chunk64_prep_invert.cuh"

namespace plait::impl::cuda {

/// Words of both parts of a square: as A, A transposed, or B of two tiles whose columns are rows of
/// the square.
struct kda64_two_parts {
    uint32_t word[4], rest[4];
};
__device__ __forceinline__ void kda64_load_rows(const char *square, int lane, kda64_two_parts &x) {
    const char *at = square + (lane & 15) * kda64_part_pitch + (lane >> 4) * 16;
    load_matrices(x.word, at);
    load_matrices(x.rest, at + kda64_part_bytes);
}
__device__ __forceinline__ int kda64_part_at(int lane) {
    return ((lane & 7) + (lane >> 4) * 8) * kda64_part_pitch + (lane >> 3 & 1) * 16;
}
__device__ __forceinline__ void kda64_load_columns(const char *square, int lane,
                                                   kda64_two_parts &x) {
    const char *at = square + kda64_part_at(lane);
    load_matrices(x.word, at);
    load_matrices(x.rest, at + kda64_part_bytes);
}
__device__ __forceinline__ void kda64_load_transposed(const char *square, int lane,
                                                      kda64_two_parts &x) {
    const char *at = square + kda64_part_at(lane);
    load_matrices_transposed(x.word, at);
    load_matrices_transposed(x.rest, at + kda64_part_bytes);
}

/// Sums of a product as both parts of its words, which are A, or B of what is transposed.
__device__ __forceinline__ void kda64_split_sums(const float (&d)[2][mma_items_d], float sign,
                                                 kda64_two_parts &x) {
#pragma unroll
    for (int w = 0; w < 4; ++w)
        kda64_split(sign * d[w / 2][w % 2 * 2], sign * d[w / 2][w % 2 * 2 + 1], x.word[w],
                    x.rest[w]);
}

/// d += a b^T, b's rows as B.
__device__ __forceinline__ void kda64_multiply_parts(const kda64_two_parts &a,
                                                     const kda64_two_parts &b,
                                                     float (&d)[2][mma_items_d]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const uint32_t word[2] = {b.word[2 * n], b.word[2 * n + 1]},
                       rest[2] = {b.rest[2 * n], b.rest[2 * n + 1]};
        mma_add<scalar::bf16>(d[n], a.word, word);
        mma_add<scalar::bf16>(d[n], a.rest, word);
        mma_add<scalar::bf16>(d[n], a.word, rest);
    }
}

/// Sixteen rows, beta times those of F, as two parts; `by`: of F's products.
__device__ __forceinline__ void kda64_put_parts(const float (&d)[2][mma_items_d], float by,
                                                const float *beta, int lane, char *square) {
#pragma unroll
    for (int i = 0; i < mma_items_d; i += 2) {
        const mma_place in = mma_place_d(lane, i);
        const float scale = by * beta[in.row];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            uint32_t word, rest;
            kda64_split(scale * d[n][i], scale * d[n][i + 1], word, rest);
            char *to = square + in.row * kda64_part_pitch + 16 * n + 2 * in.column;
            *reinterpret_cast<uint32_t *>(to) = word;
            *reinterpret_cast<uint32_t *>(to + kda64_part_bytes) = rest;
        }
    }
}

/// The triangle of 16 rows in f32 at its place becomes its inverse in two parts. A half warp has a
/// triangle, a lane a column.
__device__ __forceinline__ void kda64_invert_to_parts(char *square, int column) {
    float x[16];
    kda64_substitute<kda64_square_pitch>(reinterpret_cast<const float *>(square), column, x);
    __syncwarp(); // the triangle is read
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
        uint32_t word, rest;
        kda64_split(x[i], x[i + 1], word, rest);
        char *to = square + i * kda64_part_pitch + 2 * column;
        *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(word);
        *reinterpret_cast<uint16_t *>(to + kda64_part_pitch) = static_cast<uint16_t>(word >> 16);
        to += kda64_part_bytes;
        *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(rest);
        *reinterpret_cast<uint16_t *>(to + kda64_part_pitch) = static_cast<uint16_t>(rest >> 16);
    }
}

/// Columns 16 q ... of M below their triangle, to the record's tile m. A warp has them transposed,
/// so that each sum is at once A of the next product: M_r^T = - (sum over rows q .. r - 1 of M_c^T
/// L_rc^T) M_rr^T; the record has M_r = M_rr times the sum.
template <class Square>
__device__ __forceinline__ void kda64_invert_below(Square square, char *m, int q, int lane) {
    kda64_two_parts y[3] = {};
#pragma unroll
    for (int c = 0; c < 3; ++c)
        if (c == q) kda64_load_transposed(square(q, q), lane, y[c]);
#pragma unroll
    for (int r = 1; r < 4; ++r) {
        if (r <= q) continue;
        float z[2][mma_items_d] = {}, d[2][mma_items_d] = {};
#pragma unroll
        for (int c = 0; c < r; ++c) {
            if (c < q) continue;
            kda64_two_parts l;
            kda64_load_columns(square(r, c), lane, l);
            kda64_multiply_parts(y[c], l, z);
        }
        kda64_two_parts sum, inverse;
        kda64_split_sums(z, -1.0f, sum);
        kda64_load_rows(square(r, r), lane, inverse);
        const kda64_two_parts columns = {{sum.word[0], sum.word[2], sum.word[1], sum.word[3]},
                                         {sum.rest[0], sum.rest[2], sum.rest[1], sum.rest[3]}};
        kda64_multiply_parts(inverse, columns, d);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < mma_items_d; i += 2) {
                const mma_place in = mma_place_d(lane, i);
                *reinterpret_cast<uint32_t *>(
                    m + kda64_at(64, 16 * r + in.row, 16 * q + 8 * n + in.column)) =
                    round_pair<scalar::bf16>(d[n][i], d[n][i + 1]);
            }
        }
        if (r < 3) {
            float next[2][mma_items_d] = {};
            kda64_load_columns(square(r, r), lane, inverse);
            kda64_multiply_parts(sum, inverse, next);
            kda64_split_sums(next, 1.0f, y[r < 3 ? r : 0]);
        }
    }
}

} // namespace plait::impl::cuda
