// Factors of the levels of pairs and their products, of kda.chunk64_prep. An upper warp of a level
// gives eight rows of k and eight of q as A, a lower one eight rows of k as B, so that a lane has F
// and A of the same pairs.
#pragma once

#include "lib/cuda/kda/chunk64_prep_rows.cuh"

namespace plait::impl::cuda {

/// Where rows go.
enum class kda64_into { factors, record };

/// A lane's channels of a row: `at` is kda64_factor_at or, in a record's tile, kda64_at of row 0
/// and the lane's first channel.
template <int Keys, kda64_into Into = kda64_into::factors>
__device__ __forceinline__ void kda64_put_row(char *tile, int at, int row,
                                              const kda64_lane<Keys> &x) {
    constexpr int width = kda64_width(Keys);
#pragma unroll
    for (int group = 0; group < Keys / 32 / width; ++group) {
        const int column = 32 * width * group;
        char *to = tile + (Into == kda64_into::record ? kda64_from(Keys, at, row, column)
                                                      : at + kda64_factor_at(Keys, row, column));
        const float *from = x + width * group;
        const uint32_t low = round_pair<scalar::bf16>(from[0], from[1]);
        if constexpr (width == 4)
            *reinterpret_cast<uint2 *>(to) =
                make_uint2(low, round_pair<scalar::bf16>(from[2], from[3]));
        else
            *reinterpret_cast<uint32_t *>(to) = low;
    }
}
/// The same of x times y.
template <int Keys, kda64_into Into = kda64_into::factors>
__device__ __forceinline__ void kda64_put_product(char *tile, int at, int row,
                                                  const kda64_lane<Keys> &x,
                                                  const kda64_lane<Keys> &y) {
    float both[Keys / 32];
#pragma unroll
    for (int j = 0; j < Keys / 32; ++j) both[j] = x[j] * y[j];
    kda64_put_row<Keys, Into>(tile, at, row, both);
}
template <int Keys>
__device__ __forceinline__ void kda64_times(kda64_lane<Keys> &x, const kda64_lane<Keys> &y) {
#pragma unroll
    for (int j = 0; j < Keys / 32; ++j) x[j] *= y[j];
}
template <int Keys>
__device__ __forceinline__ void kda64_copy(kda64_lane<Keys> &x, const kda64_lane<Keys> &y) {
#pragma unroll
    for (int j = 0; j < Keys / 32; ++j) x[j] = y[j];
}

template <int Keys> __device__ __forceinline__ void kda64_ones(kda64_lane<Keys> &x) {
#pragma unroll
    for (int j = 0; j < Keys / 32; ++j) x[j] = 1.0f;
}

/// The factors of levels 0 and 1: rows 0 .. 3 and 4 .. 7 of k, of q and of lower k.
template <int Keys, scalar S>
__device__ __forceinline__ void
kda64_put_near01(const kda64_rows_q<Keys, S> &q, const kda64_lane<Keys> (&k)[8],
                 const kda64_lane<Keys> (&e)[8], char *near, int at) {
    at = kda64_anew(at);
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
        const int i = 2 * n; // of four rows
        kda64_lane<Keys> x, both;
        kda64_put_row<Keys>(near, at, 16 + n, k[i]);
        kda64_put_product<Keys>(near, at, 20 + n, k[i], e[i + 1]);
        kda64_put_row<Keys>(near, at, 21 + n, k[i + 1]);
        kda64_put_row<Keys>(near, at, 17 + n, k[i + 2]);
        kda64_put_product<Keys>(near, at, n, k[i + 1], e[i + 1]);
        q.row(i + 1, x);
        kda64_put_product<Keys>(near, at, 8 + n, x, e[i + 1]);
        kda64_put_product<Keys>(near, at, 4 + n, k[i + 2], e[i + 2]);
        q.row(i + 2, x);
        kda64_put_product<Keys>(near, at, 12 + n, x, e[i + 2]);
        kda64_copy<Keys>(both, e[i + 2]);
        kda64_times<Keys>(both, e[i + 3]);
        kda64_put_product<Keys>(near, at, 1 + n, k[i + 3], e[i + 3]);
        kda64_put_product<Keys>(near, at, 5 + n, k[i + 3], both);
        q.row(i + 3, x);
        kda64_put_product<Keys>(near, at, 9 + n, x, e[i + 3]);
        kda64_put_product<Keys>(near, at, 13 + n, x, both);
    }
}
/// Those of level 2.
template <int Keys, scalar S>
__device__ __forceinline__ void
kda64_put_near2(const kda64_rows_q<Keys, S> &q, const kda64_lane<Keys> (&k)[8],
                const kda64_lane<Keys> (&e)[8], char *near, int at) {
    at = kda64_anew(at);
    kda64_lane<Keys> run, x;
    kda64_put_row<Keys>(near, at, 16 + 3, k[3]);
    kda64_copy<Keys>(run, e[3]);
#pragma unroll
    for (int i = 2; i >= 0; --i) {
        kda64_put_product<Keys>(near, at, 16 + i, k[i], run);
        if (i > 0) kda64_times<Keys>(run, e[i]);
    }
    kda64_copy<Keys>(run, e[4]);
#pragma unroll
    for (int i = 4; i < 8; ++i) {
        if (i > 4) kda64_times<Keys>(run, e[i]);
        kda64_put_product<Keys>(near, at, i - 4, k[i], run);
        q.row(i, x);
        kda64_put_product<Keys>(near, at, 8 + i - 4, x, run);
    }
}

