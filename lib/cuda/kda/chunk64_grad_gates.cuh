// Elements of the threads of kda.chunk64_grad in tensors, and its gates both ways. Exponentials are
// of base 2 and, like reciprocals, those of the hardware: their errors are some 2^-22.
#pragma once

#include "lib/cuda/kda/chunk64_grad_rows.cuh"

namespace plait::impl::cuda {

constexpr float kda64_log2_e = 1.44269504f, kda64_ln_2 = 0.693147181f;

__device__ __forceinline__ float kda64_exp2(float x) {
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return std::exp2(x);
#endif
}
__device__ __forceinline__ float kda64_log2(float x) {
#ifdef __CUDACC__
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return std::log2(x);
#endif
}
__device__ __forceinline__ float kda64_inverse(float x) {
#ifdef __CUDACC__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

/// Elements of a thread as they are stored, from the thread's first on: item i of t is channel i /
/// 2 and token i % 2.
struct kda64_items {
    int64_t at, token, channel; ///< strides to the next token and to the second channel
    int rows;                   ///< tokens from the first on
    bool first, second;         ///< channels that are there
    bool whole;                 ///< all are there, for all threads, and channels are neighbours

    __device__ __forceinline__ bool there(int t, int i) const {
        return 8 * t + i % 2 < rows && (i < 2 ? first : second);
    }
    __device__ __forceinline__ int64_t operator()(int t, int i) const {
        return at + (8 * t + i % 2) * token + (i < 2 ? 0 : channel);
    }
};

template <int Keys>
__device__ __forceinline__ kda64_items kda64_items_of(const kda_problem &p, const kda_view &v,
                                                      const kda_chunk_place &at, int64_t h,
                                                      const kda64_own &own) {
    const int token = 32 * own.half + 2 * own.quad;
    return {kda_at(v, at.row, at.token + token, h) + own.channel * v.c,
            v.t,
            8 * v.c,
            at.rows - token,
            own.channel < p.dim_k,
            own.channel + 8 < p.dim_k,
            at.rows == 64 && p.dim_k == Keys && v.c == 1};
}

/// 0 where nothing is. `slot`: 16 bytes of shared memory that are this thread's.
__device__ __forceinline__ void kda64_load_items(const void *base, scalar type,
                                                 const kda64_items &items, float4 *slot,
                                                 float (&x)[4][4]) {
    const auto all = [&](const auto *from, const auto &value) {
        from += items.at;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            const auto *next = from + items.token;
            x[t][0] = value(__ldg(from)), x[t][2] = value(__ldg(from + 8));
            x[t][1] = value(__ldg(next)), x[t][3] = value(__ldg(next + 8));
            from += 8 * items.token;
        }
    };
    if (items.whole && type == scalar::bf16) {
        all(static_cast<const uint16_t *>(base), [](uint16_t b) { return widen<scalar::bf16>(b); });
    } else if (items.whole && type == scalar::f16) {
        all(static_cast<const uint16_t *>(base), [](uint16_t b) { return widen<scalar::f16>(b); });
    } else if (items.whole && type == scalar::f32) {
        all(static_cast<const float *>(base), [](float b) { return b; });
    } else {
#pragma unroll
        for (int t = 0; t < 4; ++t) {
#pragma unroll 1
            for (int i = 0; i < 4; ++i)
                reinterpret_cast<float *>(slot)[i] =
                    items.there(t, i) ? kda_load(base, items(t, i), type) : 0.0f;
            const float4 v = *slot;
            x[t][0] = v.x, x[t][1] = v.y, x[t][2] = v.z, x[t][3] = v.w;
        }
    }
}

__device__ __forceinline__ void kda64_store_items(void *base, scalar type, const kda64_items &items,
                                                  float4 *slot, const float (&x)[4][mma_items_d]) {
    if (base == nullptr) return;
    const auto all = [&](auto *to, const auto &value) {
        to += items.at;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            auto *next = to + items.token;
            to[0] = value(x[t][0]), to[8] = value(x[t][2]);
            next[0] = value(x[t][1]), next[8] = value(x[t][3]);
            to += 8 * items.token;
        }
    };
    if (items.whole && type == scalar::bf16) {
        all(static_cast<uint16_t *>(base), [](float v) { return round_half<scalar::bf16>(v); });
    } else if (items.whole && type == scalar::f16) {
        all(static_cast<uint16_t *>(base), [](float v) { return round_half<scalar::f16>(v); });
    } else if (items.whole && type == scalar::f32) {
        all(static_cast<float *>(base), [](float v) { return v; });
    } else {
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            *slot = make_float4(x[t][0], x[t][1], x[t][2], x[t][3]);
#pragma unroll 1
            for (int i = 0; i < 4; ++i)
                if (items.there(t, i))
                    kda_store(base, items(t, i), type, reinterpret_cast<const float *>(slot)[i]);
        }
    }
}

