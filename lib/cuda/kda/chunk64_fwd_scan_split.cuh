// Part of kda.chunk64_fwd_scan, which begins in chunk64_fwd_scan.cuh:
// for few heads (variants k128.w1, k128.w2). What lies between one state and
// the next is divided among four warps, each with 16 tokens and a quarter of the keys of the same
// 16 or 32 values; all else is the work of others.
//   layout   transposed as in the kernel for many heads, so that what a warp has made is at once an
//            operand: 512 bytes of words, 16 from each lane, in shared memory for all four. Three
//            exchanges a chunk: S, R = beta (V - k+ S), U = M R
//   chain    36 products of 16 x 8 x 16 for a warp, chunk and 16 values, those of its own words
//            before the barrier. The rows of k+, M and kR that a warp needs wait in registers, k+
//            and M from the chunk before: shared memory brings 650 wavefronts a chunk
//   output   two warps for each 16 values make O = q+ S + A U, a chunk behind
//   loads    a ring of what the chain reads and one of q+ and A, filled by a warp of the output as
//            soon as a stage is read; V by cp.async, four chunks ahead
//   traffic  every record is read by 8 or 4 blocks, from L2 but once: 65 KiB for a block and chunk,
//            which take at least 1000 cycles to an SM (estimate)
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_chain.cuh"
#include "lib/cuda/kda/chunk64_fwd_scan_loads.cuh"

namespace plait::impl::cuda {

/// O of 16 tokens and 16 values.
__device__ __forceinline__ void kda64_put_tile(const kda_chunk64_fwd_scan_args &a, int64_t at,
                                               int count, int64_t value, int lane,
                                               const float (&o)[2][mma_items_d]) {
    const kda_view &v = a.p.o;
    const int row = lane / 4;
    if (a.whole) { // two lanes exchange a word, and each has four values of a token
        const bool odd = lane % 2 != 0, wide = v.type == scalar::bf16;
        auto *to = static_cast<uint16_t *>(a.o) + at + row * v.t + value + lane % 4 / 2 * 4 +
                   (odd ? 8 : 0);
#pragma unroll
        for (int i = 0; i < mma_items_d; i += 2, to += 8 * v.t) {
            const uint32_t x = wide ? round_pair<scalar::bf16>(o[0][i], o[0][i + 1])
                                    : round_pair<scalar::f16>(o[0][i], o[0][i + 1]);
            const uint32_t y = wide ? round_pair<scalar::bf16>(o[1][i], o[1][i + 1])
                                    : round_pair<scalar::f16>(o[1][i], o[1][i + 1]);
            const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? x : y, 1);
            if (4 * i + row < count)
                *reinterpret_cast<uint2 *>(to) = make_uint2(odd ? got : x, odd ? y : got);
        }
        return;
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < mma_items_d; i += 2) {
            const int64_t j = value + 8 * n + lane % 4 * 2;
            if (4 * i + row < count)
                kda64_put_pair(v, a.o, at + (4 * i + row) * v.t + j * v.c, a.p.dim_v - j, o[n][i],
                               o[n][i + 1]);
        }
    }
}

