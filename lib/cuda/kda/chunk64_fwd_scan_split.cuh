// Part of kda.chunk64_fwd_scan, which begins in chunk64_fwd_scan.cuh:
// for few heads (variant k128.w2). What does not lie between one state and
// the next is the work of other warps. Two warps have 16 values each and all keys, as in the kernel
// for many heads; two more make O = q+ S + A U of the chunk before from what those hand over in
// shared memory, S and u as words of operands. One barrier a chunk.
//   chain    148 products of 16 x 8 x 16 for a warp and chunk instead of 232, each warp with a
//            scheduler to itself
//   loads    the two parts of a record have a ring each: the second is needed a chunk later
//   traffic  every record is read by 4 blocks, from L2 but once: 66 KiB for 32 values. With more
//            than about 64 blocks L2 would be the bound (estimate)
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan.cuh"

namespace plait::impl::cuda {

/// o = q+ S + A u from words that another warp has left.
template <int Keys>
__device__ __forceinline__ void kda64_queries_of(const char *rest, const uint4 *share, int lane,
                                                 float (&o)[4][2][mma_items_d]) {
    constexpr kda64_record r = kda64_record_of(Keys);
    const char *q_tile = rest, *a_tile = rest + (r.a - r.q);
#pragma unroll
    for (int k = 0; k < Keys / 16; ++k) {
        const uint4 state = share[32 * k + lane];
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            uint32_t q[4];
            load_matrices(q, q_tile + kda64_at_a(Keys, 16 * t, 16 * k, lane));
            mma_add<scalar::bf16>(o[t][0], q, {state.x, state.z});
            mma_add<scalar::bf16>(o[t][1], q, {state.y, state.w});
        }
    }
    uint32_t u[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const uint4 words = share[2 * Keys + 32 * k + lane];
        u[k][0] = words.x, u[k][1] = words.y, u[k][2] = words.z, u[k][3] = words.w;
    }
    kda64_add_within(a_tile, lane, u, o);
}

