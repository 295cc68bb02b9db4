// kda.chunk64_prep: the record of a chunk and value head (chunk64_layout.h) from q, k, g, beta:
// norm, gate, beta, decays, F and A by binary anchors, M = (I + beta F)^-1.
//   layout   a block is a chunk of a value head; a thread has a channel of 32 rows in registers
//   pairs    six levels; each writes its factors as bf16 to shared memory, multiplies on tensor
//            cores (40 products of 16 x 8 x keys) and scatters F (f32) and A. Sums of gates are
//            added up from the anchor: nothing is subtracted, no exponential is above 1
//   inverse  f32, blocks of 1, 2, .. 32 rows: M21 = -M2 L21 M1
//   traffic  keys = 128, 16-bit: reads 48 KiB (GVA: q and k again for each value head), writes 65
//            KiB; at 4.2 TB/s 27 ns for a chunk and head on a whole device
//   bound    exponentials: 8 for each element of [64][keys], 65536 in all: 2.3 us on an SM at 16 a
//            cycle, 18 ns on 132 SMs; two blocks of an SM hide each other's barriers (estimates)
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

/// A thread's channel of half a chunk.
template <int Keys> struct kda64_columns {
    float q[32], k[32];
    float *gates; ///< in shared memory

    __device__ __forceinline__ float g(int i) const { return gates[i * Keys]; }
};

/// Loads and normalizes; beta goes to shared memory. Two barriers; gates are those of the thread
/// alone.
template <int Keys>
__device__ __forceinline__ void kda64_load(const kda_chunk64_prep_args &a,
                                           const kda_chunk_place &at, int64_t hv, char *shared,
                                           kda64_columns<Keys> &c) {
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    const kda_problem &p = a.p;
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    const int half = self / Keys, channel = self % Keys;
    auto *parts = reinterpret_cast<float *>(shared + s.parts);
    auto *norms = reinterpret_cast<float *>(shared + s.norms);
    auto *beta = reinterpret_cast<float *>(shared + s.beta);
    const int64_t h = hv / p.group();
    const int64_t first = at.token + 32 * half;
    const int count = channel < p.dim_k ? at.rows - 32 * half : 0;
    const auto element = [&](const kda_view &v, int64_t head) {
        return count > 0 ? at.row * v.b + first * v.t + head * v.h + channel * v.c : 0;
    };
    float squares[32];
    kda64_load_column(p.q, a.q, element(p.q, h), count, c.q);
    if (p.norm) {
#pragma unroll
        for (int i = 0; i < 32; ++i) squares[i] = c.q[i] * c.q[i];
        kda64_put_parts<Keys>(squares, parts, half);
    }
    kda64_load_column(p.k, a.k, element(p.k, h), count, c.k);
    if (p.norm) {
#pragma unroll
        for (int i = 0; i < 32; ++i) squares[i] = c.k[i] * c.k[i];
        kda64_put_parts<Keys>(squares, parts + 64 * (Keys / 32), half);
    }
    if (self < 64)
        beta[self] =
            self < at.rows
                ? kda_beta_of(
                      p, kda_load(a.beta, kda_at(p.beta, at.row, at.token + self, hv), p.beta.type))
                : 0.0f;
    __syncthreads(); // parts are written
    if (self < 128)  // [q or k][row]
        norms[self] =
            self % 64 < at.rows
                ? kda_inverse_norm(
                      p, kda64_take_parts<Keys>(parts + self / 64 * 64 * (Keys / 32), self % 64))
                : 0.0f;
    const int64_t gate = element(p.g, hv);
    const float rate = kda_rate(p, a.a_log, hv);
    const float bias = kda_bias(p, a.dt_bias, hv, channel < p.dim_k ? channel : 0);
    c.gates = reinterpret_cast<float *>(shared + s.gates) + 32 * half * Keys + channel;
#pragma unroll 1
    for (int from = 0; from < 32; from += 8) {
        uint32_t bits[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            bits[i] =
                from + i < count ? kda_load_bits(a.g, gate + (from + i) * p.g.t, p.g.type) : 0;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            c.gates[(from + i) * Keys] =
                from + i < count ? kda_gate_of(p, rate, kda_widen(bits[i], p.g.type) + bias) : 0.0f;
    }
    __syncthreads(); // norms are written
    const float scale = static_cast<float>(p.scale);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        c.q[i] *= norms[32 * half + i] * scale;
        c.k[i] *= norms[64 + 32 * half + i];
    }
}

__device__ __forceinline__ void kda64_put(char *tile, int columns, int row, int column, float v) {
    *reinterpret_cast<uint16_t *>(tile + kda64_at(columns, row, column)) =
        round_half<scalar::bf16>(v);
}

