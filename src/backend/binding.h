// From the operands of a step to pointers: what every backend does before a launch.
#pragma once

#include "src/backend/backend.h"

namespace plait::impl {

/// A step whose operands are resolved but for the base pointers of one execute.
class bound_step {
public:
    bound_step(const step &what, const ledger &work);

    /// Room for any argument struct, aligned as the largest member may ask.
    struct blob {
        alignas(64) std::byte bytes[step_args::max_bytes];
    };
    /// Copies the arguments and writes the pointers into their head.
    void fill(blob &out, const prepared::bindings &pointers) const noexcept;

private:
    struct slot {
        operand::source from;
        plait_role role;
        int64_t offset; ///< bytes from the role's pointer, or from the workspace
    };
    step_args args_;
    std::vector<slot> slots_;
};

} // namespace plait::impl
