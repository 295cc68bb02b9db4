// The chain of kda.chunk64_fwd_scan for few heads: from state to state, by four warps. Addresses
// are computed once and kept, loads stand where the warp waits for products or for words of others.
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_parts.cuh"

namespace plait::impl::cuda {

__device__ __forceinline__ void kda64_put_words(shared_at at, const uint32_t (&w)[4]) {
#ifdef __CUDA_ARCH__
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
#else
    *reinterpret_cast<uint4 *>(at) = make_uint4(w[0], w[1], w[2], w[3]);
#endif
}

/// beta v of a tile of 16 values and 16 tokens, words of V in the order of ldmatrix.
template <scalar S>
__device__ __forceinline__ void kda64_tile_asked(const float2 (&beta)[2], const uint32_t (&v)[4],
                                                 float (&asked)[2][mma_items_d]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int high = 0; high < 2; ++high) {
            float v0, v1;
            widen_pair<S>(v[2 * n + high], v0, v1);
            asked[n][2 * high] = beta[n].x * v0;
            asked[n][2 * high + 1] = beta[n].y * v1;
        }
    }
}

/// The same address, which stays in a register: the compiler cannot compute it again.
__device__ __forceinline__ shared_at kda64_kept(shared_at at) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(at));
#endif
    return at;
}
/// ldmatrix from such an address.
template <bool Transposed>
__device__ __forceinline__ void kda64_load_tile(uint32_t (&w)[4], shared_at at) {
#ifdef __CUDA_ARCH__
    if constexpr (Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "r"(at)
                     : "memory");
#else
    if constexpr (Transposed)
        load_matrices_transposed(w, at);
    else
        load_matrices(w, at);
#endif
}
__device__ __forceinline__ float2 kda64_load_two(shared_at at) {
    uint32_t w[2];
    load_words<2>(at, w);
    return make_float2(__uint_as_float(w[0]), __uint_as_float(w[1]));
}

/// The chain: from state to state, by four warps. What a warp has made itself it multiplies before
/// the barrier, what the others have made behind it, from the next warp on.
template <int Keys, int Tiles, bool Pair>
__device__ __forceinline__ void
kda64_split_chain(const kda_chunk64_fwd_scan_args &a, char *shared, const kda64_split_run &run,
                  const kda64_split_counters<Tiles, Pair> &counters, int warp, int lane) {
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, Pair);
    constexpr int stages = kda64_split_rings_of(Tiles, Pair).first;
    constexpr int kept = kda64_split_rings_of(Tiles, Pair).words;
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int warps = kda64_chain_warps, threads = 32 * warps;
    constexpr int keys = Keys / warps, own = keys / 16; // of a warp, and in steps of 16
    constexpr int apart = Tiles == 1 ? 2 : 1; // sums of a product that do not wait for another
    constexpr bool ahead = Tiles == 1;        // beta V waits in registers, else V does
    constexpr int state_words = kda64_words * Tiles * (Keys / 16);
    constexpr int tile_words = kda64_words * 4; // of R and of U
    const kda_problem &p = a.p;
    float s[Tiles][keys / 8][mma_items_d];
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile)
        kda64_load_state<keys>(p.state_in, run.w.live ? a.state_in : nullptr,
                               run.w.state * p.state_in.n + run.hv * p.state_in.h +
                                   int64_t(keys) * warp * p.state_in.k,
                               run.first + 16 * tile, p.dim_k - keys * warp, p.dim_v, lane,
                               s[tile]);
    // Places in a stage, and of what warps hand over; those of warp (warp + j) % 4 have number j.
    const int column = lane % 4 * 2;
    const shared_at base = shared_at_of(shared);
    int at_k[warps], at_m[warps];
    shared_at at_words[warps], at_states[warps];
