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

/// Where a lane points for coefficients of eight rows with eight: P, F of one place, of another.
__device__ __forceinline__ int kda64_at_eights(int row, int column, int by, int lane) {
    const int more = lane >> 4 ? by : 0;
    return (lane >> 3 & 1) * kda64_tile_bytes(64, 64) +
           kda64_at(64, row + more + (lane & 7), column + more);
}

/// A level inside of eight tokens, of 4 rows with 4 (By 2) or of 2 with 2 (By 1): lanes of four are
/// above an anchor or below. `sibling`: decays of the other lanes of the block.
template <int By, bool Bf16>
__device__ __forceinline__ void
kda64_level_lanes(const kda64_own &own, const uint32_t *raw_q, const uint32_t *raw_k, scalar type_q,
                  scalar type_k, const float (&x)[4], const float (&next)[2],
                  const float (&sibling)[2], const uint32_t *reads, const uint32_t *writes,
                  float (&q)[mma_items_d], float (&read)[mma_items_d], float (&write)[mma_items_d],
                  float (&same)[2]) {
    const bool upper = (own.quad & By) != 0;
    // Whether this lane's elements of B are pairs of the level: rows are 2 quad and one more,
    // columns `row`.
    const bool block = By == 2 || (own.quad >> 1) == (own.row >> 2);
    const bool column = (own.row & 2 * By) != 0;
    const uint32_t is_read = block && !upper && column ? ~0u : 0u;
    const uint32_t is_write = block && upper && !column ? ~0u : 0u;
    float w[4];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        w[2 * c] = upper ? x[2 * c] : x[2 * c + 1];
        w[2 * c + 1] = upper ? x[2 * c] * x[2 * c + 1] : 1.0f;
        // The lane next to the anchor has no lane between.
        const float f = ((own.quad + 1) & 2) != 0 ? 1.0f : next[c];
        if constexpr (By == 2) w[2 * c] *= f, w[2 * c + 1] *= f;
    }
    kda64_scale(q, upper ? sibling[0] : 1.0f, upper ? sibling[1] : 1.0f);
    kda64_scale(read, upper ? sibling[0] : 1.0f, upper ? sibling[1] : 1.0f);
    kda64_scale(write, upper ? 1.0f : sibling[0], upper ? 1.0f : sibling[1]);
    float up[2] = {0, 0}, low[2] = {0, 0};
    uint32_t a[4], b[2]; // A: two channels of k, of q
    kda64_upper<Bf16>(raw_q, raw_k, type_q, type_k, w, q, read, a + 2, a, up);
    kda64_lower<Bf16>(raw_k, type_k, w, write, b, low);
    float sum[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        sum[c] = upper ? up[c] : low[c];
        if constexpr (By == 2) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], 1);
        same[c] += __shfl_xor_sync(0xffffffffu, sum[c], By);
    }
    mma_add<scalar::bf16>(write, a, {writes[1] & is_write, writes[0] & is_write});
    a[2] = a[3] = 0;
    mma_add<scalar::bf16>(q, a, {reads[0] & is_read, 0u});
    mma_add<scalar::bf16>(read, a, {reads[1] & is_read, 0u});
}

/// The level of eight rows with eight of 16 tokens, which are the first two of d.
template <int Keys, bool Bf16>
__device__ __forceinline__ void kda64_level_eights(const kda64_level_inputs<Keys> &in, int pair,
                                                   kda64_gradients &d) {
    const kda64_own own = kda64_own_of<Keys>();
    constexpr int threads = kda64_grad_threads(Keys);
    constexpr int low = 0, high = 1;
    const int row = 32 * own.half + 16 * pair;
    uint32_t raw_q[4], raw_k[4], q[2], k[4], reads[4], writes[4]; // of P, of F
    float x[4], w[4], up[2] = {0, 0}, below[2] = {0, 0};
    kda64_decays_own front, back;
    kda64_words<Keys>(in.q, own, pair, raw_q);
    kda64_words<Keys>(in.k, own, pair, raw_k);
    kda64_four(in.decays + 2 * pair * threads, x);
    kda64_spread(x, front);
    kda64_until(x, front.behind(0, own.quad), front.behind(1, own.quad), w);
    kda64_lower<Bf16>(raw_k, in.type_k, w, d.write[low], k, below);
    kda64_four(in.decays + (2 * pair + 1) * threads, x);
    kda64_spread(x, back);
    kda64_from(x, back.before(0, own.quad), back.before(1, own.quad), w);
    kda64_scale(d.q[high], front.all[0], front.all[1]);
    kda64_scale(d.read[high], front.all[0], front.all[1]);
    kda64_scale(d.write[low], back.all[0], back.all[1]);
    kda64_upper<Bf16>(raw_q + 2, raw_k + 2, in.type_q, in.type_k, w, d.q[high], d.read[high], q,
                      k + 2, up);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        d.same[c][low] += up[c];
        d.same[c][high] = __fmaf_rn(below[c], back.all[c], d.same[c][high]);
    }
    const int eights = kda64_at_eights(row + 8, row, 0, own.lane);
    load_matrices(reads, in.pairs_q + eights);
    load_matrices_transposed(writes, in.pairs_q + eights);
    const uint32_t none = 0;
    mma_add<scalar::bf16>(d.q[high], {k[0], k[1], none, none}, {reads[0], none});
    mma_add<scalar::bf16>(d.read[high], {k[0], k[1], none, none}, {reads[1], none});
    mma_add<scalar::bf16>(d.write[low], {q[0], q[1], k[2], k[3]}, {writes[0], writes[1]});
}

