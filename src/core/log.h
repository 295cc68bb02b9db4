// The log: silent unless PLAIT_LOG or plait_set_log asks. One complete line per call.
#pragma once

#include <plait/plait.h>
#include <string>

namespace plait::impl {

/// Cheap enough for execute: one atomic load.
bool log_wants(int bit) noexcept;
void log_line(int bit, const std::string &line) noexcept;
/// fn == nullptr goes back to what PLAIT_LOG and PLAIT_LOG_FILE say.
void set_log(int bits, plait_log_fn fn, void *user);

} // namespace plait::impl
