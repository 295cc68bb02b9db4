// What a test binary was told: by its build (which backend), by the environment, by its arguments.
#pragma once

#include "tests/support/handles.h"

#include <cstdint>
#include <string>

namespace plait::test {

struct settings {
    plait_backend backend = PLAIT_CPU;
    uint64_t seed = 1;  ///< PLAIT_TEST_SEED
    bool large = false; ///< PLAIT_TEST_LARGE=1: cases of up to about 4 GiB
    bool small = false; ///< --small: few and short problems, for checkers that slow a run down
    bool brief = false; ///< the build has sanitizers: every form, but fewer and shorter problems
    std::string
        skip;     ///< --skip=NAME: a candidate that no test runs, for a checker that misjudges it
    int top = 27; ///< --top=K: rows of up to 2^K where tests/gpu tries every length
    /// --exact-buffers: allocations end where the tensor ends, so that a memory checker sees every
    /// access past it. Otherwise guard bands surround each tensor.
    bool exact_buffers = false;
};

const settings &config();
settings &change_config(); ///< for main alone

/// Does plait_test_* run on a device rather than on the CPU?
inline bool on_device() { return config().backend == PLAIT_CUDA; }

/// One context of the backend under test for the whole run.
plait_context *context();

} // namespace plait::test
