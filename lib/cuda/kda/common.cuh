// Elements, sequences, gates, beta and sums of all kda kernels, in f32: section by section what
// kda_problem.h defines. Types are known at run time; no tensor is f64.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/kda/common_layout.h"

#ifndef __CUDACC__
#    include <cmath>
#endif

namespace plait::impl::cuda {

// ---- Elements --------------------------------------------------------------------------------

/// The bits of one element, as they wait in a register until they are needed.
__device__ __forceinline__ uint32_t kda_load_bits(const void *base, int64_t index, scalar type) {
    if (type == scalar::f32) return static_cast<const uint32_t *>(base)[index];
    return static_cast<const uint16_t *>(base)[index];
}
__device__ __forceinline__ float kda_widen(uint32_t bits, scalar type) {
    if (type == scalar::f32) return __uint_as_float(bits);
    const uint16_t half = static_cast<uint16_t>(bits);
    return type == scalar::bf16 ? widen<scalar::bf16>(half) : widen<scalar::f16>(half);
}
__device__ __forceinline__ float kda_load(const void *base, int64_t index, scalar type) {
    return kda_widen(kda_load_bits(base, index, type), type);
}
/// Rounded once, to nearest even.
__device__ __forceinline__ void kda_store(void *base, int64_t index, scalar type, float value) {
    if (type == scalar::f32) {
        static_cast<float *>(base)[index] = value;
    } else {
        static_cast<uint16_t *>(base)[index] =
            type == scalar::bf16 ? round_half<scalar::bf16>(value) : round_half<scalar::f16>(value);
    }
}

/// Four elements that follow one another at an aligned place: 16 bytes of f32, 8 of 16 bits.
/// Streaming, and never through the read-only path: STATE_OUT may be STATE_IN.
__device__ __forceinline__ void kda_load4(const void *base, int64_t index, scalar type, float *v) {
    if (type == scalar::f32)
        load_elements<scalar::f32, 2>(base, index, v);
    else if (type == scalar::bf16)
        load_elements<scalar::bf16, 2>(base, index, v);
    else
        load_elements<scalar::f16, 2>(base, index, v);
}
__device__ __forceinline__ void kda_store4(void *base, int64_t index, scalar type, const float *v) {
    if (type == scalar::f32)
        store_elements<scalar::f32, 2>(base, index, v, 1.0f);
    else if (type == scalar::bf16)
        store_elements<scalar::bf16, 2>(base, index, v, 1.0f);
    else
        store_elements<scalar::f16, 2>(base, index, v, 1.0f);
}

/// The first channel of a token and head; of a head of A_LOG and DT_BIAS with b = t = 0.
__device__ __forceinline__ int64_t kda_at(const kda_view &v, int64_t b, int64_t t, int64_t h) {
    return b * v.b + t * v.t + h * v.h;
}

// ---- Sequences -------------------------------------------------------------------------------

/// Tokens [begin, begin + length) of row `row`, and its row of the state tensors.
struct kda_place {
    int64_t row, begin, length;
    int64_t state; ///< -1: none may be touched
    int64_t gap;   ///< tokens [gap, begin) of the row belong to nobody
    bool live;     ///< else outputs and states that it owns are zero, and it enters nothing
};

/// n < kda_places(p). `table`: of kda.offsets, null where kda_needs_offsets(p) is false; `slots`:
/// SLOTS itself, read only without a table.
__device__ __forceinline__ kda_place kda_place_of(const kda_problem &p, const kda_sequence *table,
                                                  const int32_t *slots, int64_t n) {
    if (table == nullptr) {
        kda_place at{n, 0, p.length, n, 0, true};
        if (p.pooled) {
            const int32_t slot = slots[n];
            at.live = slot != p.pad && slot >= 0 && slot < p.slots;
            at.state = at.live ? slot : -1;
        }
        return at;
    }
    const kda_sequence e = table[n];
    kda_place at{p.varlen ? 0 : n, e.begin, e.length, n, e.gap, e.live != 0};
    if (p.pooled) at.state = e.slot;
    if (n >= p.sequences) at.state = -1; // the entry behind the last
    return at;
}

/// A chunk of a live sequence.
struct kda_chunk_place {
    int64_t sequence;
    int64_t row, token; ///< its first
    int64_t number;     ///< of the chunk in its sequence
    int32_t rows;       ///< tokens; 0: there is no such chunk, store nothing
};

/// slot < kda_chunk_slots(p, chunk); `chunks` of kda.offsets for that chunk, read with varlen only.
__device__ __forceinline__ kda_chunk_place kda_chunk_of(const kda_problem &p,
                                                        const kda_sequence *table,
                                                        const kda_chunk *chunks,
                                                        const int32_t *slots, int64_t slot,
                                                        int64_t chunk) {
    if (p.varlen) {
        const kda_chunk c = chunks[slot];
        if (c.sequence < 0) return {-1, 0, 0, 0, 0};
        const kda_sequence e = table[c.sequence];
        const int64_t left = e.begin + e.length - c.first;
        return {c.sequence, 0, c.first, slot - e.first_chunk,
                static_cast<int32_t>(left < chunk ? left : chunk)};
    }
    const int64_t each = kda_ceil_div(p.length, chunk);
    const int64_t n = slot / each, number = slot - n * each;
    const kda_place at = kda_place_of(p, table, slots, n);
    const int64_t left = p.length - number * chunk;
    return {n, n, number * chunk, number,
            !at.live ? 0 : static_cast<int32_t>(left < chunk ? left : chunk)};
}

/// Whether token t of a row belongs to a live sequence.
__device__ __forceinline__ bool kda_token_lives(const kda_problem &p, const kda_sequence *table,
                                                const int32_t *slots, int64_t row, int64_t t) {
    if (!p.varlen) return kda_place_of(p, table, slots, row).live;
    int64_t low = 0, high = p.sequences; // the first sequence that ends behind t
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (table[middle].begin + table[middle].length > t)
            high = middle;
        else
            low = middle + 1;
    }
    return low < p.sequences && table[low].begin <= t; // what is not live has no tokens
}

