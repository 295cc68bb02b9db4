// kda.chunk64_fwd_scan: the chunks of a sequence in turn, U = M (beta (V - k+ S)), O = q+ S + A U,
// S = gamma S + kR^T U.
//   layout   the state is transposed, [values][keys] f32 in accumulators; a warp has
//            16 values and all keys, so that nothing of a step leaves the warp: packed to bf16 its
//            accumulators are A of S^T k+^T and at once B of q+ S; R^T and U^T likewise
//   loads    records by one bulk copy each, V by cp.async, up to two chunks ahead; one barrier a
//            chunk, behind which all have left the stage that is filled next
//   precise  S, R = beta (V - k+ S) and all sums f32; V is what was given; operands bf16. What bf16
//            leaves of R, and of U on its way to S, is a second product: S would remember it
//   keep     for backward: S of each chunk and U with its rest instead of O, S as two operands
//   traffic  keys = values = 128: a chunk and head reads 65 KiB for every slice of values (from L2
//            but once) and 16 KiB of V, writes 16 KiB of O. With O in a kernel of its own S and U
//            would go through memory: 304 KiB in all of prep and scan instead of 210
//   bound    316 products of 16 x 8 x 16 for a warp and chunk: 1.5 us for 64 values at 1024
//            multiply-adds a cycle and SM (estimate)
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_layout.h"
#include "lib/cuda/kda/chunk64_scan.cuh"

