// RESERVE of a backward call of kda: what its forward leaves there.
#pragma once

#include "src/cli/case/bound_plan.h"

namespace plait::cases {

/// Runs the forward of the backward `token`, by the candidate that `ctx` chooses, on the inputs
/// that `where` has, into its reserve. Nothing to do for other tokens.
void fill_reserve(const plait_context *ctx, device &dev, const std::string &token,
                  const placement &where);

/// The canonical token of that forward.
std::string forward_token(const std::string &backward);

} // namespace plait::cases
