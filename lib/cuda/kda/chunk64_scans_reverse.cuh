// kda.chunk64_scans from the last chunk to the first: du = A^T DO + kR dS, w = M^T du, dv = beta w,
// dS = gamma dS + q+^T DO - k+^T dv. Barriers of a chunk: one behind dS, du and dv each. Operands
// that wait for nobody are in registers before a barrier; what nobody waits for comes behind it.
#pragma once

#include "lib/cuda/kda/chunk64_bwd_scan.cuh"
#include "lib/cuda/kda/chunk64_scans_parts.cuh"

namespace plait::impl::cuda {

template <int Keys, int Tiles>
__device__ __forceinline__ void kda64_scan_reverse(const kda_chunk64_scans_args &a, int64_t block,
                                                   char *shared, uint32_t &used) {
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
    int64_t record = (own.begin + chunks - 1) * p.value_heads + own.hv; // of the last chunk
    int64_t next = record;                                              // to be fetched
    const int64_t token = own.w.begin + int64_t(chunks - 1) * kda64_rows;
    const int last = static_cast<int>(own.w.begin + own.w.length - token);
    int64_t next_at = kda_at(p.d_o, own.w.row, token, own.hv);
    int64_t dv_at = kda_at(p.dv, own.w.row, token + 16 * warp, own.hv);
    const auto fill = [&](int number) { // 0: the last; each once, in order
        if (number < chunks) {
            const uint32_t at = (used + static_cast<uint32_t>(number)) % stages;
            kda64_scans_fill<Tiles, true>(shared + ring.begin + at * ring.stage, counters + at,
                                          a.records + next * r.bytes, ring.record, p.d_o, a.d_o,
                                          next_at, number == 0 ? last : kda64_rows, own.first,
                                          p.dim_v, a.vector_o);
            next -= p.value_heads;
            next_at -= kda64_rows * p.d_o.t;
        }
        async_commit();
    };
    for (int c = 0; c < stages - 1; ++c) fill(c);
    async_wait<stages - 2>();
    __syncthreads(); // DO of the first chunk is there
    for (int number = 0; number < chunks; ++number) {
        const uint32_t all = used + static_cast<uint32_t>(number);
        const char *stage = shared + ring.begin + all % stages * ring.stage;
        uint32_t words[steps][4], d_o[4][4], b[Keys / 16][4];
#pragma unroll
        for (int k = 0; k < steps; ++k) {
            kda64_pack(s[2 * k], s[2 * k + 1], words[k]);
            kda64_tell(states + 32 * (steps * warp + k), lane, words[k]);
        }
        counter_wait(counters + all % stages, all / stages & 1);
        float x[4][mma_items_d] = {}; // two sums for each eight tokens
#pragma unroll
        for (int k = 0; k < 4; ++k)
            load_matrices_transposed(d_o[k], stage + ring.record +
                                                 kda64_at_at(values, 16 * k, 16 * own.tile, lane));
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (k < warp) continue;
            uint32_t within[4];
            load_matrices_transposed(within,
                                     stage + r.a + kda64_at_bt(64, 16 * k, 16 * warp, lane));
            kda64_add_two(x[0], x[1], d_o[k], within);
        }
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k)
            load_matrices(b[k], stage + r.kr + kda64_at_b(Keys, 16 * warp, 16 * k, lane));
        __syncthreads(); // dS is there
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k) {
            uint32_t state[4];
            kda64_hear(states + 32 * k, lane, state);
            kda64_add_two(x[k % 2 * 2], x[k % 2 * 2 + 1], state, b[k]);
        }
        char *kept = a.gradients + record * kda64_tile_bytes(a.slices * values, Keys);
#pragma unroll
        for (int k = 0; k < steps; ++k)
            kda64_keep_step<Keys>(kept, value, key + 16 * k, lane, words[k]);
        uint32_t packed[4], rest[4], m[4][4];
        kda64_plus(x[0], x[2]), kda64_plus(x[1], x[3]);
        kda64_pack(x[0], x[1], packed);
        kda64_pack_rest(x[0], x[1], packed, rest);
        kda64_tell(du + 32 * warp, lane, packed);
        kda64_tell(du_rest + 32 * warp, lane, rest);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (k >= warp)
                load_matrices_transposed(m[k],
                                         stage + r.m + kda64_at_bt(64, 16 * k, 16 * warp, lane));
        fill(number + stages - 1); // all warps have left the chunk before
        kda64_decay<keys>(reinterpret_cast<const float *>(stage + r.gamma) + key, lane, s);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int t = 0; t < steps; ++t) {
                uint32_t q[4];
                load_matrices_transposed(q, stage + r.q +
                                                kda64_at_bt(Keys, 16 * k, key + 16 * t, lane));
                kda64_add_two(s[2 * t], s[2 * t + 1], d_o[k], q);
            }
        }
        __syncthreads(); // du is there
        float y[4][mma_items_d] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (k < warp) continue;
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
            reinterpret_cast<const float *>(stage + r.beta) + 16 * warp + lane % 4 * 2;
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
                load_matrices_transposed(
                    rows[k][t], stage + r.k + kda64_at_bt(Keys, 16 * k, key + 16 * t, lane));
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
        kda64_keep_step<64>(a.adjoints + record * kda64_tile_bytes(a.slices * values, 64), value,
                            16 * warp, lane, adjoint);
        kda64_store_columns(p.dv, a.dv, dv_at, (number == 0 ? last : kda64_rows) - 16 * warp, value,
                            p.dim_v, lane, of_v);
        record -= p.value_heads;
        dv_at -= kda64_rows * p.dv.t;
    }
    used += static_cast<uint32_t>(chunks);
    if (a.dstate_in != nullptr)
        kda64_store_state<keys>(p.dstate_in, a.dstate_in,
                                own.n * p.dstate_in.n + own.hv * p.dstate_in.h +
                                    key * p.dstate_in.k,
                                value, p.dim_k - key, p.dim_v, lane, s);
}

} // namespace plait::impl::cuda
