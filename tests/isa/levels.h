// Runs a check at every compiled instruction level that this machine has.
#pragma once

#include <functional>
#include <string>

namespace isa_test {

/// Calls `body` with the name of each level while kernels are restricted to it; lifts it after.
void at_every_level(const std::function<void(const std::string &)> &body);

} // namespace isa_test
