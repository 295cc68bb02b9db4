// Refuse work that does not fit before any of it is allocated.
#pragma once

#include "src/cli/case/device.h"
#include "src/cli/case/handle.h"

namespace plait::cli {

inline void need_memory(const cases::device &dev, const std::string &token, size_t bytes) {
    const size_t free = dev.free_bytes();
    if (bytes > free)
        throw cases::failure(PLAIT_ERR_OUT_OF_MEMORY,
                             token + ": needs " +
                                 cases::readable_bytes(static_cast<double>(bytes)) + " of " +
                                 (dev.host_memory() ? "host" : "device") + " memory, " +
                                 cases::readable_bytes(static_cast<double>(free)) + " are free");
}

} // namespace plait::cli
