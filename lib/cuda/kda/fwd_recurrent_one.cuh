// Part of kda.fwd_recurrent, which begins in fwd_recurrent.cuh:
// variants one.*, for calls of one token, tiles and states as in variants few.*.
// Every warp fetches q and k for itself and finds their norms; a thread gates one key. What waits
// in registers is little, so that more blocks of an SM have their states under way.
//   traffic  states once; q, k, g of the token for each 32 values, from L2 but once
//   bound    bytes of states: 8 KiB of bf16 a block, 7 blocks on an SM. Precision: f32, states
//            rounded once
#pragma once

#include "lib/cuda/kda/fwd_recurrent_few.cuh"

namespace plait::impl::cuda {

/// Keys lane + 32 j of q and k; of g and its bias key threadIdx.x; bits on their way.
template <int Keys> struct kda_one_bits {
    static constexpr int each = Keys / 32;
    uint32_t q[each], k[each], g, bias, v, beta, rate;

    __device__ __forceinline__ void load(const kda_fwd_recurrent_args &a,
                                         const kda_few_item &item) {
        const kda_problem &p = a.problem;
        const int lane = static_cast<int>(threadIdx.x % 32), own = static_cast<int>(threadIdx.x);
        const int64_t token = item.begin, row = item.row;
        kda_few_bits<Keys>::load(a.q, kda_at(p.q, row, token, item.h), p.q, q);
        kda_few_bits<Keys>::load(a.k, kda_at(p.k, row, token, item.h), p.k, k);
        g = bias = rate = 0;
        if (own < Keys) {
            g = kda_load_bits(a.g, kda_at(p.g, row, token, item.hv) + own * p.g.c, p.g.type);
            if (p.dt_bias.used())
                bias = kda_load_bits(a.dt_bias, item.hv * p.dt_bias.h + own * p.dt_bias.c,
                                     p.dt_bias.type);
            if (p.a_log.used()) rate = kda_load_bits(a.a_log, item.hv * p.a_log.h, p.a_log.type);
        }
        v = kda_load_bits(a.v, kda_at(p.v, row, token, item.hv) + (item.column + lane) * p.v.c,
                          p.v.type);
        beta = kda_load_bits(a.beta, kda_at(p.beta, row, token, item.hv), p.beta.type);
    }

    /// The token to slot 0 of the batch, by all threads.
    __device__ __forceinline__ void stage(const kda_problem &p, float *batch) const {
        constexpr kda_batch_layout lay = kda_few_batch(Keys);
        const int lane = static_cast<int>(threadIdx.x % 32), own = static_cast<int>(threadIdx.x);
        float qq = 0, kk = 0, kq = 0, own_q = 0, own_k = 0;
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const float x = kda_widen(q[j], p.q.type), y = kda_widen(k[j], p.k.type);
            qq += x * x;
            kk += y * y;
            kq += y * x;
            if (own / 32 == j) own_q = x, own_k = y;
        }
        kq = kda_warp_sum(kq);
        float of_q = static_cast<float>(p.scale), of_k = 1;
        if (p.norm) {
            of_q *= kda_inverse_norm(p, kda_warp_sum(qq));
            of_k = kda_inverse_norm(p, kda_warp_sum(kk));
        }
        if (own < Keys) {
            const float factor = p.a_log.used() ? expf(kda_widen(rate, p.a_log.type)) : 1.0f;
            const float add = p.dt_bias.used() ? kda_widen(bias, p.dt_bias.type) : 0.0f;
            batch[lay.q(0) + own] = own_q * of_q;
            batch[lay.k(0) + own] = own_k * of_k;
            batch[lay.decay(0) + own] = expf(kda_gate_of(p, factor, kda_widen(g, p.g.type) + add));
        }
        if (own < 32) batch[lay.v(0) + lane] = kda_widen(v, p.v.type);
        if (own == 0) {
            batch[lay.beta(0)] = kda_beta_of(p, kda_widen(beta, p.beta.type));
            batch[lay.kq(0)] = kq * of_q * of_k;
        }
    }
};

template <scalar S, int Keys, bool ByKeys>
__global__ void __launch_bounds__(kda_few_threads,
                                  kda_one_blocks_per_sm(ByKeys,
                                                        kda_few_tile<S, Keys, ByKeys>::size))
    kda_fwd_recurrent_one(const __grid_constant__ kda_fwd_recurrent_args a) {
    using tile = kda_few_tile<S, Keys, ByKeys>;
    extern __shared__ __align__(16) char shared[];
    auto *raw = reinterpret_cast<typename tile::raw *>(shared);
    auto *batch = reinterpret_cast<float *>(shared + Keys * kda_few_columns * tile::size);
    float *parts = batch + kda_few_batch(Keys).floats();
    const kda_problem &p = a.problem;
    for (uint32_t block = blockIdx.x; block < static_cast<uint32_t>(a.blocks); block += gridDim.x) {
        const kda_item wide = kda_few_item_of(a, block);
        const kda_few_item item = kda_few_narrow(wide);
        kda_one_bits<Keys> bits;
        const bool live = item.live && item.length > 0;
        if (live) bits.load(a, item);
        const bool given = item.live && p.state_in.used();
        if (given)
            tile::load(p.state_in, a.state_in,
                       item.state * p.state_in.n + item.hv * p.state_in.h +
                           item.column * p.state_in.v,
                       raw);
        kda_fwd_clear(a, wide, wide.at.gap, wide.at.begin, kda_few_columns);
        if (!item.live)
            kda_fwd_clear(a, wide, wide.at.begin, wide.at.begin + wide.at.length, kda_few_columns);
        // Nothing that came from memory is looked at before the loads of the state are under way.
        if (block != blockIdx.x) __syncthreads(); // nobody reads the token of the block before
        if (live) bits.stage(p, batch);
        float s[tile::keys][4];
        if (given) {
            async_commit();
            async_wait<0>();
            tile::widen(raw, s);
        } else {
#pragma unroll
            for (int x = 0; x < tile::keys; ++x) s[x][0] = s[x][1] = s[x][2] = s[x][3] = 0;
        }
        __syncthreads(); // the token is there
        if (live) kda_few_token<S, Keys, ByKeys>(a, item, batch, parts, 0, 0, s);
        if (p.state_out.used() && item.state >= 0)
            tile::store(p.state_out, a.state_out,
                        item.state * p.state_out.n + item.hv * p.state_out.h +
                            item.column * p.state_out.v,
                        s);
    }
}

} // namespace plait::impl::cuda
