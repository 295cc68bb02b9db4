// Factors and pairs within 16 rows by binary anchors, of kda.chunk64_prep, variants `levels`: any
// gate. All decays are products of those of tokens that follow one another, none above 1.
#pragma once

#include "lib/cuda/kda/chunk64_near_squares.cuh"

namespace plait::impl::cuda {

/// Products of the pairs of levels 0 to 2: F in the first two numbers, A in the others. Rows of
/// these are four of the first eight rows, then four of the others. Those of level 3 wait in shared
/// memory.
using kda64_level_sums = float[3][mma_items_d];

/// What a lane has of 16 rows by 64 channels.
struct kda64_level_tiles {
    char *k, *q, *lower; ///< a row of a tile, its first channel; those of q and k lie alike
    int pitch;           ///< of k and q
};

/// d of two levels from rows 0 .. 7 and 8 .. 15 of tiles of 64 channels.
__device__ __forceinline__ void kda64_meet_levels(const kda64_level_tiles &tiles, int lane,
                                                  float (&first)[mma_items_d],
                                                  float (&second)[mma_items_d]) {
    const char *of_a = (lane & 8 ? tiles.q : tiles.k) + (lane & 7) * tiles.pitch + (lane >> 4) * 16;
    const char *of_b =
        tiles.lower + ((lane & 7) + (lane >> 4) * 8) * kda64_lower_pitch + (lane >> 3 & 1) * 16;
#pragma unroll
    for (int c = 0; c < kda64_near_channels; c += 16) {
        uint32_t a[2][4], b[4];
        load_matrices(b, of_b + 2 * c);
        load_matrices(a[0], of_a + 2 * c);
        load_matrices(a[1], of_a + 8 * tiles.pitch + 2 * c);
        mma_add<scalar::bf16>(first, a[0], {b[0], b[1]});
        mma_add<scalar::bf16>(second, a[1], {b[2], b[3]});
    }
}

__device__ __forceinline__ void kda64_multiply(kda64_four &x, const kda64_four &y) {
#pragma unroll
    for (int c = 0; c < 4; ++c) x[c] *= y[c];
}
__device__ __forceinline__ void kda64_assign(kda64_four &x, const kda64_four &y) {
#pragma unroll
    for (int c = 0; c < 4; ++c) x[c] = y[c];
}
template <scalar S> __device__ __forceinline__ void kda64_widen_four(uint2 words, kda64_four &x) {
    widen_pair<S>(words.x, x[0], x[1]);
    widen_pair<S>(words.y, x[2], x[3]);
}

/// e^g of this lane's rows; `within`: over its eight, `other`: over those of the other half warp.
__device__ __forceinline__ void kda64_level_gates(const kda_problem &p, const kda64_raw_gates &raw,
                                                  float rate, const kda64_four &bias, bool channel,
                                                  kda64_four (&e)[8], kda64_four &within,
                                                  kda64_four &other) {
    raw.widen(p.g.type, e);
    kda64_gates<128>(p, rate, bias, e);
    if (raw.left < 8 || !channel) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c)
                if (i >= raw.left || !channel) e[i][c] = 1;
        }
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        within[c] = ((e[0][c] * e[1][c]) * (e[2][c] * e[3][c])) *
                    ((e[4][c] * e[5][c]) * (e[6][c] * e[7][c]));
        other[c] = __shfl_xor_sync(0xffffffffu, within[c], 16);
    }
}

/// Factors of levels 0 and 1 of a lane's eight rows.
template <scalar S>
__device__ __forceinline__ void kda64_put_levels01(const kda64_four (&k)[8], const uint2 (&q)[8],
                                                   const kda64_four (&e)[8],
                                                   const kda64_level_tiles &to) { // of row 4 * half
    const auto put_q = [&](int row, int i, const kda64_four &by) {
        kda64_four x;
        kda64_widen_four<S>(q[i], x);
        kda64_put_words(to.q + row * to.pitch, kda64_pack_product(x, by));
    };
    const auto put_k = [&](int row, int i, const kda64_four &by) {
        kda64_put_words(to.k + row * to.pitch, kda64_pack_product(k[i], by));
    };
    char *lower = to.lower;
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
        const int i = 2 * n; // of four rows
        kda64_four both;
        kda64_put_words(lower + n * kda64_lower_pitch, kda64_pack(k[i]));
        kda64_put_words(lower + (n + 1) * kda64_lower_pitch, kda64_pack(k[i + 2]));
        kda64_put_words(lower + (8 + n) * kda64_lower_pitch, kda64_pack_product(k[i], e[i + 1]));
        kda64_put_words(lower + (9 + n) * kda64_lower_pitch, kda64_pack(k[i + 1]));
        put_k(n, i + 1, e[i + 1]), put_q(n, i + 1, e[i + 1]);
        put_k(n + 1, i + 3, e[i + 3]), put_q(n + 1, i + 3, e[i + 3]);
        put_k(8 + n, i + 2, e[i + 2]), put_q(8 + n, i + 2, e[i + 2]);
        kda64_assign(both, e[i + 2]);
        kda64_multiply(both, e[i + 3]);
        put_k(9 + n, i + 3, both), put_q(9 + n, i + 3, both);
    }
}
/// Those of level 2.
template <scalar S>
__device__ __forceinline__ void kda64_put_level2(const kda64_four (&k)[8], const uint2 (&q)[8],
                                                 const kda64_four (&e)[8],
                                                 const kda64_level_tiles &to) {
    kda64_four run;
    kda64_put_words(to.lower + 3 * kda64_lower_pitch, kda64_pack(k[3]));
    kda64_assign(run, e[3]);
#pragma unroll
    for (int i = 2; i >= 0; --i) {
        kda64_put_words(to.lower + i * kda64_lower_pitch, kda64_pack_product(k[i], run));
        if (i > 0) kda64_multiply(run, e[i]);
    }
    kda64_assign(run, e[4]);
#pragma unroll
    for (int i = 4; i < 8; ++i) {
        if (i > 4) kda64_multiply(run, e[i]);
        kda64_four x;
        kda64_widen_four<S>(q[i], x);
        kda64_put_words(to.k + (i - 4) * to.pitch, kda64_pack_product(k[i], run));
        kda64_put_words(to.q + (i - 4) * to.pitch, kda64_pack_product(x, run));
    }
}

