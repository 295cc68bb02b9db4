// kda.chunk64_prep: the record of a chunk and value head (chunk64_layout.h) from q, k, g, beta:
// norm, gate, beta, decays, F and A by binary anchors, M = (I + beta F)^-1.
//   layout   a block is a chunk of a value head; a warp has eight rows of all channels in registers
//   decays   e^g once for each element; all factors are products of these over tokens that follow
//            one another, so that none is above 1: within eight rows of the warp's own, beyond them
//            of the totals that warps leave in shared memory
//   pairs    levels of 1, 2, 4 rows by each warp alone, those of 8, 16, 32 across: factors as bf16
//            to shared memory, products on tensor cores, F as f32 and A as bf16 from there
//   inverse  f32: 16 rows by substitution, the rest by products of operands in two parts
//   reserve  records are what backward reads of one: forward then puts them there, and its header
//   traffic  keys = 128, 16-bit: reads 48 KiB (GVA: q and k again for each value head), writes 65
//            KiB; at 4.2 TB/s 27 ns for a chunk and head on a whole device
//   bound    instructions: 25 000 of warps for a chunk and head with keys = 128, of which an H200
//            issues 2.2 a cycle and SM; two blocks of an SM hide each other's barriers
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/kda/chunk64_prep_invert.cuh"
#include "lib/cuda/kda/chunk64_prep_pairs.cuh"

namespace plait::impl::cuda {

template <int Keys> constexpr int kda64_row_bytes = kda64_tile_bytes(1, Keys);

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

/// All that a chunk's elements are needed for: k+, q+, kR, gamma, beta of the record, factors of
/// all levels, pairs within eight rows. S: the type of q.
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
    __syncthreads(); // totals are written
    kda64_widen_rows<Keys>(from_k, words, k);
    kda64_norms<Keys, S>(p, q, k, warp, lane, scales, shared + s.a);
    const int place = kda64_at(Keys, 0, kda64_channel(Keys, lane, 0));
    kda64_near_pairs<Keys, S>(q, k, e, shared, warp, lane, place);
    // Rows as lower ones, their decays to borders behind them.
    int other = warp + 1;
    kda64_ones<Keys>(run);
    if (!(warp & 1))
        kda64_put_lower<Keys>(k, e, kda64_factors_of<Keys>(shared, 3, warp), place, run);
    kda64_pass<Keys>(totals, lane, ~warp & 1, 1, other, run);
    if (!(warp & 2))
        kda64_put_lower<Keys>(k, e, kda64_factors_of<Keys>(shared, 4, warp), place, run);
    kda64_pass<Keys>(totals, lane, ~warp & 2, 1, other, run);
    if (!(warp & 4))
        kda64_put_lower<Keys>(k, e, kda64_factors_of<Keys>(shared, 5, warp), place, run);
    kda64_pass<Keys>(totals, lane, ~warp & 4, 1, other, run);
    kda64_put_lower<Keys>(k, e, record + r.kr + warp * eight, place, run);
    // And as upper ones, from borders before them: k and q take up the decays within the warp. The
    // loop comes first, for what stands on both sides of it is not mixed.
    other = warp - 1;
    kda64_ones<Keys>(run);
    kda64_pass<Keys>(totals, lane, warp & 1, -1, other, run);
    kda64_lane<Keys> x[8], within;
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
        kda64_put_rows<Keys>(k, to, place);
        kda64_put_rows<Keys>(x, to + eight, place);
    }
    if (warp & 2) {
        char *to = kda64_factors_of<Keys>(shared, 4, warp);
        kda64_put_rows<Keys>(k, to, place, run);
        kda64_put_rows<Keys>(x, to + eight, place, run);
    }
    kda64_pass<Keys>(totals, lane, warp & 2, -1, other, run);
    if (warp & 4) {
        char *to = kda64_factors_of<Keys>(shared, 5, warp);
        kda64_put_rows<Keys>(k, to, place, run);
        kda64_put_rows<Keys>(x, to + eight, place, run);
    }
    kda64_pass<Keys>(totals, lane, warp & 4, -1, other, run);
    kda64_put_rows<Keys>(k, record + r.k + warp * eight, place, run);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float by = scales[8 * warp + i];
#pragma unroll
        for (int j = 0; j < Keys / 32; ++j) x[i][j] *= by * run[j];
    }
    kda64_put_rows<Keys>(x, record + r.q + warp * eight, place);
    if (warp == kda64_prep_warps - 1) {
        other = warp;
        kda64_pass<Keys>(totals, lane, 1, 0, other, run);
        kda64_put_floats<Keys>(reinterpret_cast<float *>(record + r.gamma), lane, run);
    }
}

