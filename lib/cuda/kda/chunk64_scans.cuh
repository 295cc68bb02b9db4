// kda.chunk64_scans: for few heads, both scans of backward at once, whose blocks do not need each
// other: states at the head of each chunk and u (kda.chunk64_fwd_scan), the gradients of the states
// and of V (kda.chunk64_bwd_scan). The chain from one chunk to the next is what takes the time.
//   layout   four warps share 16 values: each has a quarter of the keys of the state, of which the
//            others get the words of operands through shared memory, and makes a quarter of the
//            tokens. Three barriers a chunk
//   chain    reverse 48 products of 16 x 8 x 16 for a warp and chunk, at most 4 deep, instead of
//            168 (21 more wait for nothing); forward 80, at most 8 deep, instead of 296
//   precise  as those kernels; sums of other orders
//   traffic  a block reads every record, 65 or 41 KiB, for 16 or 32 values: from L2 but once
//   bound    latency of the chain, and L2 to an SM: 1050 cycles a chunk at 64 bytes a cycle
//            (estimates)
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/kda/chunk64_scans_forward.cuh"
#include "lib/cuda/kda/chunk64_scans_reverse.cuh"

namespace plait::impl::cuda {

template <int Keys, int Tiles>
__global__ void __launch_bounds__(32 * kda64_scans_warps * Tiles, 1)
    kda_chunk64_scans(const __grid_constant__ kda_chunk64_scans_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int stages = kda64_scans_ring_of(Keys, Tiles, true).stages;
    static_assert(stages == kda64_scans_ring_of(Keys, Tiles, false).stages,
                  "directions share the counters and their phases");
    extern __shared__ __align__(16) char shared[];
    auto *counters = reinterpret_cast<uint64_t *>(shared);
    if (threadIdx.x == 0)
        for (int i = 0; i < stages; ++i) counter_init(counters + i);
    kda64_turns turns = {0, 0};
    for (int64_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        bulk_fence();    // the other direction writes where a ring is filled
        __syncthreads(); // the stages of the sequence before are read, counters are there
        if (block % 2 == 0)
            kda64_scan_reverse<Keys, Tiles>(a, block / 2, shared, turns);
        else
            kda64_scan_forward<Keys, Tiles>(a, block / 2, shared, turns);
    }
#endif
}

} // namespace plait::impl::cuda
