// What the kernels of kda.bwd_c16_* read and write of a call's tensors: which tokens a block has,
// rows of q, k and gates in f32.
#pragma once

#include "lib/cuda/kda/chunk16_tiles.cuh"
#include "lib/cuda/kda/common.cuh"

namespace plait::impl::cuda {

/// Tokens of a chunk, and the value head of a block.
struct kda_c16_spot {
    int64_t batch, first; ///< the first token
    int64_t at;           ///< slot * value heads + value head
    int count, hv, head;  ///< no tokens: there is no such chunk
};

__device__ __forceinline__ kda_c16_spot kda_c16_spot_of(const kda_c16_args &a, int64_t block) {
    const kda_problem &p = a.problem;
    const int64_t slot = block / p.value_heads;
    kda_c16_spot s{};
    s.at = block;
    s.hv = static_cast<int>(block - slot * p.value_heads);
    s.head = static_cast<int>(s.hv / p.group());
    const kda_chunk_place c = kda_chunk_of(p, a.table, a.chunks, nullptr, slot, kda_c16);
    s.batch = c.row;
    s.first = c.token;
    s.count = c.rows;
    return s;
}

/// Where token i of the chunk begins in a tensor.
__device__ __forceinline__ int64_t kda_c16_row(const kda_view &v, const kda_c16_spot &s, int head,
                                               int i) {
    return s.batch * v.b + (s.first + i) * v.t + head * v.h;
}

/// What the gate is a function of.
__device__ __forceinline__ float kda_c16_gate_input(const kda_c16_args &a, const kda_c16_spot &s,
                                                    int64_t row, int channel) {
    const kda_problem &p = a.problem;
    return kda_load(a.g, row + channel * p.g.c, p.g.type) + kda_bias(p, a.dt_bias, s.hv, channel);
}

/// A row of q or k to shared memory: normed, zeros behind the chunk and its channels.
__device__ __forceinline__ void kda_c16_load_row(const kda_problem &p, const kda_view &v,
                                                 const void *base, int64_t row, bool there,
                                                 int padded, float *to) {
    float squares = 0;
    for (int c = kda_lane(); c < padded; c += 32) {
        const float x = there && c < p.dim_k ? kda_load(base, row + c * v.c, v.type) : 0.0f;
        squares += x * x;
        to[c] = x;
    }
    if (!p.norm) return;
    const float r = kda_inverse_norm(p, kda_warp_sum(squares));
    for (int c = kda_lane(); c < padded; c += 32) to[c] *= r;
}

/// Rows of q, k and g behind one another, beta: every warp four tokens.
__device__ __forceinline__ void kda_c16_load(const kda_c16_args &a, const kda_c16_spot &s,
                                             float *rows, float *beta) {
    const kda_problem &p = a.problem;
    const int pitch = kda_c16_pitch(a.kt), padded = 16 * a.kt;
    const float rate = kda_rate(p, a.a_log, s.hv);
    for (int i = kda_warp(); i < kda_c16; i += kda_c16_warps) {
        const bool there = i < s.count;
        float *q = rows + i * pitch, *k = q + kda_c16 * pitch, *g = k + kda_c16 * pitch;
        kda_c16_load_row(p, p.q, a.q, kda_c16_row(p.q, s, s.head, i), there, padded, q);
        kda_c16_load_row(p, p.k, a.k, kda_c16_row(p.k, s, s.head, i), there, padded, k);
        const int64_t row = kda_c16_row(p.g, s, s.hv, i);
        for (int c = kda_lane(); c < padded; c += 32)
            g[c] = there && c < p.dim_k ? kda_gate_of(p, rate, kda_c16_gate_input(a, s, row, c))
                                        : 0.0f;
        if (kda_lane() != 0) continue;
        const int64_t at = kda_c16_row(p.beta, s, s.hv, i);
        beta[i] = there ? kda_beta_of(p, kda_load(a.beta, at, p.beta.type)) : 0.0f;
    }
}

/// Binary anchors: at level b, tokens come in blocks of 2^(b+1), whose upper half begins at the
/// anchor. The pairs of a level are those of an upper and a lower token of one block; every pair is
/// of one level. e^ of the gates between a token and the anchor is at most 1 on both sides, and
/// sums of gates, not differences of sums, are its logarithm: no gate is lost beside another.
__device__ __forceinline__ float kda_c16_level_decay(const float *g, int pitch, int token,
                                                     int level) {
    const int anchor = ((token >> level) | 1) << level;
    const int from = min(token, anchor), to = max(token, anchor);
    float sum = 0;
#pragma unroll
    for (int d = 1; d <= 8; ++d)
        if (d <= 1 << level && from + d <= to) sum += g[(from + d) * pitch];
    return expf(sum);
}

/// 31 for i == j.
__device__ __forceinline__ int kda_c16_level(int i, int j) { return 31 - __clz(i ^ j); }

} // namespace plait::impl::cuda
