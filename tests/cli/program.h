// The program as a script sees it.
#pragma once

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cli_test {

struct outcome {
    int code;
    std::string out;
    std::string err;
    nlohmann::json json() const { return nlohmann::json::parse(out); }
    std::vector<nlohmann::json> json_lines() const;
};

/// Runs `plait` with these arguments in the scratch folder, without PLAIT_* in the environment.
outcome program(const std::vector<std::string> &arguments);

/// Runs a line of sh in the scratch folder, where $PLAIT is the program.
outcome shell(const std::string &line);

/// A scratch folder of this process, removed at its end.
std::string scratch(const std::string &name);
void write_file(const std::string &name, const std::string &text);
std::string read_file(const std::string &name);
bool exists(const std::string &name);
std::string profile(const std::string &name); ///< path of tests/golden/profiles/<name>.txt

bool contains(const std::string &text, const std::string &part);

/// The call failed with `code`, nothing on stdout, and one sentence on stderr that holds `part`.
void check_refused(const std::vector<std::string> &arguments, int code, const std::string &part);

} // namespace cli_test
