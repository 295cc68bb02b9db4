// Part of kda.chunk64_grad, which begins in chunk64_grad.cuh:
// variants `near`, for gates bounded by -5, bf16, one value head to a head of q.
//
// Blocks of 16 tokens have their middle as anchor, from which 8 tokens decay by at most e^-40, so
// that one factor of a row serves all pairs: q~ = s q e^(G_i - G_m), k~ = -beta k e^(G_i - G_m) and
// k^ = k e^(G_m - G_j), norms included, once each. Gradients go from anchor to anchor by the decay
// between (at most 1), and take up a block of pairs on each:
//   of q at block I:  (... (DO S B_0 + P_I0 k^) B_1 + ...) + P_II k^,   B_J = e^(G_mJ - G_mJ-1)
// dg is the sum over rows from r on of q~ dq + k~ dk_read - k^ dk_write, and what leaves the chunk:
// pairs whose rows are both behind r cancel, as both rows multiply the same rounded operands.
//   layout   as there; operands are fragments in shared memory, made once, read by both halves
//   loads    tiles of the next chunk come while pairs of this one meet; tensors by 16 bytes
//   bound    issue: some 50000 instructions of warps a chunk and head (counted in the code), where
//            other gates take 78000; one block of 16 warps to an SM, in all its shared memory
#pragma once

#include "lib/cuda/kda/chunk64_grad.cuh"

namespace plait::impl::cuda {

/// A chunk and head: elements from the heads of tensors to its first. `block` is not below the
/// number of blocks behind the last.
struct kda64_near_place {
    int64_t block, q, k, g, beta, d_o, dq, dk, dg, dbeta, h;
    int32_t rows;
    float rate;
};

/// The first chunk with tokens from `block` on.
__device__ __forceinline__ void kda64_put_place(const kda_chunk64_grad_args &a, int64_t block,
                                                kda64_near_place *to) {
    const kda_problem &p = a.p;
    // Records of 2^31 blocks are more than any memory, so that 32 bits number them.
    const auto heads = static_cast<uint32_t>(p.heads);
    for (; block < a.blocks; block += gridDim.x) {
        const auto n = static_cast<uint32_t>(block);
        const kda_chunk_place at =
            kda_chunk_of(p, a.table, a.chunks, a.slots, n / heads, kda64_rows);
        if (at.rows <= 0) continue;
        const int64_t h = n % heads;
        const auto of = [&](const kda_view &v) { return kda_at(v, at.row, at.token, h); };
        to->q = of(p.q), to->k = of(p.k), to->g = of(p.g), to->beta = of(p.beta);
        to->d_o = of(p.d_o), to->dq = of(p.dq), to->dk = of(p.dk), to->dg = of(p.dg);
        to->dbeta = of(p.dbeta), to->h = h, to->rows = at.rows;
        to->rate = kda_rate(p, a.in.a_log, h);
        break;
    }
    to->block = block;
}

/// 64 tokens of `Columns` channels as they are stored, eight channels an aligned access.
template <int Threads, int Columns>
__device__ __forceinline__ void kda64_copy_rows(const void *base, int64_t at, int64_t stride,
                                                int count, char *tile) {
    constexpr int units = Columns / 8, step = Threads / units;
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int row = self / units, column = self % units * 8;
    const auto *from = static_cast<const uint16_t *>(base) + at + row * stride + column;
    const shared_at to = shared_at_of(tile + kda64_at(Columns, row, column));
#pragma unroll
    for (int n = 0; n < 64 / step; ++n) {
        const bool there = row + n * step < count;
        async_copy<16>(to + n * kda64_tile_bytes(step, Columns), there ? from : base, there);
        from += step * stride;
    }
}

/// Gates to the logarithms of decays, of base 2, in place; 0 where nothing is.
__device__ __forceinline__ void kda64_to_logs(const kda_problem &p, float rate,
                                              const kda64_bias &bias, const kda64_items &items,
                                              float (&x)[4][4]) {
    const float y = -kda64_log2_e * rate;
    const float lower = kda64_log2_e * static_cast<float>(p.lower_bound);
    const float of_bias[2] = {y * bias.of[0], y * bias.of[1]};
    kda64_each(x, [&](float g, int, int i) {
        return lower * kda64_inverse(1.0f + kda64_exp2(__fmaf_rn(y, g, of_bias[i / 2])));
    });
    if (!items.whole)
        kda64_each(x, [&](float g, int t, int i) { return items.there(t, i) ? g : 0.0f; });
}

/// Sums over eight tokens, of which a lane has two: of lanes before it, behind it, of all.
struct kda64_eight_sums {
    float before, behind, all;
};
__device__ __forceinline__ kda64_eight_sums kda64_sum_eight(float two, int quad) {
    const float next = __shfl_xor_sync(0xffffffffu, two, 1), four = two + next;
    const float other = __shfl_xor_sync(0xffffffffu, four, 2);
    const float first = (quad & 1) != 0 ? next : 0.0f, second = (quad & 2) != 0 ? other : 0.0f;
    const float last = (quad & 1) != 0 ? 0.0f : next, later = (quad & 2) != 0 ? 0.0f : other;
    return {first + second, last + later, four + other};
}

/// Logarithms of decays to decays from the anchor of 16 tokens to each, in place; those between
/// anchors, and from and to the borders of the chunk, to `between` ([6][keys], see kda64_between).
template <int Keys>
__device__ __forceinline__ void kda64_to_anchored(const kda64_own &own, float (&x)[4][4],
                                                  float *between) {
    float all[2][4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const float d0 = x[t][2 * c], d1 = x[t][2 * c + 1];
            const kda64_eight_sums s = kda64_sum_eight(d0 + d1, own.quad);
            all[c][t] = s.all;
            // Before the anchor decays are of the tokens behind each.
            const float a0 = t % 2 ? s.before + d0 : -(s.behind + d1);
            const float a1 = t % 2 ? a0 + d1 : -s.behind;
            x[t][2 * c] = kda64_exp2(a0), x[t][2 * c + 1] = kda64_exp2(a1);
        }
    }
    if (own.quad != 0) return;
    float *to = between + 3 * own.half * Keys + own.channel;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        to[8 * c] = kda64_exp2(all[c][0]);
        to[Keys + 8 * c] = kda64_exp2(all[c][1] + all[c][2]);
        to[2 * Keys + 8 * c] = kda64_exp2(all[c][3]);
    }
}

