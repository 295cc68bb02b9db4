// Part of conv1d.bwd_state, which begins in bwd_finish.cuh:
// x and dy of one type and at most Taps taps, behind conv1d.bwd_bct:
// dstate_in[n,c,i] = sum_k w[k] g[t], t = p + K-1-k, p = i - entries, plus what the gradient of the
// last state passes on. A thread an entry, which computes the g of the first K-1 tokens again; x,
// dy and taps are loaded before the first use: three trips to memory, which is the bound. f32, one
// rounding. bwd_finish.cuh has the kernel of every other problem.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_window.cuh"

namespace plait::impl::cuda {

template <scalar S, int Taps>
__global__ void __launch_bounds__(conv1d_bwd_threads, Taps <= 4 ? 3 : 1)
    conv1d_bwd_state_near(const __grid_constant__ conv1d_bwd_args a) {
    const int64_t elements = a.sequences * a.channels * a.entries;
    const int64_t step = static_cast<int64_t>(gridDim.x) * conv1d_bwd_threads;
    start_successor();
    for (int64_t e =
             static_cast<int64_t>(wait_for_predecessor()) * conv1d_bwd_threads + threadIdx.x;
         e < elements; e += step) {
        const int64_t row = e / a.entries, n = row / a.channels;
        conv1d_put_state<S, Taps>(a, n, e - row * a.entries, row - n * a.channels);
    }
}

} // namespace plait::impl::cuda
