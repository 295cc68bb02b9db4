// Eight rows of a chunk in the registers of a warp: loads, gates and norms of kda.chunk64_prep.
// Decays are carried on as factors e^g of each token: a factor over several tokens is their
// product, no sum of gates and one exponential for each element.
#pragma once

#include "lib/cuda/kda/chunk64_common.cuh"
#include "lib/cuda/kda/chunk64_prep_layout.h"

namespace plait::impl::cuda {

/// A lane's channels of a row: channel j % width of group j / width (kda64_channel).
template <int Keys> using kda64_lane = float[Keys / 32];

__device__ __forceinline__ float kda64_exp2(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}
/// 0 for an infinite x.
__device__ __forceinline__ float kda64_reciprocal(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

/// log2(1 + t) for 0 <= t <= 1 to 2e-7 of itself: by s = t / (2 + t) it is 2 atanh(s) / ln 2.
__device__ __forceinline__ float kda64_log2_1p(float t) {
    const float s = t * kda64_reciprocal(2.0f + t), z = s * s;
    float sum = __fmaf_rn(z, 0x1.f94bfcp-2f, 0x1.247580p-1f);
    sum = __fmaf_rn(z, sum, 0x1.ec81fap-1f);
    return s * __fmaf_rn(z, sum, 0x1.715472p+1f);
}

constexpr float kda64_log2_e = 1.44269504f;

/// x = G + bias to e^g for all elements.
template <int Keys>
__device__ __forceinline__ void kda64_gates(const kda_problem &p, float rate,
                                            const kda64_lane<Keys> &bias,
                                            kda64_lane<Keys> (&x)[8]) {
    constexpr int each = Keys / 32;
    if (p.gate == kda_gate::bounded) {
        const float by = -rate * kda64_log2_e;
        const float bound = static_cast<float>(p.lower_bound) * kda64_log2_e;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int c = 0; c < each; ++c) {
                const float t = kda64_exp2(__fmaf_rn(by, x[i][c], by * bias[c]));
                x[i][c] = kda64_exp2(bound * kda64_reciprocal(1.0f + t));
            }
        }
    } else if (p.gate == kda_gate::softplus) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int c = 0; c < each; ++c) {
                const float y = __fmaf_rn(x[i][c], kda64_log2_e, bias[c] * kda64_log2_e);
                const float log = fmaxf(y, 0.0f) + kda64_log2_1p(kda64_exp2(-fabsf(y)));
                x[i][c] = kda64_exp2(-rate * log);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int c = 0; c < each; ++c) x[i][c] = kda64_exp2((x[i][c] + bias[c]) * kda64_log2_e);
        }
    }
}

/// Eight rows of a tensor, those from `left` on and channels from dim_k on zero. What is not there
/// is a load of something that is and a choice of zero: loads under predicates would hold their
/// registers from chunk to chunk.
template <int Keys> struct kda64_source {
    static constexpr int width = kda64_width(Keys);

    const kda_view &v;
    const void *base;
    int64_t at; ///< the first row
    int lane, left, dim_k;
    bool wide;

    __device__ __forceinline__ bool there(int row, int channel) const {
        return row < left && channel < dim_k;
    }
    /// From row i to row i + 1. Anew: its multiples would be kept from chunk to chunk.
    __device__ __forceinline__ int64_t step(int i) const {
        return i + 1 < left ? kda64_anew(v.t) : 0;
    }
    __device__ __forceinline__ int channel_of(int j) const {
        return kda64_channel(Keys, lane, j / width) + j % width;
    }

    /// 16-bit elements; of others words are 0, as undefined ones too would hold registers.
    __device__ __forceinline__ void load(uint32_t (&w)[8][Keys / 64]) const {
        if (v.type == scalar::f32) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
#pragma unroll
                for (int c = 0; c < Keys / 64; ++c) w[i][c] = 0;
            }
        } else if (wide && left >= 8 && dim_k == Keys) {
            load_fours<true>(w);
        } else if (wide) {
            load_fours<false>(w);
        } else {
            load_each(w);
        }
    }
    template <bool All>
    __device__ __forceinline__ void load_fours(uint32_t (&w)[8][Keys / 64]) const {
#pragma unroll
        for (int group = 0; group < Keys / 32 / width; ++group) {
            const int channel = kda64_channel(Keys, lane, group);
            const auto *from = static_cast<const uint16_t *>(base) + at +
                               (All ? channel : min(channel, dim_k - width));
            const int64_t whole = kda64_anew(v.t);
#pragma unroll
            for (int i = 0; i < 8; ++i, from += All ? whole : step(i - 1)) {
                const bool here = All || there(i, channel);
                if constexpr (width == 4) {
                    const uint2 x = __ldg(reinterpret_cast<const uint2 *>(from));
                    w[i][2 * group] = here ? x.x : 0, w[i][2 * group + 1] = here ? x.y : 0;
                } else {
                    const uint32_t x = __ldg(reinterpret_cast<const uint32_t *>(from));
                    w[i][group] = here ? x : 0;
                }
            }
        }
    }
    __device__ __forceinline__ void load_each(uint32_t (&w)[8][Keys / 64]) const {
        const auto *from = static_cast<const uint16_t *>(base) + at;
#pragma unroll
        for (int i = 0; i < 8; ++i, from += step(i - 1)) {
#pragma unroll
            for (int j = 0; j < Keys / 32; j += 2) {
                const uint32_t low = __ldg(from + min(channel_of(j), dim_k - 1) * v.c);
                const uint32_t high = __ldg(from + min(channel_of(j + 1), dim_k - 1) * v.c);
                w[i][j / 2] = (there(i, channel_of(j)) ? low : 0) |
                              (there(i, channel_of(j + 1)) ? high : 0) << 16;
            }
        }
    }
    /// A row of f32.
    __device__ __forceinline__ void load_row(int i, kda64_lane<Keys> &x) const {
        const int row = max(min(i, left - 1), 0);
        const auto *from = static_cast<const float *>(base) + at + row * kda64_anew(v.t);
        if (wide) {
#pragma unroll
            for (int group = 0; group < Keys / 32 / width; ++group) {
                const int channel = min(kda64_channel(Keys, lane, group), dim_k - width);
                float *to = x + group * width;
                if constexpr (width == 4) {
                    const float4 all = __ldg(reinterpret_cast<const float4 *>(from + channel));
                    to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
                } else {
                    const float2 all = __ldg(reinterpret_cast<const float2 *>(from + channel));
                    to[0] = all.x, to[1] = all.y;
                }
            }
        } else {
#pragma unroll
            for (int j = 0; j < Keys / 32; ++j)
                x[j] = __ldg(from + min(channel_of(j), dim_k - 1) * v.c);
        }
#pragma unroll
        for (int j = 0; j < Keys / 32; ++j) x[j] = there(i, channel_of(j)) ? x[j] : 0.0f;
    }
};

