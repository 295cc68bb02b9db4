// 16 rows of a chunk, of kda.chunk64_prep, variants `near`: loads, norms, gates, factors. A half
// warp has eight rows, a lane four neighbouring channels of 64.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/kda/chunk64_near_layout.h"
#include "lib/cuda/kda/chunk64_prep_rows.cuh"

namespace plait::impl::cuda {

/// Factors of pairs within 16 rows are decays from the rows before, times 2^58, and what these
/// leave of 1: both between 2^-58 and 2^58, as 16 tokens decay by at most 2^-115.5.
constexpr float kda64_near_middle = 58.0f;
constexpr float kda64_near_unit = 0x1p-58f;

using kda64_four = float[4];

/// A chunk of a value head.
struct kda64_task {
    int64_t row, token;
    int32_t rows;
    uint32_t block, head;
    float rate; ///< of its gates
    bool there;
};
static_assert(sizeof(kda64_task) <= kda64_task_bytes, "");

/// The first from `block` on, by steps of the grid, that has rows.
__device__ __forceinline__ kda64_task kda64_task_from(const kda_chunk64_prep_args &a,
                                                      uint32_t block) {
    const auto heads = static_cast<uint32_t>(a.p.value_heads);
    kda64_task t{};
    for (; block < static_cast<uint32_t>(a.blocks); block += gridDim.x) {
        const uint32_t slot = block / heads;
        const kda_chunk_place at = kda_chunk_of(a.p, a.table, a.chunks, a.slots, slot, kda64_rows);
        if (at.rows <= 0) continue;
        t.row = at.row, t.token = at.token, t.rows = at.rows;
        t.block = block, t.head = block - slot * heads, t.there = true;
        break;
    }
    return t;
}

/// Starts copies of this warp's rows of q or k; zeros where there is nothing.
template <int Keys>
__device__ __forceinline__ void kda64_fetch(const kda_view &v, const void *base, int64_t at,
                                            int left, int dim_k, int lane, char *tile) {
    constexpr int pieces = Keys / 8; // of a row
    constexpr bool even = 32 % pieces == 0;
    const auto *rows = static_cast<const uint16_t *>(base) + at;
    const shared_at to = shared_at_of(tile);
    const int next = static_cast<int>(v.t);
    if (even && left >= kda64_near_rows && dim_k == Keys) {
        const int row = lane / pieces, column = lane % pieces * 8;
        const uint16_t *from = rows + (row * next + column);
        const shared_at first = to + kda64_factor_at(Keys, row, column);
#pragma unroll
        for (int n = 0; n < kda64_near_rows * pieces / 32; ++n)
            async_copy<16>(first + kda64_factor_at(Keys, 32 / pieces * n, 0),
                           from + int64_t{32 / pieces * n * next});
        return;
    }
#pragma unroll 1
    for (int e = lane; e < kda64_near_rows * pieces; e += 32) {
        const int row = e / pieces, column = e % pieces * 8;
        const bool there = row < left && column < dim_k;
        async_copy<16>(to + kda64_factor_at(Keys, row, column),
                       rows + (there ? row * next + column : 0), there);
    }
}

/// Sums of products of rows of 16 with themselves: lane kda64_lane_of(i) has those of rows i and i
/// + 8. A product has eight rows of k and the same of q as A, either as B.
template <int Keys, scalar S>
__device__ __forceinline__ void kda64_near_sums(const char *k, const char *q, int lane,
                                                kda64_squares_of_rows (&sum)[2]) {
    const int row = lane & 7, second = lane >> 3 & 1, fourth = lane >> 4;
    const char *of_a = (second ? q : k) + kda64_factor_at(Keys, row, 8 * fourth);
    const char *of_b = (fourth ? q : k) + kda64_factor_at(Keys, row, 8 * second);
    float with_k[2][mma_items_d] = {}, with_q[2][mma_items_d] = {};
#pragma unroll
    for (int c = 0; c < Keys; c += 16) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            uint32_t a[4], b[4];
            load_matrices(a, of_a + kda64_factor_at(Keys, 8 * half, c));
            load_matrices(b, of_b + kda64_factor_at(Keys, 8 * half, c));
            mma_add<S>(with_k[half], a, {b[0], b[1]});
            mma_add<S>(with_q[half], a, {b[2], b[3]});
        }
    }
    const bool odd = (lane & 4) != 0;
#pragma unroll
    for (int half = 0; half < 2; ++half)
        sum[half] = {odd ? with_k[half][1] : with_k[half][0],
                     odd ? with_k[half][3] : with_k[half][2],
                     odd ? with_q[half][3] : with_q[half][2]};
}