/// B_0 .. B_4 of two channels: from the head to the first anchor, ..., from the last to the end.
template <int Keys>
__device__ __forceinline__ void kda64_between(const float *between, const kda64_own &own,
                                              float (&b)[5][2]) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        const float *from = between + own.channel + 8 * c;
        b[0][c] = from[0], b[1][c] = from[Keys], b[2][c] = from[2 * Keys] * from[3 * Keys];
        b[3][c] = from[4 * Keys], b[4][c] = from[5 * Keys];
    }
}

/// Fragments of q~, k~, k^ of 16 tokens and 16 channels as an operand A.
enum class kda64_factor { q, k_read, k_write };
template <int Keys>
__device__ __forceinline__ uint4 *kda64_factors_at(char *factors, const kda64_own &own,
                                                   kda64_factor which, int block) {
    return reinterpret_cast<uint4 *>(factors) +
           ((4 * static_cast<int>(which) + block) * (Keys / 16) + own.group) * 32 + own.lane;
}
template <int Keys>
__device__ __forceinline__ void kda64_take_factors(char *factors, const kda64_own &own,
                                                   kda64_factor which, int block,
                                                   uint32_t (&w)[4]) {
    const uint4 v = *kda64_factors_at<Keys>(factors, own, which, block);
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
}

/// Coefficients of two tokens.
__device__ __forceinline__ void kda64_take_two(const float *rows, float (&x)[2]) {
    const float2 v = *reinterpret_cast<const float2 *>(rows);
    x[0] = v.x, x[1] = v.y;
}

/// Operands of this thread's tokens; `ends`: what k^ writes to the state behind the chunk, decayed
/// until the second of the two anchors, between which is `between`.
template <int Keys>
__device__ __forceinline__ void
kda64_put_factors(const char *tile_q, const char *tile_k, scalar type_q, scalar type_k,
                  const float *rows, const float (&decays)[4][4], const float4 *slot,
                  const float (&write)[4][mma_items_d], const float *between, char *factors,
                  float (&ends)[2]) {
    float last[4];
    ends[0] = ends[1] = 0;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
        const kda64_own own = kda64_own_of<Keys>(); // again: cheaper than registers
        const float *at = rows + 32 * own.half + 16 * pair + 2 * own.quad;
        const auto put = [&](kda64_factor which, const uint32_t(&w)[4]) {
            *kda64_factors_at<Keys>(factors, own, which, 2 * own.half + pair) =
                make_uint4(w[0], w[1], w[2], w[3]);
        };
        uint32_t raw[4], w[4];
        if (pair > 0) {
            __syncwarp(); // else what both load waits in registers
            kda64_four(slot, last);
        }
        kda64_words<Keys>(tile_q, own, pair, raw);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float by[2];
            kda64_take_two(at + 8 * n, by);
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const float *d = &(pair + n < 2 ? decays[2 * pair + n] : last)[2 * c];
                w[2 * n + c] = round_pair<scalar::bf16>(
                    kda64_take<true>(raw[2 * n + c], 0, type_q) * (d[0] * by[0]),
                    kda64_take<true>(raw[2 * n + c], 1, type_q) * (d[1] * by[1]));
            }
        }
        put(kda64_factor::q, w);
        __syncwarp();
        kda64_words<Keys>(tile_k, own, pair, raw);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float by[2];
            kda64_take_two(at + 8 * n + 128, by);
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const float *d = &(pair + n < 2 ? decays[2 * pair + n] : last)[2 * c];
                w[2 * n + c] = round_pair<scalar::bf16>(
                    kda64_take<true>(raw[2 * n + c], 0, type_k) * (d[0] * by[0]),
                    kda64_take<true>(raw[2 * n + c], 1, type_k) * (d[1] * by[1]));
            }
        }
        put(kda64_factor::k_read, w);
        if (pair > 0) ends[0] *= between[0], ends[1] *= between[8];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float by[2];
            kda64_take_two(at + 8 * n + 64, by);
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const float *d = &(pair + n < 2 ? decays[2 * pair + n] : last)[2 * c];
                const float *x = &write[2 * pair + n][2 * c];
                const float one = kda64_inverse(d[0] * d[1]); // for both
                const uint32_t word = round_pair<scalar::bf16>(
                    kda64_take<true>(raw[2 * n + c], 0, type_k) * (d[1] * one * by[0]),
                    kda64_take<true>(raw[2 * n + c], 1, type_k) * (d[0] * one * by[1]));
                ends[c] = __fmaf_rn(kda64_take<true>(word, 0, scalar::bf16), x[0], ends[c]);
                ends[c] = __fmaf_rn(kda64_take<true>(word, 1, scalar::bf16), x[1], ends[c]);
                w[2 * n + c] = word;
            }
        }
        put(kda64_factor::k_write, w);
    }
}