template <int Keys, scalar S>
__device__ __forceinline__ void kda64_widen_row(const uint32_t (&w)[Keys / 64],
                                                kda64_lane<Keys> &x) {
#pragma unroll
    for (int c = 0; c < Keys / 64; ++c) widen_pair<S>(w[c], x[2 * c], x[2 * c + 1]);
}
/// All rows, by way of words where elements have 16 bits.
template <int Keys>
__device__ __forceinline__ void kda64_widen_rows(const kda64_source<Keys> &from,
                                                 const uint32_t (&w)[8][Keys / 64],
                                                 kda64_lane<Keys> (&x)[8]) {
    if (from.v.type == scalar::bf16) {
#pragma unroll
        for (int i = 0; i < 8; ++i) kda64_widen_row<Keys, scalar::bf16>(w[i], x[i]);
    } else if (from.v.type == scalar::f16) {
#pragma unroll
        for (int i = 0; i < 8; ++i) kda64_widen_row<Keys, scalar::f16>(w[i], x[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) from.load_row(i, x[i]);
    }
}

/// Rows of q as they are needed, from words or from memory.
template <int Keys, scalar S> struct kda64_rows_q {
    kda64_source<Keys> from;
    uint32_t w[8][Keys / 64];

    __device__ __forceinline__ void load() {
        if constexpr (S != scalar::f32) from.load(w);
    }
    __device__ __forceinline__ void row(int i, kda64_lane<Keys> &x) const {
        if constexpr (S == scalar::f32)
            from.load_row(i, x);
        else {
            uint32_t anew[Keys / 64]; // else all rows wait as floats from the first use on
#pragma unroll
            for (int c = 0; c < Keys / 64; ++c)
                anew[c] = static_cast<uint32_t>(kda64_anew(static_cast<int>(w[i][c])));
            kda64_widen_row<Keys, S>(anew, x);
        }
    }
};

/// Sums over the lanes of a warp: of eight rows, lane l gets that of row l / 4. x is used up.
template <int By = 16> __device__ __forceinline__ float kda64_sum_eight(float (&x)[8], int lane) {
    if constexpr (By >= 4) {
        const bool high = (lane & By) != 0;
#pragma unroll
        for (int i = 0; i < By / 4; ++i) {
            const float low_row = x[i], high_row = x[i + By / 4];
            const float other = __shfl_xor_sync(0xffffffffu, high ? low_row : high_row, By);
            x[i] = (high ? high_row : low_row) + other;
        }
        return kda64_sum_eight<By / 2>(x, lane);
    } else {
        x[0] += __shfl_xor_sync(0xffffffffu, x[0], 2);
        return x[0] + __shfl_xor_sync(0xffffffffu, x[0], 1);
    }
}

template <int Keys>
__device__ __forceinline__ float kda64_dot(const kda64_lane<Keys> &x, const kda64_lane<Keys> &y) {
    float sum = x[0] * y[0];
#pragma unroll
    for (int j = 1; j < Keys / 32; ++j) sum = __fmaf_rn(x[j], y[j], sum);
    return sum;
}

/// Products of eight rows with themselves: of k, of q, of one with the other.
struct kda64_squares_of_rows {
    float kk, qk, qq;
};

/// The same of words that have the type of q: products of all rows with all on tensor cores, by way
/// of `near`, 16 rows of this warp; lane kda64_lane_of(row) gets those of its row.
template <int Keys, scalar S>
__device__ __forceinline__ kda64_squares_of_rows kda64_meet_rows(const uint32_t (&q)[8][Keys / 64],
                                                                 const uint32_t (&k)[8][Keys / 64],
                                                                 int lane, int at, char *near) {
    constexpr int width = kda64_width(Keys);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int group = 0; group < Keys / 32 / width; ++group) {
            char *to = near + at + kda64_factor_at(Keys, i, 32 * width * group);
            char *to_q = to + kda64_factor_at(Keys, 8, 0);
            if constexpr (width == 4) {
                *reinterpret_cast<uint2 *>(to) = make_uint2(k[i][2 * group], k[i][2 * group + 1]);
                *reinterpret_cast<uint2 *>(to_q) = make_uint2(q[i][2 * group], q[i][2 * group + 1]);
            } else {
                *reinterpret_cast<uint32_t *>(to) = k[i][group];
                *reinterpret_cast<uint32_t *>(to_q) = q[i][group];
            }
        }
    }
    __syncwarp(); // rows are written
    const char *of_a = near + kda64_factor_at(Keys, lane & 15, (lane >> 4) * 8);
    float with_k[mma_items_d] = {}, with_q[mma_items_d] = {};
