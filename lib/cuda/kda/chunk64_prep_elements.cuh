// What kda.chunk64_prep makes of a chunk's elements: k+, q+, kR, gamma, beta of the record, factors
// of all levels of pairs, pairs within eight rows.
#pragma once

#include "lib/cuda/kda/chunk64_prep_pairs.cuh"

namespace plait::impl::cuda {

template <int Keys> constexpr int kda64_row_bytes = kda64_factor_pitch(Keys);

/// Where a warp's factors of level 3, 4 or 5 begin.
template <int Keys>
__device__ __forceinline__ char *kda64_factors_of(char *shared, int level, int warp) {
    return shared + kda64_prep_shared_of(Keys).factors +
           kda64_factor_row(level, warp) * kda64_row_bytes<Keys>;
}
template <int Keys> __device__ __forceinline__ kda64_squares kda64_squares_of(char *shared) {
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    return {reinterpret_cast<const float *>(shared + s.beta),
            reinterpret_cast<const float *>(shared + s.scales),
            reinterpret_cast<float *>(shared + s.f), shared + s.a};
}

/// e times the totals of `count` warps from `other` on, going by `step`.
template <int Keys>
__device__ __forceinline__ void kda64_pass(const float *totals, int lane, int count, int step,
                                           int &other, kda64_lane<Keys> &e) {
    constexpr int width = kda64_width(Keys);
#pragma unroll 1
    for (; count > 0; --count, other += step) {
#pragma unroll
        for (int group = 0; group < Keys / 32 / width; ++group) {
            const float *at = totals + other * Keys + kda64_channel(Keys, lane, group);
            float *to = e + group * width;
            if constexpr (width == 4) {
                const float4 v = *reinterpret_cast<const float4 *>(at);
                to[0] *= v.x, to[1] *= v.y, to[2] *= v.z, to[3] *= v.w;
            } else {
                const float2 v = *reinterpret_cast<const float2 *>(at);
                to[0] *= v.x, to[1] *= v.y;
            }
        }
    }
}

/// A lane's floats of all channels to shared or global memory.
template <int Keys>
__device__ __forceinline__ void kda64_put_floats(float *to, int lane, const kda64_lane<Keys> &x) {
    constexpr int width = kda64_width(Keys);
#pragma unroll
    for (int group = 0; group < Keys / 32 / width; ++group) {
        float *at = to + kda64_channel(Keys, lane, group);
        const float *from = x + group * width;
        if constexpr (width == 4)
            *reinterpret_cast<float4 *>(at) = make_float4(from[0], from[1], from[2], from[3]);
        else
            *reinterpret_cast<float2 *>(at) = make_float2(from[0], from[1]);
    }
}

/// e^g and words of beta of this warp's rows. `loads`: what else is to be on its way meanwhile.
template <int Keys, class Loads>
__device__ __forceinline__ float kda64_take_gates(const kda_chunk64_prep_args &a,
                                                  const kda64_source<Keys> &from,
                                                  const kda_chunk_place &at, int64_t hv, int row,
                                                  Loads loads, kda64_lane<Keys> (&e)[8]) {
    constexpr int each = Keys / 32;
    const kda_problem &p = a.p;
    const int lane = from.lane;
    uint32_t w[8][Keys / 64], rate = 0, biases[each];
    const int beta_row = max(min(lane % 8, from.left - 1), -row); // one that is there
    const uint32_t beta = kda_load_bits(
        a.in.beta, kda_at(p.beta, at.row, at.token + row + beta_row, hv), p.beta.type);
    if (p.a_log.used()) rate = kda_load_bits(a.in.a_log, hv * p.a_log.h, p.a_log.type);
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const int channel = min(from.channel_of(j), from.dim_k - 1);
        biases[j] = p.dt_bias.used()
                        ? kda_load_bits(a.in.dt_bias, hv * p.dt_bias.h + channel * p.dt_bias.c,
                                        p.dt_bias.type)
                        : 0;
    }
    from.load(w);
    loads();
    kda64_widen_rows<Keys>(from, w, e);
    kda64_lane<Keys> bias;
#pragma unroll
    for (int j = 0; j < each; ++j) bias[j] = kda_widen(biases[j], p.dt_bias.type);
    kda64_gates<Keys>(p, p.a_log.used() ? expf(kda_widen(rate, p.a_log.type)) : 1.0f, bias, e);
    if (from.left < 8 || p.dim_k != Keys) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int j = 0; j < each; ++j)
                if (!from.there(i, from.channel_of(j))) e[i][j] = 1;
        }
    }
    if (lane % 8 >= from.left) return 0;
    const float value = kda_beta_of(p, kda_widen(beta, p.beta.type));
    return fabsf(value) < a.least_beta ? a.least_beta : value;
}

