// kda.bwd_c16_heads: dq and dk of a head of q and k are sums over its value heads, then through the
// adjoint of the norm; where every value head has its own q and k there is no such step.
// kda.bwd_c16_sums: DDT_BIAS and DA_LOG are sums over chunks.
// Layout   chunk16_layout.h
// Tiling   heads: a block per chunk and head of q and k, a warp per row; sums: a block per 32 sums
//          of a value head, warps take every 32nd chunk, then the 32 parts in turn
// Traffic  each number once; heads reads twice with a norm, from a cache
// Numbers  heads: f32, value heads in turn; norm and sums: f64
// Bound    memory
#pragma once

#include "lib/cuda/kda/chunk16_b3.cuh"

namespace plait::impl::cuda {

__global__ void __launch_bounds__(kda_c16_threads)
    kda_bwd_c16_heads(const __grid_constant__ kda_c16_args a) {
    const kda_problem &p = a.problem;
    const int64_t group = p.group();
    for (int64_t block = blockIdx.x; block < a.slots * p.heads; block += gridDim.x) {
        const int64_t slot = block / p.heads, head = block - slot * p.heads,
                      first = slot * p.value_heads + head * group;
        const kda_c16_spot s = kda_c16_spot_of(a, first);
        if (s.count == 0) continue;
        for (int i = kda_warp(); i < s.count; i += kda_c16_warps)
            for (int which = 0; which < 2; ++which) {
                const kda_view &from = which == 0 ? p.q : p.k, &to = which == 0 ? p.dq : p.dk;
                if (!to.used()) continue;
                const int64_t each = int64_t{512} * a.kt;
                const float *dy = a.heads + first * each + (16 * which + i) * 16 * a.kt;
                kda_c16_store_row(p, from, which == 0 ? a.q : a.k, kda_c16_row(from, s, s.head, i),
                                  to, which == 0 ? a.dq : a.dk, kda_c16_row(to, s, s.head, i),
                                  [&](int c) {
                                      float sum = dy[c];
                                      for (int64_t x = 1; x < group; ++x) sum += dy[x * each + c];
                                      return sum;
                                  });
            }
    }
}

__global__ void __launch_bounds__(1024) kda_bwd_c16_sums(const __grid_constant__ kda_c16_args a) {
    extern __shared__ __align__(16) char shared[];
    double *parts = reinterpret_cast<double *>(shared);
    const kda_problem &p = a.problem;
    const int64_t chunks = a.table != nullptr ? a.table[p.sequences].first_chunk : a.slots;
    const int sums = 16 * a.kt + 1, groups = (sums + 31) / 32;
    for (int64_t block = blockIdx.x; block < p.value_heads * groups; block += gridDim.x) {
        const int64_t hv = block / groups;
        const int at = static_cast<int>(block - hv * groups) * 32 + kda_lane();
        double sum = 0;
        for (int64_t slot = kda_warp(); at < sums && slot < chunks; slot += 32)
            sum += a.partial[(slot * p.value_heads + hv) * sums + at];
        parts[threadIdx.x] = sum;
        __syncthreads(); // parts of all warps
        if (kda_warp() == 0) {
            for (int w = 1; w < 32; ++w) sum += parts[w * 32 + kda_lane()];
            const float value = static_cast<float>(sum);
            if (at < p.dim_k && p.ddt_bias.used())
                kda_store(a.ddt_bias, hv * p.ddt_bias.h + at * p.ddt_bias.c, p.ddt_bias.type,
                          value);
            if (at == sums - 1 && p.da_log.used())
                kda_store(a.da_log, hv * p.da_log.h, p.da_log.type, value);
        }
        __syncthreads(); // the next sums replace what is read here
    }
}

} // namespace plait::impl::cuda