/// Levels inside of eight tokens `t`. Leaves the gradients of q, of k, of g in q, read, write.
/// `near`: of two tokens P_00, P_11, P_10, F_10.
template <int Keys, bool Bf16>
__device__ __forceinline__ void kda64_level_rest(const kda64_level_inputs<Keys> &in, int t,
                                                 const float4 *near, float (&q)[mma_items_d],
                                                 float (&read)[mma_items_d],
                                                 float (&write)[mma_items_d], float (&same)[2]) {
    const kda64_own own = kda64_own_of<Keys>();
    const int row = 32 * own.half + 8 * t;
    float x[4], p[4];
    kda64_four(in.decays + t * kda64_grad_threads(Keys), x);
    uint32_t words[4], reads[4], writes[4]; // of q, of k; of P, of F
    load_matrices_transposed(
        words, in.q + (own.lane >> 4) * kda64_tile_bytes(64, Keys) +
                   kda64_at(Keys, row + (own.lane & 7), 16 * own.group + (own.lane >> 3 & 1) * 8));
    const int square = kda64_at_eights(row, row, 0, own.lane);
    load_matrices(reads, in.pairs_q + square);
    load_matrices_transposed(writes, in.pairs_q + square);
    kda64_decays_own e;
    kda64_spread(x, e);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        same[c] += __shfl_xor_sync(0xffffffffu, same[c], 1);
        same[c] += __shfl_xor_sync(0xffffffffu, same[c], 2);
    }
    kda64_level_lanes<2, Bf16>(own, words, words + 2, in.type_q, in.type_k, x, e.next, e.other,
                               reads, writes, q, read, write, same);
    kda64_level_lanes<1, Bf16>(own, words, words + 2, in.type_q, in.type_k, x, e.next, e.next,
                               reads, writes, q, read, write, same);
    kda64_four(near + 16 * own.half + 4 * t + own.quad, p);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        const float d0 = x[2 * c], d1 = x[2 * c + 1];
        const float q0 = kda64_take<Bf16>(words[c], 0, in.type_q);
        const float q1 = kda64_take<Bf16>(words[c], 1, in.type_q);
        const float k0 = kda64_take<Bf16>(words[2 + c], 0, in.type_k);
        const float k1 = kda64_take<Bf16>(words[2 + c], 1, in.type_k);
        // Decayed to the token itself, before the two of this lane meet.
        float of_q = q[2 * c + 1] * d0, of_read = read[2 * c + 1] * d0;
        const float of_write = write[2 * c] * d1, written = k0 * of_write;
        const float later = d1 * __fmaf_rn(q1, of_q, k1 * of_read);
        of_q = d1 * __fmaf_rn(p[2], k0, of_q);
        of_read = d1 * __fmaf_rn(p[3], k0, of_read);
        const float q_first = d0 * q[2 * c], k_first = d0 * read[2 * c];
        const float meet = d1 * __fmaf_rn(p[2], q1, p[3] * k1);
        const float first = same[c] + later + __fmaf_rn(q0, q_first, k0 * k_first);
        const float second = same[c] + written + __fmaf_rn(q1, of_q, k1 * of_read);
        q[2 * c] = __fmaf_rn(p[0], k0, q_first);
        q[2 * c + 1] = __fmaf_rn(p[1], k1, of_q);
        read[2 * c] = __fmaf_rn(p[0], q0, k_first + of_write + meet);
        read[2 * c + 1] = __fmaf_rn(p[1], q1, of_read + write[2 * c + 1]);
        write[2 * c] = first;
        write[2 * c + 1] = second;
    }
}

/// The first eight tokens become the last.
__device__ __forceinline__ void kda64_turn(kda64_gradients &d) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float q = d.q[0][i], read = d.read[0][i], write = d.write[0][i];
#pragma unroll
        for (int t = 0; t < 3; ++t) {
            d.q[t][i] = d.q[t + 1][i];
            d.read[t][i] = d.read[t + 1][i];
            d.write[t][i] = d.write[t + 1][i];
        }
        d.q[3][i] = q, d.read[3][i] = read, d.write[3][i] = write;
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        const float same = d.same[c][0];
#pragma unroll
        for (int t = 0; t < 3; ++t) d.same[c][t] = d.same[c][t + 1];
        d.same[c][3] = same;
    }
}

} // namespace plait::impl::cuda
