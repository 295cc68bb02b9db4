// What the recurrent kernels of kda share: a tile of a state in registers, and tokens that a warp
// fetches ahead and leaves, normed and gated, in shared memory.
#pragma once

#include "lib/cuda/kda/common.cuh"
#include "lib/cuda/kda/recurrent_layout.h"

namespace plait::impl::cuda {

/// The entries of a thread: [key][column].
template <int Quads> struct kda_tile {
    static constexpr int keys = 4 * Quads;
    float s[keys][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < keys; ++i)
#pragma unroll
            for (int c = 0; c < 4; ++c) s[i][c] = 0;
    }

    /// Columns from `column` on of a head; outside of the state it is zero.
    __device__ __forceinline__ void load(const kda_problem &p, const kda_state_view &v,
                                         const void *base, kda_state_access how, int64_t head,
                                         int64_t column) {
        const int lane = static_cast<int>(threadIdx.x % 32);
        clear();
        if (how == kda_state_access::columns) {
#pragma unroll
            for (int i = 0; i < keys; ++i) {
                const int key = kda_tile_key(lane, i);
                if (key < p.dim_k && column < p.dim_v)
                    kda_load4(base, head + key * v.k + column, v.type, s[i]);
            }
        } else if (how == kda_state_access::keys) {
#pragma unroll
            for (int c = 0; c < 4; ++c)
#pragma unroll
                for (int j = 0; j < Quads; ++j) {
                    const int key = kda_tile_key(lane, 4 * j);
                    if (key >= p.dim_k || column + c >= p.dim_v) continue;
                    float four[4];
                    kda_load4(base, head + (column + c) * v.v + key, v.type, four);
#pragma unroll
                    for (int x = 0; x < 4; ++x) s[4 * j + x][c] = four[x];
                }
        } else {
#pragma unroll
            for (int i = 0; i < keys; ++i) {
                const int key = kda_tile_key(lane, i);
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    if (key < p.dim_k && column + c < p.dim_v)
                        s[i][c] = kda_load(base, head + key * v.k + (column + c) * v.v, v.type);
            }
        }
    }

    __device__ __forceinline__ void store(const kda_problem &p, const kda_state_view &v, void *base,
                                          kda_state_access how, int64_t head,
                                          int64_t column) const {
        const int lane = static_cast<int>(threadIdx.x % 32);
        if (how == kda_state_access::columns) {
#pragma unroll
            for (int i = 0; i < keys; ++i) {
                const int key = kda_tile_key(lane, i);
                if (key < p.dim_k && column < p.dim_v)
                    kda_store4(base, head + key * v.k + column, v.type, s[i]);
            }
        } else if (how == kda_state_access::keys) {
#pragma unroll
            for (int c = 0; c < 4; ++c)
#pragma unroll
                for (int j = 0; j < Quads; ++j) {
                    const int key = kda_tile_key(lane, 4 * j);
                    if (key >= p.dim_k || column + c >= p.dim_v) continue;
                    const float four[4] = {s[4 * j][c], s[4 * j + 1][c], s[4 * j + 2][c],
                                           s[4 * j + 3][c]};
                    kda_store4(base, head + (column + c) * v.v + key, v.type, four);
                }
        } else {
#pragma unroll
            for (int i = 0; i < keys; ++i) {
                const int key = kda_tile_key(lane, i);
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    if (key < p.dim_k && column + c < p.dim_v)
                        kda_store(base, head + key * v.k + (column + c) * v.v, v.type, s[i][c]);
            }
        }
    }
};

/// One value head of one sequence, and the tile of its values.
struct kda_item {
    kda_place at;
    int64_t hv, h;
    int64_t column; ///< first of the tile
    float rate;
};

/// Items: tiles of a head next to one another, then heads, then sequences.
template <class Args>
__device__ __forceinline__ kda_item kda_item_of(const Args &a, int64_t item, int columns) {
    const kda_problem &p = a.problem;
    const int64_t head = item / a.tiles, n = head / p.value_heads, hv = head - n * p.value_heads;
    return {kda_place_of(p, a.table, a.slots, n), hv, hv / p.group(),
            (item - head * a.tiles) * columns, kda_rate(p, a.a_log, hv)};
}

