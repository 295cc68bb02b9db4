// kda.chunk64_scans from the first chunk to the last: R = beta (V - k+ S), U = R + (M - I) R, S =
// gamma S + kR^T U, with what bf16 loses of S, R and U. Barriers of a chunk: one behind S, R and U
// each.
#pragma once

#include "lib/cuda/kda/chunk64_scans_parts.cuh"

namespace plait::impl::cuda {

/// beta (V - x) of 16 tokens, transposed, in place; v: words of 16 values and 16 tokens.
template <scalar S>
__device__ __forceinline__ void kda64_residual_of(const uint32_t (&v)[4], const float *beta,
                                                  float (&x)[2][mma_items_d]) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const float2 b = *reinterpret_cast<const float2 *>(beta + 8 * n);
#pragma unroll
        for (int high = 0; high < 2; ++high) {
            float v0, v1;
            widen_pair<S>(v[2 * n + high], v0, v1);
            x[n][2 * high] = b.x * (v0 - x[n][2 * high]);
            x[n][2 * high + 1] = b.y * (v1 - x[n][2 * high + 1]);
        }
    }
}

template <int Keys, int Tiles>
__device__ __forceinline__ void kda64_scan_forward(const kda_chunk64_scans_args &a, int64_t block,
                                                   char *shared, kda64_turns &turns) {
    constexpr kda64_scans_ring ring = kda64_scans_ring_of(Keys, Tiles, false);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int stages = ring.stages, values = 16 * Tiles;
    constexpr int keys = Keys / kda64_scans_warps, steps = keys / 16; // of a warp
    auto *counters = reinterpret_cast<uint64_t *>(shared);
    const kda_problem &p = a.p;
    const kda64_scans_own own = kda64_scans_own_of<Tiles>(a, block);
    const int lane = own.lane, warp = own.warp, key = keys * warp, chunks = own.chunks;
    const int value = static_cast<int>(own.value);
    auto *states = reinterpret_cast<uint4 *>(shared + ring.share + own.tile * ring.each);
    uint4 *states_rest = states + 32 * (Keys / 16), *left = states_rest + 32 * (Keys / 16);
    uint4 *left_rest = left + 32 * 4, *u = left_rest + 32 * 4, *u_rest = u + 32 * 4;
    float s[2 * steps][mma_items_d];
    kda64_load_state<keys>(p.state_in, own.w.live ? a.state_in : nullptr,
                           own.w.state * p.state_in.n + own.hv * p.state_in.h + key * p.state_in.k,
                           value, p.dim_k - key, p.dim_v, lane, s);
    const int64_t record = own.begin * p.value_heads + own.hv;
    const int last = static_cast<int>(own.w.length - int64_t(chunks - 1) * kda64_rows);
    kda64_scans_source<Tiles, false> source{};
    source.record = a.records + record * r.bytes, source.record_step = p.value_heads * r.bytes;
    source.v = &p.v, source.base = a.v, source.vector = a.vector_v;
    source.at = kda_at(p.v, own.w.row, own.w.begin, own.hv), source.row_step = kda64_rows * p.v.t;
    source.first = own.first, source.dim_v = p.dim_v;
    source.begin();
    const int state_bytes = kda64_tile_bytes(a.slices * values, Keys);
    const int row_bytes = kda64_tile_bytes(a.slices * values, 64);
    char *kept = a.states + record * state_bytes, *written = a.written + record * row_bytes;
    const auto fill = [&](int c, int slot) { // each once, in order
        if (c < chunks)
            source.fetch(shared + ring.begin + slot * ring.stage, ring.record, counters + slot,
                         c + 1 < chunks ? kda64_rows : last);
        async_commit();
    };
    for (int c = 0; c < stages - 1; ++c) fill(c, (turns.slot + c) % stages);
    async_wait<stages - 2>();
    __syncthreads(); // V of the first chunk is there
    // Where the lane points in tiles of a stage.
    const int v_at = ring.record + kda64_at_b(values, 16 * warp, 16 * own.tile, lane);
    const int token_at = kda64_at_b(Keys, 16 * warp, 0, lane);
    const int key_at = kda64_at_bt(Keys, 0, key, lane);
    const int square_at = kda64_at_b(64, 16 * warp, 0, lane);
    const int diagonal_at = r.m + kda64_at_b(64, 16 * warp, 16 * warp, lane);
    const int word_at = kda64_word_at<Keys>(value, key, lane);
    const int written_at = kda64_word_at<64>(value, 16 * warp, lane);
    // Of the rows of M on the diagonal: without it.
    const uint32_t within = lane / 4 == lane % 4 * 2       ? 0xffff0000u
                            : lane / 4 == lane % 4 * 2 + 1 ? 0x0000ffffu
                                                           : ~0u;
    for (int c = 0; c < chunks; ++c) {
        char *const stage_begin = shared + ring.begin + turns.slot * ring.stage;
        const shared_at stage = shared_at_of(stage_begin);
        uint32_t words[steps][4], b[Keys / 16][4], v[4], packed[4], rest[4], m[3][4], own_m[4];
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            kda64_pack(s[2 * k], s[2 * k + 1], words[k]);
            kda64_pack_rest(s[2 * k], s[2 * k + 1], words[k], rest);
            kda64_tell(states + 32 * (steps * warp + k), lane, words[k]);
            kda64_tell(states_rest + 32 * (steps * warp + k), lane, rest);
        }
        counter_wait(counters + turns.slot, turns.parity);
        kda64_matrices_transposed(v, stage + v_at);
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k)
            kda64_matrices(b[k], stage + kda64_from(Keys, token_at, 0, 16 * k) + r.k);
        __syncthreads(); // S is there
        float x[2][mma_items_d] = {}, more[2][mma_items_d] = {};
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k) {
            kda64_hear(states + 32 * k, lane, packed);
            kda64_hear(states_rest + 32 * k, lane, rest);
            kda64_add_two(x[0], x[1], packed, b[k]);
            kda64_add_two(more[0], more[1], rest, b[k]);
        }
