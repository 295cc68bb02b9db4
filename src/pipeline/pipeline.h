// A pipeline: the steps of a plan and the map of its workspace.
#pragma once

#include "src/pipeline/ledger.h"
#include "src/pipeline/step.h"

namespace plait::impl {

struct pipeline {
    std::vector<step> steps;
    ledger work;

    int64_t bytes_read() const;
    int64_t bytes_written() const;
    int64_t flops() const;
};

} // namespace plait::impl
