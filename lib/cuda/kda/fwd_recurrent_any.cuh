// Part of kda.fwd_recurrent, which begins in fwd_recurrent.cuh:
// variant any, for more keys than a tile of registers has. A thread a column;
// the state lies in scratch, [key][column], and is passed over twice a token: decay, predict and
// read; then the update. q, k and decays come through shared memory, a strip of keys at a time.
// Bound: the traffic of the state, 16 bytes for every entry and token, from L2 or memory.
#pragma once

#include "lib/cuda/kda/fwd_recurrent.cuh"

namespace plait::impl::cuda {

/// Over the block of kda_any_columns threads, everywhere the same bits. Two barriers.
__device__ __forceinline__ float kda_any_sum(float v, float *words) {
    v = kda_warp_sum(v);
    __syncthreads(); // the words of the sum before are read
    if (threadIdx.x % 32 == 0) words[threadIdx.x / 32] = v;
    __syncthreads(); // the words are written
    float sum = 0;
    for (int w = 0; w < kda_any_columns / 32; ++w) sum += words[w];
    return sum;
}

/// What rows of q and k are multiplied by: norm, and scale for q.
struct kda_any_factors {
    float q, k;
};

template <class Args>
__device__ __forceinline__ kda_any_factors kda_any_factors_of(const Args &a, const kda_item &item,
                                                              int64_t t, float *words) {
    const kda_problem &p = a.problem;
    float qq = 0, kk = 0;
    if (p.norm) {
        const int64_t at_q = kda_at(p.q, item.at.row, t, item.h);
        const int64_t at_k = kda_at(p.k, item.at.row, t, item.h);
#pragma unroll 1
        for (int64_t i = threadIdx.x; i < p.dim_k; i += kda_any_columns) {
            const float x = kda_load(a.q, at_q + i * p.q.c, p.q.type);
            const float y = kda_load(a.k, at_k + i * p.k.c, p.k.type);
            qq += x * x;
            kk += y * y;
        }
        qq = kda_any_sum(qq, words);
        kk = kda_any_sum(kk, words);
    }
    return {kda_inverse_norm(p, qq) * static_cast<float>(p.scale), kda_inverse_norm(p, kk)};
}

/// Keys [first, first + kda_any_strip) of token t, a key a thread: q, k, decays one after the
/// other.
template <class Args>
__device__ __forceinline__ void kda_any_stage(const Args &a, const kda_item &item, int64_t t,
                                              int64_t first, const kda_any_factors &by,
                                              float *strip) {
    const kda_problem &p = a.problem;
    const int64_t i = first + threadIdx.x;
    __syncthreads(); // the strip before is read
    if (i < p.dim_k) {
        const int64_t row = item.at.row;
        const float x = kda_load(a.g, kda_at(p.g, row, t, item.hv) + i * p.g.c, p.g.type) +
                        kda_bias(p, a.dt_bias, item.hv, i);
        strip[threadIdx.x] =
            by.q * kda_load(a.q, kda_at(p.q, row, t, item.h) + i * p.q.c, p.q.type);
        strip[kda_any_strip + threadIdx.x] =
            by.k * kda_load(a.k, kda_at(p.k, row, t, item.h) + i * p.k.c, p.k.type);
        strip[2 * kda_any_strip + threadIdx.x] = expf(kda_gate_of(p, item.rate, x));
    }
    __syncthreads(); // the strip is written
}

__global__ void __launch_bounds__(kda_any_columns)
    kda_fwd_recurrent_any(const __grid_constant__ kda_fwd_recurrent_args a) {
    extern __shared__ __align__(16) char shared[];
    float *strip = reinterpret_cast<float *>(shared), *words = strip + 3 * kda_any_strip;
    const kda_problem &p = a.problem;
    float *state = a.scratch + blockIdx.x * p.dim_k * kda_any_columns + threadIdx.x;
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const kda_item item = kda_item_of(a, block, kda_any_columns);
        const kda_state_view &in = p.state_in, &out = p.state_out;
        const int64_t column = item.column + threadIdx.x;
        const bool here = column < p.dim_v;
        const int64_t from = item.at.state * in.n + item.hv * in.h + column * in.v;
#pragma unroll 1
        for (int64_t i = 0; i < p.dim_k; ++i)
            state[i * kda_any_columns] = here && item.at.live && in.used()
                                             ? kda_load(a.state_in, from + i * in.k, in.type)
                                             : 0.0f;
        kda_fwd_clear(a, item, item.at.gap, item.at.begin, kda_any_columns);
        const int64_t end = item.at.begin + item.at.length;
        if (!item.at.live) kda_fwd_clear(a, item, item.at.begin, end, kda_any_columns);
#pragma unroll 1
        for (int64_t t = item.at.begin; item.at.live && t < end; ++t) {
            const kda_any_factors by = kda_any_factors_of(a, item, t, words);
            const int64_t row = item.at.row;
            float r = 0, o = 0, kq = 0;
            for (int64_t first = 0; first < p.dim_k; first += kda_any_strip) {
                kda_any_stage(a, item, t, first, by, strip);
                const int64_t left = p.dim_k - first;
                const int keys = static_cast<int>(left < kda_any_strip ? left : kda_any_strip);
                for (int i = 0; i < keys; ++i) {
                    float &s = state[(first + i) * kda_any_columns];
                    const float kept = s * strip[2 * kda_any_strip + i];
                    const float k = strip[kda_any_strip + i], q = strip[i];
                    s = kept;
                    r += k * kept;
                    o += q * kept;
                    kq += k * q;
                }
            }
            const float beta =
                kda_beta_of(p, kda_load(a.beta, kda_at(p.beta, row, t, item.hv), p.beta.type));
            const float v =
                here ? kda_load(a.v, kda_at(p.v, row, t, item.hv) + column * p.v.c, p.v.type) : 0;
            const float u = beta * (v - r);
            if (here)
                kda_store(a.o, kda_at(p.o, row, t, item.hv) + column * p.o.c, p.o.type, o + kq * u);
            for (int64_t first = 0; first < p.dim_k; first += kda_any_strip) {
                kda_any_stage(a, item, t, first, by, strip);
                const int64_t left = p.dim_k - first;
                const int keys = static_cast<int>(left < kda_any_strip ? left : kda_any_strip);
                for (int i = 0; i < keys; ++i)
                    state[(first + i) * kda_any_columns] += strip[kda_any_strip + i] * u;
            }
        }
        if (!here || !out.used() || item.at.state < 0) continue;
        const int64_t to = item.at.state * out.n + item.hv * out.h + column * out.v;
#pragma unroll 1
        for (int64_t i = 0; i < p.dim_k; ++i)
            kda_store(a.state_out, to + i * out.k, out.type, state[i * kda_any_columns]);
    }
}

} // namespace plait::impl::cuda
