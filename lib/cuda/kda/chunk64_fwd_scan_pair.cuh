// Part of kda.chunk64_fwd_scan, which begins in chunk64_fwd_scan.cuh:
// for few heads, by pairs of blocks (variants k128.p1, k128.p2). The first
// block of a cluster has the chain of 16 or 32 values (chunk64_fwd_scan_chain.cuh), the second
// makes O = q+ S + A U from words that the first sends it, up to four chunks behind. So an SM takes
// 41 KiB of a record or 24, and neither waits for the other's products.
//   words    16 bytes of each lane through distributed shared memory, counted in by the data
//   order    chain to O: `full`, of the words of a chunk; O to chain: `done`, where they are read.
//            Barriers of the cluster begin every sequence and end the kernel: nothing is sent to a
//            block that is not there
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_split.cuh"

namespace plait::impl::cuda {

/// A warp of the first block: what the chain reads.
template <int Keys, int Tiles>
__device__ __forceinline__ void
kda64_pair_load_chain(const kda_chunk64_fwd_scan_args &a, char *shared, const kda64_split_run &run,
                      const kda64_split_counters<Tiles, true> &counters, int lane) {
    kda64_split_begin_loads<Keys, Tiles, true>(a, shared, run, counters, lane);
    for (int c = 0; c < run.chunks; ++c) {
        counters.wait_ready(run.used + static_cast<uint32_t>(c)); // its stage is in registers
        kda64_split_more_loads<Keys, Tiles, true>(a, shared, run, counters, lane, c);
    }
}

/// A thread of the second block: q+ and A; words that are read may be sent again.
template <int Keys, int Tiles>
__device__ __forceinline__ void
kda64_pair_load_output(char *shared, const kda64_split_run &run,
                       const kda64_split_counters<Tiles, true> &counters) {
    constexpr int stages = kda64_split_rings_of(Tiles, true).second;
    constexpr uint32_t words = kda64_chunk_words(Keys, Tiles);
    for (int c = 0; c < stages; ++c)
        kda64_split_fill<Keys, Tiles, true, true>(shared, run, counters, c);
    for (int c = 0; c < run.chunks; ++c) {
        const uint32_t n = run.used + static_cast<uint32_t>(c);
        counters.wait_read(n);
        counter_expect(counters.full(n), words);
        cluster_arrive_at(counters.done(n), 0);
        kda64_split_fill<Keys, Tiles, true, true>(shared, run, counters, c + stages);
    }
}

/// o = q+ S + A u of the 16 tokens of a warp.
template <int Keys, int Tiles>
__device__ __forceinline__ void
kda64_pair_output(const kda_chunk64_fwd_scan_args &a, char *shared, const kda64_split_run &run,
                  const kda64_split_counters<Tiles, true> &counters, int warp, int own_lane) {
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, true);
    constexpr kda64_split_rings rings = kda64_split_rings_of(Tiles, true);
    constexpr kda64_record r = kda64_record_of(Keys);
    const kda_problem &p = a.p;
    int64_t o_at = kda_at(p.o, run.w.row, run.w.begin, run.hv) + 16 * warp * p.o.t;
    for (int c = 0; c < run.chunks; ++c, o_at += kda64_rows * p.o.t) {
        const int lane = kda64_anew(own_lane);
        const uint32_t n = run.used + static_cast<uint32_t>(c);
        const char *stage = shared + shape.rest + n % rings.second * shape.second;
        const shared_at state = shared_at_of(shared + shape.words) + 16 * lane +
                                n % rings.words * kda64_chunk_words(Keys, Tiles);
        const shared_at written = state + Tiles * (Keys / 16) * kda64_words;
        float o[Tiles][2][2][mma_items_d] = {}; // two sums each, of which none waits for the other
        counters.wait_second(n);
        counters.wait_full(n);
#pragma unroll
        for (int k = 0; k < Keys / 16; ++k) {
            uint32_t q[4];
            load_matrices(q, stage + kda64_at_a(Keys, 16 * warp, 16 * k, lane));
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
                uint32_t words[4];
                load_words<4>(state + kda64_words * (tile * (Keys / 16) + k), words);
                mma_add<scalar::bf16>(o[tile][k % 2][0], q, {words[0], words[2]});
                mma_add<scalar::bf16>(o[tile][k % 2][1], q, {words[1], words[3]});
            }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (k > warp) continue; // A is lower triangular
            uint32_t left[4];
            load_matrices(left, stage + (r.a - r.q) + kda64_at_a(64, 16 * warp, 16 * k, lane));
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
                uint32_t words[4];
                load_words<4>(written + kda64_words * (4 * tile + k), words);
                mma_add<scalar::bf16>(o[tile][k % 2][0], left, {words[0], words[2]});
                mma_add<scalar::bf16>(o[tile][k % 2][1], left, {words[1], words[3]});
            }
        }
        __syncwarp(); // all lanes have read
        if (lane == 0) counter_arrive(counters.read(n));
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
            const int64_t value = run.first + 16 * tile;
            if (value >= p.dim_v) continue;
#pragma unroll
            for (int i = 0; i < 2 * mma_items_d; ++i)
                o[tile][0][i / 4][i % 4] += o[tile][1][i / 4][i % 4];
            kda64_put_tile(a, o_at, run.tokens(c) - 16 * warp, value, lane, o[tile][0]);
        }
    }
}

template <int Keys, int Tiles>
__global__ void __launch_bounds__(kda64_split_threads(Tiles, true), 1)
    kda_chunk64_fwd_scan_pair(const __grid_constant__ kda_chunk64_fwd_scan_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr kda64_split_shape shape = kda64_split_shape_of(Keys, Tiles, true);
    constexpr uint32_t kept = kda64_split_rings_of(Tiles, true).words;
    extern __shared__ __align__(16) char shared[];
    const kda64_split_counters<Tiles, true> counters{
        reinterpret_cast<uint64_t *>(shared + shape.counters)};
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const bool chain = cluster_rank() == 0;
    if (threadIdx.x == 0) {
        counters.init();
        for (uint32_t i = 0; i < kept && !chain; ++i)
            counter_expect(counters.full(i), kda64_chunk_words(Keys, Tiles));
    }
    wait_for_predecessor();
    kda64_split_run run{};
    for (int64_t block = blockIdx.x / 2; block < a.blocks; block += gridDim.x / 2) {
        if (!kda64_split_begin<Keys, shape.values>(a, block, chain, run)) continue;
        // Counters are there, both blocks are done with the sequence before.
        cluster_arrive();
        cluster_wait();
        if (warp == kda64_chain_warps) {
            if (chain)
                kda64_pair_load_chain<Keys, Tiles>(a, shared, run, counters, lane);
            else if (lane == 0)
                kda64_pair_load_output<Keys, Tiles>(shared, run, counters);
            __syncwarp();
        } else if (chain) {
            kda64_split_chain<Keys, Tiles, true>(a, shared, run, counters, warp, lane);
        } else {
            kda64_pair_output<Keys, Tiles>(a, shared, run, counters, warp, lane);
        }
        run.used += static_cast<uint32_t>(run.chunks);
    }
    cluster_arrive();
    cluster_wait(); // the other block may still send to this one
#endif
}

} // namespace plait::impl::cuda
