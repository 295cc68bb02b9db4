// What the candidates of every family need to make steps.
#pragma once

#include "src/planner/candidate.h"

namespace plait::impl {

operand role_operand(plait_role role, bool written, int64_t offset = 0);
operand piece_operand(int piece, bool written, int64_t offset = 0);

/// Bytes of all tensors, an alias counted once, when they are beyond the device's memory together
/// with `work`: a sentence, else "".
verdict fits_memory(const problem &, const profile &, int64_t work);

} // namespace plait::impl
