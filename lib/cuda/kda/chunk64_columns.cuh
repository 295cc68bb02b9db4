// Half a chunk's rows of one channel in the registers of a thread, as kda.chunk64_prep and
// kda.chunk64_grad have them, and the factors of a level of pairs.
#pragma once

#include "lib/cuda/kda/chunk64_common.cuh"
#include "lib/cuda/kda/chunk64_prep_layout.h"

namespace plait::impl::cuda {

/// Sums over channels of x[row]^2 or of what the caller made of it: a partial sum for each warp.
template <int Keys>
__device__ __forceinline__ void kda64_put_parts(float (&x)[32], float *parts, int half) {
    const int warp = static_cast<int>(threadIdx.x % Keys / 32);
    const float sum = kda64_sum_rows(x);
    parts[(half * 32 + static_cast<int>(threadIdx.x % 32)) * (Keys / 32) + warp] = sum;
}
template <int Keys> __device__ __forceinline__ float kda64_take_parts(const float *parts, int row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < Keys / 32; ++w) sum += parts[row * (Keys / 32) + w];
    return sum;
}

/// A thread's channel of half a chunk: q scaled, both normalized.
template <int Keys> struct kda64_columns {
    float rows_q[32], rows_k[32];
    float *gates; ///< in shared memory

    __device__ __forceinline__ float q(int i) const { return rows_q[i]; }
    __device__ __forceinline__ float k(int i) const { return rows_k[i]; }
    __device__ __forceinline__ float g(int i) const { return gates[i * Keys]; }
    __device__ __forceinline__ void set(float (&to)[32], const kda_view &v, const void *base,
                                        int64_t at, int count) {
        kda64_load_column(v, base, at, count, to);
    }
    __device__ __forceinline__ void types(scalar, scalar) {}
    __device__ __forceinline__ float raw_q(int i) const { return rows_q[i]; } ///< before normalize
    __device__ __forceinline__ float raw_k(int i) const { return rows_k[i]; }
    /// Norms of q times scale and of k, from this half's first row on.
    __device__ __forceinline__ void normalize(const float *of_q, const float *of_k) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            rows_q[i] *= of_q[i];
            rows_k[i] *= of_k[i];
        }
    }
};

/// The same in half the registers, as the 16 bits that were given.
template <int Keys> struct kda64_raw_columns {
    uint32_t rows_q[16], rows_k[16];
    const float *norms_q, *norms_k;
    float *gates;
    bool bf16_q, bf16_k;

    static __device__ __forceinline__ float take(uint32_t word, int high, bool is_bf16) {
        const uint32_t bits = high ? word >> 16 : word & 0xffffu;
        return is_bf16 ? __uint_as_float(bits << 16)
                       : widen<scalar::f16>(static_cast<uint16_t>(bits));
    }
    __device__ __forceinline__ float q(int i) const {
        return take(rows_q[i / 2], i % 2, bf16_q) * norms_q[i];
    }
    __device__ __forceinline__ float k(int i) const {
        return take(rows_k[i / 2], i % 2, bf16_k) * norms_k[i];
    }
    __device__ __forceinline__ float g(int i) const { return gates[i * Keys]; }
    __device__ __forceinline__ void set(uint32_t (&to)[16], const kda_view &v, const void *base,
                                        int64_t at, int count) {
        const auto *from = static_cast<const uint16_t *>(base) + at;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const uint32_t low = 2 * i < count ? __ldg(from + 2 * i * v.t) : uint16_t(0);
            const uint32_t high = 2 * i + 1 < count ? __ldg(from + (2 * i + 1) * v.t) : uint16_t(0);
            to[i] = low | high << 16;
        }
    }
    __device__ __forceinline__ void normalize(const float *of_q, const float *of_k) {
        norms_q = of_q;
        norms_k = of_k;
    }
    __device__ __forceinline__ void types(scalar of_q, scalar of_k) {
        bf16_q = of_q == scalar::bf16;
        bf16_k = of_k == scalar::bf16;
    }
    __device__ __forceinline__ float raw_q(int i) const {
        return take(rows_q[i / 2], i % 2, bf16_q);
    }
    __device__ __forceinline__ float raw_k(int i) const {
        return take(rows_k[i / 2], i % 2, bf16_k);
    }
};

/// Places in shared memory: partial sums [2][64][Keys / 32], norms of q, of k, of q times scale
/// [3][64], beta [64], gates [64][Keys].
struct kda64_floats {
    float *parts, *norms, *beta, *gates;
};

