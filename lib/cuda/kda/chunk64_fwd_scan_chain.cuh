// The chain of kda.chunk64_fwd_scan for few heads: from state to state, by four warps. Addresses
// are computed once and kept, loads stand where the warp waits for products or for words of others.
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_parts.cuh"

namespace plait::impl::cuda {

/// A warp's tokens of V of a chunk, 0 where nothing is.
template <int Tiles>
__device__ __forceinline__ void kda64_split_fetch(const kda_chunk64_fwd_scan_args &a, int64_t at,
                                                  int count, int64_t value, int lane, char *tile) {
    const kda_view &v = a.p.v;
    const int row = lane / 2, column = lane % 2 * 8;
#pragma unroll
    for (int tile_of = 0; tile_of < Tiles; ++tile_of) {
        const int64_t from_value = value + 16 * tile_of + column;
        const int left =
            row < count ? static_cast<int>(min(a.p.dim_v - from_value, int64_t(8))) : 0;
        const int64_t from = left > 0 ? at + row * v.t + from_value * v.c : 0;
        char *to = tile + tile_of * kda64_words + kda64_at(16, row, column);
        if (a.vector) { // left is 8 or none
            async_copy<16>(shared_at_of(to), static_cast<const uint16_t *>(a.v) + from, left > 0);
            continue;
        }
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
            reinterpret_cast<uint16_t *>(to)[i] =
                i < left ? static_cast<uint16_t>(kda_load_bits(a.v, from + i * v.c, v.type))
                         : uint16_t(0);
    }
}

__device__ __forceinline__ void kda64_put_words(shared_at at, const uint32_t (&w)[4]) {
#ifdef __CUDA_ARCH__
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
#else
    *reinterpret_cast<uint4 *>(at) = make_uint4(w[0], w[1], w[2], w[3]);
#endif
}

/// r = beta (v - x) of a tile of 16 values and 16 tokens, words of V in the order of ldmatrix.
template <scalar S>
__device__ __forceinline__ void kda64_tile_residual(const float2 (&beta)[2], const uint32_t (&v)[4],
                                                    float (&x)[2][mma_items_d]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int high = 0; high < 2; ++high) {
            float v0, v1;
            widen_pair<S>(v[2 * n + high], v0, v1);
            x[n][2 * high] = beta[n].x * (v0 - x[n][2 * high]);
            x[n][2 * high + 1] = beta[n].y * (v1 - x[n][2 * high + 1]);
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

/// The chain: from state to state, by four warps.
template <int Keys, int Tiles, bool Pair>
__device__ __forceinline__ void
kda64_split_chain(const kda_chunk64_fwd_scan_args &a, char *shared, const kda64_split_run &run,
                  const kda64_split_counters<Tiles, Pair> &counters, int warp, int lane) {
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, Pair);
    constexpr int stages = kda64_split_rings_of(Tiles, Pair).first;
    constexpr int kept = kda64_split_rings_of(Tiles, Pair).words;
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int keys = Keys / kda64_chain_warps; // of a warp
    constexpr int threads = 32 * kda64_chain_warps;
    constexpr int apart = Tiles == 1 ? 2 : 1; // sums of a product that do not wait for another
    constexpr int batch = Keys / 16 / Tiles;  // words of S that wait in registers
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
    // This warp's places in a stage: rows of k+ and of M, keys of kR; and in what is handed over.
    const int column = lane % 4 * 2;
    const shared_at base = shared_at_of(shared);
    shared_at at_k[4], at_m[4], at_kr[keys / 16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        at_k[k] = kda64_kept(
            base + kda64_from(Keys, r.k + kda64_at_b(Keys, 16 * warp, 0, lane), 0, 16 * k));
        at_m[k] =
            kda64_kept(base + kda64_from(64, r.m + kda64_at_b(64, 16 * warp, 0, lane), 0, 16 * k));
    }
#pragma unroll
    for (int j = 0; j < keys / 16; ++j)
        at_kr[j] = kda64_kept(base + r.kr + kda64_at_bt(Keys, 0, keys * warp + 16 * j, lane));
    const shared_at at_beta = kda64_kept(base + r.beta + 4 * (16 * warp + column));
    const shared_at at_gamma = kda64_kept(base + r.gamma + 4 * (keys * warp + column));
    const shared_at at_words = kda64_kept(base + 16 * lane);
    const shared_at at_own = kda64_kept(at_words + kda64_words * warp);
    const shared_at at_state =
        kda64_kept(at_words + shape.state + kda64_words * (keys / 16) * warp);
    const int own_v = shape.v + warp * kda64_split_v * Tiles * kda64_words;
    const shared_at at_v = kda64_kept(base + own_v + kda64_at_b(16, 0, 0, lane));
    uint32_t within[4]; // what M has beside its diagonal
#pragma unroll
    for (int k = 0; k < 4; ++k)
        within[k] = k != warp                ? ~0u
                    : lane / 4 == column     ? 0xffff0000u
                    : lane / 4 == column + 1 ? 0x0000ffffu
                                             : ~0u;
    int64_t v_at = kda_at(p.v, run.w.row, run.w.begin, run.hv) + 16 * warp * p.v.t;
    const auto fetch = [&](int c) {
        if (c < run.chunks) {
            kda64_split_fetch<Tiles>(a, v_at, run.tokens(c) - 16 * warp, run.first, lane,
                                     shared + own_v + c % kda64_split_v * Tiles * kda64_words);
            v_at += kda64_rows * p.v.t;
        }
        async_commit();
    };
    uint32_t own_state[Tiles][keys / 16][4];
    const auto put_state = [&](uint32_t n) {
        const shared_at to = at_state + n % 2 * state_words;
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
            for (int k = 0; k < keys / 16; ++k) {
                kda64_pack(s[tile][2 * k], s[tile][2 * k + 1], own_state[tile][k]);
                kda64_put_words(to + kda64_words * (tile * (Keys / 16) + k), own_state[tile][k]);
            }
        }
    };
    uint32_t rows[Keys / 16][4];
    const auto load_rows = [&](int stage) {
        shared_at from[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) from[k] = at_k[k] + stage;
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k)
            kda64_load_tile<false>(rows[k], from[k % 4] + k / 4 * 128);
    };
    const auto add_apart = [&](float(&x)[apart][Tiles][2][mma_items_d], int tile) {
        if constexpr (apart > 1) {
#pragma unroll
            for (int i = 0; i < 2 * mma_items_d; ++i)
                x[0][tile][i / 4][i % 4] += x[1][tile][i / 4][i % 4];
        }
    };
    int stage = static_cast<int>(run.used % stages) * shape.first; // bytes
