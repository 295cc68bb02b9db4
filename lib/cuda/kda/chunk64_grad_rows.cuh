// What kda.chunk64_grad reads, and its products of rows with rows and with states. All results lie
// transposed as tensor cores have them: rows are 16 channels, columns tokens.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/kda/chunk64_common.cuh"
#include "lib/cuda/kda/chunk64_grad_layout.h"

namespace plait::impl::cuda {

/// Of a thread: channels `channel` and 8 more, tokens 32 half + 8 t + 2 quad and one more. Four
/// items of t: channel, token 0 and 1, then the other channel.
struct kda64_own {
    int lane, quad, row, half, group, channel;
};

template <int Keys> __device__ __forceinline__ kda64_own kda64_own_of() {
    const auto self = static_cast<unsigned>(kda64_anew(static_cast<int>(threadIdx.x)));
    const unsigned lane = self % 32, warp = self / 32, group = warp % (Keys / 16);
    const auto number = [](unsigned n) { return static_cast<int>(n); };
    return {number(lane),     number(lane % 4),
            number(lane / 4), number(warp / (Keys / 16)),
            number(group),    number(16 * group + lane / 4)};
}

/// One of a word's two elements.
template <bool Bf16>
__device__ __forceinline__ float kda64_take(uint32_t word, int high, scalar type) {
    if (Bf16 || type == scalar::bf16)
        return __uint_as_float(high ? word & 0xffff0000u : word << 16);
    return widen<scalar::f16>(static_cast<uint16_t>(high ? word >> 16 : word));
}

/// A chunk's rows of `columns` channels, 0 where nothing is: as they are, or as bf16.
template <int Threads, bool Convert>
__device__ __forceinline__ void kda64_load_rows(const kda_view &v, const void *base, int64_t at,
                                                int count, int64_t channels, int columns,
                                                bool vector, char *tile) {
    for (int e = static_cast<int>(threadIdx.x); e < 8 * columns; e += Threads) {
        const int row = columns == 128 ? e >> 4 : e >> 3; // 64 or 128
        const int column = (e - row * (columns >> 3)) * 8;
        const int left = row < count ? static_cast<int>(min(channels - column, int64_t(8))) : 0;
        const int64_t from = left > 0 ? at + row * v.t + column * v.c : 0;
        char *to = tile + kda64_at(columns, row, column);
        if (vector) {
            async_copy<16>(shared_at_of(to), static_cast<const uint16_t *>(base) + from, left > 0);
            continue;
        }
#pragma unroll 1
        for (int i = 0; i < 8; ++i) {
            uint16_t bits = 0;
            if (i < left)
                bits = Convert ? round_half<scalar::bf16>(kda_load(base, from + i * v.c, v.type))
                               : static_cast<uint16_t>(kda_load_bits(base, from + i * v.c, v.type));
            reinterpret_cast<uint16_t *>(to)[i] = bits;
        }
    }
}

/// Of 8 tokens of a thread the sums over the 8 lanes that have other channels: a lane of row r gets
/// token r. x is used up.
__device__ __forceinline__ float kda64_sum_channels(float (&x)[8], int row) {
#pragma unroll
    for (int by = 4; by > 0; by /= 2) {
        const bool high = (row & by) != 0;
#pragma unroll
        for (int i = 0; i < by; ++i) {
            const float other = __shfl_xor_sync(0xffffffffu, high ? x[i] : x[i + by], 4 * by);
            x[i] = (high ? x[i + by] : x[i]) + other;
        }
    }
    return x[0];
}

/// Where a thread of 16 channels has its share of the sum of a token: [channels / 16][64].
template <int Keys> __device__ __forceinline__ int kda64_part_at(const kda64_own &own) {
    return own.group * 64 + 32 * own.half + own.row / 2 * 8 + 2 * own.quad + own.row % 2;
}
template <int Keys> __device__ __forceinline__ float kda64_part_sum(const float *parts, int row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < Keys / 16; ++w) sum += parts[64 * w + row];
    return sum;
}

/// Words of 16 channels and 16 tokens: a half of the tokens, then the other, a channel and its 8th.
template <int Keys>
__device__ __forceinline__ void kda64_words(const char *tile, const kda64_own &own, int pair,
                                            uint32_t (&w)[4]) {
    load_matrices_transposed(
        w, tile + kda64_at_at(Keys, 32 * own.half + 16 * pair, 16 * own.group, own.lane));
}

/// Sums of squares of 16 rows of q or k: the diagonal of their products with themselves, of which a
/// word of A is one of B.
template <int Keys, scalar S>
__device__ __forceinline__ void kda64_squares(const char *tile, int row, int lane, float *sums) {
    float x[2][mma_items_d] = {};
    const int at = kda64_at_a(Keys, row, 0, lane);
#pragma unroll
    for (int k = 0; k < Keys; k += 16) {
        uint32_t a[4];
        load_matrices(a, tile + kda64_from(Keys, at, 0, k));
        mma_add<S>(x[0], a, {a[0], a[2]});
        mma_add<S>(x[1], a, {a[1], a[3]});
    }
    if (lane / 8 != lane % 4) return;
    const bool odd = (lane / 4 & 1) != 0;
    sums[lane / 4] = odd ? x[0][1] : x[0][0];
    sums[lane / 4 + 8] = odd ? x[1][3] : x[1][2];
}

