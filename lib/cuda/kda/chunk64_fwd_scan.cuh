// kda.chunk64_fwd_scan: the chunks of a sequence in turn, U = M (beta (V - k+ S)), O = q+ S + A U,
// S = gamma S + kR^T U.
//   layout   the state is transposed, [values][keys] f32 in accumulators; a warp has
//            16 values and all keys, so that nothing of a step leaves the warp: packed to bf16 its
//            accumulators are A of S^T k+^T and at once B of q+ S; R^T and U^T likewise
//   loads    records by one bulk copy each, up to two chunks ahead; V by cp.async, of each warp for
//            itself, a chunk ahead; a stage is filled again when every warp has left it
//   precise  S, R = beta (V - k+ S) and all sums f32; V is what was given; operands bf16. U = R +
//            (M - I) R, the first of which is exact
//   keep     for backward: S of each chunk and U instead of O, or, to a reserve, beside it. What
//            bf16 leaves of S, R and U is then a second product
//   traffic  keys = values = 128: a chunk and head reads 65 KiB for every slice of values (from L2
//            but once) and 16 KiB of V, writes 16 KiB of O. With O in a kernel of its own S and U
//            would go through memory: 304 KiB in all of prep and scan instead of 210
//   bound    232 products of 16 x 8 x 16 and 116 ldmatrix for a warp and chunk: 1400 cycles of the
//            tensor cores for 64 values, 3700 of shared memory for 128 (estimates)
// Parts: chunk64_fwd_scan_split.cuh, chunk64_fwd_scan_pair.cuh, few heads.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/kda/chunk64_fwd_scan_layout.h"
#include "lib/cuda/kda/chunk64_scan.cuh"

