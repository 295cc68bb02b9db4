// Part of kda.fwd_recurrent, which begins in fwd_recurrent.cuh:
// variants few.*, for calls of a few tokens whose states are what counts: 64 or
// 128 keys, values in multiples of 32, states of f32 or bf16 that lie in rows of keys or of values.
// A block has 32 values of a head: 16 bytes of a row to an access of a thread, all accesses under
// way before the first is used, while each warp fetches, gates and norms a token.
//   vk   a warp has 8 values and all keys, 16 lanes to a row: sums stay in the warp
//   kv   a warp has 32 values and a quarter of the keys, 8 lanes to a row: sums meet in shared
//        memory, a barrier a token
//   traffic  states once; q, k, g of a token for each 32 values, from L2 but once
//   bound    bytes of states: 16 KiB of f32 a block, 5 blocks on an SM (estimate: 25 KiB in
//            flight keep the memory busy); of many tokens their arithmetic. Precision: f32, states
//            rounded once, at the end
#pragma once

#include "lib/cuda/common/async_copy.cuh"
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

    /// Through shared memory, so that no registers wait: a thread reads what it asked for itself.
    __device__ __forceinline__ static void load(const kda_state_view &v, const void *base,
                                                int64_t from, raw *to) {
        const auto *first = static_cast<const typename stored<S>::bits *>(base) + from;
#pragma unroll
        for (int x = 0; x < accesses; ++x)
            async_copy<sizeof(raw)>(shared_at_of(to + x * kda_few_threads + threadIdx.x),
                                    first + at(v, x));
    }
    __device__ __forceinline__ static void widen(const raw *r, float (&s)[keys][4]) {
#pragma unroll
        for (int x = 0; x < accesses; ++x) {
            float f[vec];
            widen_raw<S, log_vec>(r[x * kda_few_threads + threadIdx.x], f);
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

/// 32 bits for all: the launch has made sure that they do.
struct kda_few_item {
    int32_t row, begin, length, state, hv, h, column;
    bool live;
};

/// Keys lane + 32 j of a token, a value and beta: bits on their way.
template <int Keys> struct kda_few_bits {
    static constexpr int each = Keys / 32;
    uint32_t q[each], k[each], g[each], v, beta;

    __device__ __forceinline__ void load(const kda_fwd_recurrent_args &a, const kda_few_item &item,
                                         int64_t t) {
        const kda_problem &p = a.problem;
        const int lane = static_cast<int>(threadIdx.x % 32);
        const int64_t token = int64_t(item.begin) + t, row = item.row;
        load(a.q, kda_at(p.q, row, token, item.h), p.q, q);
        load(a.k, kda_at(p.k, row, token, item.h), p.k, k);
        load(a.g, kda_at(p.g, row, token, item.hv), p.g, g);
        v = kda_load_bits(a.v, kda_at(p.v, row, token, item.hv) + (item.column + lane) * p.v.c,
                          p.v.type);
        beta = kda_load_bits(a.beta, kda_at(p.beta, row, token, item.hv), p.beta.type);
    }

    __device__ __forceinline__ static void load(const void *base, int64_t at, const kda_view &view,
                                                uint32_t (&bits)[each]) {
        const int lane = static_cast<int>(threadIdx.x % 32);
        if (view.type == scalar::f32) {
#pragma unroll
            for (int j = 0; j < each; ++j)
                bits[j] = static_cast<const uint32_t *>(base)[at + (lane + 32 * j) * view.c];
        } else {
#pragma unroll
            for (int j = 0; j < each; ++j)
                bits[j] = static_cast<const uint16_t *>(base)[at + (lane + 32 * j) * view.c];
        }
    }

    /// To token `slot` of the batch: q is normed and scaled, k normed.
    __device__ __forceinline__ void stage(const kda_problem &p, float rate,
                                          const float (&bias)[each], float *batch, int slot) const {
        constexpr kda_batch_layout lay = kda_few_batch(Keys);
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
        kq = kda_warp_sum(kq);
        float of_q = static_cast<float>(p.scale), of_k = 1;
        if (p.norm) {
            of_q *= kda_inverse_norm(p, kda_warp_sum(qq));
            of_k = kda_inverse_norm(p, kda_warp_sum(kk));
        }
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const int i = lane + 32 * j;
            batch[lay.q(slot) + i] = qf[j] * of_q;
            batch[lay.k(slot) + i] = kf[j] * of_k;
            batch[lay.decay(slot) + i] =
                expf(kda_gate_of(p, rate, kda_widen(g[j], p.g.type) + bias[j]));
        }
        batch[lay.v(slot) + lane] = kda_widen(v, p.v.type);
        if (lane == 0) {
            batch[lay.beta(slot)] = kda_beta_of(p, kda_widen(beta, p.beta.type));
            batch[lay.kq(slot)] = kq * of_q * of_k;
        }
    }
};

/// The same of token t at once, of few registers: gates come after the rows, so that two waits are
/// all there are.
template <int Keys>
__device__ __forceinline__ void kda_few_stage(const kda_fwd_recurrent_args &a,
                                              const kda_few_item &item, float rate, float *batch,
                                              int slot, int64_t t) {
    using bits = kda_few_bits<Keys>;
    constexpr kda_batch_layout lay = kda_few_batch(Keys);
    constexpr int each = Keys / 32;
    const kda_problem &p = a.problem;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int64_t token = int64_t(item.begin) + t, row = item.row;
    uint32_t first[each], second[each];
    bits::load(a.q, kda_at(p.q, row, token, item.h), p.q, first);
    bits::load(a.k, kda_at(p.k, row, token, item.h), p.k, second);
    const uint32_t v = kda_load_bits(
        a.v, kda_at(p.v, row, token, item.hv) + (item.column + lane) * p.v.c, p.v.type);
    const uint32_t beta = kda_load_bits(a.beta, kda_at(p.beta, row, token, item.hv), p.beta.type);
    float qq = 0, kk = 0, kq = 0;
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const float q = kda_widen(first[j], p.q.type), k = kda_widen(second[j], p.k.type);
        qq += q * q;
        kk += k * k;
        kq += k * q;
    }
    kq = kda_warp_sum(kq);
    float of_q = static_cast<float>(p.scale), of_k = 1;
    if (p.norm) {
        of_q *= kda_inverse_norm(p, kda_warp_sum(qq));
        of_k = kda_inverse_norm(p, kda_warp_sum(kk));
    }
#pragma unroll
    for (int j = 0; j < each; ++j) {
        batch[lay.q(slot) + lane + 32 * j] = kda_widen(first[j], p.q.type) * of_q;
        batch[lay.k(slot) + lane + 32 * j] = kda_widen(second[j], p.k.type) * of_k;
    }
    batch[lay.v(slot) + lane] = kda_widen(v, p.v.type);
    if (lane == 0) {
        batch[lay.beta(slot)] = kda_beta_of(p, kda_widen(beta, p.beta.type));
        batch[lay.kq(slot)] = kq * of_q * of_k;
    }
    bits::load(a.g, kda_at(p.g, row, token, item.hv), p.g, first);
    if (p.dt_bias.used()) bits::load(a.dt_bias, item.hv * p.dt_bias.h, p.dt_bias, second);
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const float bias = p.dt_bias.used() ? kda_widen(second[j], p.dt_bias.type) : 0.0f;
        batch[lay.decay(slot) + lane + 32 * j] =
            expf(kda_gate_of(p, rate, kda_widen(first[j], p.g.type) + bias));
    }
}

