// kda.chunk64_bwd_scan: the gradient of the state, chunks from the last to the first:
// du = A^T DO + kR dS, w = M^T du, dv = beta w, dS = gamma dS + q+^T DO - k+^T dv.
//   layout   that of kda.chunk64_fwd_scan: dS^T in accumulators, 16 values to a warp, nothing of a
//            step leaves it; DO^T is A of both products that it enters, read transposed
//   loads    those of kda.chunk64_fwd_scan, with DO where V is: warps meet at no barrier
//   keeps    dS behind each chunk, and w, as bf16, for kda.chunk64_grad
//   precise  dS and all sums f32; operands bf16, of du also the rest; dv rounded once
//   traffic  keys = values = 128: a chunk and head reads 65 KiB for every slice of values (from L2
//            but once) and 16 KiB of DO, writes 32 KiB of dS, 16 KiB of w and 16 KiB of dv
//   bound    250 products of 16 x 8 x 16 for a warp and chunk, which wait for one another; eight
//            warps have all of 128 values where blocks of four would not all find an SM
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/kda/chunk64_bwd_scan_layout.h"
#include "lib/cuda/kda/chunk64_scan.cuh"

namespace plait::impl::cuda {

/// x += a X for a lower triangular tile X, of which a has the rows as columns; with what packing a
/// has lost, or without.
template <bool Rest>
__device__ __forceinline__ void
kda64_through_triangle(const char *tile, int lane, const uint32_t (&a)[4][4],
                       const uint32_t (&rest)[4][4], float (&x)[8][mma_items_d]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int t = 0; t <= k; ++t) {
            uint32_t b[4];
            load_matrices_transposed(b, tile + kda64_at_bt(64, 16 * k, 16 * t, lane));
            mma_add<scalar::bf16>(x[2 * t], a[k], {b[0], b[1]});
            mma_add<scalar::bf16>(x[2 * t + 1], a[k], {b[2], b[3]});
            if constexpr (Rest) {
                mma_add<scalar::bf16>(x[2 * t], rest[k], {b[0], b[1]});
                mma_add<scalar::bf16>(x[2 * t + 1], rest[k], {b[2], b[3]});
            }
        }
    }
}

/// Transposed accumulators, tokens `at` and on and channels `value` and on, to their place.
template <int Tiles>
__device__ __forceinline__ void
kda64_store_columns(const kda_view &v, void *base, int64_t at, int count, int64_t value,
                    int64_t dim_v, int lane, const float (&x)[Tiles][mma_items_d]) {
    if (base == nullptr) return;
    const int token = lane % 4 * 2;
    const int64_t j = value + lane / 4;
    const auto all = [&](auto *to, const auto &rounded) {
        to += at + token * v.t + j;
#pragma unroll
        for (int t = 0; t < Tiles; ++t) {
            auto *next = to + v.t;
            to[0] = rounded(x[t][0]), to[8] = rounded(x[t][2]);
            next[0] = rounded(x[t][1]), next[8] = rounded(x[t][3]);
            to += 8 * v.t;
        }
    };
    const bool whole = count >= 8 * Tiles && value + 16 <= dim_v && v.c == 1;
    if (whole && v.type == scalar::bf16) {
        all(static_cast<uint16_t *>(base), [](float y) { return round_half<scalar::bf16>(y); });
    } else if (whole && v.type == scalar::f16) {
        all(static_cast<uint16_t *>(base), [](float y) { return round_half<scalar::f16>(y); });
    } else {
#pragma unroll
        for (int t = 0; t < Tiles; ++t) {
#pragma unroll
            for (int i = 0; i < mma_items_d; ++i) {
                const int64_t channel = j + i / 2 * 8;
                if (8 * t + token + i % 2 < count && channel < dim_v)
                    kda_store(base, at + (8 * t + token + i % 2) * v.t + channel * v.c, v.type,
                              x[t][i]);
            }
        }
    }
}

