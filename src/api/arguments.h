// What execute demands of its pointers, worked out when the plan is made, so that the checks cost
// no allocation and no division of labour with the kernels.
#pragma once

#include "src/backend/backend.h"

namespace plait::impl {

class argument_rules {
public:
    argument_rules() = default;
    /// `needed` bytes of workspace; a plan without steps takes NULL for everything.
    argument_rules(const std::vector<tensor> &tensors, int64_t needed, bool no_steps);

    /// Throws before anything is launched; fills in the pointers.
    void bind(const plait_arg *args, int nargs, void *workspace, size_t workspace_bytes,
              prepared::bindings &out) const;

private:
    struct axis {
        int64_t extent;
        int64_t stride; ///< bytes, positive
    };
    struct rule {
        plait_role role;
        plait_role alias;
        bool written;
        uintptr_t alignment;
        uintptr_t bytes;        ///< of the range from the first to the last element
        int64_t run;            ///< bytes that lie behind one another
        std::vector<axis> axes; ///< of the runs, longest stride first
    };
    const rule *find(int64_t role) const;
    void bind_roles(const plait_arg *args, int nargs, prepared::bindings &out) const;
    void check_pair(const rule &a, const void *pa, const rule &b, const void *pb) const;
    void check_workspace(const void *workspace, size_t bytes, const prepared::bindings &) const;

    static bool meet(const rule &a, uintptr_t pa, const rule &b, uintptr_t pb);

    std::vector<rule> rules_;
    uintptr_t needed_ = 0;
    bool no_steps_ = true;
};

} // namespace plait::impl
