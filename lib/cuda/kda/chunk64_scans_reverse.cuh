// kda.chunk64_scans from the last chunk to the first: du = A^T DO + kR dS, w = M^T du, dv = beta w,
// dS = gamma dS + q+^T DO - k+^T dv. Barriers of a chunk: one behind dS, du and dv each. Operands
// that wait for nobody are in registers before a barrier; what nobody waits for comes behind it.
#pragma once

#include "lib/cuda/kda/chunk64_bwd_scan.cuh"
#include "lib/cuda/kda/chunk64_scans_parts.cuh"

namespace plait::impl::cuda {

template <int Keys, int Tiles>
__device__ __forceinline__ void kda64_scan_reverse(const kda_chunk64_scans_args &a, int64_t block,
                                                   char *shared, kda64_turns &turns) {
    constexpr kda64_scans_ring ring = kda64_scans_ring_of(Keys, Tiles, true);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int stages = ring.stages, values = 16 * Tiles;
    constexpr int keys = Keys / kda64_scans_warps, steps = keys / 16; // of a warp
    static_assert(kda64_scans_warps * 16 == kda64_rows && keys % 16 == 0 && stages > 1);
    auto *counters = reinterpret_cast<uint64_t *>(shared);
    const kda_problem &p = a.p;
    const kda64_scans_own own = kda64_scans_own_of<Tiles>(a, block);
    const int lane = own.lane, warp = own.warp, key = keys * warp, chunks = own.chunks;
    const int value = static_cast<int>(own.value);
    auto *states = reinterpret_cast<uint4 *>(shared + ring.share + own.tile * ring.each);
    uint4 *du = states + 32 * (Keys / 16), *du_rest = du + 32 * 4, *dv = du_rest + 32 * 4;
    float s[2 * steps][mma_items_d];
    kda64_load_state<keys>(p.dstate_out, own.w.live ? a.dstate_out : nullptr,
                           own.n * p.dstate_out.n + own.hv * p.dstate_out.h + key * p.dstate_out.k,
                           value, p.dim_k - key, p.dim_v, lane, s);
    const int64_t last_record = (own.begin + chunks - 1) * p.value_heads + own.hv;
    const int64_t token = own.w.begin + int64_t(chunks - 1) * kda64_rows;
    const int last = static_cast<int>(own.w.begin + own.w.length - token);
    kda64_scans_source<Tiles, true> source{};
    source.record = a.records + last_record * r.bytes;
    source.record_step = -p.value_heads * r.bytes;
    source.v = &p.d_o, source.base = a.d_o, source.vector = a.vector_o;
    source.at = kda_at(p.d_o, own.w.row, token, own.hv), source.row_step = -kda64_rows * p.d_o.t;
    source.first = own.first, source.dim_v = p.dim_v;
    source.begin();
    int64_t dv_at = kda_at(p.dv, own.w.row, token + 16 * warp, own.hv);
    const int state_bytes = kda64_tile_bytes(a.slices * values, Keys);
    const int row_bytes = kda64_tile_bytes(a.slices * values, 64);
    char *gradients = a.gradients + last_record * state_bytes;
    char *adjoints = a.adjoints + last_record * row_bytes;
    const auto fill = [&](int number, int slot) { // number 0: the last; each once, in order
        if (number < chunks)
            source.fetch(shared + ring.begin + slot * ring.stage, ring.record, counters + slot,
                         number == 0 ? last : kda64_rows);
        async_commit();
    };
    for (int c = 0; c < stages - 1; ++c) fill(c, (turns.slot + c) % stages);
    async_wait<stages - 2>();
    __syncthreads(); // DO of the first chunk is there
    // Where the lane points in tiles of a stage.
    const int o_at = ring.record + kda64_at_at(values, 0, 16 * own.tile, lane);
    const int token_at = kda64_at_b(Keys, 16 * warp, 0, lane);
    const int key_at = kda64_at_bt(Keys, 0, key, lane);
    const int square_at = kda64_at_bt(64, 0, 16 * warp, lane);
    const int diagonal_at = square_at + r.m + 16 * 128 * warp;
    const int word_at = kda64_word_at<Keys>(value, key, lane);
    const int adjoint_at = kda64_word_at<64>(value, 16 * warp, lane);
    for (int number = 0; number < chunks; ++number) {
        char *const stage_begin = shared + ring.begin + turns.slot * ring.stage;
        const shared_at stage = shared_at_of(stage_begin);
        uint32_t words[steps][4], d_o[4][4], b[Keys / 16][4];
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            kda64_pack(s[2 * k], s[2 * k + 1], words[k]);
            kda64_tell(states + 32 * (steps * warp + k), lane, words[k]);
        }
        counter_wait(counters + turns.slot, turns.parity);
        float x[4][mma_items_d] = {}; // two sums for each eight tokens
#pragma unroll
        for (int k = 0; k < 4; ++k)
            kda64_matrices_transposed(d_o[k], stage + o_at + 32 * k * values);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (k < warp) continue;
            uint32_t within[4];
            kda64_matrices_transposed(within, stage + square_at + r.a + 16 * 128 * k);
            kda64_add_two(x[0], x[1], d_o[k], within);
        }
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k)
            kda64_matrices(b[k], stage + kda64_from(Keys, token_at, 0, 16 * k) + r.kr);
        __syncthreads(); // dS is there
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k) {
            uint32_t state[4];
            kda64_hear(states + 32 * k, lane, state);
            kda64_add_two(x[k % 2 * 2], x[k % 2 * 2 + 1], state, b[k]);
        }