/// A warp's 16 values of DO of a chunk as bf16, 0 where nothing is.
__device__ __forceinline__ void kda64_fetch_columns(const kda_view &v, const void *base, int64_t at,
                                                    int count, int64_t value, int64_t dim_v,
                                                    bool vector, int lane, char *tile) {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
        const int row = lane / 2 + 16 * x, column = lane % 2 * 8;
        const int left =
            row < count ? static_cast<int>(min(dim_v - value - column, int64_t(8))) : 0;
        const int64_t from = left > 0 ? at + row * v.t + (value + column) * v.c : 0;
        char *to = tile + kda64_at(16, row, column);
        if (vector) { // left is 8 or none
            async_copy<16>(shared_at_of(to), static_cast<const uint16_t *>(base) + from, left > 0);
            continue;
        }
#pragma unroll 1
        for (int i = 0; i < 8; ++i)
            reinterpret_cast<uint16_t *>(to)[i] =
                i < left ? round_half<scalar::bf16>(kda_load(base, from + i * v.c, v.type))
                         : uint16_t(0);
    }
}

template <int Keys, int Warps>
__global__ void __launch_bounds__(32 * Warps, 1)
    kda_chunk64_bwd_scan(const __grid_constant__ kda_chunk64_bwd_scan_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr kda64_forward_shape shape = kda64_bwd_scan_shape_of(Keys, Warps);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int ahead = shape.stages - 1;
    static_assert(ahead > 0);
    extern __shared__ __align__(16) char shared[];
    auto *counters = reinterpret_cast<uint64_t *>(shared + shape.counters);
    const int own_lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const kda_problem &p = a.p;
    const int slices = a.slices;
    uint64_t *left_by = counters + shape.stages; // all warps, before a stage is filled again
    if (threadIdx.x == 0)
        for (int i = 0; i < shape.stages; ++i)
            counter_init(counters + i), counter_init(left_by + i, Warps);
    __syncthreads();   // counters are there
    uint32_t used = 0; // chunks behind this block
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int slice = static_cast<int>(block % slices);
        const int64_t hv = block / slices % p.value_heads, n = block / slices / p.value_heads;
        const kda_place w = kda_place_of(p, a.table, a.slots, n);
        const int64_t first = int64_t(slice) * shape.values, value = first + 16 * warp;
        float s[Keys / 8][mma_items_d];
        kda64_load_state<Keys>(p.dstate_out, w.live ? a.dstate_out : nullptr,
                               n * p.dstate_out.n + hv * p.dstate_out.h, value, p.dim_k, p.dim_v,
                               own_lane, s);
        const int64_t chunks = w.live ? kda_ceil_div(w.length, kda64_rows) : 0;
        const int64_t begin =
            p.varlen ? a.table[n].first_chunk : n * kda_ceil_div(p.length, kda64_rows);
        const int64_t record = begin * p.value_heads + hv; // and every value_heads
        const auto rows = [&](int64_t c) {
            return static_cast<int>(min(w.length - c * kda64_rows, int64_t(kda64_rows)));
        };
        const auto fill = [&](int64_t number) { // 0: the last
            const int64_t c = chunks - 1 - number;
            if (c < 0 || threadIdx.x != 0) return;
            const uint32_t all = used + static_cast<uint32_t>(number);
            uint64_t *counter = counters + all % shape.stages;
            if (all >= shape.stages)
                counter_wait(left_by + all % shape.stages, (all / shape.stages - 1) & 1);
            counter_expect(counter, static_cast<uint32_t>(r.bytes));
            bulk_load(shared + all % shape.stages * shape.record,
                      a.records + (record + c * p.value_heads) * r.bytes,
                      static_cast<uint32_t>(r.bytes), counter);
        };
        const auto fetch = [&](int64_t number) {
            const int64_t c = chunks - 1 - number;
            if (c >= 0) {
                const int thread = kda64_anew(static_cast<int>(threadIdx.x));
                kda64_fetch_columns(
                    p.d_o, a.d_o, kda_at(p.d_o, w.row, w.begin + c * kda64_rows, hv), rows(c),
                    value, p.dim_v, a.vector, thread % 32,
                    shared + shape.v + (thread / 32 * 2 + number % 2) * kda64_warp_values);
            }
            async_commit();
        };
        __syncthreads(); // the stages of the sequence before are read
        for (int c = 0; c < ahead; ++c) fill(c);
        fetch(0);
        for (int64_t number = 0; number < chunks; ++number) {
            const int64_t c = chunks - 1 - number;
            const uint32_t all = used + static_cast<uint32_t>(number);
            const char *stage = shared + all % shape.stages * shape.record;
            // No barrier: warps drift apart, so that one multiplies while another packs and stores.
            counter_wait(counters + all % shape.stages, all / shape.stages & 1);
            fill(number + ahead);
            fetch(number + 1);
            async_wait<1>(); // DO of this chunk
            __syncwarp();    // of all lanes
            const int64_t at = record + c * p.value_heads;
            const int lane = kda64_anew(own_lane);
            kda64_keep<Keys>(a.gradients + at * kda64_tile_bytes(slices * shape.values, Keys),
                             static_cast<int>(value), lane, s);
            uint32_t d_o[4][4], packed[4][4], rest[4][4];
#    pragma unroll
            for (int k = 0; k < 4; ++k)
                load_matrices_transposed(d_o[k], shared + shape.v +
                                                     (warp * 2 + number % 2) * kda64_warp_values +
                                                     kda64_at_at(16, 16 * k, 0, lane));
            float x[8][mma_items_d] = {}, y[8][mma_items_d] = {};
            kda64_through_keys<Keys, false>(stage + r.kr, lane, s, x);
            kda64_through_triangle<false>(stage + r.a, lane, d_o, d_o, x);
            // While sums of du come in.
            kda64_decay<Keys>(reinterpret_cast<const float *>(stage + r.gamma), lane, s);
            kda64_add_rows<Keys>(stage + r.q, lane, d_o, s);
#    pragma unroll
            for (int k = 0; k < 4; ++k) {
                kda64_pack(x[2 * k], x[2 * k + 1], packed[k]);
                kda64_pack_rest(x[2 * k], x[2 * k + 1], packed[k], rest[k]);
            }
            kda64_through_triangle<true>(stage + r.m, lane, packed, rest, y);
#    pragma unroll
            for (int k = 0; k < 4; ++k) kda64_pack(y[2 * k], y[2 * k + 1], packed[k]);
            kda64_keep_words(a.adjoints + at * kda64_tile_bytes(slices * shape.values, 64),
                             static_cast<int>(value), lane, packed);
            const auto *beta = reinterpret_cast<const float *>(stage + r.beta) + lane % 4 * 2;
#    pragma unroll
            for (int t = 0; t < 8; ++t) {
                const float2 of = *reinterpret_cast<const float2 *>(beta + 8 * t);
                y[t][0] *= of.x, y[t][1] *= of.y, y[t][2] *= of.x, y[t][3] *= of.y;
            }
            kda64_store_columns(p.dv, a.dv, kda_at(p.dv, w.row, w.begin + c * kda64_rows, hv),
                                rows(c), value, p.dim_v, lane, y);
#    pragma unroll
            for (int k = 0; k < 4; ++k) {
                kda64_pack(y[2 * k], y[2 * k + 1], packed[k]);
#    pragma unroll
                for (int i = 0; i < 4; ++i) packed[k][i] = negate_pair(packed[k][i]);
            }
            kda64_add_rows<Keys>(stage + r.k, lane, packed, s);
            __syncwarp(); // of all lanes
            if (threadIdx.x % 32 == 0) counter_arrive(left_by + all % shape.stages);
        }
        used += static_cast<uint32_t>(chunks);
        if (a.dstate_in != nullptr)
            kda64_store_state<Keys>(p.dstate_in, a.dstate_in,
                                    n * p.dstate_in.n + hv * p.dstate_in.h, value, p.dim_k, p.dim_v,
                                    own_lane, s);
    }
    wait_for_predecessor(); // kda.chunk64_fwd_scan, beside which this one runs
#endif
}

} // namespace plait::impl::cuda