/// Pairs within this warp's eight rows.
template <int Keys, scalar S>
__device__ __forceinline__ void
kda64_near_pairs(const kda64_rows_q<Keys, S> &q, const kda64_lane<Keys> (&k)[8],
                 const kda64_lane<Keys> (&e)[8], char *shared, int warp, int lane, int at) {
    char *near = kda64_factors_of<Keys>(shared, 5, warp);
    const char *lower = near + 16 * kda64_row_bytes<Keys>;
    const kda64_squares to = kda64_squares_of<Keys>(shared);
    kda64_put_near01<Keys, S>(q, k, e, near, at);
    __syncwarp(); // factors and scales are written
    float d[mma_items_d] = {};
    kda64_meet_tiles<Keys>(near, lower, lane, d);
    kda64_put_near<0, true>(d, warp, lane, to);
    __syncwarp(); // factors are read
    kda64_put_near2<Keys, S>(q, k, e, near, at);
    __syncwarp(); // factors are written
#pragma unroll
    for (int i = 0; i < mma_items_d; ++i) d[i] = 0;
    kda64_meet_tiles<Keys>(near, lower, lane, d);
    kda64_put_near<2, false>(d, warp, lane, to);
    __syncwarp(); // factors are read
}

/// Any gate. Pairs within eight rows by levels; rows as lower ones, their decays to borders behind
/// them; then k and x, of q, with the decays within the warp, and run: that of the warp before of
/// its pair.
template <int Keys, scalar S>
__device__ __forceinline__ void
kda64_rows_by_levels(const kda64_rows_q<Keys, S> &q, kda64_lane<Keys> (&k)[8],
                     kda64_lane<Keys> (&e)[8], char *shared, char *kr, int warp, int lane, int at,
                     int place, kda64_lane<Keys> (&x)[8], kda64_lane<Keys> &run) {
    const auto *totals =
        reinterpret_cast<const float *>(shared + kda64_prep_shared_of(Keys).totals);
    kda64_near_pairs<Keys, S>(q, k, e, shared, warp, lane, at);
    int other = warp + 1;
    kda64_ones<Keys>(run);
    if (!(warp & 1)) kda64_put_lower<Keys>(k, e, kda64_factors_of<Keys>(shared, 3, warp), at, run);
    kda64_pass<Keys>(totals, lane, ~warp & 1, 1, other, run);
    if (!(warp & 2)) kda64_put_lower<Keys>(k, e, kda64_factors_of<Keys>(shared, 4, warp), at, run);
    kda64_pass<Keys>(totals, lane, ~warp & 2, 1, other, run);
    if (!(warp & 4)) kda64_put_lower<Keys>(k, e, kda64_factors_of<Keys>(shared, 5, warp), at, run);
    kda64_pass<Keys>(totals, lane, ~warp & 4, 1, other, run);
    kda64_put_lower<Keys, kda64_into::record>(k, e, kr, place, run);
    // The loop comes first, for what stands on both sides of it is not mixed.
    other = warp - 1;
    kda64_ones<Keys>(run);
    kda64_pass<Keys>(totals, lane, warp & 1, -1, other, run);
    kda64_lane<Keys> within;
    kda64_ones<Keys>(within);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        kda64_times<Keys>(within, e[i]);
        kda64_times<Keys>(k[i], within);
        q.row(i, x[i]);
        kda64_times<Keys>(x[i], within);
    }
    if (warp & 1) {
        char *to = kda64_factors_of<Keys>(shared, 3, warp);
        kda64_put_rows<Keys>(k, to, at);
        kda64_put_rows<Keys>(x, to + 8 * kda64_row_bytes<Keys>, at);
    }
}

