// The commands of the program. Each adds itself to the parser; its function runs after parsing and
// returns the exit code, or throws cases::failure.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>

namespace plait::cli {

/// What to run when a subcommand was given.
using actions = std::map<const CLI::App *, std::function<int()>>;

void add_info(CLI::App &program, actions &run);
void add_plan(CLI::App &program, actions &run); ///< plan and candidates
void add_run(CLI::App &program, actions &run);
void add_verify(CLI::App &program, actions &run);
void add_bench(CLI::App &program, actions &run);
void add_wisdom(CLI::App &program, actions &run);

} // namespace plait::cli
