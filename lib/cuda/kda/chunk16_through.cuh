// kda.bwd_c16_b1: rows through the gradients of states, E dS^T (times beta: dkR).
// kda.bwd_c16_b2: rows through the states, dO S^T and dVc S^T, and <dS, S> of every channel.
// Layout   results as warps hold them, f32: tiles of rows channels, columns tokens
// Tiling   a block per chunk and value head, a warp per tile of channels; operands go from memory
//          to registers, 512 bytes of a warp at a time
// Traffic  bf16, K = V = 128, of each chunk and value head: b1 36 KB read, 8 KB written; b2 72, 16
// Numbers  operands bf16 or f32, sums f32
// Bound    memory
// Size     no shared memory, at most 96 registers: five blocks of an SM
#pragma once

#include "lib/cuda/kda/chunk16_input.cuh"

namespace plait::impl::cuda {

/// Result `which` of a tile of channels: 0 dO S, 1 dVc S, 2 E dS.
__device__ __forceinline__ float *kda_c16_through_at(const kda_c16_args &a, int64_t at, int which,
                                                     int tile) {
    return a.through + at * kda_c16_through(a.kt) + (which * a.kt + tile) * int64_t{kda_c16_tile};
}

__device__ __forceinline__ float *kda_c16_dots_at(const kda_c16_args &a, int64_t at) {
    return a.through + at * kda_c16_through(a.kt) + 3 * a.kt * int64_t{kda_c16_tile};
}

template <scalar S>
__global__ void __launch_bounds__(kda_c16_threads, 4)
    kda_bwd_c16_b1(const __grid_constant__ kda_c16_args a) {
    for (int64_t block = blockIdx.x; block < kda_c16_chunk_heads(a); block += gridDim.x) {
        if (kda_c16_spot_of(a, block).count == 0) continue;
        for (int j = kda_warp(); j < a.kt; j += kda_c16_warps) {
            float written[8];
#pragma unroll
            for (int e = 0; e < 8; ++e) written[e] = 0;
            for (int v = 0; v < a.vt; ++v)
                kda_product<S>(written, kda_load_tile<S>(a.dstates, (block * a.kt + j) * a.vt + v),
                               kda_load_tile<S>(a.errors, block * a.vt + v));
            kda_store_tile<scalar::f32>(
                reinterpret_cast<char *>(kda_c16_through_at(a, block, 2, j)), 0,
                kda_make_tile<scalar::f32>(written));
        }
    }
}

template <scalar S>
__global__ void __launch_bounds__(kda_c16_threads, 4)
    kda_bwd_c16_b2(const __grid_constant__ kda_c16_args a) {
    const kda_c16_record r = kda_c16_record_of(a.kt, a.vt, S == scalar::f32);
    for (int64_t block = blockIdx.x; block < kda_c16_chunk_heads(a); block += gridDim.x) {
        if (kda_c16_spot_of(a, block).count == 0) continue;
        const char *out = a.records + block * r.size + r.d_o;
        for (int j = kda_warp(); j < a.kt; j += kda_c16_warps) {
            float by_q[8], by_k[8], dots[2] = {0, 0};
#pragma unroll
            for (int e = 0; e < 8; ++e) by_q[e] = by_k[e] = 0;
            for (int v = 0; v < a.vt; ++v) {
                const int64_t at = (block * a.kt + j) * a.vt + v;
                const kda_tile<S> s = kda_load_tile<S>(a.states, at);
                float x[8], y[8];
                kda_widen_tile(s, x);
                kda_widen_tile(kda_load_tile<S>(a.dstates, at), y);
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    dots[e / 2 % 2] = __fmaf_rn(x[e], y[e], dots[e / 2 % 2]);
                kda_product<S>(by_q, s, kda_load_tile<S>(out, v));
                kda_product<S>(by_k, s, kda_load_tile<S>(a.dvalues, block * a.vt + v));
            }
            kda_store_tile<scalar::f32>(
                reinterpret_cast<char *>(kda_c16_through_at(a, block, 0, j)), 0,
                kda_make_tile<scalar::f32>(by_q));
            kda_store_tile<scalar::f32>(
                reinterpret_cast<char *>(kda_c16_through_at(a, block, 1, j)), 0,
                kda_make_tile<scalar::f32>(by_k));
#pragma unroll
            for (int x = 0; x < 2; ++x) { // lanes of a channel stand side by side
                dots[x] += __shfl_xor_sync(kda_all_lanes, dots[x], 1);
                dots[x] += __shfl_xor_sync(kda_all_lanes, dots[x], 2);
                if (kda_lane() % 4 == 0)
                    kda_c16_dots_at(a, block)[16 * j + kda_lane() / 4 + 8 * x] = dots[x];
            }
        }
    }
}

} // namespace plait::impl::cuda
