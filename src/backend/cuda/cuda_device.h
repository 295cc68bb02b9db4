// The parts of the CUDA backend, each in its own file.
#pragma once

#include "src/backend/backend.h"
#include "src/planner/profile.h"

namespace plait::impl::cuda {

/// Reads attributes only: no context is made on the device.
profile describe(int device);

/// Loads every kernel of the pipeline on the device.
std::shared_ptr<const prepared> prepare(const pipeline &what, int device);

/// Stream-ordered from the device's default pool; cudaMalloc where the device has no pools.
std::shared_ptr<allocator> default_memory(int device);

double measure(const pipeline &what, const problem &of, allocator &memory, double budget,
               int device);

} // namespace plait::impl::cuda