/// What dg behind the chunk gets, from the tokens of each half, to [2][keys] of `totals`; behind
/// them are sums over values of S dS.
template <int Keys>
__device__ __forceinline__ void kda64_put_ends(const kda64_own &own, const float *between,
                                               const float (&ends)[2], float *totals) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        float end = ends[c];
        end += __shfl_xor_sync(0xffffffffu, end, 1);
        end += __shfl_xor_sync(0xffffffffu, end, 2);
        if (own.quad != 0) continue;
        const int channel = own.channel + 8 * c;
        const float *b = between + channel;
        const float second = b[2 * Keys] * b[3 * Keys];
        end *= own.half ? b[5 * Keys] : b[5 * Keys] * b[4 * Keys] * second;
        if (!own.half)
            end = __fmaf_rn(b[0] * b[Keys] * second * b[4 * Keys] * b[5 * Keys],
                            totals[2 * Keys + channel], end);
        totals[own.half * Keys + channel] = end;
    }
}

__device__ __forceinline__ void kda64_scale_tiles(float (*x)[mma_items_d], int tiles,
                                                  const float (&by)[2]) {
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
        x[t][0] *= by[0], x[t][1] *= by[0];
        x[t][2] *= by[1], x[t][3] *= by[1];
    }
}

/// What the pairs read.
struct kda64_near_inputs {
    const char *pairs_q, *pairs_k; ///< P and F, as they are
    char *factors;
    const float *between;
};

/// Pairs of two blocks: gradients of rows of this warp, of which rows of other blocks are decayed
/// on their way. Leaves those of q, of k read, of k written at the anchors of their blocks.
template <int Keys>
__device__ __forceinline__ void kda64_meet_blocks(const kda64_near_inputs &in, const kda64_own &own,
                                                  const float (&b)[5][2], kda64_gradients &d) {
    const int first = 2 * own.half;
    uint32_t q[4], k[4];
    kda64_scale_tiles(d.q, 4, b[0]);
    kda64_scale_tiles(d.read, 4, b[0]);
    kda64_scale_tiles(d.write, 4, b[4]);
    if (own.half) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            kda64_take_factors<Keys>(in.factors, own, kda64_factor::k_write, j, k);
#pragma unroll
            for (int i = 0; i < 2; ++i)
                kda64_read_rows(in.pairs_q, in.pairs_k, 32 + 16 * i, 16 * j, own.lane, k,
                                d.q[2 * i], d.q[2 * i + 1], d.read[2 * i], d.read[2 * i + 1]);
            kda64_scale_tiles(d.q, 4, b[j + 1]);
            kda64_scale_tiles(d.read, 4, b[j + 1]);
        }
    } else {
#pragma unroll
        for (int i = 3; i >= 2; --i) {
            kda64_take_factors<Keys>(in.factors, own, kda64_factor::q, i, q);
            kda64_take_factors<Keys>(in.factors, own, kda64_factor::k_read, i, k);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                kda64_write_rows(in.pairs_q, in.pairs_k, 16 * i, 16 * j, own.lane, q, k,
                                 d.write[2 * j], d.write[2 * j + 1]);
            kda64_scale_tiles(d.write, 4, b[i]);
        }
    }
    const float next[2] = {own.half ? b[3][0] : b[1][0], own.half ? b[3][1] : b[1][1]};
    const int row = 16 * first;
    kda64_take_factors<Keys>(in.factors, own, kda64_factor::k_write, first, k);
    kda64_read_rows(in.pairs_q, in.pairs_k, row + 16, row, own.lane, k, d.q[2], d.q[3], d.read[2],
                    d.read[3]);
    kda64_scale_tiles(d.q + 2, 2, next);
    kda64_scale_tiles(d.read + 2, 2, next);
    kda64_take_factors<Keys>(in.factors, own, kda64_factor::q, first + 1, q);
    kda64_take_factors<Keys>(in.factors, own, kda64_factor::k_read, first + 1, k);
    kda64_write_rows(in.pairs_q, in.pairs_k, row + 16, row, own.lane, q, k, d.write[0], d.write[1]);
    kda64_scale_tiles(d.write, 2, next);
}

