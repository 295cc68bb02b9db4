#include "tests/planner/support.h"

#include "src/core/env.h"
#include "src/core/status.h"
#include "src/planner/text_lines.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace plait::test {

std::string read_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    REQUIRE_MESSAGE(in.good(), path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string golden_path(const std::string &name) {
    return std::string(PLAIT_GOLDEN_DIR) + "/" + name;
}

namespace {

/// Lines that only one of the texts has, by the longest common subsequence.
std::string diff(const std::string &old_text, const std::string &new_text) {
    const std::vector<std::string_view> a = split(old_text, '\n'), b = split(new_text, '\n');
    std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
    for (size_t i = a.size(); i-- > 0;)
        for (size_t j = b.size(); j-- > 0;)
            common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1
                                        : std::max(common[i + 1][j], common[i][j + 1]);
    std::string out;
    size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (i < a.size() && j < b.size() && a[i] == b[j]) {
            ++i;
            ++j;
        } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
            out += "-" + std::to_string(i + 1) + " " + std::string(a[i]) + "\n";
            ++i;
        } else {
            out += "+" + std::to_string(j + 1) + " " + std::string(b[j]) + "\n";
            ++j;
        }
    }
    return out;
}

} // namespace

void check_golden(const std::string &name, const std::string &text) {
    const std::string path = golden_path(name);
    if (!environment("PLAIT_GOLDEN_UPDATE").empty()) {
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    const std::string kept = read_file(path);
    if (kept == text) return;
    FAIL_CHECK(name << " differs (PLAIT_GOLDEN_UPDATE=1 rewrites it):\n" << diff(kept, text));
}

const std::vector<named_profile> &profiles() {
    static const std::vector<named_profile> all = [] {
        std::vector<named_profile> list;
        for (const char *name :
             {"h200", "a100", "rtx4060", "b200", "cpu_avx2_2c", "cpu_avx512_64c"})
            list.push_back({name, profile_from_text(read_file(
                                      golden_path(std::string("profiles/") + name + ".txt")))});
        return list;
    }();
    return all;
}

const profile &profile_named(const std::string &name) {
    for (const named_profile &p : profiles())
        if (p.name == name) return p.facts;
    FAIL("no profile " << name);
    return profiles().front().facts;
}

std::vector<std::string> tokens_of(const std::string &name) {
    std::vector<std::string> list;
    const std::string text = read_file(golden_path(name));
    for (const std::string_view line : split(text, '\n'))
        if (!line.empty() && line.front() != '#') list.emplace_back(line);
    return list;
}

const std::vector<std::string> &corpus() {
    static const std::vector<std::string> all = tokens_of("corpus.txt");
    return all;
}

problem problem_of(const std::string &token) { return make_problem(*descriptor_from_token(token)); }

const candidate &candidate_named(const std::string &name) {
    for (const candidate &c : candidates_of("wht"))
        if (name == c.name) return c;
    FAIL("no candidate " << name);
    return candidates_of("wht").front();
}

std::string sentence_of(plait_status code, const std::function<void()> &call) {
    try {
        call();
    } catch (const failure &f) {
        CHECK_MESSAGE(f.code() == code, f.what());
        return f.what();
    }
    FAIL_CHECK("no failure; expected: " << status_name(code));
    return "";
}

} // namespace plait::test
