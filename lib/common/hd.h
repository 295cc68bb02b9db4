// Marks functions that host code and kernels share. nvcc refuses an unmarked constexpr function in
// a kernel unless an experimental flag is given; a plain C++ compiler must not see the attributes.
#pragma once

#if defined(__CUDACC__)
#    define PLAIT_HD __host__ __device__
#else
#    define PLAIT_HD
#endif