/// What rows of k and of q are multiplied by goes to `norms`, the diagonal of A to `diagonal`.
template <int Keys, scalar S>
__device__ __forceinline__ void kda64_near_norms(const kda_problem &p, const char *k, const char *q,
                                                 int left, int lane, float2 *norms,
                                                 float *diagonal) {
    kda64_squares_of_rows sum[2];
    kda64_near_sums<Keys, S>(k, q, lane, sum);
    const auto eps = static_cast<float>(p.eps);
    const int row = lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float of_k = 1.0f, of_q = static_cast<float>(p.scale);
        if (p.norm) {
            of_k = rsqrtf(sum[half].kk + eps);
            of_q *= rsqrtf(sum[half].qq + eps);
            if (row + 8 * half >= left) of_k = of_q = 0.0f; // infinite without eps
        }
        if (lane == kda64_lane_of(row)) {
            norms[row + 8 * half] = make_float2(of_k, of_q);
            diagonal[row + 8 * half] = sum[half].qk * of_k * of_q;
        }
    }
}

/// Eight rows of raw gates of a lane, four channels each. 16-bit ones wait as words.
struct kda64_raw_gates {
    const char *from; ///< the lane's first row and channel, or one that is there
    int next;         ///< bytes between rows
    int left;         ///< rows that are there
    uint2 w[8];

    __device__ __forceinline__ int row(int i) const { return left >= 8 ? i : min(i, left - 1); }
    __device__ __forceinline__ void load(scalar type) {
        if (type == scalar::f32) {
#pragma unroll
            for (int i = 0; i < 8; ++i) w[i] = make_uint2(0, 0);
        } else if (left >= 8) {
#pragma unroll
            for (int i = 0; i < 8; ++i)
                w[i] = __ldg(reinterpret_cast<const uint2 *>(from + int64_t{i * next}));
        } else {
#pragma unroll
            for (int i = 0; i < 8; ++i)
                w[i] = __ldg(reinterpret_cast<const uint2 *>(
                    from + int64_t{max(min(i, left - 1), 0) * next}));
        }
    }
    __device__ __forceinline__ void widen(scalar type, kda64_four (&x)[8]) const {
        if (type == scalar::bf16) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                widen_pair<scalar::bf16>(w[i].x, x[i][0], x[i][1]);
                widen_pair<scalar::bf16>(w[i].y, x[i][2], x[i][3]);
            }
        } else if (type == scalar::f16) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                widen_pair<scalar::f16>(w[i].x, x[i][0], x[i][1]);
                widen_pair<scalar::f16>(w[i].y, x[i][2], x[i][3]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float4 v = __ldg(reinterpret_cast<const float4 *>(
                    from + int64_t{max(min(i, left - 1), 0) * next}));
                x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
            }
        }
    }
};

/// Four numbers of DT_BIAS.
__device__ __forceinline__ void kda64_near_bias(const kda_chunk64_prep_args &a, int64_t hv,
                                                int channel, kda64_four &bias) {
    const kda_view &v = a.p.dt_bias;
    if (!v.used()) {
#pragma unroll
        for (int c = 0; c < 4; ++c) bias[c] = 0;
    } else if (a.wide_bias) {
        const float4 all = __ldg(reinterpret_cast<const float4 *>(
            static_cast<const float *>(a.in.dt_bias) + hv * v.h + channel));
        bias[0] = all.x, bias[1] = all.y, bias[2] = all.z, bias[3] = all.w;
    } else {
#pragma unroll
        for (int c = 0; c < 4; ++c) bias[c] = kda_bias(a.p, a.in.dt_bias, hv, channel + c);
    }
}

__device__ __forceinline__ float4 kda64_as_float4(const kda64_four &x) {
    return make_float4(x[0], x[1], x[2], x[3]);
}
/// x times what lies at `from`.
__device__ __forceinline__ void kda64_times_at(kda64_four &x, const float *from) {
    const float4 v = *reinterpret_cast<const float4 *>(from);
    x[0] *= v.x, x[1] *= v.y, x[2] *= v.z, x[3] *= v.w;
}
__device__ __forceinline__ uint2 kda64_pack(const kda64_four &x) {
    return make_uint2(round_pair<scalar::bf16>(x[0], x[1]), round_pair<scalar::bf16>(x[2], x[3]));
}
__device__ __forceinline__ uint2 kda64_pack_product(const kda64_four &x, const kda64_four &y) {
    return make_uint2(round_pair<scalar::bf16>(x[0] * y[0], x[1] * y[1]),
                      round_pair<scalar::bf16>(x[2] * y[2], x[3] * y[3]));
}
__device__ __forceinline__ void kda64_put_words(char *to, uint2 words) {
    *reinterpret_cast<uint2 *>(to) = words;
}

/// Sums of sigmoids of this lane's gates from its first row on; `before`: of the rows of the half
/// warp before, `total`: of all 16.
__device__ __forceinline__ void kda64_near_gates(const kda64_raw_gates &raw, scalar type,
                                                 float rate, const kda64_four &bias, bool channel,
                                                 int lane, kda64_four (&sum)[8], kda64_four &before,
                                                 kda64_four &total) {
    raw.widen(type, sum);
    const float by = -rate * kda64_log2_e;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const float add = by * bias[c];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            sum[i][c] = kda64_reciprocal(1.0f + kda64_exp2(__fmaf_rn(by, sum[i][c], add)));
    }
    if (raw.left < 8 || !channel) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c)
                if (i >= raw.left || !channel) sum[i][c] = 0;
        }
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
        for (int i = 1; i < 8; ++i) sum[i][c] += sum[i - 1][c];
        const float other = __shfl_xor_sync(0xffffffffu, sum[7][c], 16);
        before[c] = lane & 16 ? other : 0.0f;
        total[c] = sum[7][c] + other;
    }
}

