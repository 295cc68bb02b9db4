// kda.bwd_finish: rows of sums to gradients. A block has 32 tokens of a row of the call and a value
// head: a thread a key adds up the tiles of dg, takes it through the gate and adds up what DT_BIAS
// and A_LOG get; dbeta likewise; the first value head of a group adds up dq and dk of all of them,
// a warp a token, and takes them through the norm, in f64. Tokens of nobody are left to kda.gaps.
// kda.bwd_params: DT_BIAS and A_LOG over blocks of tokens: 8 strands a key, then these in order.
// Every sum has an order that the problem alone decides. Bound: the traffic of rows, read once
// (twice for dq and dk of normed rows).
#pragma once

#include "lib/cuda/kda/bwd_recurrent_layout.h"
#include "lib/cuda/kda/common.cuh"

namespace plait::impl::cuda {

/// An entry of the rows of one token and head, added up over tiles.
__device__ __forceinline__ float kda_bwd_sum(const kda_bwd_finish_args &a, int64_t token,
                                             int64_t hv, int64_t entry) {
    const kda_problem &p = a.problem;
    float sum = 0;
    for (int64_t tile = 0; tile < a.tiles; ++tile)
        sum += a.rows[((tile * p.batch * p.length + token) * p.value_heads + hv) *
                          kda_bwd_row(a.pitch) +
                      entry];
    return sum;
}
/// Over the value heads of a head of q and k.
__device__ __forceinline__ float kda_bwd_group_sum(const kda_bwd_finish_args &a, int64_t token,
                                                   int64_t hv, int64_t entry) {
    float sum = 0;
    for (int64_t x = 0; x < a.problem.group(); ++x) sum += kda_bwd_sum(a, token, hv + x, entry);
    return sum;
}

/// A row of dq (first = 0) or dk (first = pitch), by a warp.
__device__ __forceinline__ void kda_bwd_normed(const kda_bwd_finish_args &a, const kda_view &from,
                                               const void *base, const kda_view &to, void *out,
                                               int64_t row, int64_t t, int64_t hv, int64_t first,
                                               float scale) {
    if (!to.used()) return;
    const kda_problem &p = a.problem;
    const int64_t token = row * p.length + t, h = hv / p.group();
    const int64_t at = kda_at(from, row, t, h), lane = threadIdx.x % 32;
    if (!p.norm) {
        for (int64_t i = lane; i < p.dim_k; i += 32)
            kda_store(out, kda_at(to, row, t, h) + i * to.c, to.type,
                      scale * kda_bwd_group_sum(a, token, hv, first + i));
        return;
    }
    // What is not along the row may be 1e-6 of two terms where there are few keys.
    double squares = 0, dot = 0;
    for (int64_t i = lane; i < p.dim_k; i += 32) {
        const double x = kda_load(base, at + i * from.c, from.type);
        squares += x * x;
        dot += x * (scale * kda_bwd_group_sum(a, token, hv, first + i));
    }
    squares = kda_warp_sum(squares) + p.eps;
    const double inverse = 1 / sqrt(squares), along = kda_warp_sum(dot) / squares;
    for (int64_t i = lane; i < p.dim_k; i += 32) {
        const double dy = scale * kda_bwd_group_sum(a, token, hv, first + i);
        const double x = kda_load(base, at + i * from.c, from.type);
        kda_store(out, kda_at(to, row, t, h) + i * to.c, to.type,
                  static_cast<float>(inverse * (dy - x * along)));
    }
}

__global__ void __launch_bounds__(kda_bwd_finish_threads)
    kda_bwd_finish(const __grid_constant__ kda_bwd_finish_args a) {
    extern __shared__ __align__(16) char shared[];
    int *lives = reinterpret_cast<int *>(shared);
    float *words = reinterpret_cast<float *>(shared) + kda_bwd_finish_tokens;
    const kda_problem &p = a.problem;
    const int self = static_cast<int>(threadIdx.x);
    const int64_t in_row = kda_ceil_div(p.length, kda_bwd_finish_tokens);
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int64_t place = block / p.value_heads, hv = block - place * p.value_heads;
        const int64_t row = place / in_row, first = (place - row * in_row) * kda_bwd_finish_tokens;
        const int64_t left = p.length - first;
        const int count =
            static_cast<int>(left < kda_bwd_finish_tokens ? left : kda_bwd_finish_tokens);
        __syncthreads(); // the block before has read what is shared
        if (self < count) lives[self] = kda_token_lives(p, a.table, nullptr, row, first + self);
        __syncthreads(); // it is known who lives

        const float rate = kda_rate(p, a.a_log, hv);
        float *sums =
            a.sums == nullptr ? nullptr : a.sums + (place * p.value_heads + hv) * (p.dim_k + 1);
        float of_a_log = 0;
        for (int64_t i = self; i < p.dim_k; i += kda_bwd_finish_threads) {
            const float bias = kda_bias(p, a.dt_bias, hv, i);
            float of_bias = 0;
            for (int x = 0; x < count; ++x) {
                if (!lives[x]) continue;
                const int64_t t = first + x;
                const float g = kda_load(a.g, kda_at(p.g, row, t, hv) + i * p.g.c, p.g.type) + bias;
                const float dg = kda_bwd_sum(a, row * p.length + t, hv, 2 * a.pitch + i);
                const float dx = kda_gate_adjoint(p, rate, g, dg, &of_a_log);
                of_bias += dx;
                if (p.dg.used())
                    kda_store(a.dg, kda_at(p.dg, row, t, hv) + i * p.dg.c, p.dg.type, dx);
            }
            if (a.sums != nullptr) sums[i] = of_bias;
        }
        if (self < count && lives[self] && p.dbeta.used()) {
            const int64_t t = first + self;
            const float b = kda_load(a.beta, kda_at(p.beta, row, t, hv), p.beta.type);
            const float dbeta = kda_bwd_sum(a, row * p.length + t, hv, 3 * a.pitch);
            kda_store(a.dbeta, kda_at(p.dbeta, row, t, hv), p.dbeta.type,
                      kda_beta_adjoint(p, b, dbeta));
        }
        of_a_log = kda_warp_sum(of_a_log);
        if (self % 32 == 0) words[self / 32] = of_a_log;
        if (hv % p.group() == 0)
            for (int x = self / 32; x < count; x += kda_bwd_finish_threads / 32) {
                if (!lives[x]) continue;
                kda_bwd_normed(a, p.q, a.q, p.dq, a.dq, row, first + x, hv, 0,
                               static_cast<float>(p.scale));
                kda_bwd_normed(a, p.k, a.k, p.dk, a.dk, row, first + x, hv, a.pitch, 1.0f);
            }
        __syncthreads(); // the words are written
        if (self == 0 && a.sums != nullptr)
            sums[p.dim_k] = words[0] + words[1] + (words[2] + words[3]);
    }
}

