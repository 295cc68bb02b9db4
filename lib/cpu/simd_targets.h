// Highway targets of the CPU kernels; every file that includes Highway includes this first, so that
// all agree. Scalable vectors cannot be held in arrays, which the register blocking here needs, so
// Arm runs NEON and RISC-V the portable target.
#pragma once

// Sanitizers make the compiler ten times as slow; fewer levels find the same errors.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define PLAIT_FEWER_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#    define PLAIT_FEWER_TARGETS 0
#endif

#define HWY_DISABLED_TARGETS                                                                       \
    (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | PLAIT_FEWER_TARGETS)