/// o = q+ S + A u of 16 values and half of the tokens: 16 of them at a place and its mirror, so
/// that both halves have as much of the triangle.
template <int Keys, int Tiles>
__device__ __forceinline__ void
kda64_split_output(const kda_chunk64_fwd_scan_args &a, char *shared, const kda64_split_run &run,
                   const kda64_split_counters<Tiles, false> &counters, int warp, int own_lane) {
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, false);
    constexpr kda64_record r = kda64_record_of(Keys);
    constexpr int rest = kda64_split_rings_of(Tiles, false).second;
    const kda_problem &p = a.p;
    const int tile = warp / 2, places[2] = {warp % 2, 3 - warp % 2};
    const int64_t value = run.first + 16 * tile;
    const bool loads = warp == 0;
    if (loads) {
        kda64_split_begin_loads<Keys, Tiles, false>(a, shared, run, counters, own_lane);
        for (int c = 0; c < rest && own_lane == 0; ++c)
            kda64_split_fill<Keys, Tiles, false, true>(shared, run, counters, c);
        __syncwarp();
    }
    int64_t o_at = kda_at(p.o, run.w.row, run.w.begin, run.hv);
    for (int c = 0; c < run.chunks; ++c, o_at += kda64_rows * p.o.t) {
        const int lane = kda64_anew(own_lane);
        const uint32_t n = run.used + static_cast<uint32_t>(c);
        const char *stage = shared + shape.rest + n % rest * shape.second;
        const shared_at states = shared_at_of(shared + shape.state) + 16 * lane +
                                 kda64_words * ((n % 2 * Tiles + tile) * (Keys / 16));
        const shared_at written = shared_at_of(shared + shape.written) + 16 * lane +
                                  kda64_words * ((n % 2 * Tiles + tile) * 4);
        float o[2][2][mma_items_d] = {};
        counters.wait_ready(n);
        if (loads) { // the chain has all of this stage in registers
            kda64_split_more_loads<Keys, Tiles, false>(a, shared, run, counters, lane, c);
            if (c > 0 && lane == 0) {
                counters.wait_done(n - 1);
                kda64_split_fill<Keys, Tiles, false, true>(shared, run, counters, c - 1 + rest);
            }
            __syncwarp();
        }
        counters.wait_second(n);
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k) {
            uint32_t words[4];
            load_words<4>(states + kda64_words * k, words);
#pragma unroll
            for (int t = 0; t < 2; ++t) {
                uint32_t q[4];
                load_matrices(q, stage + kda64_at_a(Keys, 16 * places[t], 16 * k, lane));
                mma_add<scalar::bf16>(o[t][0], q, {words[0], words[2]});
                mma_add<scalar::bf16>(o[t][1], q, {words[1], words[3]});
            }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            uint32_t words[4];
            load_words<4>(written + kda64_words * k, words);
#pragma unroll
            for (int t = 0; t < 2; ++t) {
                if (k > places[t]) continue; // A is lower triangular
                uint32_t left[4];
                load_matrices(left,
                              stage + (r.a - r.q) + kda64_at_a(64, 16 * places[t], 16 * k, lane));
                mma_add<scalar::bf16>(o[t][0], left, {words[0], words[2]});
                mma_add<scalar::bf16>(o[t][1], left, {words[1], words[3]});
            }
        }
        __syncwarp(); // all lanes have read
        if (lane == 0) counter_arrive(counters.done(n));
        if (value >= p.dim_v) continue;
#pragma unroll
        for (int t = 0; t < 2; ++t)
            kda64_put_tile(a, o_at + 16 * places[t] * p.o.t, run.tokens(c) - 16 * places[t], value,
                           lane, o[t]);
    }
}

template <int Keys, int Tiles>
__global__ void __launch_bounds__(kda64_split_threads(Tiles, false), 1)
    kda_chunk64_fwd_scan_split(const __grid_constant__ kda_chunk64_fwd_scan_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, false);
    extern __shared__ __align__(16) char shared[];
    const kda64_split_counters<Tiles, false> counters{
        reinterpret_cast<uint64_t *>(shared + shape.counters)};
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x == 0) counters.init();
    wait_for_predecessor();
    kda64_split_run run{};
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        if (!kda64_split_begin<Keys, shape.values>(a, block, true, run)) continue;
        __syncthreads(); // counters are there, the sequence before is done
        if (warp < kda64_chain_warps)
            kda64_split_chain<Keys, Tiles, false>(a, shared, run, counters, warp, lane);
        else
            kda64_split_output<Keys, Tiles>(a, shared, run, counters, warp - kda64_chain_warps,
                                            lane);
        run.used += static_cast<uint32_t>(run.chunks);
    }
#endif
}

} // namespace plait::impl::cuda