/// Loads and normalizes; beta goes to shared memory. Two barriers; gates are those of the thread
/// alone.
template <int Keys, class Columns>
__device__ __forceinline__ void kda64_load(const kda_problem &p, const kda64_inputs &in,
                                           const kda_chunk_place &at, int64_t hv, float least_beta,
                                           const kda64_floats &to, Columns &c) {
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int half = self / Keys, channel = self % Keys;
    float *const parts = to.parts, *const norms = to.norms, *const beta = to.beta;
    const int64_t h = hv / p.group();
    const int64_t first = at.token + 32 * half;
    const int count = channel < p.dim_k ? at.rows - 32 * half : 0;
    const auto element = [&](const kda_view &v, int64_t head) {
        return count > 0 ? at.row * v.b + first * v.t + head * v.h + channel * v.c : 0;
    };
    float squares[32];
    c.types(p.q.type, p.k.type);
    c.set(c.rows_q, p.q, in.q, element(p.q, h), count);
    if (p.norm) {
#pragma unroll
        for (int i = 0; i < 32; ++i) squares[i] = c.raw_q(i) * c.raw_q(i);
        kda64_put_parts<Keys>(squares, parts, half);
    }
    c.set(c.rows_k, p.k, in.k, element(p.k, h), count);
    if (p.norm) {
#pragma unroll
        for (int i = 0; i < 32; ++i) squares[i] = c.raw_k(i) * c.raw_k(i);
        kda64_put_parts<Keys>(squares, parts + 64 * (Keys / 32), half);
    }
    if (self < 64) {
        float value = 0;
        if (self < at.rows) {
            const int64_t place = kda_at(p.beta, at.row, at.token + self, hv);
            value = kda_beta_of(p, kda_load(in.beta, place, p.beta.type));
            if (fabsf(value) < least_beta) value = least_beta;
        }
        beta[self] = value;
    }
    __syncthreads();  // parts are written
    if (self < 128) { // [q or k][row]
        const float norm =
            self % 64 < at.rows
                ? kda_inverse_norm(
                      p, kda64_take_parts<Keys>(parts + self / 64 * 64 * (Keys / 32), self % 64))
                : 0.0f;
        norms[self] = norm;
        if (self < 64) norms[128 + self] = norm * static_cast<float>(p.scale);
    }
    const int64_t gate = element(p.g, hv);
    const float rate = kda_rate(p, in.a_log, hv);
    const float bias = kda_bias(p, in.dt_bias, hv, channel < p.dim_k ? channel : 0);
    c.gates = to.gates + 32 * half * Keys + channel;
#pragma unroll 1
    for (int from = 0; from < 32; from += 8) {
        uint32_t bits[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            bits[i] =
                from + i < count ? kda_load_bits(in.g, gate + (from + i) * p.g.t, p.g.type) : 0;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            c.gates[(from + i) * Keys] =
                from + i < count ? kda_gate_of(p, rate, kda_widen(bits[i], p.g.type) + bias) : 0.0f;
    }
    __syncthreads(); // norms are written
    c.normalize(norms + 128 + 32 * half, norms + 64 + 32 * half);
}

__device__ __forceinline__ void kda64_put(char *tile, int columns, int row, int column, float v) {
    *reinterpret_cast<uint16_t *>(tile + kda64_at(columns, row, column)) =
        round_half<scalar::bf16>(v);
}

template <int Keys, int B, class Columns>
__device__ __forceinline__ void kda64_put_upper(const Columns &c, int i, float sum, int half,
                                                int channel, char *operands) {
    const float e = __expf(sum);
    const int row = kda64_without(32 * half + i, B);
    kda64_put(operands, Keys, row, channel, c.k(i) * e);
    kda64_put(operands + kda64_tile_bytes(32, Keys), Keys, row, channel, c.q(i) * e);
}
template <int Keys, int B, class Columns>
__device__ __forceinline__ void kda64_put_lower(const Columns &c, int i, float sum, int half,
                                                int channel, char *operands) {
    kda64_put(operands + 2 * kda64_tile_bytes(32, Keys), Keys, kda64_without(32 * half + i, B),
              channel, c.k(i) * __expf(sum));
}

/// The factors of a level. `middle`: the gate of row 32.
template <int Keys, int B, class Columns>
__device__ __forceinline__ void kda64_factors(const Columns &c, char *operands, float middle) {
    // Anew for each level: kept, the addresses of all would take more registers than there are.
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int half = self / Keys, channel = self % Keys;
    if constexpr (B == 5) {
        float sum = half ? 0.0f : middle;
        if (half) {
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                if (i > 0) sum += c.g(i);
                kda64_put_upper<Keys, B>(c, i, sum, half, channel, operands);
            }
        } else {
#pragma unroll
            for (int i = 31; i >= 0; --i) {
                kda64_put_lower<Keys, B>(c, i, sum, half, channel, operands);
                sum += c.g(i);
            }
        }
    } else {
        constexpr int mask = (1 << B) - 1;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            if (!(i >> B & 1)) continue;
            sum = (i & mask) == 0 ? 0.0f : sum + c.g(i);
            kda64_put_upper<Keys, B>(c, i, sum, half, channel, operands);
        }
#pragma unroll
        for (int i = 31; i >= 0; --i) {
            if (i >> B & 1) continue;
            if ((i & mask) == mask) sum = c.g(i + 1);
            kda64_put_lower<Keys, B>(c, i, sum, half, channel, operands);
            sum += c.g(i);
        }
    }
}

} // namespace plait::impl::cuda
