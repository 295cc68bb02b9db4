// What the cost models of CPU candidates share.
#pragma once

#include "src/planner/operands.h"

namespace plait::impl {

/// Where the cost model's numbers come from: a 3 GHz core.
constexpr double cpu_core_hertz = 3e9;

/// Of one register of the level that the kernels run at.
double cpu_vector_bytes(const std::string &isa);

int cpu_threads(const profile &);

/// Bytes that one read of a tensor touches; an axis of stride 0 is read once.
int64_t touched_bytes(const tensor &);

/// Seconds for so many bytes when `busy` threads move them.
double cpu_traffic_seconds(const profile &, int64_t bytes, double busy);

/// The shorter of memory and arithmetic is hidden for the larger part.
cost cpu_cost(const profile &, int threads, double memory, double compute);

/// "", or why there is nothing to run, or not enough memory.
verdict cpu_fits(const problem &, const profile &, int64_t scratch);

} // namespace plait::impl
