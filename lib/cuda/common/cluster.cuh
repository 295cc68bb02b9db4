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

/// The same for threads that have only read: it does not wait for their writes, which would
/// include those to global memory.
__device__ __forceinline__ void cluster_arrive_relaxed() {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
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

__device__ __forceinline__ uint4 unit_of(const float *v) {
    return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                      __float_as_uint(v[3]));
}
__device__ __forceinline__ uint4 unit_of(const double *v) {
    return make_uint4(
        static_cast<uint32_t>(__double2loint(v[0])), static_cast<uint32_t>(__double2hiint(v[0])),
        static_cast<uint32_t>(__double2loint(v[1])), static_cast<uint32_t>(__double2hiint(v[1])));
}

/// An mbarrier in shared memory, 8 bytes: a phase is complete when that many threads have called
/// expect or arrive and the bytes that they expect have come. Phases have parity 0, 1, 0, ...
__device__ __forceinline__ void counter_init(uint64_t *counter, int arrivals = 1) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(counter))),
                 "r"(arrivals)
                 : "memory");
#elif !defined(__CUDACC__)
    emulation::counter_init(counter, arrivals);
#endif
}

/// What this thread has read and written before is done for all that wait.
__device__ __forceinline__ void counter_arrive(uint64_t *counter) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(counter)))
                 : "memory");
#elif !defined(__CUDACC__)
    emulation::counter_expect(counter, 0);
#endif
}

__device__ __forceinline__ void counter_expect(uint64_t *counter, uint32_t bytes) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(counter))),
                 "r"(bytes)
                 : "memory");
#elif !defined(__CUDACC__)
    emulation::counter_expect(counter, bytes);
#endif
}

/// Until the phase of this parity is complete.
__device__ __forceinline__ void counter_wait(uint64_t *counter, uint32_t parity) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile(
        "{.reg .pred done;\n\t"
        "again_%=:\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t"
        "@!done bra again_%=;}" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(counter))),
        "r"(parity)
        : "memory");
#elif !defined(__CUDACC__)
    emulation::counter_wait(counter, parity);
#endif
}

/// The same for what threads of this block, or bulk copies to it, have written: the others' writes
/// to global memory may stay behind, so that L1 is not emptied.
__device__ __forceinline__ void counter_wait_block(uint64_t *counter, uint32_t parity) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile(
        "{.reg .pred done;\n\t"
        "again_%=:\n\t"
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n\t"
        "@!done bra again_%=;}" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(counter))),
        "r"(parity)
        : "memory");
#elif !defined(__CUDACC__)
    emulation::counter_wait(counter, parity);
#endif
}

/// A barrier of some warps of a block, `threads` in all. `id`: 1 to 15, 0 is __syncthreads.
__device__ __forceinline__ void part_barrier(int id, int threads) {
#if defined(__CUDACC__)
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
    emulation::part_barrier(id, threads);
#endif
}

/// Arrives at the counter that block `rank` has where this one has `counter`: what this thread has
/// read and written before is done for all of the cluster that wait.
__device__ __forceinline__ void cluster_arrive_at(uint64_t *counter, uint32_t rank) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("{.reg .b32 there;\n\t"
                 "mapa.shared::cluster.u32 there, %0, %1;\n\t"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(counter))),
                 "r"(rank)
                 : "memory");
#elif !defined(__CUDACC__)
    emulation::counter_expect(cluster_shared(counter, rank), 0);
#endif
}

/// Writes 16 bytes, four floats or two doubles, to where block `rank` has what this one has
/// `offset` (a constant) behind `own`, and tells the counter that it has where this one has
/// `counter`.
template <class T>
__device__ __forceinline__ void cluster_send(T *own, int offset, uint32_t rank, const T *values,
                                             uint64_t *counter) {
    const uint4 unit = unit_of(values);
#if defined(PLAIT_CLUSTER_PTX)
    uint32_t there, counts;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(own))), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(counts)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(counter))), "r"(rank));
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(there + offset * static_cast<int>(sizeof(T))),
        "r"(unit.x), "r"(unit.y), "r"(unit.z), "r"(unit.w), "r"(counts)
        : "memory");
#elif !defined(__CUDACC__)
    __stcs(reinterpret_cast<uint4 *>(cluster_shared(own + offset, rank)), unit);
    emulation::counter_come(cluster_shared(counter, rank), 16);
#endif
}

/// Copies global to shared memory beside the threads and tells the counter; 16-byte addresses and
/// sizes. What threads did with `to` before must be behind a barrier, and behind bulk_fence where
/// they wrote.
__device__ __forceinline__ void bulk_load(void *to, const void *from, uint32_t bytes,
                                          uint64_t *counter) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
        "l"(__cvta_generic_to_global(from)), "r"(bytes),
        "r"(static_cast<uint32_t>(__cvta_generic_to_shared(counter)))
        : "memory");
#elif !defined(__CUDACC__)
    emulation::bulk_load(to, from, bytes, counter);
#endif
}

/// What this thread wrote to shared memory comes before bulk copies that follow a barrier.
__device__ __forceinline__ void bulk_fence() {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Asks L2 for `bytes` from p on: both multiples of 16.
__device__ __forceinline__ void prefetch_l2_bulk(const void *p, uint32_t bytes) {
#if defined(PLAIT_CLUSTER_PTX)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
                 "r"(bytes));
#else
    static_cast<void>(p);
    static_cast<void>(bytes);
#endif
}

} // namespace plait::impl::cuda
