// What both scans of chunk64 share: a state, or its gradient, transposed in the accumulators of
// tensor-core products, 16 values and all keys to a warp.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/common/cluster.cuh"
#include "lib/cuda/kda/chunk64_common.cuh"

namespace plait::impl::cuda {

/// A slice of V of a chunk, 0 where nothing is; as it is, or as bf16 where `Convert`.
template <int Values, int Threads, bool Convert = false>
__device__ __forceinline__ void kda64_load_values(const kda_view &v, const void *base, int64_t at,
                                                  int count, int64_t first, int64_t dim_v,
                                                  bool vector, char *tile) {
    for (int e = static_cast<int>(threadIdx.x); e < 64 * Values / 8; e += Threads) {
        const int row = e / (Values / 8), column = e % (Values / 8) * 8;
        const int left =
            row < count ? static_cast<int>(min(dim_v - first - column, int64_t(8))) : 0;
        const int64_t from = left > 0 ? at + row * v.t + (first + column) * v.c : 0;
        char *to = tile + kda64_at(Values, row, column);
        if (vector && (left == 8 || left <= 0)) {
            async_copy<16>(shared_at_of(to), static_cast<const uint16_t *>(base) + from, left > 0);
            continue;
        }
        for (int i = 0; i < 8; ++i) {
            uint16_t bits = 0;
            if (i < left)
                bits = Convert ? round_half<scalar::bf16>(kda_load(base, from + i * v.c, v.type))
                               : static_cast<uint16_t>(kda_load_bits(base, from + i * v.c, v.type));
            reinterpret_cast<uint16_t *>(to)[i] = bits;
        }
    }
}

/// Items of the state of a lane: value base + row, key column.
template <int Keys>
__device__ __forceinline__ void
kda64_load_state(const kda_state_view &v, const void *base, int64_t at, int64_t value,
                 int64_t dim_k, int64_t dim_v, int lane, float (&s)[Keys / 8][mma_items_d]) {
#pragma unroll
    for (int t = 0; t < Keys / 8; ++t) {
#pragma unroll
        for (int i = 0; i < mma_items_d; ++i) {
            const mma_place in = mma_place_d(lane, i);
            const int64_t j = value + in.row, k = 8 * t + in.column;
            s[t][i] = base != nullptr && j < dim_v && k < dim_k
                          ? kda_load(base, at + k * v.k + j * v.v, v.type)
                          : 0.0f;
        }
    }
}

template <int Keys>
__device__ __forceinline__ void
kda64_store_state(const kda_state_view &v, void *base, int64_t at, int64_t value, int64_t dim_k,
                  int64_t dim_v, int lane, const float (&s)[Keys / 8][mma_items_d]) {
#pragma unroll
    for (int t = 0; t < Keys / 8; ++t) {
#pragma unroll
        for (int i = 0; i < mma_items_d; ++i) {
            const mma_place in = mma_place_d(lane, i);
            const int64_t j = value + in.row, k = 8 * t + in.column;
            if (j < dim_v && k < dim_k) kda_store(base, at + k * v.k + j * v.v, v.type, s[t][i]);
        }
    }
}

/// Accumulators of two tiles of 8 columns as A, or as B of two tiles: words 0, 2 and 1, 3.
__device__ __forceinline__ void kda64_pack(const float (&x)[mma_items_d],
                                           const float (&y)[mma_items_d], uint32_t (&w)[4]) {
    w[0] = round_pair<scalar::bf16>(x[0], x[1]);
    w[1] = round_pair<scalar::bf16>(x[2], x[3]);
    w[2] = round_pair<scalar::bf16>(y[0], y[1]);
    w[3] = round_pair<scalar::bf16>(y[2], y[3]);
}

/// What kda64_pack has lost, for a second product.
__device__ __forceinline__ void kda64_pack_rest(const float (&x)[mma_items_d],
                                                const float (&y)[mma_items_d],
                                                const uint32_t (&w)[4], uint32_t (&rest)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float low, high;
        widen_pair<scalar::bf16>(w[i], low, high);
        const float(&from)[mma_items_d] = i < 2 ? x : y;
        rest[i] = round_pair<scalar::bf16>(from[i % 2 * 2] - low, from[i % 2 * 2 + 1] - high);
    }
}

