// What the handles of plait.h point to. `const` handles are shared by threads without a lock; the
// wisdom in a context locks itself.
#pragma once

#include "src/backend/backend.h"
#include "src/desc/desc.h"
#include "src/planner/planner.h"

#include <atomic>
#include <memory>

namespace plait::impl {

/// Shared by a context, its plans and their execs: plans stay valid after the context is gone.
struct context_state {
    plait_backend kind;
    profile facts;
    std::shared_ptr<const backend> device; ///< null for a context from a profile
    std::shared_ptr<allocator> memory;     ///< null for a context from a profile
    std::string pattern;                   ///< PLAIT_CANDIDATES
    wisdom learned;
};

} // namespace plait::impl

struct plait_context {
    std::shared_ptr<plait::impl::context_state> state;
};

struct plait_desc {
    std::unique_ptr<plait::impl::descriptor> body;
};

struct plait_pref {
    plait::impl::preferences body;
};

struct plait_plan {
    std::shared_ptr<plait::impl::context_state> context;
    plait::impl::problem problem;
    plait::impl::profile facts; ///< as it was when the plan was made
    plait_rigor rigor;
    plait::impl::choice choice;
    std::shared_ptr<const plait::impl::prepared> ready; ///< null when there are no steps
    mutable std::atomic<int> owners{1};
};

struct plait_exec {
    const plait_plan *plan; ///< owns one count
    plait_stream stream;
    void *work;
    size_t work_bytes;
};
