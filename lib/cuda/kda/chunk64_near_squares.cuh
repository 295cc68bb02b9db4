// Squares of 16 rows and columns of L = beta F and of A, of kda.chunk64_prep, variants `near`.
#pragma once

#include "lib/cuda/kda/chunk64_near_invert.cuh"
#include "lib/cuda/kda/chunk64_near_rows.cuh"

namespace plait::impl::cuda {

/// A square of L and one of A of the same pairs; [n]: columns 8 n ....
struct kda64_pair_of_squares {
    float l[2][mma_items_d], a[2][mma_items_d];
};

/// d += products of 16 rows of k and of q with Lowers tiles of 16 rows, over Channels.
template <int Channels, int Pitch, int LowerPitch, int Lowers>
__device__ __forceinline__ void kda64_meet_squares(const char *k, const char *q,
                                                   const char *const (&lower)[Lowers], int lane,
                                                   kda64_pair_of_squares (&d)[Lowers]) {
    const int at_a = (lane & 15) * Pitch + (lane >> 4) * 16;
    const int at_b = ((lane & 7) + (lane >> 4) * 8) * LowerPitch + (lane >> 3 & 1) * 16;
#pragma unroll
    for (int c = 0; c < Channels; c += 16) {
        uint32_t wk[4], wq[4];
        load_matrices(wk, k + at_a + 2 * c);
        load_matrices(wq, q + at_a + 2 * c);
#pragma unroll
        for (int l = 0; l < Lowers; ++l) {
            uint32_t b[4];
            load_matrices(b, lower[l] + at_b + 2 * c);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                mma_add<scalar::bf16>(d[l].l[n], wk, {b[2 * n], b[2 * n + 1]});
                mma_add<scalar::bf16>(d[l].a[n], wq, {b[2 * n], b[2 * n + 1]});
            }
        }
    }
}

/// A square of A to the record: of the diagonal, whose own elements are in `diagonal`, or from
/// factors that stand kda64_near_middle too high; with norms, rows of q have not met theirs.
template <bool Diagonal>
__device__ __forceinline__ void kda64_put_a(const kda64_pair_of_squares &d, const float2 *norms,
                                            const float *diagonal, int r, int c, int lane,
                                            char *a) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < mma_items_d; i += 2) {
            const mma_place in = mma_place_d(lane, i);
            const int column = 8 * n + in.column;
            const float by = Diagonal ? 1.0f : norms == nullptr ? kda64_near_unit : norms[in.row].y;
            float x = by * d.a[n][i], y = by * d.a[n][i + 1];
            if (Diagonal) {
                const float own = diagonal[in.row];
                x = in.row > column ? x : in.row == column ? own : 0.0f;
                y = in.row > column + 1 ? y : in.row == column + 1 ? own : 0.0f;
            }
            *reinterpret_cast<uint32_t *>(a + kda64_at(64, 16 * r + in.row, 16 * c + column)) =
                round_pair<scalar::bf16>(x, y);
        }
    }
}

/// A square of L of the diagonal in f32: rows of F times beta.
__device__ __forceinline__ void kda64_put_triangle(const kda64_pair_of_squares &d,
                                                   const float *beta, int lane, float *square) {
#pragma unroll
    for (int i = 0; i < mma_items_d; i += 2) {
        const mma_place in = mma_place_d(lane, i);
        const float scale = beta[in.row];
#pragma unroll
        for (int n = 0; n < 2; ++n)
            *reinterpret_cast<float2 *>(square + in.row * kda64_square_pitch + 8 * n + in.column) =
                make_float2(scale * d.l[n][i], scale * d.l[n][i + 1]);
    }
}

/// What lies on and above the diagonal of M, and above that of A, to the record, by a warp: of a
/// square eight columns of a row to a lane.
template <class Square>
__device__ __forceinline__ void kda64_put_upper(Square square, char *m, char *a, int lane) {
    const int row = lane / 2, column = lane % 2 * 8, at = kda64_at(64, row, column);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        *reinterpret_cast<uint4 *>(m + kda64_at(64, 16 * r + row, 16 * r + column)) =
            *reinterpret_cast<const uint4 *>(square(r, r) + row * kda64_part_pitch + 2 * column);
#pragma unroll
        for (int c = r + 1; c < 4; ++c) {
            const int to = kda64_from(64, at, 16 * r, 16 * c);
            *reinterpret_cast<uint4 *>(m + to) = make_uint4(0, 0, 0, 0);
            *reinterpret_cast<uint4 *>(a + to) = make_uint4(0, 0, 0, 0);
        }
    }
}

} // namespace plait::impl::cuda
