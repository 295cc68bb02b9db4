// Pairs of rows in kda.chunk64_grad, from the level of halves of a chunk down to neighbours.
//
// Decays are products, not exponentials of sums: with d = e^g of a token, what a level needs of row
// i is the product of all d from the anchor to i, of row j that behind j and before the anchor.
// Gradients of a row lack the decays of their own block of rows, so that one level's go to those of
// the levels before by one factor, the product over the sibling block, and the accumulators of
// tensor cores are the sums of all levels.
//
// dg_r gets what rows from r on read and rows before r write: of the pending gradients of a block
// of rows, whose halves tell each other their totals on the way down.
#pragma once

#include "lib/cuda/kda/chunk64_grad_rows.cuh"

namespace plait::impl::cuda {

/// Products of the decays of eight tokens for two channels: of the lane next to this one, of the
/// other two of four lanes, of all.
struct kda64_decays_own {
    float next[2], other[2], all[2];

    /// Of the lanes before this one, or behind it.
    __device__ __forceinline__ float before(int c, int quad) const {
        return (quad & 1 ? next[c] : 1.0f) * (quad & 2 ? other[c] : 1.0f);
    }
    __device__ __forceinline__ float behind(int c, int quad) const {
        return (quad & 1 ? 1.0f : next[c]) * (quad & 2 ? 1.0f : other[c]);
    }
};

/// d: the decays of two channels and two tokens.
__device__ __forceinline__ void kda64_spread(const float (&d)[4], kda64_decays_own &to) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        const float own = d[2 * c] * d[2 * c + 1];
        to.next[c] = __shfl_xor_sync(0xffffffffu, own, 1);
        const float two = own * to.next[c];
        to.other[c] = __shfl_xor_sync(0xffffffffu, two, 2);
        to.all[c] = two * to.other[c];
    }
}

__device__ __forceinline__ void kda64_four(const float4 *from, float (&x)[4]) {
    const float4 v = *from;
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}

/// What the levels read.
template <int Keys> struct kda64_level_inputs {
    const char *q, *k, *pairs_q, *pairs_k;
    const float4 *decays; ///< of this thread; t is kda64_grad_threads further on
    scalar type_q, type_k;
};

/// Operands of rows i from (row, column) of `words` on, and what they read so far in `total`.
template <bool Bf16>
__device__ __forceinline__ void
kda64_upper(const uint32_t *q, const uint32_t *k, scalar type_q, scalar type_k, const float (&w)[4],
            const float (&of_q)[mma_items_d], const float (&of_k)[mma_items_d], uint32_t *to_q,
            uint32_t *to_k, float (&total)[2]) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        const float q0 = kda64_take<Bf16>(q[c], 0, type_q) * w[2 * c];
        const float q1 = kda64_take<Bf16>(q[c], 1, type_q) * w[2 * c + 1];
        const float k0 = kda64_take<Bf16>(k[c], 0, type_k) * w[2 * c];
        const float k1 = kda64_take<Bf16>(k[c], 1, type_k) * w[2 * c + 1];
        to_q[c] = round_pair<scalar::bf16>(q0, q1);
        to_k[c] = round_pair<scalar::bf16>(k0, k1);
        total[c] = __fmaf_rn(q0, of_q[2 * c], total[c]);
        total[c] = __fmaf_rn(q1, of_q[2 * c + 1], total[c]);
        total[c] = __fmaf_rn(k0, of_k[2 * c], total[c]);
        total[c] = __fmaf_rn(k1, of_k[2 * c + 1], total[c]);
    }
}
/// Of rows j, and what they write.
template <bool Bf16>
__device__ __forceinline__ void kda64_lower(const uint32_t *k, scalar type_k, const float (&w)[4],
                                            const float (&of_k)[mma_items_d], uint32_t *to_k,
                                            float (&total)[2]) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        const float k0 = kda64_take<Bf16>(k[c], 0, type_k) * w[2 * c];
        const float k1 = kda64_take<Bf16>(k[c], 1, type_k) * w[2 * c + 1];
        to_k[c] = round_pair<scalar::bf16>(k0, k1);
        total[c] = __fmaf_rn(k0, of_k[2 * c], total[c]);
        total[c] = __fmaf_rn(k1, of_k[2 * c + 1], total[c]);
    }
}

/// Decays from an anchor to two tokens of two channels, f from there to the first of them.
__device__ __forceinline__ void kda64_from(const float (&d)[4], float f0, float f1, float (&w)[4]) {
    w[0] = f0 * d[0], w[1] = w[0] * d[1];
    w[2] = f1 * d[2], w[3] = w[2] * d[3];
}
__device__ __forceinline__ void kda64_until(const float (&d)[4], float f0, float f1,
                                            float (&w)[4]) {
    w[1] = f0, w[0] = f0 * d[1];
    w[3] = f1, w[2] = f1 * d[3];
}