__global__ void __launch_bounds__(kda_bwd_params_keys *kda_bwd_params_strands)
    kda_bwd_params(const __grid_constant__ kda_bwd_params_args a) {
    extern __shared__ __align__(16) char shared[];
    float *strands = reinterpret_cast<float *>(shared);
    const kda_problem &p = a.problem;
    const int key = static_cast<int>(threadIdx.x % kda_bwd_params_keys);
    const int strand = static_cast<int>(threadIdx.x / kda_bwd_params_keys);
    const int64_t groups = kda_ceil_div(p.dim_k + 1, kda_bwd_params_keys);
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int64_t hv = block / groups;
        const int64_t i = (block - hv * groups) * kda_bwd_params_keys + key;
        float sum = 0;
        for (int64_t x = strand; i <= p.dim_k && x < a.token_blocks; x += kda_bwd_params_strands)
            sum += a.sums[(x * p.value_heads + hv) * (p.dim_k + 1) + i];
        __syncthreads(); // the strands of the block before are read
        strands[threadIdx.x] = sum;
        __syncthreads(); // the strands are there
        if (strand > 0 || i > p.dim_k) continue;
        sum = 0;
        for (int x = 0; x < kda_bwd_params_strands; ++x)
            sum += strands[x * kda_bwd_params_keys + key];
        if (i == p.dim_k && p.da_log.used())
            kda_store(a.da_log, hv * p.da_log.h, p.da_log.type, sum);
        if (i < p.dim_k && p.ddt_bias.used())
            kda_store(a.ddt_bias, hv * p.ddt_bias.h + i * p.ddt_bias.c, p.ddt_bias.type, sum);
    }
}

} // namespace plait::impl::cuda