/// Which of the two elements of a word of B, row 2 quad and the next, column `row`, are to stay.
__device__ __forceinline__ uint32_t kda64_keep(bool first, bool second) {
    return (first ? 0x0000ffffu : 0u) | (second ? 0xffff0000u : 0u);
}

/// Pairs within a block of 16 tokens, tiles 2 pair and the next. z: what a row adds to dg of rows
/// until its own; pairs of a token with itself, which enter no dg, come behind it.
template <int Keys>
__device__ __forceinline__ void kda64_meet_within(const kda64_near_inputs &in, const kda64_own &own,
                                                  int pair, kda64_gradients &d, float (&z)[4][4]) {
    const int row = 16 * (2 * own.half + pair), first = 2 * own.quad;
    const uint32_t below = kda64_keep(first < own.row, first + 1 < own.row);
    const uint32_t above = kda64_keep(first > own.row, first + 1 > own.row);
    const uint32_t same = kda64_keep(first == own.row, first + 1 == own.row);
    float(&q0)[mma_items_d] = d.q[2 * pair], (&q1)[mma_items_d] = d.q[2 * pair + 1];
    float(&r0)[mma_items_d] = d.read[2 * pair], (&r1)[mma_items_d] = d.read[2 * pair + 1];
    float(&w0)[mma_items_d] = d.write[2 * pair], (&w1)[mma_items_d] = d.write[2 * pair + 1];
    const int block = 2 * own.half + pair;
    uint32_t q[4], k[4], lower[4], b[4];
    kda64_take_factors<Keys>(in.factors, own, kda64_factor::k_write, block, lower);
    kda64_take_factors<Keys>(in.factors, own, kda64_factor::q, block, q);
    kda64_take_factors<Keys>(in.factors, own, kda64_factor::k_read, block, k);
    const int at = kda64_at_b(64, row, row, own.lane), turned = kda64_at_bt(64, row, row, own.lane);
    load_matrices(b, in.pairs_k + at);
    mma_add<scalar::bf16>(r0, lower, {b[0] & below, 0u});
    mma_add<scalar::bf16>(r1, lower, {b[2], b[3] & below});
    load_matrices_transposed(b, in.pairs_k + turned);
    mma_add<scalar::bf16>(w0, k, {b[0] & above, b[1]});
    mma_add<scalar::bf16>(w1, k, {0u, b[3] & above});
    load_matrices_transposed(b, in.pairs_q + turned);
    mma_add<scalar::bf16>(w0, q, {b[0] & above, b[1]});
    mma_add<scalar::bf16>(w1, q, {0u, b[3] & above});
    load_matrices(b, in.pairs_q + at);
    mma_add<scalar::bf16>(q0, lower, {b[0] & below, 0u});
    mma_add<scalar::bf16>(q1, lower, {b[2], b[3] & below});
#pragma unroll
    for (int t = 0; t < 2; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const auto take = [&](const uint32_t(&w)[4]) {
                return kda64_take<true>(w[2 * t + i / 2], i % 2, scalar::bf16);
            };
            const int n = 2 * pair + t;
            z[n][i] = __fmaf_rn(take(q), d.q[n][i],
                                __fmaf_rn(take(k), d.read[n][i], -take(lower) * d.write[n][i]));
        }
    }
    mma_add<scalar::bf16>(q0, lower, {b[0] & same, 0u});
    mma_add<scalar::bf16>(q1, lower, {0u, b[3] & same});
    mma_add<scalar::bf16>(w0, q, {b[0] & same, 0u});
    mma_add<scalar::bf16>(w1, q, {0u, b[3] & same});
}

/// Gradients at the anchors to those of q and of k as they are stored, but for their norms: in q
/// and read.
template <int Keys>
__device__ __forceinline__ void kda64_from_anchors(const kda64_own &own, const float *rows,
                                                   const float (&decays)[4][4], const float4 *slot,
                                                   kda64_gradients &d) {
    float last[4];
    kda64_four(slot, last);
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        float of_q[2], of_k[2], of_w[2];
        const float *at = rows + 32 * own.half + 8 * t + 2 * own.quad;
        kda64_take_two(at, of_q), kda64_take_two(at + 64, of_k), kda64_take_two(at + 128, of_w);
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const float e[2] = {kda64_anew(t < 3 ? decays[t][i] : last[i]),
                                kda64_anew(t < 3 ? decays[t][i + 1] : last[i + 1])};
            const float one = kda64_inverse(e[0] * e[1]);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                d.q[t][i + n] *= e[n] * of_q[n];
                d.read[t][i + n] = __fmaf_rn(d.read[t][i + n], e[n] * of_w[n],
                                             d.write[t][i + n] * (e[1 - n] * of_k[n] * one));
            }
        }
    }
}

