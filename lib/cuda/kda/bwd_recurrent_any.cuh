// Part of kda.bwd_recurrent, which begins in bwd_recurrent.cuh:
// variant any, for more keys than a tile of registers has. A block a value head
// of a sequence; states, their gradient and the vectors of a token lie in its scratch. Passes by
// columns, a thread each, for what is summed over keys; passes by rows, a warp each, for what is
// summed over columns. States are kept every `group` tokens, and those of one segment before
// every token. Bound: the traffic of about 20 bytes for every entry of a state and token: simple,
// for what nothing else takes.
#pragma once

#include "lib/cuda/kda/bwd_recurrent_layout.h"
#include "lib/cuda/kda/recurrent.cuh"

namespace plait::impl::cuda {

class kda_bwd_any_block {
public:
    __device__ __forceinline__ kda_bwd_any_block(const kda_bwd_recurrent_args &args,
                                                 const kda_item &of, float *shared)
        : a(args), p(args.problem), item(of), words(shared), K(p.dim_k), V(p.dim_v),
          self(static_cast<int>(threadIdx.x)) {
        float *at = a.marks + blockIdx.x * a.block_floats;
        const auto take = [&](int64_t count) {
            float *here = at;
            at += count;
            return here;
        };
        outer = take(a.segments * K * V);
        states = take((a.group + 1) * K * V);
        d = take(K * V);
        q = take(K), k = take(K), decay = take(K);
        u = take(V), dr = take(V), v = take(V), d_o = take(V);
    }

    __device__ __forceinline__ void run() {
        const int64_t length = item.at.length;
        load(p.dstate_out, a.dstate_out, d);
        if (item.at.live && length > 0) {
            load(p.state_in, a.state_in, states);
            const int64_t segments = kda_ceil_div(length, a.group);
#pragma unroll 1
            for (int64_t x = 0; x < segments; ++x) {
                copy(states, outer + x * K * V);
#pragma unroll 1
                for (int64_t t = x * a.group; x + 1 < segments && t < (x + 1) * a.group; ++t)
                    advance(t, states, states);
            }
#pragma unroll 1
            for (int64_t x = segments; x-- > 0;) {
                const int64_t first = x * a.group;
                const int64_t end = first + a.group < length ? first + a.group : length;
                copy(outer + x * K * V, states);
#pragma unroll 1
                for (int64_t t = first; t + 1 < end; ++t)
                    advance(t, states + (t - first) * K * V, states + (t - first + 1) * K * V);
#pragma unroll 1
                for (int64_t t = end; t-- > first;) adjoint(t, states + (t - first) * K * V);
            }
        }
        __syncthreads(); // the gradient is complete
        if (!p.dstate_in.used() || item.at.state < 0) return;
        const kda_state_view &to = p.dstate_in;
#pragma unroll 1
        for (int64_t i = self / 32; i < K; i += kda_bwd_any_threads / 32)
            for (int64_t j = self % 32; j < V; j += 32)
                kda_store(a.dstate_in, item.at.state * to.n + item.hv * to.h + i * to.k + j * to.v,
                          to.type, d[i * V + j]);
    }

private:
    const kda_bwd_recurrent_args &a;
    const kda_problem &p;
    const kda_item &item;
    float *words;
    int64_t K, V;
    int self;
    float *outer, *states, *d, *q, *k, *decay, *u, *dr, *v, *d_o;

    __device__ __forceinline__ float block_sum(float x) const {
        x = kda_warp_sum(x);
        __syncthreads(); // the words of the sum before are read
        if (self % 32 == 0) words[self / 32] = x;
        __syncthreads(); // the words are written
        return words[0] + words[1] + (words[2] + words[3]);
    }
    __device__ __forceinline__ void load(const kda_state_view &from, const void *base,
                                         float *to) const {
        __syncthreads(); // nobody reads what is replaced
#pragma unroll 1
        for (int64_t i = self / 32; i < K; i += kda_bwd_any_threads / 32)
            for (int64_t j = self % 32; j < V; j += 32)
                to[i * V + j] = from.used() && item.at.live
                                    ? kda_load(base,
                                               item.at.state * from.n + item.hv * from.h +
                                                   i * from.k + j * from.v,
                                               from.type)
                                    : 0.0f;
        __syncthreads(); // it is there
    }
    __device__ __forceinline__ void copy(const float *from, float *to) const {
        __syncthreads(); // the source is complete
#pragma unroll 1
        for (int64_t x = self; x < K * V; x += kda_bwd_any_threads) to[x] = from[x];
        __syncthreads(); // it is there
    }