#pragma unroll
        for (int k = 0; k < steps; ++k)
            kda64_keep_step<Keys>(gradients, k == 0 ? word_at : word_at ^ 32, words[k]);
        gradients -= p.value_heads * state_bytes;
        uint32_t packed[4], rest[4], m[4][4], own_m[4];
        kda64_plus(x[0], x[2]), kda64_plus(x[1], x[3]);
        kda64_pack(x[0], x[1], packed);
        kda64_pack_rest(x[0], x[1], packed, rest);
        kda64_tell(du + 32 * warp, lane, packed);
        kda64_tell(du_rest + 32 * warp, lane, rest);
#pragma unroll
        for (int k = 1; k < 4; ++k)
            if (k > warp) kda64_matrices_transposed(m[k], stage + square_at + r.m + 16 * 128 * k);
        // All warps have left the chunk before.
        fill(number + stages - 1, turns.slot == 0 ? stages - 1 : turns.slot - 1);
        kda64_decay<keys>(reinterpret_cast<const float *>(stage_begin + r.gamma) + key, lane, s);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int t = 0; t < steps; ++t) {
                uint32_t q[4];
                kda64_matrices_transposed(q,
                                          stage + kda64_from(Keys, key_at, 16 * k, 16 * t) + r.q);
                kda64_add_two(s[2 * t], s[2 * t + 1], d_o[k], q);
            }
        }
        float y[4][mma_items_d] = {};
        kda64_matrices_transposed(own_m, stage + diagonal_at);
        kda64_add_two(y[0], y[1], packed, own_m);
        kda64_add_two(y[2], y[3], rest, own_m);
        __syncthreads(); // du is there
#pragma unroll
        for (int k = 1; k < 4; ++k) {
            if (k <= warp) continue;
            kda64_hear(du + 32 * k, lane, packed);
            kda64_hear(du_rest + 32 * k, lane, rest);
            kda64_add_two(y[0], y[1], packed, m[k]);
            kda64_add_two(y[2], y[3], rest, m[k]);
        }
        kda64_plus(y[0], y[2]), kda64_plus(y[1], y[3]);
        uint32_t adjoint[4], rows[4][steps][4];
        kda64_pack(y[0], y[1], adjoint);
        float of_v[2][mma_items_d];
        const auto *beta =
            reinterpret_cast<const float *>(stage_begin + r.beta) + 16 * warp + lane % 4 * 2;
#pragma unroll
        for (int t = 0; t < 2; ++t) {
            const float2 of = *reinterpret_cast<const float2 *>(beta + 8 * t);
            of_v[t][0] = y[t][0] * of.x, of_v[t][1] = y[t][1] * of.y;
            of_v[t][2] = y[t][2] * of.x, of_v[t][3] = y[t][3] * of.y;
        }
        kda64_pack(of_v[0], of_v[1], packed);
#pragma unroll
        for (int i = 0; i < 4; ++i) packed[i] = negate_pair(packed[i]);
        kda64_tell(dv + 32 * warp, lane, packed);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int t = 0; t < steps; ++t)
                kda64_matrices_transposed(rows[k][t],
                                          stage + kda64_from(Keys, key_at, 16 * k, 16 * t) + r.k);
        }
        async_wait<stages - 2>(); // DO of the next chunk
        __syncthreads();          // of all threads; dv is there, the stage is read
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            kda64_hear(dv + 32 * k, lane, packed);
#pragma unroll
            for (int t = 0; t < steps; ++t)
                kda64_add_two(s[2 * t], s[2 * t + 1], packed, rows[k][t]);
        }
        kda64_keep_step<64>(adjoints, adjoint_at, adjoint);
        adjoints -= p.value_heads * row_bytes;
        kda64_store_columns(p.dv, a.dv, dv_at, (number == 0 ? last : kda64_rows) - 16 * warp, value,
                            p.dim_v, lane, of_v);
        dv_at -= kda64_rows * p.dv.t;
        kda64_next<stages>(turns);
    }
    if (a.dstate_in != nullptr)
        kda64_store_state<keys>(p.dstate_in, a.dstate_in,
                                own.n * p.dstate_in.n + own.hv * p.dstate_in.h +
                                    key * p.dstate_in.k,
                                value, p.dim_k - key, p.dim_v, lane, s);
}

} // namespace plait::impl::cuda
