// kda.bwd_c16_prep: what the scans and the gradients of a chunk need of its tokens alone.
//   q+ = s q e^G_i, k+ = k e^G_i, kR = k e^(G - G_i), F_ij = k_i k_j e^(G_i - G_j) (j < i),
//   A_ij = s q_i k_j e^(G_i - G_j) (j <= i), M = (I + diag(beta) F)^-1, N = (I + F diag(beta))^-1
// Layout   chunk16_layout.h: one record of tiles for each chunk and value head
// Tiling   a block per chunk and value head; rows in shared memory as f32; pairs by four warps,
//          each every fourth tile of channels; one warp solves, a lane per column of M and of N
// Pairs    binary anchors: four products of 16 x 16 x K, exponentials at most 1 for any gate
// Traffic  bf16, K = V = 128: 16 KB read, 31 KB written of each chunk and value head
// Numbers  gates, exponents, M and N in f32; tiles bf16 or f32
// Bound    memory, then exponentials: six of every channel of a token (estimates)
// Size     at most 63 KB of shared memory (K = 256), 168 registers: three blocks of an SM
#pragma once

#include "lib/cuda/kda/chunk16_input.cuh"

namespace plait::impl::cuda {

/// Pairs of one level in this warp's channels.
template <scalar S, int Level>
__device__ __forceinline__ void kda_c16_level_pairs(const float *q, const float *k, const float *g,
                                                    int kt, float (&of_k)[8], float (&of_q)[8]) {
    const int pitch = kda_c16_pitch(kt);
    float fs[8], ss[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) fs[e] = ss[e] = 0;
#pragma unroll 1
    for (int j = kda_warp(); j < kt; j += kda_c16_warps) {
        float ke[8], qe[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const int token = kda_tile_row(e), c = 16 * j + kda_tile_column(e);
            const float decay = kda_c16_level_decay(g + c, pitch, token, Level);
            ke[e] = k[token * pitch + c] * decay;
            qe[e] = q[token * pitch + c] * decay;
        }
        const kda_tile<S> right = kda_make_tile<S>(ke);
        kda_product<S>(fs, right, right);
        kda_product<S>(ss, kda_make_tile<S>(qe), right);
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        const int from = kda_tile_column(e), to = kda_tile_row(e);
        if (from < to && kda_c16_level(to, from) == Level) of_k[e] = fs[e], of_q[e] = ss[e];
    }
}

/// F and A of this warp's channels, without what does not depend on gates: j < i.
template <scalar S>
__device__ __forceinline__ void kda_c16_pairs(const float *q, const float *k, const float *g,
                                              int kt, float *f, float *s) {
    float of_k[8], of_q[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) of_k[e] = of_q[e] = 0;
    kda_c16_level_pairs<S, 0>(q, k, g, kt, of_k, of_q);
    kda_c16_level_pairs<S, 1>(q, k, g, kt, of_k, of_q);
    kda_c16_level_pairs<S, 2>(q, k, g, kt, of_k, of_q);
    kda_c16_level_pairs<S, 3>(q, k, g, kt, of_k, of_q);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        const int at = kda_tile_row(e) * 16 + kda_tile_column(e);
        f[at] = of_k[e];
        s[at] = of_q[e];
    }
}

/// Columns of M by lanes 0 .. 15 of a warp, of N by the others, without their ones. f: [16][16],
/// zero where j >= i.
__device__ __forceinline__ void kda_c16_solve(const float *f, const float *beta, float *m,
                                              float *n) {
    const int column = kda_lane() % 16;
    const bool of_m = kda_lane() < 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int j = 0; j < i; ++j) {
            const float l = f[i * 16 + j] * (of_m ? beta[i] : beta[j]);
            sum = __fmaf_rn(-l, x[j], sum);
        }
        x[i] = sum;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) (of_m ? m : n)[i * 16 + column] = i == column ? 0 : x[i];
}

/// Rows of q, k and g become q+, k+ and kR; e^G of all to `total`. A thread has a channel.
__device__ __forceinline__ void kda_c16_decay(float *q, float *k, float *g, int kt, float scale,
                                              float *total) {
    const int pitch = kda_c16_pitch(kt);
    for (int c = static_cast<int>(threadIdx.x); c < 16 * kt; c += kda_c16_threads) {
        float gates[16], later = 0, sum = 0;
#pragma unroll
        for (int i = 0; i < 16; ++i) gates[i] = g[i * pitch + c];
#pragma unroll
        for (int i = 15; i >= 0; --i) {
            g[i * pitch + c] = k[i * pitch + c] * expf(later);
            later += gates[i];
        }
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            sum += gates[i];
            const float decay = expf(sum);
            q[i * pitch + c] *= scale * decay;
            k[i * pitch + c] *= decay;
        }
        total[c] = expf(sum);
    }
}