// ---- Gates, beta -----------------------------------------------------------------------------

/// 1 / (1 + e^-x) without an overflow on either side.
__device__ __forceinline__ float kda_sigmoid(float x) {
    const float e = expf(-fabsf(x));
    return __fdividef(x >= 0 ? 1.0f : e, 1.0f + e);
}
__device__ __forceinline__ float kda_softplus(float x) {
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

/// A of the gate of a value head: e^A_LOG, or 1 where it is not in use.
__device__ __forceinline__ float kda_rate(const kda_problem &p, const void *a_log, int64_t hv) {
    return p.a_log.used() ? expf(kda_load(a_log, hv * p.a_log.h, p.a_log.type)) : 1.0f;
}
__device__ __forceinline__ float kda_bias(const kda_problem &p, const void *dt_bias, int64_t hv,
                                          int64_t i) {
    if (!p.dt_bias.used()) return 0;
    return kda_load(dt_bias, hv * p.dt_bias.h + i * p.dt_bias.c, p.dt_bias.type);
}
/// The logarithm of the decay; x = G + DT_BIAS.
__device__ __forceinline__ float kda_gate_of(const kda_problem &p, float rate, float x) {
    if (p.gate == kda_gate::softplus) return -rate * kda_softplus(x);
    if (p.gate == kda_gate::bounded)
        return static_cast<float>(p.lower_bound) * kda_sigmoid(rate * x);
    return x;
}
/// The gradient of x from that of the logarithm of the decay; adds to that of A_LOG.
__device__ __forceinline__ float kda_gate_adjoint(const kda_problem &p, float rate, float x,
                                                  float dg, float *da_log) {
    if (p.gate == kda_gate::softplus) {
        *da_log += dg * kda_gate_of(p, rate, x);
        return -rate * kda_sigmoid(x) * dg;
    }
    if (p.gate == kda_gate::bounded) {
        const float y = rate * x; // no 1 - s near a bound
        const float dx =
            static_cast<float>(p.lower_bound) * rate * (kda_sigmoid(y) * kda_sigmoid(-y)) * dg;
        *da_log += dx * x;
        return dx;
    }
    return dg;
}

__device__ __forceinline__ float kda_beta_of(const kda_problem &p, float b) {
    return p.beta_logit ? static_cast<float>(p.beta_scale) * kda_sigmoid(b) : b;
}
/// The gradient of BETA from that of beta.
__device__ __forceinline__ float kda_beta_adjoint(const kda_problem &p, float b, float dbeta) {
    if (!p.beta_logit) return dbeta;
    return static_cast<float>(p.beta_scale) * (kda_sigmoid(b) * kda_sigmoid(-b)) * dbeta;
}

// ---- Sums ------------------------------------------------------------------------------------

/// Over the warp; every lane has the same bits.
template <class T> __device__ __forceinline__ T kda_warp_sum(T v) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}
/// What a row of q or k is multiplied by, from its sum of squares.
__device__ __forceinline__ float kda_inverse_norm(const kda_problem &p, float squares) {
    return p.norm ? 1.0f / sqrtf(squares + static_cast<float>(p.eps)) : 1.0f;
}

} // namespace plait::impl::cuda
