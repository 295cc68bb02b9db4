// What the handles of plait.h point to. `const` handles are shared by threads without a lock; the
// wisdom in a context locks itself. Plans copy what they need of a context, so that it can go
// away, or change, without them.
#pragma once

#include "src/api/arguments.h"
#include "src/backend/backend.h"
#include "src/desc/desc.h"
#include "src/planner/planner.h"

#include <atomic>
#include <memory>

struct plait_context {
    plait::impl::profile facts;
    std::shared_ptr<const plait::impl::backend> device; ///< null for a context from a profile
    std::shared_ptr<plait::impl::allocator> memory;     ///< likewise
    std::string pattern;                                ///< PLAIT_CANDIDATES
    mutable plait::impl::wisdom learned;
};

struct plait_desc {
    std::unique_ptr<plait::impl::descriptor> body;
};

struct plait_pref {
    plait::impl::preferences body;
};

struct plait_plan {
    std::shared_ptr<const plait::impl::backend> device; ///< null: from a profile, cannot run
    std::shared_ptr<plait::impl::allocator> memory;     ///< for execs
    plait::impl::profile facts;                         ///< as it was when the plan was made
    plait::impl::problem problem;
    plait_rigor rigor;
    plait::impl::choice choice;
    plait::impl::argument_rules rules;
    std::shared_ptr<const plait::impl::prepared> ready; ///< null when there are no steps
    mutable std::atomic<int> owners{1};

    size_t work_bytes() const { return static_cast<size_t>(choice.steps.work.bytes()); }
};

struct plait_exec {
    plait_plan *plan; ///< owns one count
    plait_stream stream;
    void *work;
};

namespace plait::impl {

// The bodies of C functions that others need too. They throw.
plait_context *make_context(plait_backend backend, int device);
plait_plan *make_plan(const plait_context &ctx, const descriptor &desc, const preferences *pref);
void run_plan(const plait_plan &plan, const plait_arg *args, int nargs, void *workspace,
              size_t workspace_bytes, plait_stream stream);
void load_wisdom_file(const plait_context &ctx, const char *path, int *loaded, int *skipped);

/// The allocator of a context or plan; NO_DEVICE when it came from a profile.
allocator &memory_of(const std::shared_ptr<allocator> &memory);

} // namespace plait::impl