/// z to its sums over rows from each on, within the 32 tokens of the warp; `all` of them.
__device__ __forceinline__ void kda64_sum_later(const kda64_own &own, float (&z)[4][4],
                                                float (&all)[2]) {
    all[0] = all[1] = 0;
#pragma unroll
    for (int t = 3; t >= 0; --t) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const kda64_eight_sums s = kda64_sum_eight(z[t][2 * c] + z[t][2 * c + 1], own.quad);
            z[t][2 * c + 1] += s.behind + all[c];
            z[t][2 * c] += z[t][2 * c + 1];
            all[c] += s.all;
        }
    }
}

/// P and w u^T of 16 x 16 tokens as they are, and <w, u> of each token to `dots`.
__device__ __forceinline__ void kda64_put_raw_pairs(const kda64_row_pairs &x, int row, int column,
                                                    int lane, char *pairs, float *dots) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const mma_place in = mma_place_d(lane, e);
            const int i = row + in.row, j = column + 8 * n + in.column;
            char *to = pairs + kda64_at(64, i, j);
            *reinterpret_cast<uint32_t *>(to) = round_pair<scalar::bf16>(x.p[n][e], x.p[n][e + 1]);
            *reinterpret_cast<uint32_t *>(to + kda64_tile_bytes(64, 64)) =
                round_pair<scalar::bf16>(x.f[n][e], x.f[n][e + 1]);
            if (i == j) dots[i] = x.f[n][e];
            if (i == j + 1) dots[i] = x.f[n][e + 1];
        }
    }
}

/// As kda64_put_rows, and dbeta: <w, u> of each token waits where the coefficient of w S goes.
__device__ __forceinline__ void kda64_put_near_rows(const kda_chunk64_grad_args &a,
                                                    const kda64_near_place &here,
                                                    uint32_t beta_bits, const float *squares,
                                                    float *rows) {
    const kda_problem &p = a.p;
    const int self = kda64_anew(static_cast<int>(threadIdx.x)), row = self % 64;
    if (self >= 128) return;
    float norm = 0;
    if (row < here.rows) norm = p.norm ? kda_inverse_norm(p, squares[self]) : 1.0f;
    rows[self] = self < 64 ? norm * static_cast<float>(p.scale) : norm;
    rows[192 + self] = p.norm ? norm * norm : 0.0f;
    if (self < 64) return;
    float beta = 0;
    if (row < here.rows) {
        const float raw = kda_widen(beta_bits, p.beta.type), dot = rows[64 + self];
        beta = kda_beta_of(p, raw);
        if (fabsf(beta) < a.least_beta) beta = a.least_beta;
        if (a.dbeta != nullptr)
            kda_store(a.dbeta, here.dbeta + row * p.dbeta.t, p.dbeta.type,
                      p.beta_logit ? kda_sigmoid(-raw) * dot : dot / beta);
    }
    rows[64 + self] = -beta * norm;
}

/// Where a warp exchanges 32 tokens of its 16 channels among its lanes: fragments that no other
/// warp reads, in two pieces of 16 tokens. Two units of 16 bytes are a token; they change places
/// by fours of tokens, for the banks.
template <int Keys>
__device__ __forceinline__ char *kda64_stage_at(char *factors, const kda64_own &own, int piece) {
    return reinterpret_cast<char *>(
        kda64_factors_at<Keys>(factors, own, own.half ? kda64_factor::k_write : kda64_factor::q,
                               2 * own.half + piece) -
        own.lane);
}
__device__ __forceinline__ int kda64_stage_unit(int token, int unit) {
    return 32 * token + 16 * (unit ^ (token >> 2 & 1));
}
/// Where a lane points for ldmatrix and stmatrix, words as those of kda64_words.
__device__ __forceinline__ int kda64_stage_lane(int lane) {
    return kda64_stage_unit((lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
}

/// The unit of 8 channels that a lane has in memory, of token lane / 2 of a piece.
__device__ __forceinline__ int64_t kda64_unit_of(const kda64_own &own, int64_t stride) {
    return (32 * own.half + own.lane / 2) * stride + 16 * own.group + own.lane % 2 * 8;
}

/// Units of stored bf16 on their way.
__device__ __forceinline__ void kda64_fetch_units(const void *base, const kda_view &v, int64_t at,
                                                  const kda64_own &own, uint4 (&x)[2]) {
    const auto *from = static_cast<const uint16_t *>(base) + at + kda64_unit_of(own, v.t);
    x[0] = __ldg(reinterpret_cast<const uint4 *>(from));
    x[1] = __ldg(reinterpret_cast<const uint4 *>(from + 16 * v.t));
}
/// Each element to the thread that needs it.
template <int Keys>
__device__ __forceinline__ void kda64_spread_units(char *factors, const kda64_own &own,
                                                   const uint4 (&units)[2], float (&x)[4][4]) {
    __syncwarp(); // what the pieces held is read
    const int unit = kda64_stage_unit(own.lane / 2, own.lane % 2);
#pragma unroll
    for (int n = 0; n < 2; ++n)
        *reinterpret_cast<uint4 *>(kda64_stage_at<Keys>(factors, own, n) + unit) = units[n];
    __syncwarp(); // units are written
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        uint32_t w[4];
        load_matrices_transposed(w, kda64_stage_at<Keys>(factors, own, n) +
                                        kda64_stage_lane(own.lane));
#pragma unroll
        for (int i = 0; i < 8; ++i)
            x[2 * n + i / 4][i % 4] = kda64_take<true>(w[i / 2], i % 2, scalar::bf16);
    }
}

template <int Keys>
__device__ __forceinline__ void
kda64_put_items(bool wide, void *base, const kda_view &v, int64_t at, const kda64_own &own,
                const kda64_items &items, float4 *slot, char *factors, const float (&x)[4][4]) {
    if (!wide) {
        kda64_store_items(base, v.type, items, slot, x);
        return;
    }
    __syncwarp(); // what the pieces held is read
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        uint32_t w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            w[i] = round_pair<scalar::bf16>(x[2 * n + i / 2][i % 2 * 2],
                                            x[2 * n + i / 2][i % 2 * 2 + 1]);
        store_matrices_transposed(w, kda64_stage_at<Keys>(factors, own, n) +
                                         kda64_stage_lane(own.lane));
    }
    __syncwarp(); // units are written
    auto *to = static_cast<uint16_t *>(base) + at + kda64_unit_of(own, v.t);
    const int unit = kda64_stage_unit(own.lane / 2, own.lane % 2);
#pragma unroll
    for (int n = 0; n < 2; ++n)
        *reinterpret_cast<uint4 *>(to + 16 * n * v.t) =
            *reinterpret_cast<const uint4 *>(kda64_stage_at<Keys>(factors, own, n) + unit);
}

