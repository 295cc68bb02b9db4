// kda.bwd_c16_b3: gradients of the rows of a chunk: what pairs of its tokens add to what came
// through the states, then the adjoints of norm, gate and beta.
//   P_ij = s beta_j <dO_i, E_j> (j <= i), D_ij = -beta_i beta_j <dVc_i, E_j> (j < i)
//   dq_i = s e^G_i dO_i S + sum_j P_ij k_j e^(G_i - G_j)
//   dk_i = -beta_i e^G_i dVc_i S + beta_i e^(G - G_i) E_i dS + pairs;  dbeta_i = <dVc_i, E_i>
//   dg_r = e^G <dS, S> + sums of k_i dk_i, i < r, of q_i dq_i and k_i dk_i, i >= r, and of pairs
//          that straddle r: no subtraction. At a level of the binary anchors a pair straddles r of
//          its lower half when its column is before r, of its upper half when its row is not.
// Layout   a warp has tiles of 16 channels: rows channels, columns tokens, so that sums over tokens
//          stay in four lanes; its columns of q, k, g in shared memory become dq, dk, dg
// Tiling   a block per chunk and value head; P and D from four warps, each every fourth tile of V
// Traffic  bf16, K = V = 128, of each chunk and value head: 48 KB read, 13 KB written
// Numbers  products of pairs bf16 or f32 with f32 sums, the norm's adjoint in f64, all else f32
// Bound    memory, then exponentials: six of every channel of a token (estimates)
// Size     at most 61 KB of shared memory (K = 256), 168 registers: three blocks of an SM
#pragma once

#include "lib/cuda/kda/chunk16_pairs.cuh"

namespace plait::impl::cuda {

/// P and D of this warp's tiles of values, without their factors.
template <scalar S>
__device__ __forceinline__ void kda_c16_weigh(const kda_c16_args &a, const kda_c16_record &r,
                                              int64_t at, float *parts) {
    float p[8], d[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) p[e] = d[e] = 0;
    for (int v = kda_warp(); v < a.vt; v += kda_c16_warps) {
        const kda_tile<S> error = kda_load_tile<S>(a.errors, at * a.vt + v);
        kda_product<S>(p, kda_load_tile<S>(a.records + at * r.size + r.d_o, v), error);
        kda_product<S>(d, kda_load_tile<S>(a.dvalues, at * a.vt + v), error);
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        const int place = kda_tile_row(e) * 16 + kda_tile_column(e);
        parts[place] = p[e];
        parts[256 + place] = d[e];
    }
}

__device__ __forceinline__ double kda_c16_sum(double v) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(kda_all_lanes, v, by);
    return v;
}

/// A row of dq or dk through the adjoint of the norm; dy(channel) may be asked twice.
template <class Gradient>
__device__ __forceinline__ void kda_c16_store_row(const kda_problem &p, const kda_view &from,
                                                  const void *base, int64_t row, const kda_view &to,
                                                  void *out, int64_t to_row, Gradient dy) {
    double squares = 0, dot = 0;
    for (int c = kda_lane(); p.norm && c < p.dim_k; c += 32) {
        const double x = kda_load(base, row + c * from.c, from.type);
        squares += x * x;
        dot += x * double{dy(c)};
    }
    double inverse = 1, along = 0;
    if (p.norm) {
        squares = kda_c16_sum(squares) + p.eps;
        along = kda_c16_sum(dot) / squares;
        inverse = 1 / sqrt(squares);
    }
    for (int c = kda_lane(); c < p.dim_k; c += 32) {
        float value = dy(c);
        if (p.norm) {
            const double x = kda_load(base, row + c * from.c, from.type);
            value = static_cast<float>(inverse * (double{value} - x * along));
        }
        kda_store(out, to_row + c * to.c, to.type, value);
    }
}

/// The gradient of a row of gates becomes that of what they are functions of; returns this lane's
/// part of the gradient of A_LOG.
__device__ __forceinline__ float kda_c16_gate_row(const kda_c16_args &a, const kda_c16_spot &s,
                                                  int i, float rate, float *dg) {
    const kda_problem &p = a.problem;
    const int64_t row = kda_c16_row(p.g, s, s.hv, i);
    float of_a = 0;
    for (int c = kda_lane(); c < p.dim_k; c += 32) {
        const float x = kda_c16_gate_input(a, s, row, c),
                    d = kda_gate_adjoint(p, rate, x, dg[c], &of_a);
        dg[c] = d;
        if (p.dg.used()) kda_store(a.dg, kda_c16_row(p.dg, s, s.hv, i) + c * p.dg.c, p.dg.type, d);
    }
    return of_a;
}

