// The environment variables of plait, all of them: PLAIT_LOG, PLAIT_LOG_FILE (log.cpp),
// PLAIT_WISDOM, PLAIT_CANDIDATES, PLAIT_CPU_ISA, PLAIT_THREADS (when a context is created).
#pragma once

#include <string>

namespace plait::impl {

/// Empty when unset.
std::string environment(const char *name);

} // namespace plait::impl
