// kda.fwd_recurrent: variants few.*, for calls of a few tokens whose states are what counts: 64 or
// 128 keys, values in multiples of 32, states of f32 or bf16 that lie in rows of keys or of values.
// A block has 32 values of a head: 16 bytes of a row to an access of a thread, all accesses under
// way before the first is used, while threads fetch, gate and norm a key each of the first token.
//   vk   a warp has 8 values and all keys, 16 lanes to a row: sums stay in the warp
//   kv   a warp has 32 values and a quarter of the keys, 8 lanes to a row: sums meet in shared
//   memory
// q and k stay as they are: their norms are factors of sums. One barrier a token, kv two.
//   traffic  states once; q, k, g of a token for each 32 values, from L2 but once
//   bound    bytes of states; 16 KiB of f32 states a block, 6 or 7 blocks on an SM (estimate: 25
//   KiB in
//            flight keep the memory busy). Precision: all f32, states rounded once, at the end
#pragma once

#include "lib/cuda/kda/fwd_recurrent.cuh"

namespace plait::impl::cuda {

/// Which entries a thread has: `keys` keys of four values.
template <scalar S, int Keys, bool ByKeys> struct kda_few_tile {
    static constexpr int keys = Keys / 16;
    static constexpr int size = S == scalar::f32 ? 4 : 2;
    /// Of an access: 16 bytes of keys where a thread has as many, else 4 entries.
    static constexpr int log_vec = ByKeys && size * keys >= 16 && size == 2 ? 3 : 2;
    static constexpr int vec = 1 << log_vec;
    static constexpr int accesses = 4 * keys / vec;
    using raw = raw_elements<S, log_vec>;

    /// The first of the keys i .. that lie next to one another.
    __device__ __forceinline__ static int key(int i) {
        const int lane = static_cast<int>(threadIdx.x % 32);
        if constexpr (!ByKeys) return static_cast<int>(threadIdx.x / 8) * keys + i;
        return i / vec * 16 * vec + lane % 16 * vec + i % vec;
    }
    __device__ __forceinline__ static int column() {
        const int lane = static_cast<int>(threadIdx.x % 32);
        if constexpr (!ByKeys) return lane % 8 * 4;
        return static_cast<int>(threadIdx.x / 32) * 8 + lane / 16 * 4;
    }
    /// Of access x, from the first entry of the block's head and values.
    __device__ __forceinline__ static int64_t at(const kda_state_view &v, int x) {
        if constexpr (!ByKeys) return key(x) * v.k + column();
        constexpr int each = keys / vec; // of a value
        return (column() + x / each) * v.v + key(x % each * vec);
    }

    __device__ __forceinline__ static void load(const kda_state_view &v, const void *base,
                                                int64_t from, raw (&r)[accesses]) {
#pragma unroll
        for (int x = 0; x < accesses; ++x) r[x] = load_raw<S, log_vec>(base, from + at(v, x));
    }
    __device__ __forceinline__ static void widen(const raw (&r)[accesses], float (&s)[keys][4]) {
#pragma unroll
        for (int x = 0; x < accesses; ++x) {
            float f[vec];
            widen_raw<S, log_vec>(r[x], f);
#pragma unroll
            for (int e = 0; e < vec; ++e) {
                if constexpr (ByKeys)
                    s[x % (keys / vec) * vec + e][x / (keys / vec)] = f[e];
                else
                    s[x][e] = f[e];
            }
        }
    }
    __device__ __forceinline__ static void store(const kda_state_view &v, void *base, int64_t from,
                                                 const float (&s)[keys][4]) {
#pragma unroll
        for (int x = 0; x < accesses; ++x) {
            float f[vec];
#pragma unroll
            for (int e = 0; e < vec; ++e)
                f[e] = ByKeys ? s[x % (keys / vec) * vec + e][x / (keys / vec)] : s[x][e];
            store_elements<S, log_vec>(base, from + at(v, x), f, 1.0f);
        }
    }
};

/// A key of a token, a value for threads of the first warp, and beta: bits on their way.
struct kda_few_bits {
    uint32_t q, k, g, v, beta;

