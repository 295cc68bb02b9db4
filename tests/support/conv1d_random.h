// Random legal convolutions.
#pragma once

#include "tests/support/conv1d_call.h"

namespace plait::test {

/// Every feature, type, layout and direction; about `work` products at most where the length and
/// the width leave the choice.
conv1d_call random_conv1d(rng &random, int64_t work);

/// The tensors of a call that hold floating values, as execute takes them.
std::vector<plait_role> floating_roles(const conv1d_call &call);

/// The same call as BCT or BTC, packed (pitch 0) or with `pitch` elements between rows, all tensors
/// `shift` elements off their alignment.
conv1d_call laid_out(conv1d_call call, plait_layout layout, int64_t pitch, int64_t shift);

} // namespace plait::test
