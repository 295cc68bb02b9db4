// Programmatic dependent launch (step::programmatic): a kernel may start while the one before it in
// the stream still runs. Kernels that are launched so, and only on compute capability 9.0 and up:
//
// - Every thread calls wait_for_predecessor() before its first access to global memory, reads and
//   writes, of tensors and workspace alike. Behind it the kernel before is complete and its writes
//   are visible. Nothing may be read ahead, weights neither: the caller's kernel before this one
//   may write anything. Nor may anything be written: it may still read what this one overwrites.
// - No thread leaves before it has called it. A kernel whose threads did would be complete while
//   the one before still runs, and the next, which waits for this one alone, would start too soon.
//   With it, by induction, all kernels before are complete.
// - start_successor() lets the next kernel start when all blocks have called it or ended: it claims
//   nothing of what this kernel has written, so that it stands at the start. The next kernel's
//   blocks then take the places that this one leaves, and wait there without an instruction.
//
// A kernel that shares no memory with the one before it but what both read (step::beside) calls
// wait_for_predecessor() at its end instead: the two run at once, and all that came before the
// first is complete, because that one is not launched early.
//
// Before the wait: arguments, indices, shared memory. tests/emulate starts such kernels up to the
// wait with pointers at a wall.
#pragma once

#include <cstdint>

namespace plait::impl::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#    define PLAIT_PREDECESSOR_PTX
#endif

/// Returns blockIdx.x: an address made of it cannot be read earlier, as the compiler might do with
/// what it takes for constant (__ldg), across any barrier.
__device__ __forceinline__ uint32_t wait_for_predecessor() {
#if defined(PLAIT_PREDECESSOR_PTX)
    uint32_t block;
    asm volatile("griddepcontrol.wait;\n\tmov.u32 %0, %%ctaid.x;" : "=r"(block)::"memory");
    return block;
#else
#    ifndef __CUDACC__
    emulation::wait_for_predecessor();
#    endif
    return blockIdx.x;
#endif
}

__device__ __forceinline__ void start_successor() {
#if defined(PLAIT_PREDECESSOR_PTX)
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace plait::impl::cuda
