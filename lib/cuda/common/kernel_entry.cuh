// Makes the entries of kernel tables.
#pragma once

#include "lib/cuda/kernel_table.h"

namespace plait::impl::cuda {

template <class Kernel> struct kernel_args;
template <class Args> struct kernel_args<void (*)(Args)> { using type = Args; };

/// `kernel` and `variant` must outlive the table. Without nvcc (tests/emulate) `func` runs one
/// thread of the kernel on the arguments it is given: void(const void *).
template <auto Kernel> kernel_entry make_kernel_entry(const char *kernel, const char *variant) {
#ifdef __CUDACC__
    return {kernel, variant, reinterpret_cast<const void *>(Kernel)};
#else
    using args = typename kernel_args<decltype(Kernel)>::type;
    void (*const thread)(const void *) = [](const void *p) {
        Kernel(*static_cast<const args *>(p));
    };
    return {kernel, variant, reinterpret_cast<const void *>(thread)};
#endif
}

} // namespace plait::impl::cuda
