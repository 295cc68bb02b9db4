// wht.l2_reset: zeroes the counters of wht.l2, whose memory may hold anything before: 4 bytes each.
// A step of its own, since no block of wht.l2 could tell an old counter from a new one.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/l2_layout.h"

namespace plait::impl::cuda {

__global__ static void __launch_bounds__(wht_l2_reset_threads)
    wht_l2_reset(const __grid_constant__ wht_l2_reset_args args) {
    const int64_t first = static_cast<int64_t>(blockIdx.x) * wht_l2_reset_threads + threadIdx.x;
    const int64_t step = static_cast<int64_t>(gridDim.x) * wht_l2_reset_threads;
    for (int64_t i = first; i < args.count; i += step) args.counters[i] = 0;
}

kernel_list list_wht_l2_reset() {
    static const kernel_entry entries[] = {make_kernel_entry<&wht_l2_reset>("wht.l2_reset", "u32")};
    return {entries, 1};
}

} // namespace plait::impl::cuda
