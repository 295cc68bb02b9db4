// Products of kda.chunk64_grad on tensor cores: rows with rows, rows with states, and the pairs of
// a level. Results go to `product` in shared memory, whose columns the threads own.
#pragma once

#include "lib/cuda/kda/chunk64_columns.cuh"
#include "lib/cuda/kda/chunk64_grad_layout.h"

namespace plait::impl::cuda {

/// A of 16 rows from row `row` on and values from `value` on: of DO, or of a transposed tile.
__device__ __forceinline__ void kda64_left(const char *d_o, const char *tile, int row, int value,
                                           int lane, uint32_t (&a)[4]) {
    if (d_o != nullptr)
        load_matrices(a, d_o + kda64_at_a(kda64_grad_values, row, value, lane));
    else
        load_matrices_transposed(a, tile + kda64_at_at(64, value, row, lane));
}

/// P = DO u^T and - beta w u^T as bf16 tiles, the diagonal of P as f32.
template <int Keys> __device__ __forceinline__ void kda64_rows_with_rows(char *shared, int values) {
    constexpr kda64_grad_shared s = kda64_grad_shared_of(Keys);
    const int lane = kda64_anew(static_cast<int>(threadIdx.x)) % 32;
    const auto *beta = reinterpret_cast<const float *>(shared + s.beta);
    auto *diagonal = reinterpret_cast<float *>(shared + s.diagonal);
#pragma unroll 1
    for (int job = static_cast<int>(threadIdx.x / 32); job < 8; job += 2 * Keys / 32) {
        const bool of_q = job < 4;
        const int column = job % 4 * 16;
        float d[4][2][mma_items_d] = {};
#pragma unroll 1
        for (int v = 0; v < values; v += 16) {
            uint32_t b[4];
            load_matrices_transposed(b, shared + s.written + kda64_at_bt(64, v, column, lane));
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                uint32_t a[4];
                kda64_left(of_q ? shared + s.d_o : nullptr, shared + s.adjoints, 16 * m, v, lane,
                           a);
                mma_add<scalar::bf16>(d[m][0], a, {b[0], b[1]});
                mma_add<scalar::bf16>(d[m][1], a, {b[2], b[3]});
            }
        }
#pragma unroll
        for (int e = 0; e < 4 * 2 * mma_items_d; ++e) {
            const mma_place in = mma_place_d(lane, e % 4);
            const int i = e / 8 * 16 + in.row, j = column + e / 4 % 2 * 8 + in.column;
            const float value = d[e / 8][e / 4 % 2][e % 4];
            if (of_q) {
                kda64_put(shared + s.pairs_q, 64, i, j, value);
                if (i == j) diagonal[i] = value;
            } else {
                kda64_put(shared + s.pairs_k, 64, i, j, -beta[i] * value);
            }
        }
    }
}

/// product = rows * tile for this warp's 16 channels: DO or a transposed tile with a state.
template <int Keys>
__device__ __forceinline__ void kda64_rows_with_state(const char *d_o, const char *rows,
                                                      const char *state, int values,
                                                      float *product) {
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int lane = self % 32, column = self / 32 * 16;
    float d[4][2][mma_items_d] = {};
#pragma unroll 1
    for (int v = 0; v < values; v += 16) {
        uint32_t b[4];
        load_matrices_transposed(b, state + kda64_at_bt(Keys, v, column, lane));
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            uint32_t a[4];
            kda64_left(d_o, rows, 16 * m, v, lane, a);
            mma_add<scalar::bf16>(d[m][0], a, {b[0], b[1]});
            mma_add<scalar::bf16>(d[m][1], a, {b[2], b[3]});
        }
    }
