// conv1d.fwd_any: y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x] for every well-formed problem: any
// strides, types, width, states, slots, packed sequences, ids. A thread per output, along channels
// or time, whichever is contiguous; x is read width times, from L1. Bound: about 40 issue slots a
// tap and 300 for an index in 64 bits, ten times the copy of 2 elements at width 4.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_element.cuh"

namespace plait::impl::cuda {

template <class T>
__global__ void __launch_bounds__(conv1d_fwd_any_threads)
    conv1d_fwd_any(const __grid_constant__ conv1d_fwd_args a) {
    start_successor();
    const uint32_t first = wait_for_predecessor();
    const int64_t all = a.batch * a.channels * a.length;
    const int64_t ahead = static_cast<int64_t>(gridDim.x) * conv1d_fwd_any_threads;
    for (int64_t i = static_cast<int64_t>(first) * conv1d_fwd_any_threads + threadIdx.x; i < all;
         i += ahead) {
        const conv1d_fwd_output o = conv1d_fwd_output_of(a, i);
        conv1d_write_output<T>(a, conv1d_locate(a, o.row, o.time), o.row, o.channel, o.time);
    }
}

} // namespace plait::impl::cuda