namespace plait::impl::cuda {

/// u^T = (beta (V - k+ S))^T M^T, packed in `u`; `p` is k+ S on the way in and u^T behind it.
template <int Values>
__device__ __forceinline__ void
kda64_solve(const char *record, int m_at, int beta_at, const char *values, scalar type, int value,
            int lane, float (&p)[8][mma_items_d], uint32_t (&u)[4][4], uint32_t (&u_rest)[4][4]) {
    const auto *beta = reinterpret_cast<const float *>(record + beta_at);
    uint32_t rest[4][4], more[4][4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        uint32_t v[4];
        load_matrices_transposed(v, values + kda64_at_b(Values, 16 * t, value, lane));
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float(&x)[mma_items_d] = p[2 * t + n];
            const float b0 = beta[16 * t + 8 * n + lane % 4 * 2];
            const float b1 = beta[16 * t + 8 * n + lane % 4 * 2 + 1];
            float v0[2], v1[2];
#pragma unroll
            for (int high = 0; high < 2; ++high) {
                if (type == scalar::bf16)
                    widen_pair<scalar::bf16>(v[2 * n + high], v0[high], v1[high]);
                else
                    widen_pair<scalar::f16>(v[2 * n + high], v0[high], v1[high]);
            }
            x[0] = b0 * (v0[0] - x[0]);
            x[1] = b1 * (v1[0] - x[1]);
            x[2] = b0 * (v0[1] - x[2]);
            x[3] = b1 * (v1[1] - x[3]);
        }
        kda64_pack(p[2 * t], p[2 * t + 1], rest[t]);
        kda64_pack_rest(p[2 * t], p[2 * t + 1], rest[t], more[t]);
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        float(&x)[mma_items_d] = p[2 * t], (&y)[mma_items_d] = p[2 * t + 1];
#pragma unroll
        for (int i = 0; i < mma_items_d; ++i) x[i] = y[i] = 0.0f;
#pragma unroll
        for (int k = 0; k <= t; ++k) { // M is lower triangular
            uint32_t b[4];
            load_matrices(b, record + m_at + kda64_at_b(64, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(x, rest[k], {b[0], b[1]});
            mma_add<scalar::bf16>(y, rest[k], {b[2], b[3]});
            mma_add<scalar::bf16>(x, more[k], {b[0], b[1]});
            mma_add<scalar::bf16>(y, more[k], {b[2], b[3]});
        }
        kda64_pack(x, y, u[t]);
        kda64_pack_rest(x, y, u[t], u_rest[t]);
    }
}

/// O = q+ S + A u, before S is that behind the chunk.
template <int Keys>
__device__ __forceinline__ void kda64_put_output(const kda_chunk64_fwd_scan_args &a,
                                                 const char *record, int64_t at, int count,
                                                 int64_t value, int lane, const uint32_t (&u)[4][4],
                                                 const float (&s)[Keys / 8][mma_items_d]) {
    constexpr kda64_record r = kda64_record_of(Keys);
    const kda_view &v = a.p.o;
    float o[4][2][mma_items_d] = {};
#pragma unroll
    for (int k = 0; k < Keys / 16; ++k) {
        uint32_t state[4];
        kda64_pack(s[2 * k], s[2 * k + 1], state);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            uint32_t q[4];
            load_matrices(q, record + r.q + kda64_at_a(Keys, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(o[t][0], q, {state[0], state[2]});
            mma_add<scalar::bf16>(o[t][1], q, {state[1], state[3]});
        }
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
#pragma unroll
        for (int k = 0; k <= t; ++k) { // A is lower triangular
            uint32_t left[4];
            load_matrices(left, record + r.a + kda64_at_a(64, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(o[t][0], left, {u[k][0], u[k][2]});
            mma_add<scalar::bf16>(o[t][1], left, {u[k][1], u[k][3]});
        }
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < mma_items_d; i += 2) {
                const mma_place in = mma_place_d(lane, i);
                const int row = 16 * t + in.row;
                const int64_t j = value + 8 * n + in.column;
                if (row < count)
                    kda64_put_pair(v, a.o, at + row * v.t + j * v.c, a.p.dim_v - j, o[t][n][i],
                                   o[t][n][i + 1]);
            }
        }
    }
}

/// Zeros to tokens first .. first + count - 1 of this block's values.
template <int Values>
__device__ __forceinline__ void kda64_clear(const kda_chunk64_fwd_scan_args &a, int64_t row,
                                            int64_t first, int64_t count, int64_t hv,
                                            int64_t value) {
    if (a.o == nullptr) return;
    const kda_view &v = a.p.o;
    for (int64_t e = threadIdx.x; e < count * Values; e += blockDim.x) {
        const int64_t token = first + e / Values, j = value + e % Values;
        if (j < a.p.dim_v) kda_store(a.o, kda_at(v, row, token, hv) + j * v.c, v.type, 0.0f);
    }
}

template <int Keys, int Warps, bool Keep>
__global__ void __launch_bounds__(32 * Warps)
    kda_chunk64_fwd_scan(const __grid_constant__ kda_chunk64_fwd_scan_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr kda64_scan_shape shape = kda64_fwd_scan_shape_of(Keys, Warps);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int ahead = shape.stages - 1;
    extern __shared__ __align__(16) char shared[];
    auto *counters = reinterpret_cast<uint64_t *>(shared + shape.counters);
    const int own_lane = static_cast<int>(threadIdx.x % 32),
              warp = static_cast<int>(threadIdx.x / 32);
    const kda_problem &p = a.p;
    const int slices = a.slices;
    const uint32_t bytes = static_cast<uint32_t>(Keep ? r.states : r.bytes);
    if (threadIdx.x == 0)
        for (int i = 0; i < shape.stages; ++i) counter_init(counters + i);
    __syncthreads();   // counters are there
    uint32_t used = 0; // chunks behind this block
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        // Sequences, then heads, then slices: neighbours in time read the same records.
        const int slice = static_cast<int>(block % slices);
        const int64_t hv = block / slices % p.value_heads, n = block / slices / p.value_heads;
        const kda_place w = kda_place_of(p, a.table, a.slots, n);
        const int64_t first = int64_t(slice) * shape.values, value = first + 16 * warp;
        kda64_clear<shape.values>(a, w.row, w.gap, w.begin - w.gap, hv, first);
        if (n == p.sequences) continue; // what stands behind the last sequence
        if (!w.live) kda64_clear<shape.values>(a, w.row, w.begin, w.length, hv, first);
        float s[Keys / 8][mma_items_d];
        kda64_load_state<Keys>(p.state_in, w.live ? a.state_in : nullptr,
                               w.state * p.state_in.n + hv * p.state_in.h, value, p.dim_k, p.dim_v,
                               own_lane, s);
        const int64_t chunks = w.live ? kda_ceil_div(w.length, kda64_rows) : 0;
        const int64_t begin =
            p.varlen ? a.table[n].first_chunk : n * kda_ceil_div(p.length, kda64_rows);
        const int64_t record = begin * p.value_heads + hv; // and every value_heads
        const auto fill = [&](int64_t c) {
            if (c < chunks) {
                const uint32_t number = used + static_cast<uint32_t>(c);
                char *stage = shared + number % shape.stages * shape.stage;
                if (threadIdx.x == 0) {
                    uint64_t *counter = counters + number % shape.stages;
                    counter_expect(counter, bytes);
                    bulk_load(stage, a.records + (record + c * p.value_heads) * r.bytes, bytes,
                              counter);
                }
                const int64_t token = w.begin + c * kda64_rows;
                kda64_load_values<shape.values, 32 * Warps>(
                    p.v, a.v, kda_at(p.v, w.row, token, hv),
                    static_cast<int>(min(w.length - c * kda64_rows, int64_t(kda64_rows))), first,
                    p.dim_v, a.vector, stage + shape.record);
            }
            async_commit();
        };
        __syncthreads(); // the stages of the sequence before are read
        for (int c = 0; c < ahead; ++c) fill(c);
        for (int64_t c = 0; c < chunks; ++c) {
            const uint32_t number = used + static_cast<uint32_t>(c);
            const char *stage = shared + number % shape.stages * shape.stage;
            if constexpr (ahead == 0) {
                __syncthreads(); // the stage is read
                fill(c);
            }
            counter_wait(counters + number % shape.stages, number / shape.stages & 1);
            async_wait<(ahead > 0 ? ahead - 1 : 0)>();
            __syncthreads(); // V is there; the stage of the chunk before is read
            if constexpr (ahead > 0) fill(c + ahead);
            const int64_t at = record + c * p.value_heads;
            const int lane = kda64_anew(own_lane);
            if constexpr (Keep)
                kda64_keep<Keys>(a.states + at * kda64_tile_bytes(slices * shape.values, Keys),
                                 static_cast<int>(value), lane, s);
            float x[8][mma_items_d] = {};
            uint32_t u[4][4], u_rest[4][4];
            kda64_through_keys<Keys, Keep>(stage + r.k, lane, s, x);
            kda64_solve<shape.values>(stage, r.m, r.beta, stage + shape.record, p.v.type, 16 * warp,
                                      lane, x, u, u_rest);
            if constexpr (Keep) {
                const int rows = kda64_tile_bytes(slices * shape.values, 64);
                char *tile = a.written + 2 * at * rows;
                kda64_keep_words(tile, static_cast<int>(value), lane, u);
                kda64_keep_words(tile + rows, static_cast<int>(value), lane, u_rest);
            }
            if constexpr (!Keep) {
                const int64_t token = w.begin + c * kda64_rows;
                kda64_put_output<Keys>(
                    a, stage, kda_at(p.o, w.row, token, hv),
                    static_cast<int>(min(w.length - c * kda64_rows, int64_t(kda64_rows))), value,
                    lane, u, s);
            }
            kda64_decay<Keys>(reinterpret_cast<const float *>(stage + r.gamma), lane, s);
            kda64_add_rows<Keys>(stage + r.kr, lane, u, s);
            // With 192 keys registers do not suffice for the rest.
            if constexpr (Keys < 192) kda64_add_rows<Keys>(stage + r.kr, lane, u_rest, s);
        }
        used += static_cast<uint32_t>(chunks);
        if (a.state_out != nullptr && w.state >= 0)
            kda64_store_state<Keys>(p.state_out, a.state_out,
                                    w.state * p.state_out.n + hv * p.state_out.h, value, p.dim_k,
                                    p.dim_v, own_lane, s);
    }
#endif
}

} // namespace plait::impl::cuda
