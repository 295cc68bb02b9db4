// RESERVE as a device sees it: what a measurement finds in one, and whether one is of a problem.
#pragma once

#include "src/desc/problem.h"

#include <vector>

namespace plait::impl {

/// Of a plan that reads a reserve in host memory: throws INVALID_ARGUMENT unless a forward of the
/// same problem wrote it. CUDA finds that out on the device (kda.offsets).
void check_reserve(const problem &of, const void *reserve);

/// A header that CUDA takes and small numbers, whether they are read as bf16 or f32, in a block of
/// at most `most` bytes.
std::vector<std::byte> measuring_reserve(const problem &of, size_t most);

} // namespace plait::impl