/// Levels across warps, and the triangles of 16 rows inverted.
template <int Keys> __device__ __forceinline__ void kda64_across(char *shared, int warp, int lane) {
    const kda64_squares to = kda64_squares_of<Keys>(shared);
    const auto step = [](int level, int from) {
        return (kda64_factor_row(level, from + 1) - kda64_factor_row(level, from)) *
               kda64_row_bytes<Keys>;
    };
    if (warp < 4) {
        float d[1][4][mma_items_d] = {};
        kda64_meet_all<Keys, 1, 4>(kda64_factors_of<Keys>(shared, 5, 4 + warp), 0,
                                   kda64_factors_of<Keys>(shared, 5, 0), step(5, 0), lane, d);
#pragma unroll
        for (int l = 0; l < 4; ++l) kda64_put_pairs(d[0][l], 4 + warp, l, lane, to);
    } else if (warp < 6) {
        const int first = 4 * (warp - 4);
        float d[2][2][mma_items_d] = {};
        kda64_meet_all<Keys, 2, 2>(kda64_factors_of<Keys>(shared, 4, first + 2), step(4, first + 2),
                                   kda64_factors_of<Keys>(shared, 4, first), step(4, first), lane,
                                   d);
#pragma unroll
        for (int t = 0; t < 4; ++t)
            kda64_put_pairs(d[t / 2][t % 2], first + 2 + t / 2, first + t % 2, lane, to);
    } else {
        const int first = 4 * (warp - 6);
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            float d[mma_items_d] = {};
            kda64_meet_tiles<Keys>(kda64_factors_of<Keys>(shared, 3, first + n + 1),
                                   kda64_factors_of<Keys>(shared, 3, first + n), lane, d);
            kda64_put_pairs(d, first + n + 1, first + n, lane, to);
        }
        __syncwarp(); // the triangles are there
        const int row = 8 * first + lane / 16 * 16;
        kda64_invert_triangle(to.f + row * kda64_f_pitch + row, lane % 16);
    }
}

/// M and A to the record: three warps invert and copy what they have, the others all else.
template <int Keys>
__device__ __forceinline__ void kda64_put_squares(char *shared, char *record, int warp, int lane) {
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    const auto *f = reinterpret_cast<const float *>(shared + s.f);
    if (warp < 3) {
        kda64_invert_columns(f, shared + s.m, warp, lane);
        __syncwarp(); // the columns are written
        for (int e = 32 * (warp + 1) + lane; e < 2 * 64; e += 32) {
            const int at = kda64_at(64, e / 2, 16 * warp + e % 2 * 8);
            *reinterpret_cast<uint4 *>(record + r.m + at) =
                *reinterpret_cast<const uint4 *>(shared + s.m + at);
        }
        return;
    }
    const int self = 32 * (warp - 3) + lane;
    for (int e = self; e < 64 * 64 / 8; e += 32 * 5)
        reinterpret_cast<uint4 *>(record + r.a)[e] =
            reinterpret_cast<const uint4 *>(shared + s.a)[e];
    for (int e = self; e < 64 * 64 / 8; e += 32 * 5) {
        const int row = e / 8, column = e % 8 * 8;
        if (column / 16 < row / 16) continue;
        uint4 words = make_uint4(0, 0, 0, 0);
        if (column / 16 == row / 16) {
            const auto *from = reinterpret_cast<const float4 *>(f + row * kda64_f_pitch + column);
            const float4 x = from[0], y = from[1];
            words.x = round_pair<scalar::bf16>(x.x, x.y);
            words.y = round_pair<scalar::bf16>(x.z, x.w);
            words.z = round_pair<scalar::bf16>(y.x, y.y);
            words.w = round_pair<scalar::bf16>(y.z, y.w);
        }
        *reinterpret_cast<uint4 *>(record + r.m + kda64_at(64, row, column)) = words;
    }
}

/// Q: the type of q. More than 128 keys and f32 take more registers than two blocks of an SM leave
/// each other.
template <int Keys, scalar Q>
__global__ void __launch_bounds__(32 * kda64_prep_warps, Keys <= 128 && Q != scalar::f32 ? 2 : 1)
    kda_chunk64_prep(const __grid_constant__ kda_chunk64_prep_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    start_successor(); // a scan takes places that this one leaves
    if (blockIdx.x == 0 && threadIdx.x == 0 && a.to != nullptr) *a.to = a.header;
    // Levels write below the diagonal only.
    for (int e = static_cast<int>(threadIdx.x); e < 64 * 64 / 8; e += 32 * kda64_prep_warps)
        reinterpret_cast<uint4 *>(shared + s.a)[e] = make_uint4(0, 0, 0, 0);
    // Records of 2^31 blocks are more than any memory, so that 32 bits number them.
    for (uint32_t block = blockIdx.x; block < static_cast<uint32_t>(a.blocks); block += gridDim.x) {
        const auto heads = static_cast<uint32_t>(kda64_anew(static_cast<int>(a.p.value_heads)));
        const int64_t hv = block % heads;
        const kda_chunk_place at =
            kda_chunk_of(a.p, a.table, a.chunks, a.slots, block / heads, kda64_rows);
        if (at.rows <= 0) continue; // all threads
        char *record = a.records + int64_t{block} * kda64_record_of(Keys).bytes;
        __syncthreads(); // F, A, M, totals of the chunk before are read
        kda64_elements<Keys, Q>(a, at, hv, shared, record);
        __syncthreads(); // factors and pairs of single warps are written
        const int self = kda64_anew(static_cast<int>(threadIdx.x));
        const int warp = self >> 5, lane = kda64_lane_anew();
        kda64_across<Keys>(shared, warp, lane);
        __syncthreads(); // F and A are written, triangles inverted, factors read: M takes their
                         // place
        kda64_put_squares<Keys>(shared, record, warp, lane);
    }
#endif
}

} // namespace plait::impl::cuda