    /// The vectors of token t; beta. q is normed and scaled, k normed.
    __device__ __forceinline__ float token(int64_t t) const {
        const int64_t at = item.at.begin + t, row = item.at.row;
        const int64_t at_q = kda_at(p.q, row, at, item.h), at_k = kda_at(p.k, row, at, item.h);
        const int64_t at_g = kda_at(p.g, row, at, item.hv);
        float qq = 0, kk = 0;
        __syncthreads(); // the vectors of the token before are read
#pragma unroll 1
        for (int64_t i = self; i < K; i += kda_bwd_any_threads) {
            q[i] = kda_load(a.q, at_q + i * p.q.c, p.q.type);
            k[i] = kda_load(a.k, at_k + i * p.k.c, p.k.type);
            qq += q[i] * q[i];
            kk += k[i] * k[i];
            const float x =
                kda_load(a.g, at_g + i * p.g.c, p.g.type) + kda_bias(p, a.dt_bias, item.hv, i);
            decay[i] = expf(kda_gate_of(p, item.rate, x));
        }
#pragma unroll 1
        for (int64_t j = self; j < V; j += kda_bwd_any_threads) {
            v[j] = kda_load(a.v, kda_at(p.v, row, at, item.hv) + j * p.v.c, p.v.type);
            d_o[j] = kda_load(a.d_o, kda_at(p.d_o, row, at, item.hv) + j * p.d_o.c, p.d_o.type);
        }
        const float of_q =
            kda_inverse_norm(p, p.norm ? block_sum(qq) : 0.0f) * static_cast<float>(p.scale);
        const float of_k = kda_inverse_norm(p, p.norm ? block_sum(kk) : 0.0f);
#pragma unroll 1
        for (int64_t i = self; i < K; i += kda_bwd_any_threads) q[i] *= of_q, k[i] *= of_k;
        __syncthreads(); // the vectors are there
        return kda_beta_of(p, kda_load(a.beta, kda_at(p.beta, row, at, item.hv), p.beta.type));
    }

    /// By columns: a thread reads and writes its own. `after` may be `before`.
    __device__ __forceinline__ void advance(int64_t t, const float *before, float *after) const {
        const float beta = token(t);
#pragma unroll 1
        for (int64_t j = self; j < V; j += kda_bwd_any_threads) {
            float r = 0;
#pragma unroll 1
            for (int64_t i = 0; i < K; ++i) r += k[i] * (decay[i] * before[i * V + j]);
            const float update = beta * (v[j] - r);
#pragma unroll 1
            for (int64_t i = 0; i < K; ++i)
                after[i * V + j] = decay[i] * before[i * V + j] + k[i] * update;
        }
    }

    __device__ __forceinline__ void adjoint(int64_t t, const float *before) const {
        const float beta = token(t);
        const int64_t at = item.at.begin + t;
        float dbeta = 0;
#pragma unroll 1
        for (int64_t j = self; j < V; j += kda_bwd_any_threads) {
            float r = 0, w = 0;
#pragma unroll 1
            for (int64_t i = 0; i < K; ++i) {
                r += k[i] * (decay[i] * before[i * V + j]);
                w += k[i] * (d[i * V + j] + q[i] * d_o[j]);
            }
            const float e = v[j] - r;
            u[j] = beta * e;
            dr[j] = -beta * w;
            dbeta += w * e;
            if (p.dv.used())
                kda_store(a.dv, kda_at(p.dv, item.at.row, at, item.hv) + j * p.dv.c, p.dv.type,
                          beta * w);
        }
        dbeta = block_sum(dbeta); // and u, dr are there
        float *to = a.rows + ((item.at.row * p.length + at) * p.value_heads + item.hv) *
                                 kda_bwd_row(a.pitch);
        if (self == 0) to[3 * a.pitch] = dbeta;
        const int lane = self % 32;
#pragma unroll 1
        for (int64_t i = self / 32; i < K; i += kda_bwd_any_threads / 32) {
            float dq = 0, dk = 0, dg = 0;
#pragma unroll 1
            for (int64_t j = lane; j < V; j += 32) {
                const float kept = decay[i] * before[i * V + j];
                float g = d[i * V + j] + q[i] * d_o[j];
                dq += (kept + k[i] * u[j]) * d_o[j];
                dk += g * u[j] + kept * dr[j];
                g += k[i] * dr[j];
                dg += g * kept;
                d[i * V + j] = decay[i] * g;
            }
            dq = kda_warp_sum(dq);
            dk = kda_warp_sum(dk);
            dg = kda_warp_sum(dg);
            if (lane == 0) to[i] = dq, to[a.pitch + i] = dk, to[2 * a.pitch + i] = dg;
        }
    }
};

__global__ void __launch_bounds__(kda_bwd_any_threads, 2)
    kda_bwd_recurrent_any(const __grid_constant__ kda_bwd_recurrent_args a) {
    extern __shared__ __align__(16) char shared[];
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const kda_item item = kda_item_of(a, block, 0);
        kda_bwd_any_block(a, item, reinterpret_cast<float *>(shared)).run();
    }
}

} // namespace plait::impl::cuda