/// Four lanes next to one another have four words of each of four pieces of 16 bytes, a word of
/// each piece every lane; a lane gets the piece of its number.
__device__ __forceinline__ uint4 kda64_whole_piece(int lane, uint32_t (&w)[4]) {
    const bool odd = (lane & 1) != 0, high = (lane & 2) != 0;
#pragma unroll
    for (int m = 0; m < 4; m += 2) {
        const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? w[m] : w[m + 1], 1);
        (odd ? w[m] : w[m + 1]) = got;
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        const uint32_t got = __shfl_xor_sync(0xffffffffu, high ? w[m] : w[m + 2], 2);
        (high ? w[m] : w[m + 2]) = got;
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/// Transposed accumulators to a tile [values][columns] in global memory, as bf16.
template <int Columns>
__device__ __forceinline__ void kda64_keep(char *tile, int value, int lane,
                                           const float (&x)[Columns / 8][mma_items_d]) {
#pragma unroll
    for (int t = 0; t < Columns / 8; t += 4) {
#pragma unroll
        for (int i = 0; i < mma_items_d; i += 2) {
            uint32_t w[4];
#pragma unroll
            for (int m = 0; m < 4; ++m)
                w[m] = round_pair<scalar::bf16>(x[t + m][i], x[t + m][i + 1]);
            const int row = value + mma_place_d(lane, i).row;
            *reinterpret_cast<uint4 *>(tile + kda64_at(Columns, row, 8 * (t + lane % 4))) =
                kda64_whole_piece(lane, w);
        }
    }
}

/// The same of packed tiles of 16 columns.
__device__ __forceinline__ void kda64_keep_words(char *tile, int value, int lane,
                                                 const uint32_t (&words)[4][4]) {
#pragma unroll
    for (int t = 0; t < 4; t += 2) {
#pragma unroll
        for (int i = 0; i < 2; ++i) { // words i and i + 2 are pieces next to one another
            uint32_t w[4] = {words[t][i], words[t][i + 2], words[t + 1][i], words[t + 1][i + 2]};
            const int row = value + mma_place_a(lane, i, 0).row;
            *reinterpret_cast<uint4 *>(tile + kda64_at(64, row, 16 * t + 8 * (lane % 4))) =
                kda64_whole_piece(lane, w);
        }
    }
}

/// x += S^T rows^T: what the state has in store for each token. Exact: S is not rounded to bf16.
template <int Keys, bool Exact>
__device__ __forceinline__ void kda64_through_keys(const char *rows, int lane,
                                                   const float (&s)[Keys / 8][mma_items_d],
                                                   float (&x)[8][mma_items_d]) {
#pragma unroll
    for (int k = 0; k < Keys / 16; ++k) {
        uint32_t state[4], rest[4];
        kda64_pack(s[2 * k], s[2 * k + 1], state);
        if constexpr (Exact) kda64_pack_rest(s[2 * k], s[2 * k + 1], state, rest);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            uint32_t b[4];
            load_matrices(b, rows + kda64_at_b(Keys, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(x[2 * t], state, {b[0], b[1]});
            mma_add<scalar::bf16>(x[2 * t + 1], state, {b[2], b[3]});
            if constexpr (Exact) {
                mma_add<scalar::bf16>(x[2 * t], rest, {b[0], b[1]});
                mma_add<scalar::bf16>(x[2 * t + 1], rest, {b[2], b[3]});
            }
        }
    }
}

/// S^T = S^T gamma, key by key.
template <int Keys>
__device__ __forceinline__ void kda64_decay(const float *gamma, int lane,
                                            float (&s)[Keys / 8][mma_items_d]) {
#pragma unroll
    for (int t = 0; t < Keys / 8; ++t) {
        const float g0 = gamma[8 * t + lane % 4 * 2], g1 = gamma[8 * t + lane % 4 * 2 + 1];
        s[t][0] *= g0, s[t][1] *= g1, s[t][2] *= g0, s[t][3] *= g1;
    }
}

/// S^T += u^T rows. The sums of one step are all there are, so that none waits for another.
template <int Keys>
__device__ __forceinline__ void kda64_add_rows(const char *rows, int lane,
                                               const uint32_t (&u)[4][4],
                                               float (&s)[Keys / 8][mma_items_d]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int t = 0; t < Keys / 16; ++t) {
            uint32_t b[4];
            load_matrices_transposed(b, rows + kda64_at_bt(Keys, 16 * k, 16 * t, lane));
            mma_add<scalar::bf16>(s[2 * t], u[k], {b[0], b[1]});
            mma_add<scalar::bf16>(s[2 * t + 1], u[k], {b[2], b[3]});
        }
    }
}

/// The same with what packing u has lost.
template <int Keys>
__device__ __forceinline__ void
kda64_add_rows(const char *rows, int lane, const uint32_t (&u)[4][4], const uint32_t (&rest)[4][4],
               float (&s)[Keys / 8][mma_items_d]) {
    constexpr int group = 4; // whose operands wait in registers
    static_assert(Keys / 16 % group == 0);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int t = 0; t < Keys / 16; t += group) {
            uint32_t b[group][4];
#pragma unroll
            for (int x = 0; x < group; ++x)
                load_matrices_transposed(b[x],
                                         rows + kda64_at_bt(Keys, 16 * k, 16 * (t + x), lane));
#pragma unroll
            for (int x = 0; x < group; ++x) {
                mma_add<scalar::bf16>(s[2 * (t + x)], u[k], {b[x][0], b[x][1]});
                mma_add<scalar::bf16>(s[2 * (t + x) + 1], u[k], {b[x][2], b[x][3]});
            }
#pragma unroll
            for (int x = 0; x < group; ++x) {
                mma_add<scalar::bf16>(s[2 * (t + x)], rest[k], {b[x][0], b[x][1]});
                mma_add<scalar::bf16>(s[2 * (t + x) + 1], rest[k], {b[x][2], b[x][3]});
            }
        }
    }
}

} // namespace plait::impl::cuda