/// As kda64_near_factors, and sums of pairs within 16 rows. `loads` are made where registers are
/// free. Rows of q are not yet multiplied by
/// their norms, but in the record.
template <int Keys, scalar S, class Loads>
__device__ __forceinline__ void
kda64_level_factors(const kda64_four (&e)[8], const kda64_four &other, int first, int warp,
                    int lane, char *shared, char *record, Loads loads, kda64_level_sums &sums) {
    constexpr kda64_near_shared s = kda64_near_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int pitch = kda64_factor_pitch(Keys), tile = kda64_near_rows * pitch;
    const int half = lane >> 4, channel = first + lane % 16 * 4, row = kda64_near_rows * warp;
    const float *totals = reinterpret_cast<const float *>(shared + s.totals) + channel;
    const float2 *norms = reinterpret_cast<const float2 *>(shared + s.norms) + row + 8 * half;
    char *own_k = shared + s.k + row * pitch + 2 * channel;
    char *own_lower = shared + s.lower + row * kda64_lower_pitch + lane % 16 * 8;
    char *rows_k = own_k + 8 * half * pitch;
    const kda64_level_tiles all = {own_k - lane % 16 * 8, own_k + (s.q - s.k) - lane % 16 * 8,
                                   own_lower - lane % 16 * 8, pitch};
    const kda64_level_tiles mine = {own_k + 4 * half * pitch,
                                    own_k + (s.q - s.k) + 4 * half * pitch,
                                    own_lower + 4 * half * kda64_lower_pitch, pitch};
    kda64_four k[8];
    uint2 q[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float by = norms[i].x;
        kda64_widen_four<S>(*reinterpret_cast<const uint2 *>(rows_k + i * pitch), k[i]);
        q[i] = *reinterpret_cast<const uint2 *>(rows_k + (s.q - s.k) + i * pitch);
#pragma unroll
        for (int c = 0; c < 4; ++c) k[i][c] *= by;
    }
    __syncwarp(); // rows are read: factors take their place
    kda64_put_levels01<S>(k, q, e, mine);
    __syncwarp(); // factors are written
    kda64_meet_levels(all, lane, sums[0], sums[1]);
    __syncwarp(); // factors are read
    kda64_put_level2<S>(k, q, e, mine);

    // Rows as lower ones, behind them what the half warp after decays.
    char *rows = record + kda64_tile_bytes(row, Keys);
    rows = reinterpret_cast<char *>(kda64_anew(reinterpret_cast<int64_t>(rows)));
    const int place = kda64_at(Keys, 8 * half, channel);
    char *tiles = shared + s.tiles + 8 * half * pitch + 2 * channel;
    kda64_four own, after, far, run;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        own[c] = half == 0 ? other[c] : 1.0f;
        after[c] = own[c];
        run[c] = 1.0f;
    }
    if (warp == 0) kda64_times_at(after, totals + Keys);
    kda64_assign(far, after);
#pragma unroll 1
    for (int next = warp == 0 ? 2 : warp + 1; next < 4; ++next)
        kda64_times_at(after, totals + next * Keys);
