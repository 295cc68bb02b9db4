// Blocks of a cluster: who they are, their barrier in two halves, and each other's shared memory.
// Needs compute capability 9.0; kernels have an empty body below it. Without nvcc (tests/emulate)
// the emulator's blocks of a cluster.
#pragma once

#include <cstdint>

namespace plait::impl::cuda {

#if defined(__CUDACC__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#    define PLAIT_CLUSTER_PTX
#endif

/// The first half of the barrier: what this thread has read and written is done for all others.
__device__ __forceinline__ void cluster_arrive() {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#elif !defined(__CUDACC__)
    emulation::cluster_arrive();
#endif
}

/// The second half: all threads of the cluster have arrived.
__device__ __forceinline__ void cluster_wait() {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#elif !defined(__CUDACC__)
    emulation::cluster_wait();
#endif
}

/// Which block of its cluster this one is.
__device__ __forceinline__ uint32_t cluster_rank() {
#if defined(PLAIT_CLUSTER_PTX)
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#elif !defined(__CUDACC__)
    return emulation::cluster_rank();
#else
    return 0;
#endif
}

#ifndef __CUDACC__
/// Where another block has what this one has at `own`.
template <class T> T *cluster_shared(T *own, uint32_t rank) {
    return reinterpret_cast<T *>(emulation::cluster_shared(own, rank));
}
#endif

} // namespace plait::impl::cuda