/// S: the type of q.
template <int Keys, scalar S>
__device__ __forceinline__ void kda64_elements(const kda_chunk64_prep_args &a,
                                               const kda_chunk_place &at, int64_t hv, char *shared,
                                               char *record) {
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int eight = 8 * kda64_row_bytes<Keys>;
    const kda_problem &p = a.p;
    const int self = kda64_anew(static_cast<int>(threadIdx.x)), warp = self >> 5, lane = self & 31;
    auto *totals = reinterpret_cast<float *>(shared + s.totals);
    auto *scales = reinterpret_cast<float *>(shared + s.scales);
    const int left = at.rows - 8 * warp, dim_k = static_cast<int>(p.dim_k);
    const int64_t token = left > 0 ? at.token + 8 * warp : at.token,
                  h = static_cast<uint32_t>(hv) / static_cast<uint32_t>(a.group);
    kda64_rows_q<Keys, S> q = {
        {p.q, a.in.q, kda_at(p.q, at.row, token, h), lane, left, dim_k, a.wide_q}, {}};
    const kda64_source<Keys> from_k = {p.k,   a.in.k,  kda_at(p.k, at.row, token, h), lane, left,
                                       dim_k, a.wide_k};
    kda64_lane<Keys> k[8], e[8], run;
    uint32_t words[8][Keys / 64];
    const float beta = kda64_take_gates<Keys>(
        a, {p.g, a.in.g, kda_at(p.g, at.row, token, hv), lane, left, dim_k, a.wide_g}, at, hv,
        8 * warp,
        [&] {
            from_k.load(words);
            q.load();
        },
        e);
    // In an order of its own: products that others share would wait in registers for them.
    constexpr int order[] = {0, 2, 5, 7, 1, 4, 6, 3};
    kda64_copy<Keys>(run, e[order[0]]);
#pragma unroll
    for (int i = 1; i < 8; ++i) kda64_times<Keys>(run, e[order[i]]);
    kda64_put_floats<Keys>(totals + warp * Keys, lane, run);
    if (lane < 8) {
        reinterpret_cast<float *>(shared + s.beta)[8 * warp + lane] = beta;
        reinterpret_cast<float *>(record + r.beta)[8 * warp + lane] = beta;
    }
    __syncthreads(); // totals are written; F, A, M of the chunk before are read
    const int at_factor = kda64_factor_at(Keys, 0, kda64_channel(Keys, lane, 0));
    kda64_norms<Keys, S>(p, q, from_k, words, k, warp, lane, at_factor,
                         kda64_factors_of<Keys>(shared, 5, warp), scales, shared + s.a);
    const int place = kda64_at(Keys, 0, kda64_channel(Keys, lane, 0));
    char *kr = record + r.kr + kda64_tile_bytes(8 * warp, Keys);
    kda64_lane<Keys> x[8];
    kda64_rows_by_levels<Keys, S>(q, k, e, shared, kr, warp, lane, at_factor, place, x, run);
    // Rows as upper ones, their decays from borders before them.
    int other = warp - 1 - (warp & 1);
    if (warp & 2) {
        char *to = kda64_factors_of<Keys>(shared, 4, warp);
        kda64_put_rows<Keys>(k, to, at_factor, run);
        kda64_put_rows<Keys>(x, to + eight, at_factor, run);
    }
    kda64_pass<Keys>(totals, lane, warp & 2, -1, other, run);
    if (warp & 4) {
        char *to = kda64_factors_of<Keys>(shared, 5, warp);
        kda64_put_rows<Keys>(k, to, at_factor, run);
        kda64_put_rows<Keys>(x, to + eight, at_factor, run);
    }
    kda64_pass<Keys>(totals, lane, warp & 4, -1, other, run);
    const int at_row = kda64_anew(place);
    char *rows_k = record + r.k + kda64_tile_bytes(8 * warp, Keys);
    char *rows_q = record + r.q + kda64_tile_bytes(8 * warp, Keys);
#pragma unroll
    for (int i = 0; i < 8; ++i) { // both to addresses that differ by a constant
        const float by = scales[8 * warp + i];
        kda64_put_product<Keys, kda64_into::record>(rows_k, at_row, i, k[i], run);
#pragma unroll
        for (int j = 0; j < Keys / 32; ++j) x[i][j] *= by * run[j];
        kda64_put_row<Keys, kda64_into::record>(rows_q, at_row, i, x[i]);
    }
    if (warp == kda64_prep_warps - 1) {
        other = warp;
        kda64_pass<Keys>(totals, lane, 1, 0, other, run);
        kda64_put_floats<Keys>(reinterpret_cast<float *>(record + r.gamma), lane, run);
    }
}

} // namespace plait::impl::cuda
