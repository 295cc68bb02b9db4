// What moves through the rings of conv1d.bwd_bct: words of shared memory, and asynchronous copies
// to it. The emulation copies at once.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/conv1d/bwd_bct_layout.h"

namespace plait::impl::cuda {

/// An address of shared memory: 32 bits, which the compiler keeps instead of the array's base.
#ifdef __CUDA_ARCH__
using conv1d_shared = uint32_t;
__device__ __forceinline__ conv1d_shared conv1d_shared_of(char *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
#else
using conv1d_shared = char *;
__device__ __forceinline__ conv1d_shared conv1d_shared_of(char *p) { return p; }
#endif

template <int N> __device__ __forceinline__ void conv1d_load_words(conv1d_shared p, uint32_t *out) {
#ifdef __CUDA_ARCH__
    if constexpr (N == 1) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out[0]) : "r"(p) : "memory");
    } else if constexpr (N == 2) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                     : "=r"(out[0]), "=r"(out[1])
                     : "r"(p)
                     : "memory");
    } else {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(p)
                     : "memory");
    }
#else
    for (int i = 0; i < N; ++i) out[i] = reinterpret_cast<const uint32_t *>(p)[i];
#endif
}

/// A word of T.
template <class T> __device__ __forceinline__ void conv1d_bct_put(conv1d_shared p, T v) {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(T) == 2) {
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(p), "h"(v) : "memory");
    } else {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(p), "r"(v) : "memory");
    }
#else
    *reinterpret_cast<T *>(p) = v;
#endif
}

/// Bytes, 8 or 16, on their way to shared memory.
template <int Bytes>
__device__ __forceinline__ void conv1d_bct_copy(conv1d_shared to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
    }
#else
    for (int i = 0; i < Bytes; i += 8) {
        const uint2 v = __ldg(reinterpret_cast<const uint2 *>(static_cast<const char *>(from) + i));
        conv1d_bct_put(to + i, v.x);
        conv1d_bct_put(to + i + 4, v.y);
    }
#endif
}

/// 16 bytes for lanes that are `asked`, without a branch; 0 unless `there`.
__device__ __forceinline__ void conv1d_bct_copy(conv1d_shared to, const void *from, bool asked,
                                                bool there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\t"
                 "@p cp.async.cg.shared.global [%0], [%1], 16, %3;\n\t}" ::"r"(to),
                 "l"(from), "r"(static_cast<int>(asked)), "r"(there ? 16 : 0)
                 : "memory");
#else
    if (!asked) return;
    if (there) {
        conv1d_bct_copy<16>(to, from);
    } else {
        for (int i = 0; i < 16; i += 4) conv1d_bct_put(to + i, uint32_t{0});
    }
#endif
}

__device__ __forceinline__ void conv1d_bct_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// All but the last `Left` groups of the lane have arrived.
template <int Left> __device__ __forceinline__ void conv1d_bct_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}

} // namespace plait::impl::cuda