#pragma unroll
    for (int i = 7; i >= 0; --i) {
        kda64_four low;
        kda64_assign(low, k[i]);
        kda64_multiply(low, run);
        if (i > 0) kda64_multiply(run, e[i]);
        if (half == 0)
            kda64_put_words(own_lower + (8 + i) * kda64_lower_pitch, kda64_pack(low)); // level 3
        if (warp < 3)
            kda64_put_words(tiles + warp * tile + i * pitch, kda64_pack_product(low, own));
        if (warp == 0)
            kda64_put_words(tiles + kda64_far_lower * tile + i * pitch,
                            kda64_pack_product(low, far));
        kda64_put_words(rows + kda64_from(Keys, place, i, 0) + r.kr,
                        kda64_pack_product(low, after));
    }
    // As upper ones, before them that of the half warp before.
    kda64_four x[8];
    kda64_assign(run, e[0]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (i > 0) kda64_multiply(run, e[i]);
        kda64_widen_four<S>(q[i], x[i]);
        kda64_multiply(k[i], run);
        kda64_multiply(x[i], run);
        if (half == 1) {
            kda64_put_words(own_k + (8 + i) * pitch, kda64_pack(k[i])); // level 3
            kda64_put_words(own_k + (s.q - s.k) + (8 + i) * pitch, kda64_pack(x[i]));
        }
    }
    loads();
    __syncwarp(); // factors are written
    auto *level3 = reinterpret_cast<float4 *>(shared + s.sums) + 32 * warp + lane;
    float last_level[mma_items_d] = {};
    if (first > 0) {
        const float4 v = *level3;
        last_level[0] = v.x, last_level[1] = v.y, last_level[2] = v.z, last_level[3] = v.w;
    }
    kda64_meet_levels(all, lane, sums[2], last_level);
    *level3 = kda64_as_float4(last_level);
    __syncwarp(); // factors are read
    kda64_four carry, before;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        carry[c] = half == 1 ? other[c] : 1.0f;
        before[c] = 1.0f;
    }
    if (warp == 3) {
        kda64_assign(far, carry);
        kda64_times_at(far, totals + 2 * Keys);
    }
#pragma unroll 1
    for (int last = 0; last < warp; ++last) kda64_times_at(before, totals + last * Keys);
    kda64_four to_start;
    kda64_assign(to_start, before);
    kda64_multiply(to_start, carry);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        kda64_put_words(rows_k + i * pitch, kda64_pack_product(k[i], carry));
        kda64_put_words(rows_k + (s.q - s.k) + i * pitch, kda64_pack_product(x[i], carry));
        if (warp == 3) {
            kda64_put_words(tiles + kda64_far_upper * tile + i * pitch,
                            kda64_pack_product(k[i], far));
            kda64_put_words(tiles + (kda64_far_upper + 1) * tile + i * pitch,
                            kda64_pack_product(x[i], far));
        }
        char *to = rows + kda64_from(Keys, place, i, 0);
        kda64_put_words(to + r.k, kda64_pack_product(k[i], to_start));
        const float by = norms[i].y;
#pragma unroll
        for (int c = 0; c < 4; ++c) x[i][c] *= by * to_start[c];
        kda64_put_words(to + r.q, kda64_pack(x[i]));
    }
    if (warp == 3 && half == 0) { // decays of all tokens
        kda64_times_at(before, totals + 3 * Keys);
        *reinterpret_cast<float4 *>(record + r.gamma + 4 * channel) = kda64_as_float4(before);
    }
}

/// Pairs within 16 rows to the square of L in f32 and, by way of what is beside it, that of A.
__device__ __forceinline__ void kda64_put_levels(const kda64_level_sums &sums, float4 last,
                                                 const float *beta, const float2 *norms,
                                                 const float *diagonal, int warp, int lane,
                                                 char *square, char *a) {
    auto *l = reinterpret_cast<float *>(square);
    char *staged = square + kda64_square_bytes;
    const int upper = lane / 4, lower = lane % 4 * 2;
    char *row = staged + lane / 2 * kda64_part_pitch + lane % 2 * 16;
    *reinterpret_cast<uint4 *>(row) = make_uint4(0, 0, 0, 0);
    __syncwarp(); // zeros are written
#pragma unroll
    for (int level = 0; level < 4; ++level) {
        const int half = upper >> 2;
        const int i = level == 3 ? 8 + upper : 8 * half + kda64_upper(upper & 3, level);
        const float by_k = beta[i], by_q = norms[i].y;
        const float d[mma_items_d] = {level < 3 ? sums[level < 3 ? level : 0][0] : last.x,
                                      level < 3 ? sums[level < 3 ? level : 0][1] : last.y,
                                      level < 3 ? sums[level < 3 ? level : 0][2] : last.z,
                                      level < 3 ? sums[level < 3 ? level : 0][3] : last.w};
#pragma unroll
        for (int item = 0; item < 2; ++item) {
            const int other = lower + item;
            if (level < 3 && (other >> 2 != half || !kda64_meet(upper & 3, other & 3, level)))
                continue;
            const int j = level == 3 ? other : 8 * half + kda64_lower(other & 3, level);
            l[i * kda64_square_pitch + j] = by_k * d[item];
            *reinterpret_cast<uint16_t *>(staged + i * kda64_part_pitch + 2 * j) =
                round_half<scalar::bf16>(by_q * d[2 + item]);
        }
    }
    if (lane < 16)
        *reinterpret_cast<uint16_t *>(staged + lane * (kda64_part_pitch + 2)) =
            round_half<scalar::bf16>(diagonal[lane]);
    __syncwarp(); // A is there
    *reinterpret_cast<uint4 *>(a + kda64_at(64, 16 * warp + lane / 2, 16 * warp + lane % 2 * 8)) =
        *reinterpret_cast<const uint4 *>(row);
}

} // namespace plait::impl::cuda