#pragma unroll
    for (int c = 0; c < kda64_split_v - 1; ++c) fetch(c);
    if (run.chunks > 0) {
        put_state(run.used);
        counters.wait_first(run.used);
        load_rows(stage);
    }
#pragma unroll 1
    for (int c = 0; c < run.chunks; ++c) {
        const uint32_t n = run.used + static_cast<uint32_t>(c);
        part_barrier(1, threads); // S is there
        // x = S^T k+^T of this warp's tokens.
        float x[apart][Tiles][2][mma_items_d] = {};
        uint32_t m[4][4], kr[4][keys / 16][4], v[Tiles][4];
        float2 beta[2], gamma[keys / 8];
#pragma unroll
        for (int first = 0; first < Keys / 16; first += batch) {
            uint32_t words[batch][Tiles][4];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
#pragma unroll
                for (int tile = 0; tile < Tiles; ++tile)
                    load_words<4>(at_words + n % 2 * state_words + shape.state +
                                      kda64_words * (tile * (Keys / 16) + first + k),
                                  words[k][tile]);
            }
#pragma unroll
            for (int k = 0; k < batch; ++k) {
#pragma unroll
                for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                    for (int i = 0; i < 2; ++i)
                        mma_add<scalar::bf16>(x[k % apart][tile][i], words[k][tile],
                                              {rows[first + k][2 * i], rows[first + k][2 * i + 1]});
                }
            }
        }
        char *there = shared + shape.words + n % kept * kda64_chunk_words(Keys, Tiles) + 16 * lane;
        if constexpr (Pair) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                for (int k = 0; k < keys / 16; ++k)
                    kda64_send_words(there +
                                         kda64_words * (tile * (Keys / 16) + keys / 16 * warp + k),
                                     own_state[tile][k], counters.full(n));
            }
        }
        // What is needed later comes while products are made.
        async_wait<kda64_split_v - 2>();
        __syncwarp(); // V of all lanes
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile)
            kda64_load_tile<true>(v[tile], at_v + (c % kda64_split_v * Tiles + tile) * kda64_words);
