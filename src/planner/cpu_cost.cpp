#include "src/planner/cpu_cost.h"

#include <algorithm>

namespace plait::impl {

namespace {

/// Cores that saturate the memory: one thread reaches this part of the machine's copy bandwidth.
constexpr int cores_of_bandwidth = 8;
/// Part of the shorter of memory and arithmetic that the longer does not hide.
constexpr double not_hidden = 0.35;

} // namespace

double cpu_vector_bytes(const std::string &isa) {
    if (isa.rfind("AVX3", 0) == 0) return 64;
    if (isa.rfind("AVX2", 0) == 0 || isa.rfind("SVE_256", 0) == 0) return 32;
    if (isa == "SCALAR") return 4;
    return 16;
}

int cpu_threads(const profile &device) { return std::max(1, device.threads); }

int64_t touched_bytes(const tensor &t) {
    int64_t elements = 1;
    for (size_t a = 0; a < t.extents.size(); ++a)
        if (t.strides[a] != 0 || t.extents[a] == 0) elements *= t.extents[a];
    return elements * scalar_bytes(static_cast<scalar>(t.dtype));
}

double cpu_traffic_seconds(const profile &device, int64_t bytes, double busy) {
    const double enough = std::clamp(device.cores, 1, cores_of_bandwidth);
    return static_cast<double>(bytes) / (device.copy_bandwidth * std::min(1.0, busy / enough));
}

cost cpu_cost(const profile &device, int threads, double memory, double compute) {
    cost c;
    c.memory_seconds = memory;
    c.compute_seconds = compute;
    c.launch_seconds = threads > 1 ? device.launch_seconds : 0;
    c.seconds =
        c.launch_seconds + std::max(memory, compute) + not_hidden * std::min(memory, compute);
    return c;
}

verdict cpu_fits(const problem &problem, const profile &device, int64_t scratch) {
    if (problem.empty) return "the problem is empty: there is nothing to run";
    if (scratch > int64_t{1} << 60) return "its scratch has more bytes than 64 bits count";
    return fits_memory(problem, device, scratch);
}

} // namespace plait::impl