    __device__ __forceinline__ void load(const kda_fwd_recurrent_args &a, const kda_item &item,
                                         int keys, int64_t t) {
        const kda_problem &p = a.problem;
        const int i = static_cast<int>(threadIdx.x);
        const int64_t token = item.at.begin + t, row = item.at.row;
        q = k = g = v = 0;
        if (i < keys) {
            q = kda_load_bits(a.q, kda_at(p.q, row, token, item.h) + i * p.q.c, p.q.type);
            k = kda_load_bits(a.k, kda_at(p.k, row, token, item.h) + i * p.k.c, p.k.type);
            g = kda_load_bits(a.g, kda_at(p.g, row, token, item.hv) + i * p.g.c, p.g.type);
        }
        if (i < kda_few_columns)
            v = kda_load_bits(a.v, kda_at(p.v, row, token, item.hv) + (item.column + i) * p.v.c,
                              p.v.type);
        beta = kda_load_bits(a.beta, kda_at(p.beta, row, token, item.hv), p.beta.type);
    }
};

/// 32-bit divisions: the launch has made sure that they do.
__device__ __forceinline__ kda_item kda_few_item_of(const kda_fwd_recurrent_args &a,
                                                    uint32_t block) {
    const kda_problem &p = a.problem;
    const auto tiles = static_cast<uint32_t>(a.tiles);
    const auto heads = static_cast<uint32_t>(p.heads), all = static_cast<uint32_t>(p.value_heads);
    const uint32_t head = block / tiles, n = head / all, hv = head - n * all;
    return {kda_place_of(p, a.table, a.slots, n), hv, hv * heads / all,
            (block - head * tiles) * kda_few_columns, 1.0f};
}

template <scalar S, int Keys, bool ByKeys>
__global__ void __launch_bounds__(kda_few_threads, kda_few_blocks_per_sm(Keys, ByKeys))
    kda_fwd_recurrent_few(const __grid_constant__ kda_fwd_recurrent_args a) {
    using tile = kda_few_tile<S, Keys, ByKeys>;
    constexpr kda_few_layout lay = kda_few_layout_of(Keys);
    extern __shared__ __align__(16) char shared[];
    auto *words = reinterpret_cast<float *>(shared);
    const kda_problem &p = a.problem;
    const int i = static_cast<int>(threadIdx.x), lane = i % 32, warp = i / 32;
    int turn = 0; // of the two buffers of a token
    for (uint32_t block = blockIdx.x; block < static_cast<uint32_t>(a.blocks); block += gridDim.x) {
        const kda_item item = kda_few_item_of(a, block);
        kda_few_bits bits{};
        if (item.at.length > 0) bits.load(a, item, Keys, 0);
        const uint32_t rate_bits =
            p.a_log.used() ? kda_load_bits(a.a_log, item.hv * p.a_log.h, p.a_log.type) : 0;
        const uint32_t bias_bits =
            p.dt_bias.used() && i < Keys
                ? kda_load_bits(a.dt_bias, item.hv * p.dt_bias.h + i * p.dt_bias.c, p.dt_bias.type)
                : 0;
        typename tile::raw raw[tile::accesses] = {};
        if (item.at.live && p.state_in.used())
            tile::load(p.state_in, a.state_in,
                       item.at.state * p.state_in.n + item.hv * p.state_in.h +
                           item.column * p.state_in.v,
                       raw);
        kda_fwd_clear(a, item, item.at.gap, item.at.begin, kda_few_columns);
        if (!item.at.live)
            kda_fwd_clear(a, item, item.at.begin, item.at.begin + item.at.length, kda_few_columns);
        const int tokens = item.at.live ? static_cast<int>(item.at.length) : 0;
        // Nothing that came from memory is looked at before the loads of the state are under way.
        const float rate = p.a_log.used() ? expf(kda_widen(rate_bits, p.a_log.type)) : 1.0f;
        const float bias = p.dt_bias.used() ? kda_widen(bias_bits, p.dt_bias.type) : 0.0f;
        const auto stage = [&](float *token) {
            const float q = kda_widen(bits.q, p.q.type), k = kda_widen(bits.k, p.k.type);
            if (i < Keys) {
                token[lay.q + i] = q;
                token[lay.k + i] = k;
                token[lay.decay + i] =
                    expf(kda_gate_of(p, rate, kda_widen(bits.g, p.g.type) + bias));
            }
            if (i < kda_few_columns) token[lay.v + i] = kda_widen(bits.v, p.v.type);
            const float qq = kda_warp_sum(q * q), kk = kda_warp_sum(k * k);
            const float kq = kda_warp_sum(k * q);
            if (lane == 0)
                *reinterpret_cast<float4 *>(token + lay.sums + 4 * warp) =
                    make_float4(qq, kk, kq, kda_beta_of(p, kda_widen(bits.beta, p.beta.type)));
        };
        if (tokens > 0) stage(words + turn % 2 * lay.token);
        float s[tile::keys][4];
        tile::widen(raw, s);
#pragma unroll 1
        for (int t = 0; t < tokens; ++t, ++turn) {
            const float *token = words + turn % 2 * lay.token;
            if (t + 1 < tokens) bits.load(a, item, Keys, t + 1);
            __syncthreads(); // the token is there; nobody reads the one before any more
            float r[4] = {}, o[4] = {}, u[4], of_q = 0, of_k = 0, pair = 0, beta = 0;
#pragma unroll
            for (int w = 0; w < kda_few_threads / 32; ++w) {
                const float4 sum = *reinterpret_cast<const float4 *>(token + lay.sums + 4 * w);
                of_q += sum.x, of_k += sum.y, pair += sum.z, beta = sum.w;
            }
            of_q = kda_inverse_norm(p, of_q) * static_cast<float>(p.scale);
            of_k = kda_inverse_norm(p, of_k);
            pair *= of_q * of_k;
#pragma unroll
            for (int x = 0; x < tile::keys; x += 4) {
                const float *from = token + tile::key(x);
                const float4 q4 = *reinterpret_cast<const float4 *>(from + lay.q);
                const float4 k4 = *reinterpret_cast<const float4 *>(from + lay.k);
                const float4 d4 = *reinterpret_cast<const float4 *>(from + lay.decay);
                const float qs[4] = {q4.x, q4.y, q4.z, q4.w}, ks[4] = {k4.x, k4.y, k4.z, k4.w};
                const float ds[4] = {d4.x, d4.y, d4.z, d4.w};
#pragma unroll
                for (int y = 0; y < 4; ++y)
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        s[x + y][c] *= ds[y];
                        r[c] += ks[y] * s[x + y][c];
                        o[c] += qs[y] * s[x + y][c];
                    }
            }
            const int64_t out = kda_at(p.o, item.at.row, item.at.begin + t, item.hv);
            if constexpr (ByKeys) {
                const float sum = kda_fold(r, o);
                const int column = tile::column() + kda_fold_column();
                const float mine = beta * (token[lay.v + column] - of_k * sum);
                kda_unfold(of_k * mine, u);
                const float update = __shfl_xor_sync(0xffffffffu, mine, 8);
                if ((lane & 9) == 8)
                    kda_store(a.o, out + (item.column + column) * p.o.c, p.o.type,
                              of_q * sum + pair * update);
            } else {
                const bool upper = (lane & 8) != 0, high = (lane & 16) != 0;
                float y[4], z[2];
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    y[c] = (upper ? o[c] : r[c]) +
                           __shfl_xor_sync(0xffffffffu, upper ? r[c] : o[c], 8);
#pragma unroll
                for (int c = 0; c < 2; ++c)
                    z[c] = (high ? y[2 + c] : y[c]) +
                           __shfl_xor_sync(0xffffffffu, high ? y[c] : y[2 + c], 16);
                float *part = words + lay.parts;
                *reinterpret_cast<float2 *>(part + (2 * warp + (upper ? 1 : 0)) * kda_few_columns +
                                            tile::column() + (high ? 2 : 0)) =
                    make_float2(z[0], z[1]);
                __syncthreads(); // the sums of all warps are there
                const float4 v = *reinterpret_cast<const float4 *>(token + lay.v + tile::column());
                const float vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (int c = 0; c < 4; ++c) u[c] = 0;
#pragma unroll
                for (int w = 0; w < kda_few_threads / 32; ++w) {
                    const float4 four = *reinterpret_cast<const float4 *>(
                        part + 2 * w * kda_few_columns + tile::column());
                    u[0] += four.x, u[1] += four.y, u[2] += four.z, u[3] += four.w;
                }
                if (i < kda_few_columns) {
                    float of_r = 0, of_o = 0;
#pragma unroll
                    for (int w = 0; w < kda_few_threads / 32; ++w) {
                        of_r += part[2 * w * kda_few_columns + i];
                        of_o += part[(2 * w + 1) * kda_few_columns + i];
                    }
                    kda_store(a.o, out + (item.column + i) * p.o.c, p.o.type,
                              of_q * of_o + pair * (beta * (token[lay.v + i] - of_k * of_r)));
                }
#pragma unroll
                for (int c = 0; c < 4; ++c) u[c] = of_k * (beta * (vs[c] - of_k * u[c]));
            }
#pragma unroll
            for (int x = 0; x < tile::keys; x += 4) {
                const float4 k4 = *reinterpret_cast<const float4 *>(token + lay.k + tile::key(x));
                const float ks[4] = {k4.x, k4.y, k4.z, k4.w};
#pragma unroll
                for (int y = 0; y < 4; ++y)
#pragma unroll
                    for (int c = 0; c < 4; ++c) s[x + y][c] += ks[y] * u[c];
            }
            if (t + 1 < tokens) stage(words + (turn + 1) % 2 * lay.token);
        }
        if (p.state_out.used() && item.at.state >= 0)
            tile::store(p.state_out, a.state_out,
                        item.at.state * p.state_out.n + item.hv * p.state_out.h +
                            item.column * p.state_out.v,
                        s);
    }
}

} // namespace plait::impl::cuda