#pragma unroll
    for (int c = 0; c < Keys; c += 16) {
        uint32_t a[4];
        load_matrices(a, of_a + 2 * c);
        mma_add<S>(with_k, a, {a[0], a[2]});
        mma_add<S>(with_q, a, {a[1], a[3]});
    }
    __syncwarp(); // rows are read
    const bool odd = (lane & 4) != 0;
    return {odd ? with_k[1] : with_k[0], odd ? with_k[3] : with_k[2], odd ? with_q[3] : with_q[2]};
}
/// Where row and column of a product's rows meet.
__device__ __forceinline__ constexpr int kda64_lane_of(int row) { return 4 * row + row / 2; }

/// Rows of k, normalized; what rows of q are to be multiplied by goes to `scales`, the diagonal of
/// A to its tile, both of this warp's rows.
template <int Keys, scalar S>
__device__ __forceinline__ void
kda64_norms(const kda_problem &p, const kda64_rows_q<Keys, S> &q, const kda64_source<Keys> &from_k,
            const uint32_t (&words)[8][Keys / 64], kda64_lane<Keys> (&k)[8], int warp, int lane,
            int at, char *near, float *scales, char *a) {
    kda64_squares_of_rows sum{};
    if (S != scalar::f32 && from_k.v.type == S) {
        if constexpr (S != scalar::f32) {
            sum = kda64_meet_rows<Keys, S>(q.w, words, lane, at, near);
#pragma unroll
            for (int i = 0; i < 8; ++i) kda64_widen_row<Keys, S>(words[i], k[i]);
        }
    } else {
        kda64_widen_rows<Keys>(from_k, words, k);
        float kk[8], qk[8], qq[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            kda64_lane<Keys> x;
            q.row(i, x);
            kk[i] = kda64_dot<Keys>(k[i], k[i]);
            qk[i] = kda64_dot<Keys>(x, k[i]);
            qq[i] = kda64_dot<Keys>(x, x);
        }
        sum = {kda64_sum_eight(kk, lane), kda64_sum_eight(qk, lane), kda64_sum_eight(qq, lane)};
    }
    float scale = static_cast<float>(p.scale);
    if (p.norm) {
        const auto eps = static_cast<float>(p.eps);
        float of_k = rsqrtf(sum.kk + eps);
        scale *= rsqrtf(sum.qq + eps);
        if (lane / 4 >= q.from.left) of_k = scale = 0.0f; // infinite without eps
        sum.qk *= of_k;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float by = __shfl_sync(0xffffffffu, of_k, kda64_lane_of(i));
#pragma unroll
            for (int j = 0; j < Keys / 32; ++j) k[i][j] *= by;
        }
    }
    if (lane == kda64_lane_of(lane / 4)) {
        const int i = 8 * warp + lane / 4;
        scales[i] = scale;
        *reinterpret_cast<uint16_t *>(a + kda64_at(64, i, i)) =
            round_half<scalar::bf16>(sum.qk * scale);
    }
}

} // namespace plait::impl::cuda
