// How the runtime finds a CUDA kernel: by the name of its step and the variant that was compiled.
// Host code without CUDA types, so that the backend alone includes the CUDA runtime.
#pragma once

namespace plait::impl::cuda {

/// A kernel is `__global__ void kernel(const __grid_constant__ <kernel>_args args)`; the plain
/// struct begins with one pointer per operand, which execute fills in.
struct kernel_entry {
    const char *kernel;  ///< "wht.block"
    const char *variant; ///< "f32.f32.n15.v4"
    const void *func;    ///< for cudaLaunchKernel
};

/// nullptr when this build holds no such kernel.
const void *find_kernel(const char *kernel, const char *variant);

} // namespace plait::impl::cuda