__device__ __forceinline__ kda_item kda_few_item_of(const kda_fwd_recurrent_args &a,
                                                    uint32_t block) {
    const kda_problem &p = a.problem;
    const auto tiles = static_cast<uint32_t>(a.tiles);
    const auto heads = static_cast<uint32_t>(p.heads), all = static_cast<uint32_t>(p.value_heads);
    const uint32_t head = block / tiles, n = head / all, hv = head - n * all;
    return {kda_place_of(p, a.table, a.slots, n), hv, hv * heads / all,
            (block - head * tiles) * kda_few_columns, 1.0f};
}
__device__ __forceinline__ kda_few_item kda_few_narrow(const kda_item &item) {
    return {static_cast<int32_t>(item.at.row),    static_cast<int32_t>(item.at.begin),
            static_cast<int32_t>(item.at.length), static_cast<int32_t>(item.at.state),
            static_cast<int32_t>(item.hv),        static_cast<int32_t>(item.h),
            static_cast<int32_t>(item.column),    item.at.live};
}

/// A token of the batch; `parts` are the sums of the warps of this token and the one before, by
/// turns.
template <scalar S, int Keys, bool ByKeys>
__device__ __forceinline__ void
kda_few_token(const kda_fwd_recurrent_args &a, const kda_few_item &item, const float *batch,
              float *parts, int slot, int64_t t, float (&s)[Keys / 16][4]) {
    using tile = kda_few_tile<S, Keys, ByKeys>;
    constexpr kda_batch_layout lay = kda_few_batch(Keys);
    const kda_problem &p = a.problem;
    const int i = static_cast<int>(threadIdx.x), lane = i % 32, warp = i / 32;
    float r[4] = {}, o[4] = {}, u[4];
#pragma unroll
    for (int x = 0; x < tile::keys; x += 4) {
        const float *from = batch + tile::key(x);
        const float4 q4 = *reinterpret_cast<const float4 *>(from + lay.q(slot));
        const float4 k4 = *reinterpret_cast<const float4 *>(from + lay.k(slot));
        const float4 d4 = *reinterpret_cast<const float4 *>(from + lay.decay(slot));
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
    const int64_t out =
        kda_at(p.o, item.row, int64_t(item.begin) + t, item.hv) + item.column * p.o.c;
    const float beta = batch[lay.beta(slot)], pair = batch[lay.kq(slot)];
    if constexpr (ByKeys) {
        const float sum = kda_fold(r, o);
        const int column = tile::column() + kda_fold_column();
        const float mine = beta * (batch[lay.v(slot) + column] - sum);
        kda_unfold(mine, u);
        const float update = __shfl_xor_sync(0xffffffffu, mine, 8);
        if ((lane & 9) == 8) kda_store(a.o, out + column * p.o.c, p.o.type, sum + pair * update);
    } else {
        const bool upper = (lane & 8) != 0, high = (lane & 16) != 0;
        float y[4], z[2];
#pragma unroll
        for (int c = 0; c < 4; ++c)
            y[c] = (upper ? o[c] : r[c]) + __shfl_xor_sync(0xffffffffu, upper ? r[c] : o[c], 8);
#pragma unroll
        for (int c = 0; c < 2; ++c)
            z[c] =
                (high ? y[2 + c] : y[c]) + __shfl_xor_sync(0xffffffffu, high ? y[c] : y[2 + c], 16);
        float *part = parts + slot % 2 * kda_few_parts;
        *reinterpret_cast<float2 *>(part + (2 * warp + (upper ? 1 : 0)) * kda_few_columns +
                                    tile::column() + (high ? 2 : 0)) = make_float2(z[0], z[1]);
        __syncthreads(); // the sums of all warps are there
        float sums[4] = {};
#pragma unroll
        for (int w = 0; w < kda_few_warps; ++w) {
            const float4 four =
                *reinterpret_cast<const float4 *>(part + 2 * w * kda_few_columns + tile::column());
            sums[0] += four.x, sums[1] += four.y, sums[2] += four.z, sums[3] += four.w;
        }
        const float4 v = *reinterpret_cast<const float4 *>(batch + lay.v(slot) + tile::column());
        u[0] = beta * (v.x - sums[0]), u[1] = beta * (v.y - sums[1]);
        u[2] = beta * (v.z - sums[2]), u[3] = beta * (v.w - sums[3]);
        if (warp == slot % kda_few_warps) {
            float of_r = 0, of_o = 0;
#pragma unroll
            for (int w = 0; w < kda_few_warps; ++w) {
                of_r += part[2 * w * kda_few_columns + lane];
                of_o += part[(2 * w + 1) * kda_few_columns + lane];
            }
            kda_store(a.o, out + lane * p.o.c, p.o.type,
                      of_o + pair * (beta * (batch[lay.v(slot) + lane] - of_r)));
        }
    }
#pragma unroll
    for (int x = 0; x < tile::keys; x += 4) {
        const float4 k4 = *reinterpret_cast<const float4 *>(batch + lay.k(slot) + tile::key(x));
        const float ks[4] = {k4.x, k4.y, k4.z, k4.w};
#pragma unroll
        for (int y = 0; y < 4; ++y)
#pragma unroll
            for (int c = 0; c < 4; ++c) s[x + y][c] += ks[y] * u[c];
    }
}

template <scalar S, int Keys, bool ByKeys>
__global__ void __launch_bounds__(kda_few_threads, kda_few_blocks_per_sm(Keys))
    kda_fwd_recurrent_few(const __grid_constant__ kda_fwd_recurrent_args a) {
    using tile = kda_few_tile<S, Keys, ByKeys>;
    constexpr int warps = kda_few_warps; // and tokens of a batch
    extern __shared__ __align__(16) char shared[];
    auto *raw = reinterpret_cast<typename tile::raw *>(shared);
    auto *batch = reinterpret_cast<float *>(shared + Keys * kda_few_columns * tile::size);
    float *parts = batch + kda_few_batch(Keys).floats();
    const kda_problem &p = a.problem;
    const int warp = static_cast<int>(threadIdx.x / 32);
    for (uint32_t block = blockIdx.x; block < static_cast<uint32_t>(a.blocks); block += gridDim.x) {
        const kda_item wide = kda_few_item_of(a, block);
        const kda_few_item item = kda_few_narrow(wide);
        kda_few_bits<Keys> bits{};
        uint32_t bias_bits[Keys / 32] = {}, rate_bits = 0;
        if (warp < item.length) {
            bits.load(a, item, warp);
            if (p.dt_bias.used()) bits.load(a.dt_bias, item.hv * p.dt_bias.h, p.dt_bias, bias_bits);
            if (p.a_log.used())
                rate_bits = kda_load_bits(a.a_log, item.hv * p.a_log.h, p.a_log.type);
        }
        const bool given = item.live && p.state_in.used();
        if (given)
            tile::load(p.state_in, a.state_in,
                       item.state * p.state_in.n + item.hv * p.state_in.h +
                           item.column * p.state_in.v,
                       raw);
        kda_fwd_clear(a, wide, wide.at.gap, wide.at.begin, kda_few_columns);
        if (!item.live)
            kda_fwd_clear(a, wide, wide.at.begin, wide.at.begin + wide.at.length, kda_few_columns);
        const int tokens = item.live ? static_cast<int>(item.length) : 0;
        // Nothing that came from memory is looked at before the loads of the state are under way.
        if (block != blockIdx.x) __syncthreads(); // nobody reads the tokens of the block before
        const float rate = p.a_log.used() ? expf(kda_widen(rate_bits, p.a_log.type)) : 1.0f;
        float bias[Keys / 32];
#pragma unroll
        for (int j = 0; j < Keys / 32; ++j)
            bias[j] = p.dt_bias.used() ? kda_widen(bias_bits[j], p.dt_bias.type) : 0.0f;
        if (warp < tokens) bits.stage(p, rate, bias, batch, warp);
        float s[tile::keys][4];
        if (given) {
            async_commit();
            async_wait<0>();
            tile::widen(raw, s);
        } else {
#pragma unroll
            for (int x = 0; x < tile::keys; ++x) s[x][0] = s[x][1] = s[x][2] = s[x][3] = 0;
        }
#pragma unroll 1
        for (int from = 0; from < tokens; from += warps) {
            if (from > 0) {
                __syncthreads(); // the batch is read
                if (from + warp < tokens)
                    kda_few_stage<Keys>(a, item, rate, batch, warp, from + warp);
            }
            __syncthreads(); // the batch is there
#pragma unroll 1
            for (int slot = 0; slot < warps && from + slot < tokens; ++slot)
                kda_few_token<S, Keys, ByKeys>(a, item, batch, parts, slot, from + slot, s);
        }
        if (p.state_out.used() && item.state >= 0)
            tile::store(p.state_out, a.state_out,
                        item.state * p.state_out.n + item.hv * p.state_out.h +
                            item.column * p.state_out.v,
                        s);
    }
}

} // namespace plait::impl::cuda
