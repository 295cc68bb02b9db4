// conv1d.bwd_marks: which tokens are at a border of their sequence, for conv1d.bwd_bct, and which
// are of none: bwd_marks_layout.h. A warp a word, a lane a token. Bytes: ids, and 1/4 a token.
// Latency of two trips to memory.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_access.cuh"
#include "lib/cuda/conv1d/bwd_marks_layout.h"

namespace plait::impl::cuda {

/// Whether all taps of a live token meet what they meet in a row that is one sequence without a
/// state.
__device__ __forceinline__ bool conv1d_bwd_inner(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                                 int64_t b, int64_t t) {
    bool inner = t - s.begin >= a.width - 1 || (s.begin == 0 && !a.state_in);
    if (a.seq_idx)
        for (int j = 1; j < a.width && j <= t; ++j)
            inner = inner && conv1d_id(a, b, t - j) == conv1d_id(a, b, t);
    return inner;
}

/// conv1d.bwd_marks: a warp a word, a lane a token.
__global__ void __launch_bounds__(conv1d_bwd_threads)
    conv1d_bwd_marks(const __grid_constant__ conv1d_bwd_args a) {
    constexpr int warps = conv1d_bwd_threads / 32;
    const int64_t words = conv1d_border_words(a.length), all = a.batch * words;
    const int64_t step = static_cast<int64_t>(gridDim.x) * warps;
    start_successor();
    for (int64_t word = static_cast<int64_t>(wait_for_predecessor()) * warps + threadIdx.x / 32;
         word < all; word += step) {
        const int64_t b = word / words, t = ((word - b * words) << 5) + threadIdx.x % 32;
        bool border = false, dead = false;
        if (t < a.length) {
            const conv1d_sequence s = conv1d_sequence_of(a, b, t);
            dead = !conv1d_live(a, s, b, t);
            border = dead || !conv1d_bwd_inner(a, s, b, t);
        }
        const uint32_t borders = __ballot_sync(0xffffffffu, static_cast<int>(border));
        const uint32_t deads = __ballot_sync(0xffffffffu, static_cast<int>(dead));
        if (threadIdx.x % 32 == 0)
            static_cast<uint2 *>(a.marks_out)[word] = make_uint2(borders, deads);
    }
}

} // namespace plait::impl::cuda