/// Those of all rows to `sums`, of q, then of k; eight warps.
template <int Keys, bool Bf16>
__device__ __forceinline__ void kda64_put_squares(const char *q, const char *k, scalar type_q,
                                                  scalar type_k, float *sums) {
    const int thread = kda64_anew(static_cast<int>(threadIdx.x));
    const int job = thread / 32, lane = thread % 32;
    if (job >= 8) return;
    const bool second = job >= 4;
    const int row = 16 * (job % 4);
    if (Bf16 || (second ? type_k : type_q) == scalar::bf16)
        kda64_squares<Keys, scalar::bf16>(second ? k : q, row, lane, sums + 16 * job);
    else
        kda64_squares<Keys, scalar::f16>(second ? k : q, row, lane, sums + 16 * job);
}

/// P = DO u^T and w u^T of 16 x 16 tokens.
struct kda64_row_pairs {
    float p[2][mma_items_d], f[2][mma_items_d];
};

__device__ __forceinline__ void kda64_rows_with_rows(const char *d_o, const char *written,
                                                     const char *adjoints, int values, int row,
                                                     int column, int lane, kda64_row_pairs &x) {
    x = {};
#pragma unroll 2
    for (int v = 0; v < values; v += 16) {
        uint32_t a[4], b[4];
        load_matrices_transposed(b, written + kda64_at_bt(64, v, column, lane));
        load_matrices(a, d_o + kda64_at_a(values, row, v, lane));
        mma_add<scalar::bf16>(x.p[0], a, {b[0], b[1]});
        mma_add<scalar::bf16>(x.p[1], a, {b[2], b[3]});
        load_matrices_transposed(a, adjoints + kda64_at_at(64, v, row, lane));
        mma_add<scalar::bf16>(x.f[0], a, {b[0], b[1]});
        mma_add<scalar::bf16>(x.f[1], a, {b[2], b[3]});
    }
}

/// Gradients of 16 channels and 32 tokens without the decays that belong to them: of q, of k as it
/// is read, of k as it is written; then what all tokens of eight have in common in dg, of which
/// each lane of four has a share.
struct kda64_gradients {
    float q[4][mma_items_d], read[4][mma_items_d], write[4][mma_items_d];
    float same[2][4];
};

/// DO S, w S, u dS; `dots`: shares of sums over values of S dS, the diagonal of S^T dS as in
/// kda64_squares: of the first eight channels in one half, of the others in the other.
template <int Keys>
__device__ __forceinline__ void
kda64_rows_with_states(const kda64_grad_shared &s, const char *shared, int values,
                       const kda64_own &own, kda64_gradients &d, float (&dots)[2]) {
    const int token = 32 * own.half;
    float x[mma_items_d] = {};
    // Tiles of values as rows go on by whole rows of swizzled pieces. DO has them as columns: an
    // exclusive or within 64 of them; 16 tokens further on are whole rows.
    const char *state_at = shared + s.states + kda64_at_at(Keys, 0, 16 * own.group, own.lane);
    const char *row_at[2] = {shared + s.written + kda64_at_bt(64, 0, token, own.lane),
                             shared + s.written + kda64_at_bt(64, 0, token + 16, own.lane)};
    const int between = s.adjoints - s.written, gradients = s.gradients - s.states;
    const int at = kda64_at_b(values, token, 0, own.lane), piece = at & 0x70;
    const char *d_o = shared + s.d_o + at - piece;
#pragma unroll 2
    for (int v = 0; v < values; v += 16) {
        uint32_t state[4], gradient[4], b[4];
        load_matrices_transposed(state, state_at);
        load_matrices_transposed(gradient, state_at + gradients);
        const char *o = d_o + (piece ^ (2 * v & 0x70)) + (v >> 6 << 7);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            load_matrices(b, o + 32 * j * values);
            mma_add<scalar::bf16>(d.q[2 * j], state, {b[0], b[1]});
            mma_add<scalar::bf16>(d.q[2 * j + 1], state, {b[2], b[3]});
            load_matrices_transposed(b, row_at[j] + between);
            mma_add<scalar::bf16>(d.read[2 * j], state, {b[0], b[1]});
            mma_add<scalar::bf16>(d.read[2 * j + 1], state, {b[2], b[3]});
            load_matrices_transposed(b, row_at[j]);
            mma_add<scalar::bf16>(d.write[2 * j], gradient, {b[0], b[1]});
            mma_add<scalar::bf16>(d.write[2 * j + 1], gradient, {b[2], b[3]});
        }
        state_at += kda64_tile_bytes(16, Keys);
        row_at[0] += kda64_tile_bytes(16, kda64_rows),
            row_at[1] += kda64_tile_bytes(16, kda64_rows);
        mma_add<scalar::bf16>(
            x, state, {own.half ? gradient[1] : gradient[0], own.half ? gradient[3] : gradient[2]});
    }
    const bool mine = own.quad == own.row / 2;
    dots[0] = !mine || own.half ? 0.0f : own.row % 2 ? x[1] : x[0];
    dots[1] = !mine || !own.half ? 0.0f : own.row % 2 ? x[3] : x[2];
}

} // namespace plait::impl::cuda