/// dg and what all rows lack of it to the gradient of what is stored (x), in place; sums for
/// DT_BIAS and A_LOG.
__device__ __forceinline__ void kda64_bounded_back(const kda_problem &p, float rate,
                                                   const kda64_bias &bias, const kda64_items &items,
                                                   const float (&x)[4][4], const float (&later)[2],
                                                   float (&g)[4][4], float (&of_bias)[2],
                                                   float &of_a) {
    const float factor = static_cast<float>(p.lower_bound) * rate, y = kda64_log2_e * rate;
    const float add[2] = {y * bias.of[0], y * bias.of[1]};
    of_bias[0] = of_bias[1] = of_a = 0;
    kda64_each(g, [&](float dg, int t, int i) {
        // s (1 - s) of a sigmoid s without a difference: both from the same exponential.
        const float e = kda64_exp2(-fabsf(__fmaf_rn(y, x[t][i], add[i / 2])));
        const float one = kda64_inverse(1.0f + e);
        float dx = factor * (dg + later[i / 2]) * (e * one * one);
        if (!items.whole && !items.there(t, i)) dx = 0;
        of_a = __fmaf_rn(dx, x[t][i], of_a);
        of_bias[i / 2] += dx;
        return dx;
    });
    of_a = __fmaf_rn(of_bias[0], bias.of[0], __fmaf_rn(of_bias[1], bias.of[1], of_a));
}

/// Gradients through the norm, in place: minus the row times `along`.
template <int Keys>
__device__ __forceinline__ void kda64_less_along(const kda64_own &own, const char *tile,
                                                 scalar type, const float *along,
                                                 float (&dx)[4][mma_items_d]) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
        uint32_t w[4];
        kda64_words<Keys>(tile, own, pair, w);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int t = 2 * pair + n;
            float sum[2];
            kda64_take_two(along + 32 * own.half + 8 * t + 2 * own.quad, sum);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                dx[t][i] = __fmaf_rn(-kda64_take<true>(w[2 * n + i / 2], i % 2, type), sum[i % 2],
                                     dx[t][i]);
        }
    }
}

