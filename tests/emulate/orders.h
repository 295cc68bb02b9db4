// The orders in which a test runs a kernel.
#pragma once

#include "tests/emulate/emulator.h"

namespace plait::test {

/// All must give the same bits. Kernels that walk over tiles do so in two of them.
inline constexpr emulation::settings walking_orders[] = {
    {emulation::order::forward, 1, 0},
    {emulation::order::backward, 1, 1},
    {emulation::order::random, 1, 2},
};

} // namespace plait::test