/// dO of the chunk, as many columns at a time as a row of keys has.
template <scalar S>
__device__ __forceinline__ void kda_c16_pack_values(const kda_c16_args &a, const kda_c16_spot &s,
                                                    float *rows, const kda_c16_record &r,
                                                    char *record) {
    const kda_problem &p = a.problem;
    const int pitch = kda_c16_pitch(a.kt);
    for (int from = 0; from < a.vt; from += a.kt) {
        const int tiles = min(a.kt, a.vt - from);
        __syncthreads(); // nobody reads what was here before
        for (int i = kda_warp(); i < kda_c16; i += kda_c16_warps) {
            const int64_t row = kda_c16_row(p.d_o, s, s.hv, i);
            for (int c = kda_lane(); c < 16 * tiles; c += 32) {
                const int64_t v = 16 * from + c;
                rows[i * pitch + c] = i < s.count && v < p.dim_v
                                          ? kda_load(a.d_o, row + v * p.d_o.c, p.d_o.type)
                                          : 0.0f;
            }
        }
        __syncthreads(); // the rows are there
        for (int j = kda_warp(); j < tiles; j += kda_c16_warps) {
            const kda_tile<S> t =
                kda_tile_of<S>([&](int i, int c) { return rows[i * pitch + 16 * j + c]; });
            kda_store_tile<S>(record + r.d_o, from + j, t);
            kda_store_tile<S>(record + r.turned_do, from + j, kda_turned<S>(t));
        }
    }
}

template <scalar S>
__global__ void __launch_bounds__(kda_c16_threads, 3)
    kda_bwd_c16_prep(const __grid_constant__ kda_c16_args a) {
    extern __shared__ __align__(16) char shared[];
    const int pitch = kda_c16_pitch(a.kt), each = kda_c16 * pitch;
    float *q = reinterpret_cast<float *>(shared), *k = q + each, *g = k + each;
    float *parts = g + each, *f = parts + 2 * kda_c16_warps * 256, *s = f + 256, *m = s + 256,
          *n = m + 256, *beta = n + 256, *same = beta + 16;
    const kda_c16_record r = kda_c16_record_of(a.kt, a.vt, S == scalar::f32);
    const float scale = static_cast<float>(a.problem.scale);
    for (int64_t block = blockIdx.x; block < kda_c16_chunk_heads(a); block += gridDim.x) {
        const kda_c16_spot spot = kda_c16_spot_of(a, block);
        if (spot.count == 0) continue;
        char *record = a.records + block * r.size;
        kda_c16_load(a, spot, q, beta);
        for (int i = kda_warp(); i < kda_c16; i += kda_c16_warps) { // rows of this warp
            float sum = 0;
            for (int c = kda_lane(); c < 16 * a.kt; c += 32)
                sum += q[i * pitch + c] * k[i * pitch + c];
            sum = kda_warp_sum(sum);
            if (kda_lane() == 0) same[i] = sum;
        }
        __syncthreads(); // rows of all warps
        kda_c16_pairs<S>(q, k, g, a.kt, parts + kda_warp() * 512, parts + kda_warp() * 512 + 256);
        __syncthreads(); // parts of all warps; nobody reads the rows
        for (int e = static_cast<int>(threadIdx.x); e < 512; e += kda_c16_threads) {
            float sum = parts[e];
            for (int w = 1; w < kda_c16_warps; ++w) sum += parts[w * 512 + e];
            const int i = e % 256 / 16, j = e % 16;
            if (e < 256)
                f[e] = sum;
            else
                s[e - 256] = scale * (i == j ? same[i] : sum);
        }
        float *floats = reinterpret_cast<float *>(record + r.floats);
        kda_c16_decay(q, k, g, a.kt, scale, floats);
        if (threadIdx.x < kda_c16) floats[16 * a.kt + threadIdx.x] = beta[threadIdx.x];
        __syncthreads(); // F, A and the rows
        if (kda_warp() == 0) kda_c16_solve(f, beta, m, n);
        __syncthreads(); // M and N
        for (int j = kda_warp(); j < 3 * a.kt + 3; j += kda_c16_warps) {
            if (j < 3 * a.kt) {
                const int which = j / a.kt, tile = j % a.kt; // q+, k+, kR
                const float *rows = q + which * each + 16 * tile;
                const kda_tile<S> t =
                    kda_tile_of<S>([&](int i, int c) { return rows[i * pitch + c]; });
                const kda_tile<S> turned = kda_turned<S>(t);
                if (which == 0) kda_store_tile<S>(record + r.turned_qp(), tile, turned);
                if (which == 1) kda_store_tile<S>(record + r.turned_kp(), tile, turned);
                if (which == 1) kda_store_tile<S>(record + r.kp, tile, t);
                if (which == 2) kda_store_tile<S>(record + r.kr(), tile, t);
                if (which == 2) kda_store_tile<S>(record + r.turned_kr, tile, turned);
            } else if (j == 3 * a.kt) {
                kda_store_tile<S>(record + r.n, 0,
                                  kda_tile_of<S>([&](int i, int c) { return n[i * 16 + c]; }));
            } else {
                const float *from = j == 3 * a.kt + 1 ? m : s;
                kda_store_tile<S>(record + (j == 3 * a.kt + 1 ? r.turned_m : r.turned_a), 0,
                                  kda_tile_of<S>([&](int i, int c) { return from[c * 16 + i]; }));
            }
        }
        kda_c16_pack_values<S>(a, spot, q, r, record);
        __syncthreads(); // the next chunk replaces what is read here
    }
}

} // namespace plait::impl::cuda