#pragma unroll
        for (int k = 0; k < steps; ++k)
            kda64_keep_step<Keys>(kept, k == 0 ? word_at : word_at ^ 32, words[k]);
        kept += p.value_heads * state_bytes;
        kda64_plus(x[0], more[0]), kda64_plus(x[1], more[1]);
        const auto *beta =
            reinterpret_cast<const float *>(stage_begin + r.beta) + 16 * warp + lane % 4 * 2;
        if (p.v.type == scalar::bf16)
            kda64_residual_of<scalar::bf16>(v, beta, x);
        else
            kda64_residual_of<scalar::f16>(v, beta, x);
        kda64_pack(x[0], x[1], packed);
        kda64_pack_rest(x[0], x[1], packed, rest);
        kda64_tell(left + 32 * warp, lane, packed);
        kda64_tell(left_rest + 32 * warp, lane, rest);
#pragma unroll
        for (int k = 0; k < 3; ++k)
            if (k < warp) kda64_matrices(m[k], stage + kda64_from(64, square_at, 0, 16 * k) + r.m);
        // All warps have left the chunk before.
        fill(c + stages - 1, turns.slot == 0 ? stages - 1 : turns.slot - 1);
        kda64_decay<keys>(reinterpret_cast<const float *>(stage_begin + r.gamma) + key, lane, s);
        float y[2][mma_items_d] = {};
        kda64_matrices(own_m, stage + diagonal_at);
        own_m[0] &= within, own_m[3] &= within;
        kda64_add_two(x[0], x[1], packed, own_m);
        kda64_add_two(y[0], y[1], rest, own_m);
        __syncthreads(); // R is there
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            if (k >= warp) continue;
            kda64_hear(left + 32 * k, lane, packed);
            kda64_hear(left_rest + 32 * k, lane, rest);
            kda64_add_two(x[0], x[1], packed, m[k]);
            kda64_add_two(y[0], y[1], rest, m[k]);
        }
        kda64_plus(x[0], y[0]), kda64_plus(x[1], y[1]);
        uint32_t given[4], rows[4][steps][4];
        kda64_pack(x[0], x[1], given);
        kda64_pack_rest(x[0], x[1], given, rest);
        kda64_tell(u + 32 * warp, lane, given);
        kda64_tell(u_rest + 32 * warp, lane, rest);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int t = 0; t < steps; ++t)
                kda64_matrices_transposed(rows[k][t],
                                          stage + kda64_from(Keys, key_at, 16 * k, 16 * t) + r.kr);
        }
        async_wait<stages - 2>(); // V of the next chunk
        __syncthreads();          // of all threads; u is there, the stage is read
        float z[2 * steps][mma_items_d] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            kda64_hear(u + 32 * k, lane, packed);
            kda64_hear(u_rest + 32 * k, lane, rest);
#pragma unroll
            for (int t = 0; t < steps; ++t) {
                kda64_add_two(s[2 * t], s[2 * t + 1], packed, rows[k][t]);
                kda64_add_two(z[2 * t], z[2 * t + 1], rest, rows[k][t]);
            }
        }
#pragma unroll
        for (int t = 0; t < 2 * steps; ++t) kda64_plus(s[t], z[t]);
        kda64_keep_step<64>(written, written_at, given);
        written += p.value_heads * row_bytes;
        kda64_next<stages>(turns);
    }
}

} // namespace plait::impl::cuda