#pragma unroll
        for (int i = 0; i < 2; ++i) beta[i] = kda64_load_two(at_beta + stage + 32 * i);
#pragma unroll
        for (int k = 0; k < 4; ++k) kda64_load_tile<false>(m[k], at_m[k] + stage);
#pragma unroll
        for (int i = 0; i < keys / 8; ++i) gamma[i] = kda64_load_two(at_gamma + stage + 32 * i);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int j = 0; j < keys / 16; ++j)
                kda64_load_tile<true>(kr[k][j], at_kr[j] + stage + kda64_tile_bytes(16 * k, Keys));
        }
        fetch(c + kda64_split_v - 1);
        // r = beta (V - x)
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            add_apart(x, tile);
            if (p.v.type == scalar::bf16)
                kda64_tile_residual<scalar::bf16>(beta, v[tile], x[0][tile]);
            else
                kda64_tile_residual<scalar::f16>(beta, v[tile], x[0][tile]);
            uint32_t words[4];
            kda64_pack(x[0][tile][0], x[0][tile][1], words);
            kda64_put_words(at_own + shape.residual + tile_words * tile, words);
        }
        part_barrier(1, threads); // R is there
        // u = r + (M - I) r, the first of which is exact.
        uint32_t words[4][Tiles][4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                load_words<4>(at_words + shape.residual + tile_words * tile + kda64_words * k,
                              words[k][tile]);
        }
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
            for (int t = 0; t < keys / 8; ++t) {
                float(&y)[mma_items_d] = s[tile][t];
                y[0] *= gamma[t].x, y[1] *= gamma[t].y;
                y[2] *= gamma[t].x, y[3] *= gamma[t].y;
            }
#pragma unroll
            for (int i = 0; i < 2 * mma_items_d && apart > 1; ++i)
                x[apart - 1][tile][i / 4][i % 4] = 0;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            m[k][0] &= within[k], m[k][3] &= within[k];
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    mma_add<scalar::bf16>(x[k % apart][tile][i], words[k][tile],
                                          {m[k][2 * i], m[k][2 * i + 1]});
            }
        }
        const shared_at written = at_words + shape.written + n % 2 * (tile_words * Tiles);
        uint32_t own[Tiles][4];
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            add_apart(x, tile);
            kda64_pack(x[0][tile][0], x[0][tile][1], own[tile]);
            kda64_put_words(written + tile_words * tile + kda64_words * warp, own[tile]);
        }
        // The first warp waits for all, that S of the next chunk may take a place again.
        if (warp == 0 && n + 1 >= kept) counters.wait_done(n + 1 - kept);
        part_barrier(1, threads); // U is there, and all of the stage is read
                                  // s = gamma s + u^T kR
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                load_words<4>(written + tile_words * tile + kda64_words * k, words[k][tile]);
        }
        if (warp == 0 && lane == 0) counter_arrive(counters.ready(n));
        if constexpr (Pair) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                kda64_send_words(there + kda64_words * (Tiles * (Keys / 16) + 4 * tile + warp),
                                 own[tile], counters.full(n));
        }
        stage = stage == (stages - 1) * shape.first ? 0 : stage + shape.first;
        if (c + 1 < run.chunks) {
            counters.wait_first(n + 1);
            load_rows(stage);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
                for (int j = 0; j < keys / 16; ++j) {
                    mma_add<scalar::bf16>(s[tile][2 * j], words[k][tile],
                                          {kr[k][j][0], kr[k][j][1]});
                    mma_add<scalar::bf16>(s[tile][2 * j + 1], words[k][tile],
                                          {kr[k][j][2], kr[k][j][3]});
                }
            }
        }
        if (c + 1 < run.chunks) put_state(n + 1);
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
