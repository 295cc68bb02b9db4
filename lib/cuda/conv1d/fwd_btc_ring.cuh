// conv1d.fwd_btc's ring: tokens on their way from global to shared memory. A thread reads only what
// it copied itself, so that no barrier is needed.
#pragma once

#include "lib/cuda/common/convert.cuh"

namespace plait::impl::cuda {

template <int Bytes> __device__ __forceinline__ void conv1d_ring_copy(char *to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from),
                     "n"(Bytes)
                     : "memory");
    }
#else
    using access = typename raw_access<Bytes>::type;
    *reinterpret_cast<access *>(to) = __ldg(static_cast<const access *>(from));
#endif
}

__device__ __forceinline__ void conv1d_ring_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// All but the last `Left` parts have arrived.
template <int Left> __device__ __forceinline__ void conv1d_ring_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}

} // namespace plait::impl::cuda