namespace plait::impl::cuda {

/// A warp's 16 values of V of a chunk, 0 where nothing is.
__device__ __forceinline__ void kda64_fetch_values(const kda_chunk64_fwd_scan_args &a, int64_t at,
                                                   int count, int64_t value, int lane, char *tile) {
    const kda_view &v = a.p.v;
#pragma unroll
    for (int x = 0; x < 4; ++x) {
        const int row = lane / 2 + 16 * x, column = lane % 2 * 8;
        const int left =
            row < count ? static_cast<int>(min(a.p.dim_v - value - column, int64_t(8))) : 0;
        const int64_t from = left > 0 ? at + row * v.t + (value + column) * v.c : 0;
        char *to = tile + kda64_at(16, row, column);
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

/// What becomes of q+ S: summed here, in a pass of its own, left to another kernel, or left to
/// another warp, which gets S.
enum class kda64_queries { here, apart, later, elsewhere };

/// What a scan leaves of each chunk: O, S and U, or all.
enum class kda64_leaves { outputs, states, all };

/// What the state has in store for each token and query: x += S^T k+^T and o += q+ S; then S =
/// gamma S, but for `apart`. One pass over S: many sums, none of which waits for another. With
/// `Exact` S of x is not rounded to bf16; for `elsewhere` its words go to `share`, 16 keys after
/// 16 keys.
template <int Keys, kda64_queries Queries, bool Exact = false>
__device__ __forceinline__ void
kda64_through_state(const char *record, int lane, float (&s)[Keys / 8][mma_items_d],
                    float (&x)[8][mma_items_d], float (&o)[4][2][mma_items_d],
                    uint4 *share = nullptr) {
    constexpr kda64_record r = kda64_record_of(Keys);
    const auto *gamma = reinterpret_cast<const float *>(record + r.gamma) + lane % 4 * 2;
#pragma unroll
    for (int k = 0; k < Keys / 16; ++k) {
        uint32_t state[4], rest[4];
        kda64_pack(s[2 * k], s[2 * k + 1], state);
        if constexpr (Exact) kda64_pack_rest(s[2 * k], s[2 * k + 1], state, rest);
        if constexpr (Queries == kda64_queries::elsewhere)
            share[32 * k + lane] = make_uint4(state[0], state[1], state[2], state[3]);
#pragma unroll
        for (int n = 0; n < 2 && Queries != kda64_queries::apart; ++n) {
            const float2 g = *reinterpret_cast<const float2 *>(gamma + 16 * k + 8 * n);
            float(&y)[mma_items_d] = s[2 * k + n];
            y[0] *= g.x, y[1] *= g.y, y[2] *= g.x, y[3] *= g.y;
        }
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            uint32_t b[4];
            load_matrices(b, record + r.k + kda64_at_b(Keys, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(x[2 * t], state, {b[0], b[1]});
            mma_add<scalar::bf16>(x[2 * t + 1], state, {b[2], b[3]});
            if constexpr (Queries == kda64_queries::here) {
                uint32_t q[4];
                load_matrices(q, record + r.q + kda64_at_a(Keys, 16 * t, 16 * k, lane));
                mma_add<scalar::bf16>(o[t][0], q, {state[0], state[2]});
                mma_add<scalar::bf16>(o[t][1], q, {state[1], state[3]});
            }
            if constexpr (Exact) {
                mma_add<scalar::bf16>(x[2 * t], rest, {b[0], b[1]});
                mma_add<scalar::bf16>(x[2 * t + 1], rest, {b[2], b[3]});
            }
        }
    }
}

/// o += q+ S alone.
template <int Keys>
__device__ __forceinline__ void kda64_through_queries(const char *record, int lane,
                                                      const float (&s)[Keys / 8][mma_items_d],
                                                      float (&o)[4][2][mma_items_d]) {
    constexpr kda64_record r = kda64_record_of(Keys);
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
}

/// r = beta (V - k+ S), transposed: x is k+ S before; packed, and with `Rest` what that has lost.
template <scalar S, bool Rest>
__device__ __forceinline__ void kda64_residual(const float *beta, const char *values, int lane,
                                               float (&x)[8][mma_items_d], uint32_t (&packed)[4][4],
                                               uint32_t (&rest)[4][4]) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        uint32_t v[4];
        load_matrices_transposed(v, values + kda64_at_b(16, 16 * t, 0, lane));
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            float(&y)[mma_items_d] = x[2 * t + n];
            const float2 b =
                *reinterpret_cast<const float2 *>(beta + 16 * t + 8 * n + lane % 4 * 2);
#pragma unroll
            for (int high = 0; high < 2; ++high) {
                float v0, v1;
                widen_pair<S>(v[2 * n + high], v0, v1);
                y[2 * high] = b.x * (v0 - y[2 * high]);
                y[2 * high + 1] = b.y * (v1 - y[2 * high + 1]);
            }
        }
        kda64_pack(x[2 * t], x[2 * t + 1], packed[t]);
        if constexpr (Rest) kda64_pack_rest(x[2 * t], x[2 * t + 1], packed[t], rest[t]);
    }
}

/// u^T = r^T M^T for a lower triangular M with 1 on its diagonal: u = r + (M - I) r, of which the
/// first is exact; x is r before. Packed, and with `Rest` what that has lost.
template <bool Rest>
__device__ __forceinline__ void
kda64_solve(const char *m, int lane, float (&x)[8][mma_items_d], const uint32_t (&r)[4][4],
            const uint32_t (&r_rest)[4][4], uint32_t (&u)[4][4], uint32_t (&u_rest)[4][4]) {
    const int column = lane % 4 * 2;
    const uint32_t within = lane / 4 == column       ? 0xffff0000u
                            : lane / 4 == column + 1 ? 0x0000ffffu
                                                     : ~0u;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        uint32_t b[4][4];
#pragma unroll
        for (int t = k; t < 4; ++t) {
            load_matrices(b[t], m + kda64_at_b(64, 16 * t, 16 * k, lane));
            if (t == k) b[t][0] &= within, b[t][3] &= within;
            mma_add<scalar::bf16>(x[2 * t], r[k], {b[t][0], b[t][1]});
            mma_add<scalar::bf16>(x[2 * t + 1], r[k], {b[t][2], b[t][3]});
        }
        if constexpr (Rest) {
#pragma unroll
            for (int t = k; t < 4; ++t) {
                mma_add<scalar::bf16>(x[2 * t], r_rest[k], {b[t][0], b[t][1]});
                mma_add<scalar::bf16>(x[2 * t + 1], r_rest[k], {b[t][2], b[t][3]});
            }
        }
        kda64_pack(x[2 * k], x[2 * k + 1], u[k]); // complete
        if constexpr (Rest) kda64_pack_rest(x[2 * k], x[2 * k + 1], u[k], u_rest[k]);
    }
}

