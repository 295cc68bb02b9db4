// Copies from global to shared memory that run beside a kernel's arithmetic (cp.async). A thread
// commits its copies in groups and waits for its own groups; what other threads copied is there
// behind their wait and a barrier. The emulation and devices before sm_80 copy at once.
#pragma once

#include "lib/cuda/common/convert.cuh"

#include <cstring>

namespace plait::impl::cuda {

/// An address of shared memory: 32 bits, which the compiler keeps instead of the array's base.
#ifdef __CUDA_ARCH__
using shared_at = uint32_t;
__device__ __forceinline__ shared_at shared_at_of(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
#else
using shared_at = char *;
__device__ inline shared_at shared_at_of(const void *p) {
    return const_cast<char *>(static_cast<const char *>(p));
}
#endif

/// N words of 4 bytes, which lie on a multiple of their size.
template <int N> __device__ __forceinline__ void load_words(shared_at p, uint32_t *out) {
    static_assert(N == 1 || N == 2 || N == 4);
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

/// One T of 2 or 4 bytes.
template <class T> __device__ __forceinline__ void store_shared(shared_at p, T v) {
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

/// 4, 8 or 16 bytes, aligned. 16 do not stay in L1.
template <int Bytes> __device__ __forceinline__ void async_copy(shared_at to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Bytes)
                     : "memory");
    }
#else
    const typename raw_access<Bytes>::type v =
        __ldg(static_cast<const typename raw_access<Bytes>::type *>(from));
    uint32_t words[Bytes / 4];
    memcpy(words, &v, Bytes);
    for (int i = 0; i < Bytes / 4; ++i) store_shared(to + 4 * i, words[i]);
#endif
}

/// The same, or zeros without a read of `from`.
template <int Bytes>
__device__ __forceinline__ void async_copy(shared_at to, const void *from, bool there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const int used = there ? Bytes : 0;
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(used)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(Bytes), "r"(used)
                     : "memory");
    }
#else
    if (there) {
        async_copy<Bytes>(to, from);
    } else {
        for (int i = 0; i < Bytes / 4; ++i) store_shared(to + 4 * i, uint32_t{0});
    }
#endif
}

/// The first `bytes` of 16, zeros behind them; nothing is read where there are none. `whole`: all
/// 16 may be read. Else a part goes through registers, by pairs of bytes: checkers take an
/// asynchronous copy of a part for one of 16 bytes.
__device__ __forceinline__ void async_copy_front(shared_at to, const void *from, int bytes,
                                                 bool whole) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (whole || bytes == 0 || bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(bytes)
                     : "memory");
        return;
    }
#else
    if (whole && bytes > 0) { // reads 16 as well, so that an emulation sees them
        async_copy<16>(to, from);
        for (int i = bytes; i < 16; i += 2) store_shared(to + i, uint16_t{0});
        return;
    }
#endif
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (2 * i < bytes)
            words[i / 2] |= static_cast<uint32_t>(__ldg(static_cast<const uint16_t *>(from) + i))
                            << (16 * (i % 2));
#pragma unroll
    for (int i = 0; i < 4; ++i) store_shared(to + 4 * i, words[i]);
}

/// The same for threads that are `asked`, without a branch.
template <int Bytes>
__device__ __forceinline__ void async_copy(shared_at to, const void *from, bool there, bool asked) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    static_assert(Bytes == 16);
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\t"
                 "@p cp.async.cg.shared.global [%0], [%1], 16, %3;\n\t}" ::"r"(to),
                 "l"(from), "r"(static_cast<int>(asked)), "r"(there ? 16 : 0)
                 : "memory");
#else
    if (asked) async_copy<Bytes>(to, from, there);
#endif
}

/// The copies since the last commit are a group.
__device__ __forceinline__ void async_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// All but the last `Left` groups of the thread have arrived.
template <int Left> __device__ __forceinline__ void async_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}

} // namespace plait::impl::cuda
