// What pairs of tokens of a chunk add to the gradients of its rows, and sums over its tokens: for
// kda.bwd_c16_b3. A warp has tiles of rows channels, columns tokens: a channel's 16 tokens lie in
// four lanes, 2 c, 2 c + 1 and these and eight in lane c of them.
#pragma once

#include "lib/cuda/kda/chunk16_through.cuh"

namespace plait::impl::cuda {

constexpr int kda_c16_square = 17; ///< floats between rows of P and D

/// Sum over the lanes before this one, of four.
__device__ __forceinline__ float kda_c16_before(float mine) {
    const int c = kda_lane() % 4;
    const float one = __shfl_up_sync(kda_all_lanes, mine, 1, 4),
                two = __shfl_up_sync(kda_all_lanes, mine, 2, 4),
                three = __shfl_up_sync(kda_all_lanes, mine, 3, 4);
    return (c > 2 ? three : 0.0f) + (c > 1 ? two : 0.0f) + (c > 0 ? one : 0.0f);
}
/// Over the lanes behind it.
__device__ __forceinline__ float kda_c16_behind(float mine) {
    const int c = kda_lane() % 4;
    const float one = __shfl_down_sync(kda_all_lanes, mine, 1, 4),
                two = __shfl_down_sync(kda_all_lanes, mine, 2, 4),
                three = __shfl_down_sync(kda_all_lanes, mine, 3, 4);
    return (c < 1 ? three : 0.0f) + (c < 2 ? two : 0.0f) + (c < 3 ? one : 0.0f);
}
__device__ __forceinline__ float kda_c16_quad_sum(float mine) {
    mine += __shfl_xor_sync(kda_all_lanes, mine, 1);
    return mine + __shfl_xor_sync(kda_all_lanes, mine, 2);
}

/// Of four tokens, 2 c, 2 c + 1 and these and eight: sums over the tokens before each.
__device__ __forceinline__ void kda_c16_sum_before(const float (&v)[4], float (&sum)[4]) {
    const float low = v[0] + v[1], first = kda_c16_before(low),
                second = kda_c16_quad_sum(low) + kda_c16_before(v[2] + v[3]);
    sum[0] = first, sum[1] = first + v[0], sum[2] = second, sum[3] = second + v[2];
}
__device__ __forceinline__ void kda_c16_sum_behind(const float (&v)[4], float (&sum)[4]) {
    const float high = v[2] + v[3], second = kda_c16_behind(high),
                first = kda_c16_quad_sum(high) + kda_c16_behind(v[0] + v[1]);
    sum[3] = second, sum[2] = second + v[3], sum[1] = first, sum[0] = first + v[1];
}

/// What of a level's pairs straddles the gates of this lane's tokens; value: what a token of a
/// lower half is the column of, one of an upper half the row.
template <int Level>
__device__ __forceinline__ void kda_c16_straddle(const float (&value)[8], float (&dg)[8]) {
    const int c = kda_lane() % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) { // two tokens side by side of a channel
        const int e = 2 * i;
        const float v0 = value[e], v1 = value[e + 1], both = v0 + v1;
        if (Level == 0) {
            dg[e + 1] += v1;
            continue;
        }
        bool lower = Level == 1 ? c % 2 == 0 : Level == 2 ? c < 2 : i < 2;
        float beside = 0;
        if (Level == 2) {
            const float other = __shfl_xor_sync(kda_all_lanes, both, 1);
            beside = (c % 2 != 0) == lower ? other : 0.0f;
        }
        if (Level == 3) beside = i < 2 ? kda_c16_before(both) : kda_c16_behind(both);
        dg[e] += lower ? beside : beside + both;
        dg[e + 1] += beside + (lower ? v0 : v1);
    }
}

