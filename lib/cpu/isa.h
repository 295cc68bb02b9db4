// The instruction levels (Highway targets) that the CPU kernels were compiled for.
#pragma once

namespace plait::impl::cpu {

/// Name of the level that kernels run at on this machine now: the best compiled and supported one
/// that isa_restrict allows.
const char *isa_name();

/// Compiled levels, best first; nullptr ends the list. Not all need run on this machine.
const char *const *isa_compiled();

/// Whether this machine can run a compiled level, whatever isa_restrict says.
bool isa_supported(const char *name);

/// Makes `name` the highest level that kernels use from now on, for the whole process; nullptr
/// lifts the restriction. False, and no change, if `name` is not compiled or not supported.
bool isa_restrict(const char *name);

} // namespace plait::impl::cpu