/// All factors and rows of the record of 64 channels from `first` on, from rows in shared memory;
/// upper factors take their place. Totals of all warps are there.
template <int Keys, scalar S>
__device__ __forceinline__ void kda64_near_factors(const kda64_four (&sum)[8],
                                                   const kda64_four &sum_before,
                                                   const kda64_four &total, float bound, int first,
                                                   int warp, int lane, char *shared, char *record) {
    constexpr kda64_near_shared s = kda64_near_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int pitch = kda64_factor_pitch(Keys), tile = kda64_near_rows * pitch;
    const int half = lane >> 4, channel = first + lane % 16 * 4;
    const float *totals = reinterpret_cast<const float *>(shared + s.totals) + channel;
    kda64_four before, after, own, middle;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        middle[c] = __fmaf_rn(bound, sum_before[c], kda64_near_middle);
        before[c] = kda64_near_unit;
        own[c] = kda64_exp2(__fmaf_rn(bound, total[c], kda64_near_middle));
        after[c] = own[c];
    }
    kda64_four far{}; // over the other block of the pair
    if (warp == 0) kda64_times_at(after, totals + Keys);
#pragma unroll
    for (int c = 0; c < 4; ++c) far[c] = after[c];
    if (warp == 3) {
        const float4 v = *reinterpret_cast<const float4 *>(totals + 2 * Keys);
        far[0] = v.x, far[1] = v.y, far[2] = v.z, far[3] = v.w;
    }
#pragma unroll 1
    for (int other = warp == 0 ? 2 : warp + 1; other < 4; ++other)
        kda64_times_at(after, totals + other * Keys);
#pragma unroll 1
    for (int other = 0; other < warp; ++other) kda64_times_at(before, totals + other * Keys);

    const int row = kda64_near_rows * warp + 8 * half;
    char *rows_k = shared + s.k + row * pitch + 2 * channel;
    char *tiles = shared + s.tiles + 8 * half * pitch + 2 * channel;
    char *lower = shared + s.lower + row * kda64_lower_pitch + lane % 16 * 8;
    const float2 *norms = reinterpret_cast<const float2 *>(shared + s.norms) + row;
    const int place = kda64_at(Keys, 8 * half, channel);
    char *rows = record + kda64_tile_bytes(kda64_near_rows * warp, Keys);
    rows = reinterpret_cast<char *>(kda64_anew(reinterpret_cast<int64_t>(rows))); // one register
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float2 by = norms[i];
        const uint2 wk = *reinterpret_cast<const uint2 *>(rows_k + i * pitch),
                    wq = *reinterpret_cast<const uint2 *>(rows_k + (s.q - s.k) + i * pitch);
        kda64_four k, q, low;
        widen_pair<S>(wk.x, k[0], k[1]), widen_pair<S>(wk.y, k[2], k[3]);
        widen_pair<S>(wq.x, q[0], q[1]), widen_pair<S>(wq.y, q[2], q[3]);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const float log = __fmaf_rn(bound, sum[i][c], middle[c]);
            const float up = kda64_exp2(log);
            k[c] *= by.x, q[c] *= by.y;
            low[c] = k[c] * kda64_exp2(-log);
            k[c] *= up, q[c] *= up;
        }
        kda64_put_words(rows_k + i * pitch, kda64_pack(k));
        kda64_put_words(rows_k + (s.q - s.k) + i * pitch, kda64_pack(q));
        kda64_put_words(lower + i * kda64_lower_pitch, kda64_pack(low));
        if (warp < 3) {
            kda64_put_words(tiles + warp * tile + i * pitch, kda64_pack_product(low, own));
            if (warp == 0)
                kda64_put_words(tiles + kda64_far_lower * tile + i * pitch,
                                kda64_pack_product(low, far));
        } else {
            kda64_put_words(tiles + kda64_far_upper * tile + i * pitch, kda64_pack_product(k, far));
            kda64_put_words(tiles + (kda64_far_upper + 1) * tile + i * pitch,
                            kda64_pack_product(q, far));
        }
        char *to = rows + kda64_from(Keys, place, i, 0);
        kda64_put_words(to + r.kr, kda64_pack_product(low, after));
        kda64_put_words(to + r.k, kda64_pack_product(k, before));
        kda64_put_words(to + r.q, kda64_pack_product(q, before));
    }
    if (warp == 3 && half == 0) { // decays of all tokens
        kda64_times_at(before, totals + 3 * Keys);
#pragma unroll
        for (int c = 0; c < 4; ++c) before[c] *= 0x1p58f;
        *reinterpret_cast<float4 *>(record + r.gamma + 4 * channel) = kda64_as_float4(before);
    }
}

} // namespace plait::impl::cuda
