// What the candidates of conv1d share. THE LIST is conv1d_table.cpp.
#pragma once

#include "src/planner/operands.h"

namespace plait::impl {} // namespace plait::impl