#pragma unroll
    for (int j = 0; j < warps; ++j) {
        const int other = (warp + j) % warps;
        at_k[j] = kda64_anew(r.k + kda64_at_b(Keys, 16 * warp, keys * other, lane));
        at_m[j] = kda64_anew(r.m + kda64_at_b(64, 16 * warp, 16 * other, lane));
        at_words[j] = kda64_kept(base + 16 * lane + kda64_words * other);
        at_states[j] = kda64_kept(base + shape.state + 16 * lane + kda64_words * own * other);
    }
    const int at_kr = kda64_anew(r.kr + kda64_at_bt(Keys, 0, keys * warp, lane));
    const shared_at at_beta = kda64_kept(base + r.beta + 4 * (16 * warp + column));
    const shared_at at_gamma = kda64_kept(base + r.gamma + 4 * (keys * warp + column));
    const shared_at at_v = kda64_kept(base + shape.v + warp * kda64_split_v * Tiles * kda64_words +
                                      kda64_at_b(16, 0, 0, lane));
    // What M has beside its diagonal.
    const uint32_t within = lane / 4 == column       ? 0xffff0000u
                            : lane / 4 == column + 1 ? 0x0000ffffu
                                                     : ~0u;
    uint32_t own_state[Tiles][own][4];
    const auto put_state = [&](uint32_t n) {
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
            for (int k = 0; k < own; ++k) {
                kda64_pack(s[tile][2 * k], s[tile][2 * k + 1], own_state[tile][k]);
                kda64_put_words(at_states[0] + n % 2 * state_words +
                                    kda64_words * (tile * (Keys / 16) + k),
                                own_state[tile][k]);
            }
        }
    };
    // What a chunk needs first, in two parts, of which each finds shared memory idle.
    uint32_t rows[Keys / 16][4], m[warps][4], v[Tiles][4];
    float2 beta[2];
    const auto load_rows = [&](int at, int half) {
#pragma unroll
        for (int k = 0; k < Keys / 32; ++k) {
            const int i = Keys / 32 * half + k;
            kda64_load_tile<false>(rows[i], base + at +
                                                kda64_from(Keys, at_k[(Keys / 32 * half + k) / own],
                                                           0, 16 * (i % own)));
        }
    };
    const auto load_first = [&](int at, int c) {
        load_rows(at, 0);
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile)
            kda64_load_tile<true>(v[tile], at_v + (c % kda64_split_v * Tiles + tile) * kda64_words);
#pragma unroll
        for (int i = 0; i < 2; ++i) beta[i] = kda64_load_two(at_beta + at + 32 * i);
    };
    const auto load_second = [&](int at) {
        load_rows(at, 1);
#pragma unroll
        for (int j = 0; j < warps; ++j) kda64_load_tile<false>(m[j], base + at + at_m[j]);
    };
    float asked[Tiles][2][mma_items_d];
    const auto ask = [&] {
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            if (p.v.type == scalar::bf16)
                kda64_tile_asked<scalar::bf16>(beta, v[tile], asked[tile]);
            else
                kda64_tile_asked<scalar::f16>(beta, v[tile], asked[tile]);
        }
    };
    int stage = static_cast<int>(run.used % stages) * shape.first; // bytes
    if (run.chunks > 0) {
        put_state(run.used);
        counters.wait_first(run.used);
        load_first(stage, 0);
        load_second(stage);
        if constexpr (ahead) ask();
    }
#pragma unroll 1
    for (int c = 0; c < run.chunks; ++c) {
        const uint32_t n = run.used + static_cast<uint32_t>(c);
        // x = S^T k+^T of this warp's tokens.
        float x[apart][Tiles][2][mma_items_d] = {};
        const auto through = [&](int k, const uint32_t(&words)[4], int tile) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                mma_add<scalar::bf16>(x[k % apart][tile][i], words,
                                      {rows[k][2 * i], rows[k][2 * i + 1]});
        };
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
            for (int k = 0; k < own; ++k) through(k, own_state[tile][k], tile);
        }
        part_barrier(1, threads); // S is there
        uint32_t kr[warps][own][4];
        float2 gamma[keys / 8];
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            uint32_t words[warps - 1][own][4];
#pragma unroll
            for (int j = 1; j < warps; ++j) {
#pragma unroll
                for (int k = 0; k < own; ++k)
                    load_words<4>(at_states[j] + n % 2 * state_words +
                                      kda64_words * (tile * (Keys / 16) + k),
                                  words[j - 1][k]);
            }
#pragma unroll
            for (int j = 1; j < warps; ++j) {
#pragma unroll
                for (int k = 0; k < own; ++k) through(own * j + k, words[j - 1][k], tile);
            }
        }
        char *there = shared + shape.words + n % kept * kda64_chunk_words(Keys, Tiles) + 16 * lane;
        // What is needed later comes while products are made.
#pragma unroll
        for (int j = 0; j < warps; ++j) {
#pragma unroll
            for (int k = 0; k < own; ++k)
                kda64_load_tile<true>(
                    kr[j][k], base + stage + kda64_tile_bytes(16, Keys) * ((warp + j) % warps) +
                                  kda64_from(Keys, at_kr, 0, 16 * k));
        }