template <int Keys>
__global__ void __launch_bounds__(64 * kda64_split_warps, 1)
    kda_chunk64_fwd_scan_split(const __grid_constant__ kda_chunk64_fwd_scan_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int warps = kda64_split_warps, stages = kda64_split_stages;
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    extern __shared__ __align__(16) char shared[];
    auto *counters = reinterpret_cast<uint64_t *>(shared + shape.counters);
    const int own_lane = static_cast<int>(threadIdx.x % 32);
    const int own = static_cast<int>(threadIdx.x / 32), warp = own % warps;
    const bool chain = own < warps; // has the state
    char *own_v = shared + shape.v + 2 * warp * kda64_warp_values;
    const kda_problem &p = a.p;
    if (threadIdx.x == 0)
        for (int i = 0; i < 2 * stages; ++i) counter_init(counters + i);
    __syncthreads();   // counters are there
    uint32_t used = 0; // chunks behind this block
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int slice = static_cast<int>(block % a.slices);
        const int64_t hv = block / a.slices % p.value_heads, n = block / a.slices / p.value_heads;
        const kda_place w = kda_place_of(p, a.table, a.slots, n);
        const int64_t first = int64_t(slice) * shape.values, value = first + 16 * warp;
        kda64_clear<shape.values>(a, w.row, w.gap, w.begin - w.gap, hv, first);
        if (n == p.sequences) continue; // what stands behind the last sequence
        if (!w.live) kda64_clear<shape.values>(a, w.row, w.begin, w.length, hv, first);
        float s[Keys / 8][mma_items_d];
        if (chain)
            kda64_load_state<Keys>(p.state_in, w.live ? a.state_in : nullptr,
                                   w.state * p.state_in.n + hv * p.state_in.h, value, p.dim_k,
                                   p.dim_v, own_lane, s);
        const int chunks = w.live ? static_cast<int>(kda_ceil_div(w.length, kda64_rows)) : 0;
        const int64_t begin =
            p.varlen ? a.table[n].first_chunk : n * kda_ceil_div(p.length, kda64_rows);
        const char *records = a.records + (begin * p.value_heads + hv) * r.bytes;
        const int64_t pitch = p.value_heads * r.bytes;
        int64_t v_at = kda_at(p.v, w.row, w.begin, hv), o_at = kda_at(p.o, w.row, w.begin, hv);
        const auto tokens = [&](int c) {
            const int64_t left = w.length - int64_t(c) * kda64_rows;
            return left < kda64_rows ? static_cast<int>(left) : kda64_rows;
        };
        const auto fill = [&](int c, bool second) { // by one thread
            if (c >= chunks) return;
            const uint32_t at = (used + static_cast<uint32_t>(c)) % stages;
            uint64_t *counter = counters + (second ? stages : 0) + at;
            const uint32_t bytes = static_cast<uint32_t>(second ? shape.second : shape.first);
            counter_expect(counter, bytes);
            bulk_load(shared + (second ? shape.rest : 0) + at * bytes,
                      records + c * pitch + (second ? shape.first : 0), bytes, counter);
        };
        const auto fetch = [&](int c) {
            if (c < chunks) {
                kda64_fetch_values(a, v_at, tokens(c), value, own_lane,
                                   own_v + c % 2 * kda64_warp_values);
                v_at += kda64_rows * p.v.t;
            }
            async_commit();
        };
        __syncthreads(); // the stages of the sequence before are read
        if (threadIdx.x == 0) fill(0, false), fill(1, false), fill(0, true);
        if (chain) fetch(0);
        for (int c = 0; c <= chunks; ++c) {
            // S and u of the chunk before are there; its first part, and the second of the one
            // before it, are read.
            __syncthreads();
            if (threadIdx.x == 0) fill(c + 2, false), fill(c + 1, true);
            const int lane = kda64_anew(own_lane);
            if (chain && c < chunks) {
                fetch(c + 1);
                const uint32_t number = used + static_cast<uint32_t>(c);
                const char *stage = shared + number % stages * shape.first;
                auto *share = reinterpret_cast<uint4 *>(shared + shape.share +
                                                        (2 * warp + c % 2) * shape.each);
                counter_wait(counters + number % stages, number / stages & 1);
                float x[8][mma_items_d] = {}, o[4][2][mma_items_d];
                uint32_t u[4][4], left[4][4], none[4][4];
                kda64_through_state<Keys, kda64_queries::elsewhere>(stage, lane, s, x, o, share);
                async_wait<1>(); // V of this chunk
                __syncwarp();    // of all lanes
                const auto *beta = reinterpret_cast<const float *>(stage + r.beta);
                const char *v = own_v + c % 2 * kda64_warp_values;
                if (p.v.type == scalar::bf16)
                    kda64_residual<scalar::bf16, false>(beta, v, lane, x, left, none);
                else
                    kda64_residual<scalar::f16, false>(beta, v, lane, x, left, none);
                kda64_solve<false>(stage + r.m, lane, x, left, none, u, none);
#    pragma unroll
                for (int k = 0; k < 4; ++k)
                    share[2 * Keys + 32 * k + lane] =
                        make_uint4(u[k][0], u[k][1], u[k][2], u[k][3]);
                kda64_add_rows<Keys>(stage + r.kr, lane, u, s);
            }
            if (!chain && c > 0) {
                const uint32_t number = used + static_cast<uint32_t>(c - 1);
                const auto *share = reinterpret_cast<const uint4 *>(
                    shared + shape.share + (2 * warp + (c - 1) % 2) * shape.each);
                counter_wait(counters + stages + number % stages, number / stages & 1);
                float o[4][2][mma_items_d] = {};
                kda64_queries_of<Keys>(shared + shape.rest + number % stages * shape.second, share,
                                       lane, o);
                kda64_put_output(a, o_at, tokens(c - 1), value, lane, o);
                o_at += kda64_rows * p.o.t;
            }
        }
        used += static_cast<uint32_t>(chunks);
        if (chain && a.state_out != nullptr && w.state >= 0)
            kda64_store_state<Keys>(p.state_out, a.state_out,
                                    w.state * p.state_out.n + hv * p.state_out.h, value, p.dim_k,
                                    p.dim_v, own_lane, s);
    }
#endif
}

} // namespace plait::impl::cuda