/// One row of a chunk: this warp's.
__device__ __forceinline__ float kda_c16_finish_row(const kda_c16_args &a, const kda_c16_spot &s,
                                                    int i, float rate, float *dq, float *dk,
                                                    float *dg) {
    const kda_problem &p = a.problem;
    if (p.group() == 1) {
        if (p.dq.used())
            kda_c16_store_row(p, p.q, a.q, kda_c16_row(p.q, s, s.head, i), p.dq, a.dq,
                              kda_c16_row(p.dq, s, s.head, i), [&](int c) { return dq[c]; });
        if (p.dk.used())
            kda_c16_store_row(p, p.k, a.k, kda_c16_row(p.k, s, s.head, i), p.dk, a.dk,
                              kda_c16_row(p.dk, s, s.head, i), [&](int c) { return dk[c]; });
    } else if (a.heads != nullptr) {
        float *to = a.heads + (s.at * 32 + i) * int64_t{16} * a.kt;
        for (int c = kda_lane(); c < p.dim_k; c += 32) {
            to[c] = dq[c];
            to[256 * a.kt + c] = dk[c];
        }
    }
    return kda_c16_gate_row(a, s, i, rate, dg);
}

template <scalar S>
__global__ void __launch_bounds__(kda_c16_threads, 3)
    kda_bwd_c16_b3(const __grid_constant__ kda_c16_args a) {
    extern __shared__ __align__(16) char shared[];
    const kda_problem &p = a.problem;
    const int pitch = kda_c16_pitch(a.kt), each = kda_c16 * pitch;
    float *rows = reinterpret_cast<float *>(shared), *parts = rows + 3 * each,
          *weights = parts + 2 * kda_c16_warps * 256, *beta = weights + 32 * kda_c16_square,
          *dbeta = beta + 16, *of_a = dbeta + 16;
    const kda_c16_record r = kda_c16_record_of(a.kt, a.vt, S == scalar::f32);
    for (int64_t block = blockIdx.x; block < kda_c16_chunk_heads(a); block += gridDim.x) {
        const kda_c16_spot s = kda_c16_spot_of(a, block);
        if (s.count == 0) continue;
        kda_c16_load(a, s, rows, beta);
        kda_c16_weigh<S>(a, r, block, parts + kda_warp() * 512);
        __syncthreads(); // rows, beta and parts of all warps
        for (int e = static_cast<int>(threadIdx.x); e < 512; e += kda_c16_threads) {
            float sum = parts[e];
            for (int w = 1; w < kda_c16_warps; ++w) sum += parts[w * 512 + e];
            const int i = e % 256 / 16, j = e % 16, to = i * kda_c16_square + j;
            if (e < 256) {
                weights[to] = static_cast<float>(p.scale) * beta[j] * sum;
            } else {
                weights[16 * kda_c16_square + to] = -beta[i] * beta[j] * sum;
                if (i == j) dbeta[i] = sum;
            }
        }
        __syncthreads(); // weights
        kda_c16_channel_tiles<S>(a, block, rows, weights, beta);
        __syncthreads(); // all channels of a row
        const float rate = kda_rate(p, a.a_log, s.hv);
        float sum = 0;
        for (int i = kda_warp(); i < s.count; i += kda_c16_warps) {
            float *dq = rows + i * pitch;
            sum += kda_c16_finish_row(a, s, i, rate, dq, dq + each, dq + 2 * each);
            if (kda_lane() != 0 || !p.dbeta.used()) continue;
            const float b = kda_load(a.beta, kda_c16_row(p.beta, s, s.hv, i), p.beta.type);
            kda_store(a.dbeta, kda_c16_row(p.dbeta, s, s.hv, i), p.dbeta.type,
                      kda_beta_adjoint(p, b, dbeta[i]));
        }
        if (a.partial != nullptr) {
            sum = kda_warp_sum(sum);
            if (kda_lane() == 0) of_a[kda_warp()] = sum;
            __syncthreads(); // rows of all warps
            float *to = a.partial + block * (16 * a.kt + 1);
            for (int c = static_cast<int>(threadIdx.x); c < 16 * a.kt; c += kda_c16_threads) {
                float column = 0;
                for (int i = 0; i < s.count; ++i) column += rows[2 * each + i * pitch + c];
                to[c] = column;
            }
            if (threadIdx.x == 0) to[16 * a.kt] = (of_a[0] + of_a[1]) + (of_a[2] + of_a[3]);
        }
        __syncthreads(); // the next chunk replaces what is read here
    }
}

} // namespace plait::impl::cuda
