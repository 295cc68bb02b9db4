// How the runtime finds a CPU kernel: by the name of its step.
#pragma once

namespace plait::impl::cpu {

/// `args` is the kernel's own plain struct (<kernel>_args.h), which begins with one pointer per
/// operand. `threads` comes from the plan. Kernels neither allocate nor throw.
using kernel_fn = void (*)(const void *args, int threads);

/// nullptr when no kernel has this name, e.g. "wht.simd".
kernel_fn find_kernel(const char *kernel);

} // namespace plait::impl::cpu
