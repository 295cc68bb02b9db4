// What the candidates of every family need to make steps.
#pragma once

#include "src/planner/candidate.h"

namespace plait::impl {

operand role_operand(plait_role role, bool written, int64_t offset = 0);
operand piece_operand(int piece, bool written, int64_t offset = 0);

/// No process reaches more bytes, and none lives to see more products of a convolution. Up to here
/// the sums of the cost models fit 64 bits.
constexpr int64_t most_bytes = int64_t{1} << 56;
constexpr int64_t most_products = int64_t{1} << 58;

/// A sentence when a tensor or the arithmetic is beyond these, else "".
verdict fits_counts(const problem &);

/// Bytes of all tensors, an alias counted once, when they are beyond the device's memory together
/// with `work`: a sentence, else "".
verdict fits_memory(const problem &, const profile &, int64_t work);

} // namespace plait::impl
