// Copies from global to shared memory that a thread starts and does not wait for, 16 bytes each.
// Before compute capability 8.0, and without nvcc, the thread copies at once.
#pragma once

#include "lib/cuda/common/convert.cuh"

namespace plait::impl::cuda {

__device__ __forceinline__ void async_copy_16(char *to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
#else
    *reinterpret_cast<uint4 *>(to) = __ldg(static_cast<const uint4 *>(from));
#endif
}

/// All copies of this thread so far have arrived, seen by itself: others need a barrier behind it.
__device__ __forceinline__ void async_copies_arrived() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

} // namespace plait::impl::cuda