/// DT_BIAS of two channels.
struct kda64_bias {
    float of[2];
};

__device__ __forceinline__ kda64_bias kda64_bias_of(const kda_problem &p, const void *base,
                                                    int64_t hv, const kda64_own &own) {
    const int more = own.channel + 8;
    return {{kda_bias(p, base, hv, own.channel < p.dim_k ? own.channel : 0),
             kda_bias(p, base, hv, more < p.dim_k ? more : 0)}};
}

template <class F> __device__ __forceinline__ void kda64_each(float (&x)[4][4], const F &f) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) x[t][i] = f(x[t][i], t, i);
    }
}

/// log2 of 1 + e^x.
__device__ __forceinline__ float kda64_softplus2(float x) {
    return __fmaf_rn(fmaxf(x, 0.0f), kda64_log2_e,
                     kda64_log2(1.0f + kda64_exp2(-kda64_log2_e * fabsf(x))));
}

/// Stored gates to decays, in place; 1 where nothing is.
__device__ __forceinline__ void kda64_to_decays(const kda_problem &p, float rate,
                                                const kda64_bias &bias, const kda64_items &items,
                                                float (&d)[4][4]) {
    if (p.gate == kda_gate::bounded) {
        const float y = -kda64_log2_e * rate;
        const float lower = kda64_log2_e * static_cast<float>(p.lower_bound);
        kda64_each(d, [&](float x, int, int i) {
            return kda64_exp2(lower * kda64_inverse(1.0f + kda64_exp2(y * (x + bias.of[i / 2]))));
        });
    } else if (p.gate == kda_gate::softplus) {
        kda64_each(d, [&](float x, int, int i) {
            return kda64_exp2(-rate * kda64_softplus2(x + bias.of[i / 2]));
        });
    } else {
        kda64_each(d, [&](float x, int, int i) {
            return kda64_exp2(kda64_log2_e * (x + bias.of[i / 2]));
        });
    }
    if (!items.whole)
        kda64_each(d, [&](float x, int t, int i) { return items.there(t, i) ? x : 1.0f; });
}

/// dg to the gradient of what is stored (x), in place; sums for DT_BIAS and A_LOG.
__device__ __forceinline__ void kda64_gates_back(const kda_problem &p, float rate,
                                                 const kda64_bias &bias, const kda64_items &items,
                                                 const float (&x)[4][4], float (&g)[4][mma_items_d],
                                                 float (&of_bias)[2], float &of_a) {
    of_bias[0] = of_bias[1] = of_a = 0;
    if (!items.whole)
        kda64_each(g, [&](float dg, int t, int i) { return items.there(t, i) ? dg : 0.0f; });
    if (p.gate == kda_gate::bounded) {
        const float factor = static_cast<float>(p.lower_bound) * rate, y = kda64_log2_e * rate;
        kda64_each(g, [&](float dg, int t, int i) {
            // s (1 - s) of a sigmoid s without a difference: both from the same exponential.
            const float z = x[t][i] + bias.of[i / 2];
            const float e = kda64_exp2(-fabsf(y * z)), one = kda64_inverse(1.0f + e);
            const float dx = factor * dg * (e * one * one);
            of_a = __fmaf_rn(dx, z, of_a);
            return dx;
        });
    } else if (p.gate == kda_gate::softplus) {
        kda64_each(g, [&](float dg, int t, int i) {
            const float z = x[t][i] + bias.of[i / 2], down = -rate * dg;
            of_a = __fmaf_rn(down, kda64_ln_2 * kda64_softplus2(z), of_a);
            return down * kda64_inverse(1.0f + kda64_exp2(-kda64_log2_e * z));
        });
    }
    kda64_each(g, [&](float dx, int, int i) {
        of_bias[i / 2] += dx;
        return dx;
    });
}

} // namespace plait::impl::cuda