/// A tile of 16 channels while its gradients are made; elements: rows channels, columns tokens.
template <scalar S> struct kda_c16_channels {
    const float *q, *k, *g; ///< of the first channel, tokens `pitch` apart
    int pitch;
    float dq[8], dk[8], dg[8];

    __device__ __forceinline__ int place(int e) const {
        return kda_tile_column(e) * pitch + kda_tile_row(e);
    }

    /// Pairs of a level: a token of an upper half is a row, of a lower half a column. `weights`: P
    /// then D.
    template <int Level> __device__ __forceinline__ void pairs(const float *weights) {
        float decay[8], ke[8], qe[8], to_row[8], to_column[8], of_k[8], by_p[8], by_k[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            decay[e] = kda_c16_level_decay(g + kda_tile_row(e), pitch, kda_tile_column(e), Level);
            ke[e] = k[place(e)] * decay[e];
            qe[e] = q[place(e)] * decay[e];
            const int to = kda_tile_row(e), from = kda_tile_column(e);
            const bool here = to != from && kda_c16_level(to, from) == Level;
            const int pair = max(to, from) * kda_c16_square + min(to, from);
            const float p = here ? weights[pair] : 0.0f;
            to_row[e] = from < to ? p : 0.0f;
            to_column[e] = from > to ? p : 0.0f;
            of_k[e] = here ? weights[16 * kda_c16_square + pair] : 0.0f;
            by_p[e] = by_k[e] = 0;
        }
        const kda_tile<S> keys = kda_make_tile<S>(ke);
        kda_product<S>(by_p, keys, kda_make_tile<S>(to_row));
        kda_product<S>(by_k, keys, kda_make_tile<S>(of_k));
        kda_product<S>(by_k, kda_make_tile<S>(qe), kda_make_tile<S>(to_column));
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            dq[e] = __fmaf_rn(decay[e], by_p[e], dq[e]);
            dk[e] = __fmaf_rn(decay[e], by_k[e], dk[e]);
            by_p[e] = __fmaf_rn(qe[e], by_p[e], ke[e] * by_k[e]);
        }
        kda_c16_straddle<Level>(by_p, dg);
    }

    /// What came through the states; p of a token with itself.
    __device__ __forceinline__ void states(const kda_c16_args &a, int64_t at, int tile,
                                           const float *beta) {
        float by_q[8], by_k[8], written[8];
        const auto load = [&](int which, float(&to)[8]) {
            kda_widen_tile(
                kda_load_tile<scalar::f32>(
                    reinterpret_cast<const char *>(kda_c16_through_at(a, at, which, tile)), 0),
                to);
        };
        load(0, by_q);
        load(1, by_k);
        load(2, written);
        const float scale = static_cast<float>(a.problem.scale);
#pragma unroll
        for (int x = 0; x < 2; ++x) {
            const int channel = kda_lane() / 4 + 8 * x;
            float gates[4], up[4], down[4], reads[4], writes[4], later[4], sooner[4];
#pragma unroll
            for (int t = 0; t < 4; ++t) gates[t] = g[place(t / 2 * 4 + 2 * x + t % 2)];
            kda_c16_sum_before(gates, up);
            kda_c16_sum_behind(gates, down);
            const float all =
                kda_c16_quad_sum(gates[0] + gates[1]) + kda_c16_quad_sum(gates[2] + gates[3]);
#pragma unroll
            for (int t = 0; t < 4; ++t) {
                const int e = t / 2 * 4 + 2 * x + t % 2;
                const float b = beta[kda_tile_column(e)], risen = expf(up[t] + gates[t]);
                const float from_q = scale * risen * by_q[e], from_k = -b * risen * by_k[e];
                const float write = b * expf(down[t]) * written[e];
                const float key = k[place(e)];
                reads[t] = __fmaf_rn(q[place(e)], from_q, key * from_k);
                writes[t] = key * write;
                dq[e] = from_q;
                dk[e] = from_k + write;
            }
            kda_c16_sum_before(writes, sooner);
            kda_c16_sum_behind(reads, later);
            const float dot = expf(all) * kda_c16_dots_at(a, at)[16 * tile + channel];
#pragma unroll
            for (int t = 0; t < 4; ++t)
                dg[t / 2 * 4 + 2 * x + t % 2] = dot + sooner[t] + (later[t] + reads[t]);
        }
    }
};

/// Gradients of q, k and gates of this warp's channels take the place of q, k and gates.
template <scalar S>
__device__ __forceinline__ void kda_c16_channel_tiles(const kda_c16_args &a, int64_t at,
                                                      float *rows, const float *weights,
                                                      const float *beta) {
    const int pitch = kda_c16_pitch(a.kt), each = kda_c16 * pitch;
    for (int tile = kda_warp(); tile < a.kt; tile += kda_c16_warps) {
        float *q = rows + 16 * tile, *k = q + each, *g = k + each;
        kda_c16_channels<S> t{q, k, g, pitch, {}, {}, {}};
        t.states(a, at, tile, beta);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float same = weights[kda_tile_column(e) * (kda_c16_square + 1)];
            t.dq[e] = __fmaf_rn(same, k[t.place(e)], t.dq[e]);
            t.dk[e] = __fmaf_rn(same, q[t.place(e)], t.dk[e]);
        }
        t.template pairs<0>(weights);
        t.template pairs<1>(weights);
        t.template pairs<2>(weights);
        t.template pairs<3>(weights);
        __syncwarp(); // all lanes have read these columns
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            q[t.place(e)] = t.dq[e];
            k[t.place(e)] = t.dk[e];
            g[t.place(e)] = t.dg[e];
        }
    }
}

} // namespace plait::impl::cuda
