#include "tests/cli/program.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace cli_test {
namespace {

namespace fs = std::filesystem;

struct folder {
    folder() : path(fs::temp_directory_path() / ("plait_cli_" + std::to_string(getpid()))) {
        fs::create_directories(path);
    }
    ~folder() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    fs::path path;
};

const fs::path &home() {
    static const folder f;
    return f.path;
}

std::string quoted(const std::string &argument) {
    std::string text = "'";
    for (char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

} // namespace

std::string scratch(const std::string &name) { return (home() / name).string(); }

std::string read_file(const std::string &name) {
    std::ifstream file(scratch(name), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_file(const std::string &name, const std::string &text) {
    std::ofstream(scratch(name), std::ios::binary) << text;
}

bool exists(const std::string &name) { return fs::exists(scratch(name)); }

std::string profile(const std::string &name) {
    return std::string(PLAIT_SOURCE_DIR) + "/tests/golden/profiles/" + name + ".txt";
}

std::vector<nlohmann::json> outcome::json_lines() const {
    std::vector<nlohmann::json> lines;
    std::istringstream text(out);
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
}

outcome shell(const std::string &line) {
    const std::string command = "cd " + quoted(home().string()) +
                                " && env -u PLAIT_LOG -u PLAIT_LOG_FILE -u PLAIT_WISDOM"
                                " -u PLAIT_CANDIDATES -u PLAIT_CPU_ISA PLAIT=" +
                                quoted(PLAIT_PROGRAM) + " sh -c " + quoted(line);
    const int status = std::system((command + " >stdout.txt 2>stderr.txt </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file("stdout.txt"),
            read_file("stderr.txt")};
}

outcome program(const std::vector<std::string> &arguments) {
    std::string line = "\"$PLAIT\"";
    for (const std::string &a : arguments) line += " " + quoted(a);
    return shell(line);
}

bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

void check_refused(const std::vector<std::string> &arguments, int code, const std::string &part) {
    std::string line;
    for (const std::string &a : arguments) line += " " + a;
    INFO("plait", line);
    const outcome o = program(arguments);
    INFO("stdout: ", o.out);
    INFO("stderr: ", o.err);
    CHECK(o.code == code);
    CHECK(o.out.empty());
    CHECK(o.err.compare(0, 7, "plait: ") == 0);
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    CHECK(contains(o.err, part));
}

} // namespace cli_test