#pragma unroll
        for (int i = 0; i < keys / 8; ++i) gamma[i] = kda64_load_two(at_gamma + stage + 32 * i);
        // r = beta V - beta x, u = r + (M - I) r, the first of which is exact.
        const auto add_apart = [&](int tile) {
            if constexpr (apart > 1) {
#pragma unroll
                for (int i = 0; i < 2 * mma_items_d; ++i) {
                    x[0][tile][i / 4][i % 4] += x[1][tile][i / 4][i % 4];
                    x[1][tile][i / 4][i % 4] = 0;
                }
            }
        };
        const auto solve = [&](int j, const uint32_t(&words)[4], int tile) {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                mma_add<scalar::bf16>(x[j % apart][tile][i], words, {m[j][2 * i], m[j][2 * i + 1]});
        };
        if constexpr (!ahead) ask();
        uint32_t made[Tiles][4];
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            add_apart(tile);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int e = 0; e < mma_items_d; ++e)
                    x[0][tile][i][e] = __fmaf_rn(e % 2 == 0 ? -beta[i].x : -beta[i].y,
                                                 x[0][tile][i][e], asked[tile][i][e]);
            }
            kda64_pack(x[0][tile][0], x[0][tile][1], made[tile]);
            kda64_put_words(at_words[0] + shape.residual + tile_words * tile, made[tile]);
        }
        m[0][0] &= within, m[0][3] &= within;
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) solve(0, made[tile], tile);
        part_barrier(1, threads); // R is there
        uint32_t words[warps - 1][Tiles][4];
#pragma unroll
        for (int j = 1; j < warps; ++j) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                load_words<4>(at_words[j] + shape.residual + tile_words * tile, words[j - 1][tile]);
        }
        if constexpr (Pair) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                for (int k = 0; k < own; ++k)
                    kda64_send_words(there + kda64_words * (tile * (Keys / 16) + own * warp + k),
                                     own_state[tile][k], counters.full(n));
            }
        }
        // The first warp waits for all, that S of the next chunk may take a place again.
        if (warp == 0 && n + 1 >= kept) counters.wait_done(n + 1 - kept);
#pragma unroll
        for (int j = 1; j < warps; ++j) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) solve(j, words[j - 1][tile], tile);
        }
        stage = stage == (stages - 1) * shape.first ? 0 : stage + shape.first;
        if (c + 1 < run.chunks) {
            counters.wait_first(n + 1);
            load_first(stage, c + 1);
        }
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
            for (int t = 0; t < keys / 8; ++t) {
                float(&y)[mma_items_d] = s[tile][t];
                y[0] *= gamma[t].x, y[1] *= gamma[t].y;
                y[2] *= gamma[t].x, y[3] *= gamma[t].y;
            }
        }
        // s = gamma s + u^T kR
        const auto write = [&](int j, const uint32_t(&w)[4], int tile) {
#pragma unroll
            for (int k = 0; k < own; ++k) {
                mma_add<scalar::bf16>(s[tile][2 * k], w, {kr[j][k][0], kr[j][k][1]});
                mma_add<scalar::bf16>(s[tile][2 * k + 1], w, {kr[j][k][2], kr[j][k][3]});
            }
        };
        const int written = shape.written + static_cast<int>(n % 2) * (tile_words * Tiles);
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            add_apart(tile);
            kda64_pack(x[0][tile][0], x[0][tile][1], made[tile]);
            kda64_put_words(at_words[0] + written + tile_words * tile, made[tile]);
        }
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) write(0, made[tile], tile);
        part_barrier(1, threads); // U is there, and all of the stage is read
#pragma unroll
        for (int j = 1; j < warps; ++j) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                load_words<4>(at_words[j] + written + tile_words * tile, words[j - 1][tile]);
        }
        if (warp == 0 && lane == 0) counter_arrive(counters.ready(n));
        if constexpr (Pair) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                kda64_send_words(there + kda64_words * (Tiles * (Keys / 16) + 4 * tile + warp),
                                 made[tile], counters.full(n));
        }
#pragma unroll
        for (int j = 1; j < warps; ++j) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) write(j, words[j - 1][tile], tile);
        }
        if (c + 1 < run.chunks) {
            load_second(stage);
            if constexpr (ahead) ask();
            put_state(n + 1);
        }
    }
    if (a.state_out == nullptr || run.w.state < 0) return;
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile)
        kda64_store_state<keys>(p.state_out, a.state_out,
                                run.w.state * p.state_out.n + run.hv * p.state_out.h +
                                    int64_t(keys) * warp * p.state_out.k,
                                run.first + 16 * tile, p.dim_k - keys * warp, p.dim_v, lane,
                                s[tile]);
}

} // namespace plait::impl::cuda