/// o += A u; A is lower triangular.
__device__ __forceinline__ void kda64_add_within(const char *tile, int lane,
                                                 const uint32_t (&u)[4][4],
                                                 float (&o)[4][2][mma_items_d]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int t = k; t < 4; ++t) {
            uint32_t left[4];
            load_matrices(left, tile + kda64_at_a(64, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(o[t][0], left, {u[k][0], u[k][2]});
            mma_add<scalar::bf16>(o[t][1], left, {u[k][1], u[k][3]});
        }
    }
}

/// O where 16 values are whole: two lanes exchange a word, and each has four values of a token.
template <scalar S>
__device__ __forceinline__ void kda64_put_whole(const kda_chunk64_fwd_scan_args &a, int64_t at,
                                                int count, int64_t value, int lane,
                                                const float (&o)[4][2][mma_items_d]) {
    const bool odd = lane % 2 != 0;
    const int column = lane % 4 / 2 * 4 + (odd ? 8 : 0);
    auto *to = static_cast<uint16_t *>(a.o) + at + lane / 4 * a.p.o.t + value + column;
#pragma unroll
    for (int t = 0; t < 8; ++t) { // tokens 8 t + lane / 4
        const int i = t % 2 * 2;
        const uint32_t x = round_pair<S>(o[t / 2][0][i], o[t / 2][0][i + 1]);
        const uint32_t y = round_pair<S>(o[t / 2][1][i], o[t / 2][1][i + 1]);
        const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? x : y, 1);
        if (8 * t + lane / 4 < count)
            *reinterpret_cast<uint2 *>(to) = make_uint2(odd ? got : x, odd ? y : got);
        to += 8 * a.p.o.t;
    }
}

