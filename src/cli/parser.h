// The command line: every option of every command.
#pragma once

#include <functional>
#include <string>

namespace plait::cli {

struct parsed {
    std::function<int()> command; ///< empty when there is nothing to run: --help, or an error
    std::string out;              ///< for stdout
    std::string error;            ///< what is wrong with the arguments, one sentence
};

parsed parse(int argc, char **argv);

} // namespace plait::cli