/// The row of a token as bits in registers, fetched ahead: key lane + 32 j of q, k and g; value
/// lane.
template <int Quads> struct kda_raw_token {
    static constexpr int each = 2 * Quads;
    uint32_t q[each], k[each], g[each], v, beta;

    /// Token t of the sequence.
    template <class Args>
    __device__ __forceinline__ void load(const Args &a, const kda_item &item, int64_t t,
                                         int columns) {
        const kda_problem &p = a.problem;
        const int lane = static_cast<int>(threadIdx.x % 32);
        const int64_t token = item.at.begin + t, row = item.at.row;
        const int64_t at_q = kda_at(p.q, row, token, item.h);
        const int64_t at_k = kda_at(p.k, row, token, item.h);
        const int64_t at_g = kda_at(p.g, row, token, item.hv);
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const int i = lane + 32 * j;
            q[j] = k[j] = g[j] = 0;
            if (i >= p.dim_k) continue;
            q[j] = kda_load_bits(a.q, at_q + i * p.q.c, p.q.type);
            k[j] = kda_load_bits(a.k, at_k + i * p.k.c, p.k.type);
            g[j] = kda_load_bits(a.g, at_g + i * p.g.c, p.g.type);
        }
        const int64_t column = item.column + lane;
        v = 0;
        if (lane < columns && column < p.dim_v)
            v = kda_load_bits(a.v, kda_at(p.v, row, token, item.hv) + column * p.v.c, p.v.type);
        beta = kda_load_bits(a.beta, kda_at(p.beta, row, token, item.hv), p.beta.type);
    }

    /// To token `slot` of the batch in shared memory. q is normed and scaled, k normed.
    template <class Args>
    __device__ __forceinline__ void stage(const Args &a, const kda_item &item,
                                          const kda_batch_layout &lay, float *batch,
                                          int slot) const {
        const kda_problem &p = a.problem;
        const int lane = static_cast<int>(threadIdx.x % 32);
        float qf[each], kf[each], qq = 0, kk = 0, kq = 0;
#pragma unroll
        for (int j = 0; j < each; ++j) {
            qf[j] = kda_widen(q[j], p.q.type);
            kf[j] = kda_widen(k[j], p.k.type);
            qq += qf[j] * qf[j];
            kk += kf[j] * kf[j];
            kq += kf[j] * qf[j];
        }
        const float of_q =
            kda_inverse_norm(p, p.norm ? kda_warp_sum(qq) : 0.0f) * static_cast<float>(p.scale);
        const float of_k = kda_inverse_norm(p, p.norm ? kda_warp_sum(kk) : 0.0f);
        kq = kda_warp_sum(kq) * of_q * of_k;
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const int i = lane + 32 * j;
            const float x = kda_widen(g[j], p.g.type) +
                            (i < p.dim_k ? kda_bias(p, a.dt_bias, item.hv, i) : 0.0f);
            batch[lay.q(slot) + i] = qf[j] * of_q;
            batch[lay.k(slot) + i] = kf[j] * of_k;
            batch[lay.decay(slot) + i] = expf(kda_gate_of(p, item.rate, x));
        }
        if (lane < lay.columns) batch[lay.v(slot) + lane] = kda_widen(v, p.v.type);
        if (lane == 0) {
            batch[lay.beta(slot)] = kda_beta_of(p, kda_widen(beta, p.beta.type));
            batch[lay.kq(slot)] = kq;
        }
    }
};