__device__ __forceinline__ void kda64_scale(float (&x)[mma_items_d], float f0, float f1) {
    x[0] *= f0, x[1] *= f0, x[2] *= f1, x[3] *= f1;
}

/// P k^ and F k^ of 16 rows i with 16 rows j, to two tiles of 8 tokens.
__device__ __forceinline__ void kda64_read_rows(const char *pairs_q, const char *pairs_k, int i,
                                                int j, int lane, const uint32_t (&k)[4],
                                                float (&q0)[mma_items_d], float (&q1)[mma_items_d],
                                                float (&k0)[mma_items_d],
                                                float (&k1)[mma_items_d]) {
    uint32_t b[4];
    load_matrices(b, pairs_q + kda64_at_b(64, i, j, lane));
    mma_add<scalar::bf16>(q0, k, {b[0], b[1]});
    mma_add<scalar::bf16>(q1, k, {b[2], b[3]});
    load_matrices(b, pairs_k + kda64_at_b(64, i, j, lane));
    mma_add<scalar::bf16>(k0, k, {b[0], b[1]});
    mma_add<scalar::bf16>(k1, k, {b[2], b[3]});
}
/// P^T q~ + F^T k~ of the same for rows j.
__device__ __forceinline__ void kda64_write_rows(const char *pairs_q, const char *pairs_k, int i,
                                                 int j, int lane, const uint32_t (&q)[4],
                                                 const uint32_t (&k)[4], float (&k0)[mma_items_d],
                                                 float (&k1)[mma_items_d]) {
    uint32_t b[4];
    load_matrices_transposed(b, pairs_q + kda64_at_bt(64, i, j, lane));
    mma_add<scalar::bf16>(k0, q, {b[0], b[1]});
    mma_add<scalar::bf16>(k1, q, {b[2], b[3]});
    load_matrices_transposed(b, pairs_k + kda64_at_bt(64, i, j, lane));
    mma_add<scalar::bf16>(k0, k, {b[0], b[1]});
    mma_add<scalar::bf16>(k1, k, {b[2], b[3]});
}

/// The level of halves. `words`: of the group of channels, to be used by its two warps. Barriers:
/// one.
template <int Keys, bool Bf16>
__device__ __forceinline__ void kda64_level_halves(const kda64_level_inputs<Keys> &in,
                                                   float *totals, const float (&dots)[2],
                                                   char *exchange, kda64_gradients &d) {
    const kda64_own own = kda64_own_of<Keys>();
    auto *words = reinterpret_cast<uint4 *>(exchange) + 256 * own.group + own.lane;
    constexpr int threads = kda64_grad_threads(Keys);
    uint32_t of_q[2][4], of_k[2][4];
    float total[2] = {0, 0}, run[2] = {1, 1};
    kda64_decays_own e;
    if (own.half) {
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            uint32_t q[4], k[4];
            kda64_words<Keys>(in.q, own, pair, q);
            kda64_words<Keys>(in.k, own, pair, k);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const int t = 2 * pair + n;
                float x[4], w[4];
                kda64_four(in.decays + t * threads, x);
                kda64_spread(x, e);
                kda64_from(x, e.before(0, own.quad) * run[0], e.before(1, own.quad) * run[1], w);
                run[0] *= e.all[0], run[1] *= e.all[1];
                kda64_upper<Bf16>(q + 2 * n, k + 2 * n, in.type_q, in.type_k, w, d.q[t], d.read[t],
                                  of_q[pair] + 2 * n, of_k[pair] + 2 * n, total);
            }
            words[32 * pair] =
                make_uint4(of_q[pair][0], of_q[pair][1], of_q[pair][2], of_q[pair][3]);
            words[32 * (2 + pair)] =
                make_uint4(of_k[pair][0], of_k[pair][1], of_k[pair][2], of_k[pair][3]);
        }
    } else {
#pragma unroll
        for (int pair = 1; pair >= 0; --pair) {
            uint32_t k[4];
            kda64_words<Keys>(in.k, own, pair, k);
#pragma unroll
            for (int n = 1; n >= 0; --n) {
                const int t = 2 * pair + n;
                float x[4], w[4];
                kda64_four(in.decays + t * threads, x);
                kda64_spread(x, e);
                kda64_until(x, e.behind(0, own.quad) * run[0], e.behind(1, own.quad) * run[1], w);
                run[0] *= e.all[0], run[1] *= e.all[1];
                kda64_lower<Bf16>(k + 2 * n, in.type_k, w, d.write[t], of_k[pair] + 2 * n, total);
            }
            words[32 * (4 + pair)] =
                make_uint4(of_k[pair][0], of_k[pair][1], of_k[pair][2], of_k[pair][3]);
        }
    }
    if (own.quad == 0) {
        totals[own.half * Keys + own.channel] = run[0];
        totals[own.half * Keys + own.channel + 8] = run[1];
    }
    words[32 * (6 + own.half)] = make_uint4(__float_as_uint(total[0]), __float_as_uint(total[1]),
                                            __float_as_uint(dots[0]), __float_as_uint(dots[1]));
    __syncthreads(); // words and totals are written
    const uint4 said = words[32 * (7 - own.half)];
    const float *other = totals + (own.half ? 0 : Keys) + own.channel;
    const float sibling[2] = {other[0], other[8]};
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        if (own.half) {
            kda64_scale(d.q[t], sibling[0], sibling[1]);
            kda64_scale(d.read[t], sibling[0], sibling[1]);
        } else {
            kda64_scale(d.write[t], sibling[0], sibling[1]);
        }
    }
    // What the other half has said lacks the decays of this one.
    const float more[2] = {
        run[0] * __fmaf_rn(sibling[0], dots[0] + __uint_as_float(said.z), __uint_as_float(said.x)),
        run[1] * __fmaf_rn(sibling[1], dots[1] + __uint_as_float(said.w), __uint_as_float(said.y))};
