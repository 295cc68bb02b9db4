// Facts about the machine that this process runs on.
#pragma once

#include <cstdint>
#include <string>

namespace plait::impl::cpu {

/// Cores that the scheduler gives this process: its affinity, cut by a container's CPU quota.
int cores();
std::string model_name(); ///< one line; "unknown CPU" if the system does not tell
int64_t memory_bytes();

struct caches {
    int64_t l1; ///< data, per core
    int64_t l2; ///< per core
    int64_t l3; ///< whole; 0 when there is none
};
caches cache_sizes();

} // namespace plait::impl::cpu