/// k times the decay from each row, not its own, to the last, and what is `behind` it.
template <int Keys, kda64_into Into = kda64_into::factors>
__device__ __forceinline__ void kda64_put_lower(const kda64_lane<Keys> (&k)[8],
                                                const kda64_lane<Keys> (&e)[8], char *to, int at,
                                                const kda64_lane<Keys> &behind) {
    at = kda64_anew(at);
    kda64_lane<Keys> run;
    kda64_copy<Keys>(run, behind);
#pragma unroll
    for (int i = 7; i >= 0; --i) {
        kda64_put_product<Keys, Into>(to, at, i, k[i], run);
        if (i > 0) kda64_times<Keys>(run, e[i]);
    }
}

/// Eight rows as they are, or times `by`.
template <int Keys, kda64_into Into = kda64_into::factors>
__device__ __forceinline__ void kda64_put_rows(const kda64_lane<Keys> (&x)[8], char *to, int at) {
    at = kda64_anew(at);
#pragma unroll
    for (int i = 0; i < 8; ++i) kda64_put_row<Keys, Into>(to, at, i, x[i]);
}
template <int Keys, kda64_into Into = kda64_into::factors>
__device__ __forceinline__ void kda64_put_rows(const kda64_lane<Keys> (&x)[8], char *to, int at,
                                               const kda64_lane<Keys> &by) {
    at = kda64_anew(at);
#pragma unroll
    for (int i = 0; i < 8; ++i) kda64_put_product<Keys, Into>(to, at, i, x[i], by);
}

/// d += an upper tile of 16 rows with a lower one of eight.
template <int Keys>
__device__ __forceinline__ void kda64_meet_tiles(const char *upper, const char *lower, int lane,
                                                 float (&d)[mma_items_d]) {
    const char *of_a = upper + kda64_factor_at(Keys, lane & 15, (lane >> 4) * 8);
    const char *of_b = lower + kda64_factor_at(Keys, lane & 7, (lane >> 3) * 8);
    float other[mma_items_d] = {};
#pragma unroll 1 // else what all steps load waits in registers
    for (int far = 0; far < Keys; far += 64) {
#pragma unroll
        for (int k = 0; k < 64; k += 32) {
            uint32_t a[4], b[4];
            load_matrices(b, of_b + 2 * (far + k));
            load_matrices(a, of_a + 2 * (far + k));
            mma_add<scalar::bf16>(d, a, {b[0], b[1]});
            load_matrices(a, of_a + 2 * (far + k + 16));
            mma_add<scalar::bf16>(other, a, {b[2], b[3]});
        }
    }
#pragma unroll
    for (int i = 0; i < mma_items_d; ++i) d[i] += other[i];
}

/// d += Uppers upper tiles with Lowers lower ones, that many bytes from one to the next.
template <int Keys, int Uppers, int Lowers>
__device__ __forceinline__ void kda64_meet_all(const char *upper, int next_upper, const char *lower,
                                               int next_lower, int lane,
                                               float (&d)[Uppers][Lowers][mma_items_d]) {
    const char *of_a = upper + kda64_factor_at(Keys, lane & 15, (lane >> 4) * 8);
    const char *of_b =
        lower + (lane >> 4) * next_lower + kda64_factor_at(Keys, lane & 7, (lane >> 3 & 1) * 8);
#pragma unroll
    for (int k = 0; k < Keys; k += 16) {
        uint32_t b[Lowers / 2][4];
#pragma unroll
        for (int l = 0; l < Lowers / 2; ++l) load_matrices(b[l], of_b + 2 * (l * next_lower + k));
#pragma unroll
        for (int u = 0; u < Uppers; ++u) {
            uint32_t a[4];
            load_matrices(a, of_a + u * next_upper + 2 * k);
#pragma unroll
            for (int l = 0; l < Lowers; ++l)
                mma_add<scalar::bf16>(d[u][l], a, {b[l / 2][l % 2 * 2], b[l / 2][l % 2 * 2 + 1]});
        }
    }
}

/// Where pairs go: F scaled by beta of its row, A by the scale of its row.
struct kda64_squares {
    const float *beta, *scales;
    float *f;
    char *a;
};

/// Rows 8 * upper ..., columns 8 * lower ...
__device__ __forceinline__ void kda64_put_pairs(const float (&d)[mma_items_d], int upper, int lower,
                                                int lane, const kda64_squares &to) {
    const int i = 8 * upper + lane / 4, j = 8 * lower + lane % 4 * 2;
    const float by_k = to.beta[i], by_q = to.scales[i];
    *reinterpret_cast<float2 *>(to.f + i * kda64_f_pitch + j) =
        make_float2(by_k * d[0], by_k * d[1]);
    *reinterpret_cast<uint32_t *>(to.a + kda64_at(64, i, j)) =
        round_pair<scalar::bf16>(by_q * d[2], by_q * d[3]);
}

/// The same of levels within eight rows: products of rows of level Below with those of it and, if
/// Two, in rows and columns from 4 on, of the level above.
template <int Below, bool Two>
__device__ __forceinline__ void kda64_put_near(const float (&d)[mma_items_d], int warp, int lane,
                                               const kda64_squares &to) {
    const int upper = lane >> 2, lower = lane % 4 * 2;
    const int level = Below + (upper >> 2);
    if (upper >> 2 != lower >> 2 || (!Two && upper >= 4)) return;
    const int i = 8 * warp + kda64_upper(upper & 3, level);
    const float by_k = to.beta[i], by_q = to.scales[i];
#pragma unroll
    for (int item = 0; item < 2; ++item) {
        const int number = (lower + item) & 3;
        if (!kda64_meet(upper & 3, number, level)) continue;
        const int j = 8 * warp + kda64_lower(number, level);
        to.f[i * kda64_f_pitch + j] = by_k * d[item];
        *reinterpret_cast<uint16_t *>(to.a + kda64_at(64, i, j)) =
            round_half<scalar::bf16>(by_q * d[2 + item]);
    }
}

} // namespace plait::impl::cuda