#pragma unroll
    for (int t = 0; t < 4; ++t) d.same[0][t] = more[0], d.same[1][t] = more[1];
#pragma unroll
    for (int from = 0; from < 2; ++from) {
        const auto take = [&](int which) { return words[32 * (which + from)]; };
        if (own.half) {
            const uint4 w = take(4);
            const uint32_t k[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int to = 0; to < 2; ++to)
                kda64_read_rows(in.pairs_q, in.pairs_k, 32 + 16 * to, 16 * from, own.lane, k,
                                d.q[2 * to], d.q[2 * to + 1], d.read[2 * to], d.read[2 * to + 1]);
        } else {
            const uint4 v = take(0), w = take(2);
            const uint32_t q[4] = {v.x, v.y, v.z, v.w}, k[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int to = 0; to < 2; ++to)
                kda64_write_rows(in.pairs_q, in.pairs_k, 32 + 16 * from, 16 * to, own.lane, q, k,
                                 d.write[2 * to], d.write[2 * to + 1]);
        }
    }
}

/// The level of 16 rows with 16.
template <int Keys, bool Bf16>
__device__ __forceinline__ void kda64_level_sixteen(const kda64_level_inputs<Keys> &in,
                                                    kda64_gradients &d) {
    const kda64_own own = kda64_own_of<Keys>();
    constexpr int threads = kda64_grad_threads(Keys);
    uint32_t raw_q[4], raw_k[4], q[4], k[4], lower[4];
    float x[4], w[4], up[2] = {0, 0}, low[2] = {0, 0};
    float behind[2] = {1, 1}, before[2] = {1, 1}; // decays of 8, then 16 tokens
    kda64_decays_own e;
    kda64_words<Keys>(in.k, own, 0, raw_k);
#pragma unroll
    for (int t = 1; t >= 0; --t) {
        kda64_four(in.decays + t * threads, x);
        kda64_spread(x, e);
        kda64_until(x, e.behind(0, own.quad) * behind[0], e.behind(1, own.quad) * behind[1], w);
        behind[0] *= e.all[0], behind[1] *= e.all[1];
        kda64_lower<Bf16>(raw_k + 2 * t, in.type_k, w, d.write[t], lower + 2 * t, low);
    }
    kda64_words<Keys>(in.q, own, 1, raw_q);
    kda64_words<Keys>(in.k, own, 1, raw_k);
#pragma unroll
    for (int t = 2; t < 4; ++t) {
        kda64_four(in.decays + t * threads, x);
        kda64_spread(x, e);
        kda64_from(x, e.before(0, own.quad) * before[0], e.before(1, own.quad) * before[1], w);
        before[0] *= e.all[0], before[1] *= e.all[1];
        kda64_scale(d.q[t], behind[0], behind[1]);
        kda64_scale(d.read[t], behind[0], behind[1]);
        kda64_upper<Bf16>(raw_q + 2 * (t - 2), raw_k + 2 * (t - 2), in.type_q, in.type_k, w, d.q[t],
                          d.read[t], q + 2 * (t - 2), k + 2 * (t - 2), up);
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) kda64_scale(d.write[t], before[0], before[1]);
    low[0] *= before[0], low[1] *= before[1];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        d.same[c][0] += up[c], d.same[c][1] += up[c];
        d.same[c][2] += low[c], d.same[c][3] += low[c];
    }
    const int row = 32 * own.half;
    kda64_read_rows(in.pairs_q, in.pairs_k, row + 16, row, own.lane, lower, d.q[2], d.q[3],
                    d.read[2], d.read[3]);
    kda64_write_rows(in.pairs_q, in.pairs_k, row + 16, row, own.lane, q, k, d.write[0], d.write[1]);
}

} // namespace plait::impl::cuda