/// k+, q+, kR, gamma of the record. `before` and `behind`: gates of the other half, where they are.
template <int Keys>
__device__ __forceinline__ void kda64_decays(const kda64_columns<Keys> &c, char *record,
                                             float before, float behind) {
    constexpr kda64_record r = kda64_record_of(Keys);
    const int half = static_cast<int>(threadIdx.x / Keys);
    const int channel = static_cast<int>(threadIdx.x % Keys);
    float sum = before;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        sum += c.g(i);
        const float e = __expf(sum);
        kda64_put(record + r.k, Keys, 32 * half + i, channel, c.k[i] * e);
        kda64_put(record + r.q, Keys, 32 * half + i, channel, c.q[i] * e);
    }
    if (half == 1) reinterpret_cast<float *>(record + r.gamma)[channel] = __expf(sum);
    sum = behind;
#pragma unroll
    for (int i = 31; i >= 0; --i) {
        kda64_put(record + r.kr, Keys, 32 * half + i, channel, c.k[i] * __expf(sum));
        sum += c.g(i);
    }
}

template <int Keys, int B>
__device__ __forceinline__ void kda64_put_upper(const kda64_columns<Keys> &c, int i, float sum,
                                                char *operands) {
    const float e = __expf(sum);
    const int row = kda64_without(32 * static_cast<int>(threadIdx.x / Keys) + i, B);
    const int channel = static_cast<int>(threadIdx.x % Keys);
    kda64_put(operands, Keys, row, channel, c.k[i] * e);
    kda64_put(operands + kda64_tile_bytes(32, Keys), Keys, row, channel, c.q[i] * e);
}
template <int Keys, int B>
__device__ __forceinline__ void kda64_put_lower(const kda64_columns<Keys> &c, int i, float sum,
                                                char *operands) {
    const int row = kda64_without(32 * static_cast<int>(threadIdx.x / Keys) + i, B);
    kda64_put(operands + 2 * kda64_tile_bytes(32, Keys), Keys, row,
              static_cast<int>(threadIdx.x % Keys), c.k[i] * __expf(sum));
}

/// The factors of a level. `middle`: the gate of row 32.
template <int Keys, int B>
__device__ __forceinline__ void kda64_factors(const kda64_columns<Keys> &c, char *operands,
                                              float middle) {
    const int half = static_cast<int>(threadIdx.x / Keys);
    if constexpr (B == 5) {
        float sum = half ? 0.0f : middle;
        if (half) {
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                if (i > 0) sum += c.g(i);
                kda64_put_upper<Keys, B>(c, i, sum, operands);
            }
        } else {
#pragma unroll
            for (int i = 31; i >= 0; --i) {
                kda64_put_lower<Keys, B>(c, i, sum, operands);
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
            kda64_put_upper<Keys, B>(c, i, sum, operands);
        }
#pragma unroll
        for (int i = 31; i >= 0; --i) {
            if (i >> B & 1) continue;
            if ((i & mask) == mask) sum = c.g(i + 1);
            kda64_put_lower<Keys, B>(c, i, sum, operands);
            sum += c.g(i);
        }
    }
}

/// Products of a level: F to f32 scaled by beta of its row, A to its tile.
template <int Keys, int B>
__device__ __forceinline__ void kda64_multiply(const char *operands, const float *beta, float *f,
                                               char *a) {
    constexpr int tile = kda64_tile_bytes(32, Keys);
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
    for (int n = static_cast<int>(threadIdx.x / 32); n < kda64_blocks(B); n += 2 * Keys / 32) {
        const int rows = kda64_block_row(B, n) * 8, columns = kda64_block_column(B, n) * 8;
        float d[mma_items_d] = {};
#pragma unroll
        for (int k = 0; k < Keys; k += 32) {
            uint32_t b[4], left[4];
            load_matrices(b, operands + 2 * tile +
                                 kda64_at(Keys, columns + (lane & 7), k + (lane >> 3) * 8));
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                load_matrices(
                    left, operands + (lane >> 3 & 1) * tile +
                              kda64_at(Keys, rows + (lane & 7), k + step * 16 + (lane >> 4) * 8));
                mma_add<scalar::bf16>(d, left, {b[2 * step], b[2 * step + 1]});
            }
        }
        const int upper = rows + lane / 4, i = kda64_upper(upper, B);
#pragma unroll
        for (int item = 0; item < 2; ++item) {
            const int lower = columns + lane % 4 * 2 + item, j = kda64_lower(lower, B);
            if (!kda64_meet(upper, lower, B)) continue;
            f[i * 64 + j] = beta[i] * d[item];
            kda64_put(a, 64, i, j, d[2 + item]);
        }
    }
}

/// All levels from B down. A barrier each: two buffers of operands in turn, so that a warp that
/// writes the next level's may only meet those that multiply this one's.
template <int Keys, int B>
__device__ __forceinline__ void kda64_pairs(const kda64_columns<Keys> &c, char *shared,
                                            float middle) {
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    char *operands = shared + s.operands + B % 2 * kda64_operand_bytes(Keys);
    kda64_factors<Keys, B>(c, operands, middle);
    __syncthreads(); // operands are written
    kda64_multiply<Keys, B>(operands, reinterpret_cast<const float *>(shared + s.beta),
                            reinterpret_cast<float *>(shared + s.f), shared + s.a);
    if constexpr (B > 0) kda64_pairs<Keys, B - 1>(c, shared, middle);
}