/// The same for token t at once, with DO: a lane's keys wait in shared memory for their norm, so
/// that tiles keep the registers.
template <class Args>
__device__ __forceinline__ void kda_stage_token(const Args &a, const kda_item &item,
                                                const kda_batch_layout &lay, float *batch, int slot,
                                                int64_t t) {
    const kda_problem &p = a.problem;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int64_t token = item.at.begin + t, row = item.at.row;
    const int64_t at_q = kda_at(p.q, row, token, item.h), at_k = kda_at(p.k, row, token, item.h);
    const int64_t at_g = kda_at(p.g, row, token, item.hv);
    float qq = 0, kk = 0, kq = 0;
#pragma unroll 2
    for (int i = lane; i < lay.keys; i += 32) {
        float q = 0, k = 0, decay = 0;
        if (i < p.dim_k) {
            q = kda_load(a.q, at_q + i * p.q.c, p.q.type);
            k = kda_load(a.k, at_k + i * p.k.c, p.k.type);
            const float x =
                kda_load(a.g, at_g + i * p.g.c, p.g.type) + kda_bias(p, a.dt_bias, item.hv, i);
            decay = expf(kda_gate_of(p, item.rate, x));
        }
        qq += q * q;
        kk += k * k;
        kq += k * q;
        batch[lay.q(slot) + i] = q;
        batch[lay.k(slot) + i] = k;
        batch[lay.decay(slot) + i] = decay;
    }
    const float of_q =
        kda_inverse_norm(p, p.norm ? kda_warp_sum(qq) : 0.0f) * static_cast<float>(p.scale);
    const float of_k = kda_inverse_norm(p, p.norm ? kda_warp_sum(kk) : 0.0f);
    kq = kda_warp_sum(kq) * of_q * of_k;
#pragma unroll 2
    for (int i = lane; i < lay.keys; i += 32) {
        batch[lay.q(slot) + i] *= of_q;
        batch[lay.k(slot) + i] *= of_k;
    }
#pragma unroll 1
    for (int x = lane; x < lay.columns; x += 32) {
        const int64_t column = item.column + x;
        float v = 0, d_o = 0;
        if (column < p.dim_v) {
            v = kda_load(a.v, kda_at(p.v, row, token, item.hv) + column * p.v.c, p.v.type);
            d_o =
                kda_load(a.d_o, kda_at(p.d_o, row, token, item.hv) + column * p.d_o.c, p.d_o.type);
        }
        batch[lay.v(slot) + x] = v;
        batch[lay.o(slot) + x] = d_o;
    }
    if (lane == 0) {
        batch[lay.beta(slot)] =
            kda_beta_of(p, kda_load(a.beta, kda_at(p.beta, row, token, item.hv), p.beta.type));
        batch[lay.kq(slot)] = kq;
    }
}

/// The entries of a row of shared memory that belong to a thread's keys.
template <int Quads>
__device__ __forceinline__ void kda_row_of(const float *row, float (&out)[4 * Quads]) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int j = 0; j < Quads; ++j) {
        const float4 four = *reinterpret_cast<const float4 *>(row + kda_tile_key(lane, 4 * j));
        out[4 * j] = four.x, out[4 * j + 1] = four.y, out[4 * j + 2] = four.z,
                out[4 * j + 3] = four.w;
    }
}

/// Sums over the keys of a warp's columns, of two vectors of four at once: a[0..3], b[0..3] of
/// every lane. The lane has the sum of column c = bits 2 and 1 of its number: of a where bit 3 is
/// 0, else of b.
__device__ __forceinline__ float kda_fold(const float (&a)[4], const float (&b)[4]) {
    const unsigned lane = threadIdx.x % 32;
    const bool upper = (lane & 8) != 0, high = (lane & 4) != 0, odd = (lane & 2) != 0;
    float y[4], z[2];
#pragma unroll
    for (int c = 0; c < 4; ++c)
        y[c] = (upper ? b[c] : a[c]) + __shfl_xor_sync(0xffffffffu, upper ? a[c] : b[c], 8);
#pragma unroll
    for (int c = 0; c < 2; ++c)
        z[c] = (high ? y[2 + c] : y[c]) + __shfl_xor_sync(0xffffffffu, high ? y[c] : y[2 + c], 4);
    const float sum = (odd ? z[1] : z[0]) + __shfl_xor_sync(0xffffffffu, odd ? z[0] : z[1], 2);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
}
__device__ __forceinline__ int kda_fold_column() { return static_cast<int>(threadIdx.x / 2 % 4); }
/// A value that lanes of kda_fold have by column, to all lanes of the columns.
__device__ __forceinline__ void kda_unfold(float value, float (&out)[4], unsigned from = 0) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned c = 0; c < 4; ++c)
        out[c] = __shfl_sync(0xffffffffu, value, static_cast<int>((lane & 16) | from | 2 * c));
}

} // namespace plait::impl::cuda