__device__ __forceinline__ void kda64_put_output(const kda_chunk64_fwd_scan_args &a, int64_t at,
                                                 int count, int64_t value, int lane,
                                                 const float (&o)[4][2][mma_items_d]) {
    if (value >= a.p.dim_v) return;
    const kda_view &v = a.p.o;
    if (a.whole && v.type == scalar::bf16) {
        kda64_put_whole<scalar::bf16>(a, at, count, value, lane, o);
        return;
    }
    if (a.whole) {
        kda64_put_whole<scalar::f16>(a, at, count, value, lane, o);
        return;
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
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

template <int Keys, int Warps, kda64_leaves Leaves>
__global__ void __launch_bounds__(32 * Warps)
    kda_chunk64_fwd_scan(const __grid_constant__ kda_chunk64_fwd_scan_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr kda64_forward_shape shape = kda64_forward_shape_of(Keys, Warps);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int ahead = shape.stages - 1;
    constexpr bool Outputs = Leaves != kda64_leaves::states, Keep = Leaves != kda64_leaves::outputs;
    // With 192 keys registers do not suffice for both sums at a time.
    constexpr kda64_queries queries = !Outputs     ? kda64_queries::later
                                      : Keys < 192 ? kda64_queries::here
                                                   : kda64_queries::apart;
    extern __shared__ __align__(16) char shared[];
    auto *counters = reinterpret_cast<uint64_t *>(shared + shape.counters);
    const int own_lane = static_cast<int>(threadIdx.x % 32),
              warp = static_cast<int>(threadIdx.x / 32);
    const kda_problem &p = a.p;
    const int slices = a.slices;
    const uint32_t bytes = static_cast<uint32_t>(Outputs ? r.bytes : r.states);
    if constexpr (!Outputs) start_successor();   // kda.chunk64_bwd_scan needs nothing of this one
    uint64_t *left_by = counters + shape.stages; // all warps, before a stage is filled again
    if (threadIdx.x == 0)
        for (int i = 0; i < shape.stages; ++i)
            counter_init(counters + i), counter_init(left_by + i, Warps);
    wait_for_predecessor();
    __syncthreads();   // counters are there
    uint32_t used = 0; // chunks behind this block
    // With 192 keys no register is left for the number of the block: every warp has a word of
    // shared memory for it. 32 bits are enough: every block has a record of the workspace.
    auto *kept = reinterpret_cast<volatile uint32_t *>(shared + shape.counters + 48) + warp;
    const auto next = [&](uint32_t block) {
        if constexpr (Keys >= 192) block = *kept;
        return block + gridDim.x;
    };
    const auto blocks = static_cast<uint32_t>(a.blocks);
    for (uint32_t block = blockIdx.x; block < blocks; block = next(block)) {
        if constexpr (Keys >= 192) {
            static_assert(2 * 8 * shape.stages <= 48 && Warps <= 4);
            __syncwarp(); // all lanes have read it
            if (own_lane == 0) *kept = block;
            __syncwarp(); // it is written
        }
        const uint32_t head = block / static_cast<uint32_t>(slices);
        const int slice = static_cast<int>(block - head * static_cast<uint32_t>(slices));
        const int64_t n = head / static_cast<uint32_t>(p.value_heads);
        const int64_t hv = head % static_cast<uint32_t>(p.value_heads);
        const kda_place w = kda_place_of(p, a.table, a.slots, n);
        const int first = slice * shape.values, value = first + 16 * warp;
        kda64_clear<shape.values>(a, w.row, w.gap, w.begin - w.gap, hv, first);
        if (n == p.sequences) continue; // what stands behind the last sequence
        if (!w.live) kda64_clear<shape.values>(a, w.row, w.begin, w.length, hv, first);
        float s[Keys / 8][mma_items_d];
        kda64_load_state<Keys>(p.state_in, w.live ? a.state_in : nullptr,
                               w.state * p.state_in.n + hv * p.state_in.h, value, p.dim_k, p.dim_v,
                               own_lane, s);
        const int chunks = w.live ? static_cast<int>(kda_ceil_div(w.length, kda64_rows)) : 0;
        const int64_t begin =
            p.varlen ? a.table[n].first_chunk : n * kda_ceil_div(p.length, kda64_rows);
        const int64_t record = begin * p.value_heads + hv; // and every value_heads
        int64_t v_at = kda_at(p.v, w.row, w.begin, hv), o_at = kda_at(p.o, w.row, w.begin, hv);
        const auto fill = [&](int c) {
            if (c >= chunks || threadIdx.x != 0) return;
            const uint32_t number = used + static_cast<uint32_t>(c);
            uint64_t *counter = counters + number % shape.stages;
            if (number >= shape.stages)
                counter_wait(left_by + number % shape.stages, (number / shape.stages - 1) & 1);
            counter_expect(counter, bytes);
            bulk_load(shared + number % shape.stages * shape.record,
                      a.records + (record + c * p.value_heads) * r.bytes, bytes, counter);
        };
        const int last = static_cast<int>(w.length - int64_t(chunks - 1) * kda64_rows);
        const auto fetch = [&](int c) {
            if (c < chunks) {
                const int thread = kda64_anew(static_cast<int>(threadIdx.x));
                kda64_fetch_values(a, v_at, c + 1 < chunks ? kda64_rows : last, value, thread % 32,
                                   shared + shape.v +
                                       (thread / 32 * 2 + c % 2) * kda64_warp_values);
                v_at += kda64_rows * p.v.t;
            }
            async_commit();
        };
        const auto state_at = [&](int64_t state, int64_t head_of) { // -1: there is none to write
            return a.state_out != nullptr && state >= 0
                       ? state * p.state_out.n + head_of * p.state_out.h
                       : -1;
        };
        [[maybe_unused]] const int64_t state_to = state_at(w.state, hv);
        __syncthreads(); // the stages of the sequence before are read
        for (int c = 0; c < ahead; ++c) fill(c);
        fetch(0);
        for (int c = 0; c < chunks; ++c) {
            const uint32_t number = used + static_cast<uint32_t>(c);
            const char *stage = shared + number % shape.stages * shape.record;
            // No barrier: warps drift apart, so that one multiplies while another packs and stores.
            counter_wait(counters + number % shape.stages, number / shape.stages & 1);
            fill(c + ahead);
            fetch(c + 1);
            const int thread = kda64_anew(static_cast<int>(threadIdx.x)), lane = thread % 32;
            [[maybe_unused]] const int64_t at = record + c * p.value_heads;
            if constexpr (Keep)
                kda64_keep<Keys>(a.states + at * kda64_tile_bytes(slices * shape.values, Keys),
                                 value, lane, s);
            float x[8][mma_items_d] = {}, o[4][2][mma_items_d] = {};
            uint32_t u[4][4], u_rest[4][4], left[4][4], left_rest[4][4];
            kda64_through_state<Keys, queries, Keep>(stage, lane, s, x, o);
            async_wait<1>(); // V of this chunk
            __syncwarp();    // of all lanes
            const auto *beta = reinterpret_cast<const float *>(stage + r.beta);
            const char *v = shared + shape.v + (thread / 32 * 2 + c % 2) * kda64_warp_values;
            if (p.v.type == scalar::bf16)
                kda64_residual<scalar::bf16, Keep>(beta, v, lane, x, left, left_rest);
            else
                kda64_residual<scalar::f16, Keep>(beta, v, lane, x, left, left_rest);
            kda64_solve<Keep>(stage + r.m, lane, x, left, left_rest, u, u_rest);
            if constexpr (Keep) {
                const int rows = kda64_tile_bytes(slices * shape.values, 64);
                kda64_keep_words(a.written + at * rows, value, lane, u);
            }
            if constexpr (queries == kda64_queries::apart) {
                kda64_through_queries<Keys>(stage, lane, s, o);
                kda64_decay<Keys>(reinterpret_cast<const float *>(stage + r.gamma), lane, s);
            }
            if constexpr (Outputs) {
                kda64_add_within(stage + r.a, lane, u, o);
                kda64_put_output(a, o_at, c + 1 < chunks ? kda64_rows : last, value, lane, o);
                o_at += kda64_rows * p.o.t;
            }
            if constexpr (Keep)
                kda64_add_rows<Keys>(stage + r.kr, lane, u, u_rest, s);
            else
                kda64_add_rows<Keys>(stage + r.kr, lane, u, s);
            __syncwarp(); // of all lanes
            if (threadIdx.x % 32 == 0) counter_arrive(left_by + number % shape.stages);
        }
        used += static_cast<uint32_t>(chunks);
        int64_t to = 0;
        if constexpr (Leaves == kda64_leaves::all) { // again: no register is left for it
            const auto heads = static_cast<uint32_t>(kda64_anew(static_cast<int>(p.value_heads)));
            const uint32_t again = block / static_cast<uint32_t>(slices);
            to = state_at(kda_place_of(p, a.table, a.slots, again / heads).state, again % heads);
        } else {
            to = state_to;
        }
        if (to >= 0)
            kda64_store_state<Keys>(p.state_out, a.state_out, to, value, p.dim_k, p.dim_v, own_lane,
                                    s);
    }
#endif
}

} // namespace plait::impl::cuda
