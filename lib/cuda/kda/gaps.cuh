// kda.gaps: zeros to O, or to the gradients of tokens, where a token belongs to no live sequence:
// of packed sequences behind and between them, of a pool rows without a slot,
// of a reserve of another problem and without value heads all. A warp a token: a
// binary search in the table of kda.offsets, which almost always says that there is nothing to do.
// Bound: latency of the search, log2(sequences) reads from L2.
#pragma once

#include "lib/cuda/kda/common.cuh"
#include "lib/cuda/kda/gaps_layout.h"

namespace plait::impl::cuda {

__device__ __forceinline__ void kda_clear_token(const kda_view &v, void *base, int64_t row,
                                                int64_t t, int64_t heads, int64_t channels) {
    if (!v.used()) return;
    for (int64_t i = threadIdx.x % 32; i < heads * channels; i += 32) {
        const int64_t h = i / channels;
        kda_store(base, kda_at(v, row, t, h) + (i - h * channels) * v.c, v.type, 0);
    }
}

__global__ void __launch_bounds__(kda_gaps_threads)
    kda_gaps(const __grid_constant__ kda_gaps_args a) {
    const kda_problem &p = a.problem;
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int64_t i = block * (kda_gaps_threads / 32) + threadIdx.x / 32;
        if (i >= p.batch * p.length) continue;
        const int64_t row = i / p.length, t = i - row * p.length;
        if (p.value_heads > 0 && kda_token_lives(p, a.table, a.slots, row, t)) continue;
        kda_clear_token(p.o, a.o, row, t, p.value_heads, p.dim_v);
        kda_clear_token(p.dq, a.dq, row, t, p.heads, p.dim_k);
        kda_clear_token(p.dk, a.dk, row, t, p.heads, p.dim_k);
        kda_clear_token(p.dv, a.dv, row, t, p.value_heads, p.dim_v);
        kda_clear_token(p.dg, a.dg, row, t, p.value_heads, p.dim_k);
        kda_clear_token(p.dbeta, a.dbeta, row, t, p.value_heads, 1);
    }
}

} // namespace plait::impl::cuda
