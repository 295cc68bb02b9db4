// The surface in three places: plait.h, the symbols of the library, and plait.f90.
#include "tests/api/common.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace plait::test;

namespace {

std::string read(const std::string &path) {
    std::ifstream file(std::string(PLAIT_SOURCE_DIR "/") + path);
    REQUIRE(file.good());
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string lower(std::string s) {
    std::transform(s.begin(), s.end(), s.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return s;
}

/// Every match of a pattern, by its groups.
std::vector<std::smatch> matches(const std::string &text, const std::regex &pattern) {
    return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

int arguments_in(const std::string &list) {
    if (list.find_first_not_of(" \n") == std::string::npos || list == "void") return 0;
    return 1 + static_cast<int>(std::count(list.begin(), list.end(), ','));
}

struct surface {
    std::map<std::string, int> functions; ///< name -> number of arguments
    std::map<std::string, long> constants;
};

surface of_header() {
    static const std::string text =
        std::regex_replace(read("include/plait/plait.h"), std::regex("/\\*[^]*?\\*/"), " ");
    surface out;
    static const std::regex function("PLAIT_API[^;]*?(plait_\\w+)\\(([^)]*)\\)\\s*;");
    for (const std::smatch &m : matches(text, function)) out.functions[m[1]] = arguments_in(m[2]);
    static const std::regex enumerator("\\b(PLAIT_\\w+)\\s*=\\s*(\\d+)");
    for (const std::smatch &m : matches(text, enumerator)) out.constants[m[1]] = std::stol(m[2]);
    static const std::regex macro("#define (PLAIT_[A-Z_]+) (\\d+)");
    for (const std::smatch &m : matches(text, macro)) out.constants[m[1]] = std::stol(m[2]);
    return out;
}

surface of_fortran() {
    std::string text = read("include/plait/plait.f90");
    text = std::regex_replace(text, std::regex("&[ \\t]*\\n[ \\t]*"), " "); // continued lines
    static std::string whole;
    whole = std::regex_replace(text, std::regex("!.*"), "");
    surface out;
    static const std::regex function(
        "(?:function|subroutine) \\w+\\(([^)]*)\\) bind\\(c, *name='(plait_\\w+)'\\)");
    for (const std::smatch &m : matches(whole, function)) {
        INFO(m[2].str());
        CHECK(out.functions.count(m[2]) == 0);
        out.functions[m[2]] = arguments_in(m[1]);
    }
    static const std::regex constant("parameter, public :: (PLAIT_\\w+) = (\\d+)");
    for (const std::smatch &m : matches(whole, constant)) out.constants[m[1]] = std::stol(m[2]);
    return out;
}

} // namespace

TEST_CASE("the parsers see everything") {
    const surface header = of_header();
    CHECK(header.functions.size() == 85);
    CHECK(header.functions.at("plait_version") == 0);
    CHECK(header.functions.at("plait_desc_tensor") == 8);
    CHECK(header.functions.at("plait_exec_destroy") == 1);
    CHECK(header.functions.at("plait_conv1d_create") == 7);
    CHECK(header.functions.at("plait_kda_create") == 9);
    CHECK(header.constants.at("PLAIT_ERR_INTERNAL") == PLAIT_ERR_INTERNAL);
    CHECK(header.constants.at("PLAIT_PLAN_SECONDS_MEASURED") == PLAIT_PLAN_SECONDS_MEASURED);
    CHECK(header.constants.at("PLAIT_MAX_RANK") == PLAIT_MAX_RANK);
    CHECK(header.constants.at("PLAIT_UPDATE") == PLAIT_UPDATE);
    CHECK(header.constants.at("PLAIT_DSTATE_OUT") == PLAIT_DSTATE_OUT);
}

TEST_CASE("plait.f90 has the functions and constants of plait.h") {
    const surface header = of_header();
    const surface fortran = of_fortran();
    for (const auto &[name, arguments] : header.functions) {
        INFO(name);
        REQUIRE(fortran.functions.count(name) == 1);
        CHECK(fortran.functions.at(name) == arguments);
    }
    CHECK(fortran.functions.size() == header.functions.size());
    CHECK(fortran.constants == header.constants);
}

TEST_CASE("plait.f90: no two names differ in case only") {
    const surface fortran = of_fortran();
    std::set<std::string> names;
    for (const auto &[name, value] : fortran.constants) CHECK(names.insert(lower(name)).second);
    for (const auto &[name, arguments] : fortran.functions) CHECK(names.insert(name).second);
}

TEST_CASE("plait.hpp reaches every function") {
    const std::string text = read("include/plait/plait.hpp");
    for (const auto &[name, arguments] : of_header().functions) {
        // Names of codes and roles are for C; in C++ they are one call away.
        if (name == "plait_status_name" || name == "plait_role_name") continue;
        INFO(name);
        CHECK(std::regex_search(text, std::regex("\\b" + name + "\\b")));
    }
}

TEST_CASE("every function is called by a test of this folder") {
    std::string calls;
    for (const auto &entry : std::filesystem::directory_iterator(PLAIT_SOURCE_DIR "/tests/api"))
        if (entry.path().extension() == ".cpp")
            calls += read("tests/api/" + entry.path().filename().string());
    for (const auto &[name, arguments] : of_header().functions) {
        INFO(name);
        CHECK(contains(calls, name + "("));
    }
}

#ifdef PLAIT_TEST_NM
TEST_CASE("the library exports the functions of plait.h and nothing else") {
    const std::string command = PLAIT_TEST_NM " -D --defined-only " PLAIT_TEST_LIBRARY;
    std::FILE *pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::set<std::string> exported;
    char line[4096];
    while (std::fgets(line, sizeof line, pipe)) {
        std::istringstream words(line);
        std::string address, kind, name;
        words >> address >> kind >> name;
        exported.insert(name);
    }
    REQUIRE(pclose(pipe) == 0);
    std::set<std::string> declared;
    for (const auto &[name, arguments] : of_header().functions) declared.insert(name);
    for (const std::string &name : exported) {
        INFO(name);
        CHECK(declared.count(name) == 1);
    }
    for (const std::string &name : declared) {
        INFO(name);
        CHECK(exported.count(name) == 1);
    }
}
#endif

#ifdef PLAIT_TEST_ARCHITECTURES
TEST_CASE("the library stays under 60 MB for each architecture") {
    const int architectures = std::max(1, PLAIT_TEST_ARCHITECTURES); // 0 without CUDA
    const auto bytes = static_cast<double>(std::filesystem::file_size(PLAIT_TEST_LIBRARY));
    CHECK(bytes > 1e5);
    CHECK(bytes < 60e6 * architectures);
}
#endif
