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

#include "lib/cuda/kda/chunk64_columns.cuh"
#include "lib/cuda/kda/chunk64_prep_layout.h"

namespace plait::impl::cuda {

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
        kda64_put(record + r.k, Keys, 32 * half + i, channel, c.k(i) * e);
        kda64_put(record + r.q, Keys, 32 * half + i, channel, c.q(i) * e);
    }
    if (half == 1) reinterpret_cast<float *>(record + r.gamma)[channel] = __expf(sum);
    sum = behind;
#pragma unroll
    for (int i = 31; i >= 0; --i) {
        kda64_put(record + r.kr, Keys, 32 * half + i, channel, c.k(i) * __expf(sum));
        sum += c.g(i);
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
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
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
        kda64_load<Keys>(a.p, a.in, at, hv, a.least_beta,
                         {parts, reinterpret_cast<float *>(shared + s.norms),
                          reinterpret_cast<float *>(shared + s.beta),
                          reinterpret_cast<float *>(shared + s.gates)},
                         c);
        float total = 0;
#    pragma unroll
        for (int i = 0; i < 32; ++i) total += c.g(i);
        totals[half * Keys + channel] = total;
        if (half) first[channel] = c.g(0);
        {
            float own[32]; // the diagonal of A
#    pragma unroll
            for (int i = 0; i < 32; ++i) own[i] = c.q(i) * c.k(i);
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
#endif
}

} // namespace plait::impl::cuda
