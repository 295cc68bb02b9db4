// What the fast kernels of the backward need at edges: arrays in registers, reached by selection,
// so that the element may be a run-time number.
#pragma once

#include "lib/cuda/conv1d/bwd_access.cuh"

namespace plait::impl::cuda {

enum class conv1d_act { none, silu, asked }; ///< asked: conv1d_bwd_args::silu

template <int N> __device__ __forceinline__ float conv1d_pick(const float (&v)[N], int at) {
    float out = v[0];
#pragma unroll
    for (int i = 1; i < N; ++i) out = i == at ? v[i] : out;
    return out;
}

template <int N> __device__ __forceinline__ void conv1d_put(float (&v)[N], int at, float value) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = i == at ? value : v[i];
}

} // namespace plait::impl::cuda
