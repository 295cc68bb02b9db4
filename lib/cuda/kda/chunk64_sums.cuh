// kda.chunk64_sums: gradients of A_LOG and DT_BIAS, sums of what kda.chunk64_grad left of each
// chunk. A block has 32 columns of a value head; its warps take chunk slots in turn and add in f64,
// then one adds the warps in their order: the bits depend on nothing but the order of chunks.
// Traffic: (keys + 1) * 4 bytes of a chunk and value head. Bound: latency of chunk slots / 128
// rounds of four loads.
#pragma once

#include "lib/cuda/kda/chunk64_grad_layout.h"
#include "lib/cuda/kda/common.cuh"

namespace plait::impl::cuda {

__global__ void __launch_bounds__(kda64_sums_threads)
    kda_chunk64_sums(const __grid_constant__ kda_chunk64_sums_args a) {
    extern __shared__ __align__(16) char shared[];
    auto *words = reinterpret_cast<double *>(shared);
    const kda_problem &p = a.p;
    constexpr int warps = kda64_sums_threads / 32, batch = 4; // loads on their way
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int64_t groups = kda_ceil_div(a.columns, 32), count = kda_chunk_slots(p, kda64_rows);
    for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const int64_t hv = block / groups, column = block % groups * 32 + lane;
        double sum = 0;
        for (int64_t first = warp; first < count; first += warps * batch) {
            float x[batch];
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const int64_t slot = first + i * warps;
                x[i] = 0;
                if (slot < count && column < a.columns &&
                    kda_chunk_of(p, a.table, a.chunks, a.slots, slot, kda64_rows).rows > 0)
                    x[i] = a.partials[(slot * p.value_heads + hv) * a.columns + column];
            }
#pragma unroll
            for (int i = 0; i < batch; ++i) sum += x[i];
        }
        __syncthreads(); // the words before are read
        words[threadIdx.x] = sum;
        __syncthreads(); // the words are written
        if (warp != 0 || column >= a.columns) continue;
        for (int w = 1; w < warps; ++w) sum += words[32 * w + lane];
        if (column == a.columns - 1) {
            if (a.da_log != nullptr)
                kda_store(a.da_log, hv * p.da_log.h, p.da_log.type, static_cast<float>(sum));
        } else if (a.ddt_bias != nullptr && column < p.dim_k) {
            kda_store(a.ddt_bias, hv * p.ddt_bias.h + column * p.ddt_bias.c, p.ddt_bias.type,
                      static_cast<float>(sum));
        }
    }
}

} // namespace plait::impl::cuda
