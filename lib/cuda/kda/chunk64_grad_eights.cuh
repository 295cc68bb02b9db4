// Levels of kda.chunk64_grad inside of 16 tokens: eight rows with eight, then lanes with lanes,
// then the two tokens of a lane.
#pragma once

#include "lib/cuda/kda/chunk64_grad_pairs.cuh"

namespace plait::impl::cuda {

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
