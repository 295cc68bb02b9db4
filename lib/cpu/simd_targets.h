// Highway targets of the CPU kernels; every file that includes Highway includes this first, so that
// all agree. Scalable vectors cannot be held in arrays, which the register blocking here needs, so
// Arm runs NEON and RISC-V the portable target.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