/// M of L, whose elements below the diagonal are in f.
template <int Threads>
__device__ __forceinline__ void kda64_invert(const float *f, float *m, float *products) {
    const int self = kda64_anew(static_cast<int>(threadIdx.x));
    for (int e = self; e < 64 * 64; e += Threads) m[e] = e / 64 == e % 64 ? 1.0f : 0.0f;
    __syncthreads(); // m is the identity, f is written
#pragma unroll 1
    for (int b = 0; b < 6; ++b) {
        const int size = 1 << b;
#pragma unroll 1
        for (int e = self; e < 32 * size; e += Threads) {
            const int y = e & (size - 1), x = e >> b & (size - 1), first = e >> 2 * b << (b + 1);
            float sum = 0;
            for (int i = y; i < size; ++i)
                sum = __fmaf_rn(f[(first + size + x) * 64 + first + i],
                                m[(first + i) * 64 + first + y], sum);
            products[e] = sum;
        }
        __syncthreads(); // products are written
#pragma unroll 1
        for (int e = self; e < 32 * size; e += Threads) {
            const int y = e & (size - 1), x = e >> b & (size - 1), first = e >> 2 * b << (b + 1);
            float sum = 0;
            for (int i = 0; i <= x; ++i)
                sum = __fmaf_rn(m[(first + size + x) * 64 + first + size + i],
                                products[(e >> 2 * b << 2 * b) + i * size + y], sum);
            m[(first + size + x) * 64 + first + y] = -sum;
        }
        __syncthreads(); // products are read, m is written
    }
}

template <int Keys>
__global__ void __launch_bounds__(kda64_prep_threads(Keys), Keys == 64    ? 3
                                                            : Keys == 128 ? 2
                                                                          : 1)
    kda_chunk64_prep(const __grid_constant__ kda_chunk64_prep_args a) {
    extern __shared__ __align__(16) char shared[];
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int threads = kda64_prep_threads(Keys);
    auto *f = reinterpret_cast<float *>(shared + s.f), *m = reinterpret_cast<float *>(shared + s.m);
    auto *totals = reinterpret_cast<float *>(shared + s.totals);
    auto *first = reinterpret_cast<float *>(shared + s.first);
    auto *parts = reinterpret_cast<float *>(shared + s.parts);
    auto *tile = reinterpret_cast<uint32_t *>(shared + s.a);
    // Levels write below the diagonal only.
    for (int e = static_cast<int>(threadIdx.x); e < 64 * 64 / 2; e += threads) tile[e] = 0;
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int self = kda64_anew(static_cast<int>(threadIdx.x));
        const int half = self / Keys, channel = self % Keys;
        const int64_t hv = block % a.p.value_heads;
        const kda_chunk_place at =
            kda_chunk_of(a.p, a.table, a.chunks, a.slots, block / a.p.value_heads, kda64_rows);
        if (at.rows <= 0) continue; // all threads
        char *record = a.records + block * r.bytes;
        kda64_columns<Keys> c;
        __syncthreads(); // the tile and the words of the chunk before are read
        kda64_load<Keys>(a, at, hv, shared, c);
        float total = 0;
#pragma unroll
        for (int i = 0; i < 32; ++i) total += c.g(i);
        totals[half * Keys + channel] = total;
        if (half) first[channel] = c.g(0);
        {
            float own[32]; // the diagonal of A
#pragma unroll
            for (int i = 0; i < 32; ++i) own[i] = c.q[i] * c.k[i];
            kda64_put_parts<Keys>(own, parts, half);
        }
        __syncthreads(); // totals and parts are written
        kda64_decays<Keys>(c, record, half ? totals[channel] : 0.0f,
                           half ? 0.0f : totals[Keys + channel]);
        if (self < 64) {
            kda64_put(shared + s.a, 64, self, self, kda64_take_parts<Keys>(parts, self));
            reinterpret_cast<float *>(record + r.beta)[self] =
                reinterpret_cast<const float *>(shared + s.beta)[self];
        }
        kda64_pairs<Keys, kda64_levels - 1>(c, shared, first[channel]);
        __syncthreads(); // operands are read: M takes their place
        kda64_invert<threads>(f, m, reinterpret_cast<float *>(shared + s.products));
        for (int e = kda64_anew(static_cast<int>(threadIdx.x)); e < 64 * 64 / 8; e += threads) {
            const int row = e / 8, column = e % 8 * 8;
            uint4 words;
            const float *from = m + row * 64 + column;
            words.x = round_pair<scalar::bf16>(from[0], from[1]);
            words.y = round_pair<scalar::bf16>(from[2], from[3]);
            words.z = round_pair<scalar::bf16>(from[4], from[5]);
            words.w = round_pair<scalar::bf16>(from[6], from[7]);
            *reinterpret_cast<uint4 *>(record + r.m + kda64_at(64, row, column)) = words;
            reinterpret_cast<uint4 *>(record + r.a)[e] = reinterpret_cast<const uint4 *>(tile)[e];
        }
    }
}

} // namespace plait::impl::cuda