template <int Keys>
__global__ void __launch_bounds__(kda64_grad_threads(Keys), kda64_grad_blocks(Keys, true))
    kda_chunk64_grad_near(const __grid_constant__ kda_chunk64_grad_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    constexpr int threads = kda64_grad_threads(Keys), warps = threads / 32;
    const kda_problem &p = a.p;
    constexpr kda64_grad_near_shared s = kda64_grad_near_shared_of(Keys);
    auto *counter = reinterpret_cast<uint64_t *>(shared + s.counter);
    auto *rows = reinterpret_cast<float *>(shared + s.rows);
    auto *dots = rows + 128; // until coefficients take their place
    auto *biases = reinterpret_cast<float *>(shared + s.bias);
    auto *between = reinterpret_cast<float *>(shared + s.between);
    auto *totals = reinterpret_cast<float *>(shared + s.totals);
    auto *places = reinterpret_cast<kda64_near_place *>(shared + s.places);
    auto *parts = reinterpret_cast<float *>(shared + s.parts); // [2][keys / 16][64]
    const auto own_slot = [&] {
        return reinterpret_cast<float4 *>(shared + s.slots) +
               kda64_anew(static_cast<int>(threadIdx.x));
    };
    constexpr int keeper = threads - 1; // of places: its warp has none of the products of rows
    if (threadIdx.x == 0) counter_init(counter), counter_init(counter + 1);
    if (threadIdx.x == keeper) kda64_put_place(a, blockIdx.x, places);
    // Tiles of the next chunk come while this one's pairs meet.
    const auto load = [&](const kda64_near_place &of) {
        if (of.block >= a.blocks) return;
        if (threadIdx.x == 0) {
            const auto rows_of = static_cast<uint32_t>(kda64_tile_bytes(a.values, 64));
            const auto bytes = static_cast<uint32_t>(kda64_tile_bytes(a.values, Keys));
            counter_expect(counter, 2 * rows_of);
            bulk_load(shared + s.written, a.written + of.block * rows_of, rows_of, counter);
            bulk_load(shared + s.adjoints, a.adjoints + of.block * rows_of, rows_of, counter);
            counter_expect(counter + 1, 2 * bytes);
            bulk_load(shared + s.states, a.states + of.block * bytes, bytes, counter + 1);
            bulk_load(shared + s.gradients, a.gradients + of.block * bytes, bytes, counter + 1);
        }
        if (a.vector_o && p.dim_v == Keys)
            kda64_copy_rows<threads, Keys>(a.d_o, of.d_o, p.d_o.t, of.rows, shared + s.d_o);
        else
            kda64_load_rows<threads, true>(p.d_o, a.d_o, of.d_o, of.rows, p.dim_v, a.values,
                                           a.vector_o, shared + s.d_o);
        async_commit();
    };
    bulk_fence();
    __syncthreads(); // counters and the first place are there
    load(places[0]);
    for (uint32_t phase = 0;; phase ^= 1) {
        async_wait<0>();
        __syncthreads(); // DO and the place are there; what else shared memory held is read
        const kda64_near_place &here = places[phase], &next = places[phase ^ 1];
        if (here.block >= a.blocks) break;
        int self = kda64_anew(static_cast<int>(threadIdx.x));
        kda64_own own = kda64_own_of<Keys>();
        const auto load_keys = [&](const kda_view &v, const void *base, int64_t at, bool vector,
                                   char *tile) {
            if (vector && p.dim_k == Keys)
                kda64_copy_rows<threads, Keys>(base, at, v.t, here.rows, tile);
            else
                kda64_load_rows<threads, false>(v, base, at, here.rows, p.dim_k, Keys, vector,
                                                tile);
        };
        load_keys(p.q, a.in.q, here.q, a.vector_q, shared + s.q);
        load_keys(p.k, a.in.k, here.k, a.vector_k, shared + s.k);
        async_commit();
        uint32_t beta_bits = 0; // of row self - 64; on its way until rows are written
        if (self >= 64 && self - 64 < here.rows)
            beta_bits = kda_load_bits(a.in.beta, here.beta + (self - 64) * p.beta.t, p.beta.type);
        float bias_of = 0;
        if (self < p.dim_k) bias_of = kda_bias(p, a.in.dt_bias, here.h, self);
        uint4 units[2];
        const auto wide_g = [&] { return a.wide_g && p.dim_k == Keys && here.rows == 64; };
        const auto spread = [&](const kda64_items &items, float(&x)[4][4]) {
            if (wide_g())
                kda64_spread_units<Keys>(shared + s.factors, own, units, x);
            else
                kda64_load_items(a.in.g, p.g.type, items, own_slot(), x);
        };
        if (wide_g()) kda64_fetch_units(a.in.g, p.g, here.g, own, units);
        if (self == keeper) kda64_put_place(a, here.block + gridDim.x, &places[phase ^ 1]);
        counter_wait(counter, phase);
#    pragma unroll 1
        for (int job = self / 32; job < 10; job += warps) {
            const int m = job < 1 ? 0 : job < 3 ? 1 : job < 6 ? 2 : 3;
            const int row = 16 * m, column = 16 * (job - m * (m + 1) / 2);
            kda64_row_pairs x;
            kda64_rows_with_rows(shared + s.d_o, shared + s.written, shared + s.adjoints, a.values,
                                 row, column, own.lane, x);
            kda64_put_raw_pairs(x, row, column, own.lane, shared + s.pairs, dots);
        }
        counter_wait(counter + 1, phase);
        kda64_gradients d = {};
        float state_dots[2];
        kda64_rows_with_states<Keys>(s, shared, a.values, own, d, state_dots);
        if (own.quad == own.row / 2)
            totals[2 * Keys + own.channel + 8 * own.half] =
                own.half ? state_dots[1] : state_dots[0];
        if (self < Keys) biases[self] = bias_of;
        async_wait<0>();
        bulk_fence();
        __syncthreads(); // q, k, biases, pairs, the next place are there, tiles of states and
                         // values read
        load(next);
        self = kda64_anew(static_cast<int>(threadIdx.x));
        own = kda64_own_of<Keys>();
        if (self < 256) {
            kda64_put_squares<Keys, true>(shared + s.q, shared + s.k, p.q.type, p.k.type, parts);
            part_barrier(1, 256); // squares are written
            kda64_put_near_rows(a, here, beta_bits, parts, rows);
        }
        float decays[4][4];
        const auto bias = [&] {
            return kda64_bias{{biases[own.channel], biases[own.channel + 8]}};
        };
        {
            const kda64_items items = kda64_items_at<Keys>(p, p.g, here.g, here.rows, own);
            spread(items, decays);
            kda64_to_logs(p, here.rate, bias(), items, decays);
        }
        kda64_to_anchored<Keys>(own, decays, between);
        *own_slot() = make_float4(decays[3][0], decays[3][1], decays[3][2], decays[3][3]);
        __syncthreads(); // rows and decays between anchors are written
        own = kda64_own_of<Keys>();
        const kda64_near_inputs in = {shared + s.pairs, shared + s.pairs + kda64_tile_bytes(64, 64),
                                      shared + s.factors, between};
        float ends[2];
        kda64_put_factors<Keys>(
            shared + s.q, shared + s.k, p.q.type, p.k.type, rows, decays, own_slot(), d.write,
            between + (own.half ? 4 : 1) * Keys + own.channel, shared + s.factors, ends);
        own = kda64_own_of<Keys>();
        kda64_put_ends<Keys>(own, between, ends, totals);
        __syncthreads(); // factors are written
        own = kda64_own_of<Keys>();
        float z[4][4];
        {
            float b[5][2];
            kda64_between<Keys>(between, own, b);
            kda64_meet_blocks<Keys>(in, own, b, d);
        }
        own = kda64_own_of<Keys>();
        kda64_meet_within<Keys>(in, own, 0, d, z);
        own = kda64_own_of<Keys>();
        kda64_meet_within<Keys>(in, own, 1, d, z);
        own = kda64_own_of<Keys>();
        float all[2];
        kda64_sum_later(own, z, all);
        kda64_from_anchors<Keys>(own, rows, decays, own_slot(), d);
        if (own.quad == 0 && own.half) {
            totals[3 * Keys + own.channel] = all[0];
            totals[3 * Keys + own.channel + 8] = all[1];
        }
        kda64_put_along<Keys, true>(own, shared + s.q, p.q.type, d.q, parts);
        kda64_put_along<Keys, true>(own, shared + s.k, p.k.type, d.read, parts + 4 * Keys);
        if (wide_g()) kda64_fetch_units(a.in.g, p.g, here.g, own, units);
        __syncthreads(); // sums over 32 tokens and parts of those over channels are there
        self = kda64_anew(static_cast<int>(threadIdx.x));
        own = kda64_own_of<Keys>();
        float later[2], of_bias[2], of_a;
#    pragma unroll
        for (int c = 0; c < 2; ++c) {
            const float *from = totals + own.channel + 8 * c;
            later[c] = from[0] + from[Keys] + (own.half ? 0.0f : from[3 * Keys]);
        }
        {
            const kda64_items items = kda64_items_at<Keys>(p, p.g, here.g, here.rows, own);
            float x[4][4];
            spread(items, x);
            kda64_bounded_back(p, here.rate, bias(), items, x, later, z, of_bias, of_a);
        }
        const auto put = [&](bool wide, void *base, const kda_view &v, int64_t at,
                             const float(&y)[4][4]) {
            if (base == nullptr) return;
            const kda64_items items = kda64_items_at<Keys>(p, v, at, here.rows, own);
            kda64_put_items<Keys>(wide && items.whole, base, v, at, own, items, own_slot(),
                                  shared + s.factors, y);
        };
        put(a.wide_dg, a.dg, p.dg, here.dg, z);
#    pragma unroll
        for (int c = 0; c < 2; ++c) {
            of_bias[c] += __shfl_xor_sync(0xffffffffu, of_bias[c], 1);
            of_bias[c] += __shfl_xor_sync(0xffffffffu, of_bias[c], 2);
        }
        of_a = kda_warp_sum(of_a);
        // Where decays between anchors were.
        if (own.quad == 0) {
            between[own.half * Keys + own.channel] = of_bias[0];
            between[own.half * Keys + own.channel + 8] = of_bias[1];
        }
        if (own.lane == 0) between[2 * Keys + self / 32] = of_a;
        if (self < 128)
            rows[self] =
                rows[192 + self] * kda64_part_sum<Keys>(parts + self / 64 * 4 * Keys, self % 64);
        __syncthreads(); // all sums are there
        own = kda64_own_of<Keys>();
        if (a.partials != nullptr) {
            float *to = a.partials + here.block * (Keys + 1);
            if (self < Keys) to[self] = between[self] + between[Keys + self];
            if (self == Keys) {
                float sum = 0;
                for (int w = 0; w < warps; ++w) sum += between[2 * Keys + w];
                to[Keys] = sum;
            }
        }
        kda64_less_along<Keys>(own, shared + s.q, p.q.type, rows, d.q);
        put(a.wide_dq, a.dq, p.dq, here.dq, d.q);
        kda64_less_along<Keys>(own, shared + s.k, p.k.type, rows + 64, d.read);
        put(a.wide_dk, a.dk, p.dk, here.dk, d.read);
    }
#endif
}

} // namespace plait::impl::cuda