#pragma unroll
    for (int m = 0; m < 4; ++m) {
#pragma unroll
        for (int e = 0; e < 8; e += 2) {
            const mma_place in = mma_place_d(lane, e % 4);
            *reinterpret_cast<float2 *>(product + (16 * m + in.row) * kda64_pitch(Keys) + column +
                                        e / 4 * 8 + in.column) =
                make_float2(d[m][e / 4][e % 4], d[m][e / 4][e % 4 + 1]);
        }
    }
}

/// A of 16 x 16 pairs of a level, by their numbers: rows are upper ones, or lower ones if Turned.
template <int B, bool Turned>
__device__ __forceinline__ void kda64_pairs_of(const char *tile, int row, int column, int lane,
                                               uint32_t (&a)[4]) {
#pragma unroll
    for (int w = 0; w < mma_words_a; ++w) {
        a[w] = 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const mma_place in = mma_place_a(lane, w, half);
            const int upper = Turned ? column + in.column : row + in.row;
            const int lower = Turned ? row + in.row : column + in.column;
            if (kda64_meet(upper, lower, B))
                a[w] |= static_cast<uint32_t>(*reinterpret_cast<const uint16_t *>(
                            tile + kda64_at(64, kda64_upper(upper, B), kda64_lower(lower, B))))
                        << (16 * half);
        }
    }
}

/// Of a level, for this warp's channels: P k^ and F k^ of the upper rows, P^T q~ + F^T k~ of the
/// lower ones, 32 rows each.
template <int Keys, int B>
__device__ __forceinline__ void kda64_multiply_back(const char *pairs_q, const char *pairs_k,
                                                    const char *operands, float *product) {
    constexpr int tile = kda64_tile_bytes(32, Keys);
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int lane = self % 32, column = self / 32 * 16;
#pragma unroll 1 // else all pairs of a level wait in registers
    for (int m = 0; m < 2; ++m) {
        float x[3][2][mma_items_d] = {};
#pragma unroll 1
        for (int k = B < 5 ? m : 0; k < (B < 5 ? m + 1 : 2); ++k) {
            uint32_t a[4], b[4];
            load_matrices_transposed(b,
                                     operands + 2 * tile + kda64_at_bt(Keys, 16 * k, column, lane));
            kda64_pairs_of<B, false>(pairs_q, 16 * m, 16 * k, lane, a);
            mma_add<scalar::bf16>(x[0][0], a, {b[0], b[1]});
            mma_add<scalar::bf16>(x[0][1], a, {b[2], b[3]});
            kda64_pairs_of<B, false>(pairs_k, 16 * m, 16 * k, lane, a);
            mma_add<scalar::bf16>(x[1][0], a, {b[0], b[1]});
            mma_add<scalar::bf16>(x[1][1], a, {b[2], b[3]});
            load_matrices_transposed(b, operands + tile + kda64_at_bt(Keys, 16 * k, column, lane));
            kda64_pairs_of<B, true>(pairs_q, 16 * m, 16 * k, lane, a);
            mma_add<scalar::bf16>(x[2][0], a, {b[0], b[1]});
            mma_add<scalar::bf16>(x[2][1], a, {b[2], b[3]});
            load_matrices_transposed(b, operands + kda64_at_bt(Keys, 16 * k, column, lane));
            kda64_pairs_of<B, true>(pairs_k, 16 * m, 16 * k, lane, a);
            mma_add<scalar::bf16>(x[2][0], a, {b[0], b[1]});
            mma_add<scalar::bf16>(x[2][1], a, {b[2], b[3]});
        }
#pragma unroll
        for (int which = 0; which < 3; ++which) {
#pragma unroll
            for (int e = 0; e < 8; e += 2) {
                const mma_place in = mma_place_d(lane, e % 4);
                *reinterpret_cast<float2 *>(product +
                                            (32 * which + 16 * m + in.row) * kda64_pitch(Keys) +
                                            column + e / 4 * 8 + in.column) =
                    make_float2(x[which][e / 4][e % 4], x[which][e / 4][e % 4 + 1]);
            }
        }
    }
}

} // namespace plait::impl::cuda
