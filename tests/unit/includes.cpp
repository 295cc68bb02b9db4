// Who may include whom: every include line of include/, lib/, src/ and samples/ against one table.
#include "tests/unit/support.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace unit;
namespace fs = std::filesystem;

namespace {

using names = std::vector<std::string>;

/// '*' stands for any characters, '/' too.
bool matches(const std::string &text, const std::string &pattern) {
    size_t t = 0, p = 0, star = pattern.npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p, ++t;
        } else if (star != pattern.npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

bool matches_any(const std::string &text, const names &patterns) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string &p) { return matches(text, p); });
}

/// What <...> names.
std::string package_of(const std::string &header) {
    static const std::vector<std::pair<std::string, names>> packages = {
        {"plait", {"plait/plait.h", "plait/plait.hpp"}},
        {"cccl", {"cub/*", "thrust/*", "cuda/*"}},
        {"cuda", {"cuda*.h", "cooperative_groups*", "mma.h", "device_launch_parameters.h"}},
        {"highway", {"hwy/*"}},
        {"openmp", {"omp.h"}},
        {"cli11", {"CLI/*"}},
        {"json", {"nlohmann/*"}},
        {"c",
         {"assert.h", "complex.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h",
          "math.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
          "time.h"}},
        {"system", {"*.h"}},
        {"std", {"*"}},
    };
    for (const auto &[package, patterns] : packages)
        if (matches_any(header, patterns)) return package;
    return "";
}

struct rule {
    std::string files; ///< the first rule that matches a file is its rule
    names may;         ///< of the repository
    names packages;
};

/// The rules that are narrower come first.
const std::vector<rule> &rules() {
    static const std::vector<rule> table = {
        {"include/plait/plait.hpp", {}, {"plait", "std", "c"}},
        {"include/*", {}, {"c"}},

        // Plain C++17: the tests prove them on the host.
        {"lib/*_layout.h", {"lib/common/*", "lib/*_layout.h"}, {"std"}},
        {"lib/*_args.h", {"lib/common/*", "lib/*_layout.h", "lib/*_args.h"}, {"std"}},
        {"lib/common/*", {"lib/common/*"}, {"std"}},
        {"lib/cpu/*", {"lib/common/*", "lib/cpu/*"}, {"std", "system", "highway", "openmp"}},
        {"lib/cuda/*.cu", {"lib/common/*", "lib/cuda/*"}, {"std", "cuda", "cccl"}},
        {"lib/cuda/*", {"lib/common/*", "lib/cuda/*"}, {"std", "cuda"}},

        {"src/core/*", {"src/core/*"}, {"std", "plait"}},
        {"src/desc/*", {"src/core/*", "src/desc/*", "lib/common/*"}, {"std", "plait"}},
        {"src/pipeline/*", {"src/core/*", "src/desc/*", "src/pipeline/*"}, {"std", "plait"}},
        {"src/planner/*",
         {"src/core/*", "src/desc/*", "src/pipeline/*", "src/planner/*", "src/backend/backend.h",
          "lib/common/*", "lib/*_layout.h", "lib/*_args.h"},
         {"std", "plait", "json"}},
        // The profile is what a backend tells the planner about its device.
        {"src/backend/cpu/*",
         {"src/core/*", "src/desc/desc.h", "src/desc/problem.h", "src/pipeline/*",
          "src/planner/profile.h", "src/backend/*.h", "lib/common/*", "lib/cpu/*"},
         {"std", "system", "plait", "openmp"}},
        {"src/backend/cuda/*",
         {"src/core/*", "src/desc/desc.h", "src/desc/problem.h", "src/pipeline/*",
          "src/planner/profile.h", "src/backend/*.h", "lib/common/*", "lib/cuda/*"},
         {"std", "system", "plait", "cuda"}},
        {"src/backend/*",
         {"src/core/*", "src/desc/desc.h", "src/desc/problem.h", "src/pipeline/*",
          "src/planner/profile.h", "src/backend/*.h", "lib/common/*"},
         {"std", "plait"}},
        {"src/api/*",
         {"src/core/*", "src/desc/*", "src/pipeline/*", "src/planner/*", "src/backend/*.h",
          "src/api/*"},
         {"std", "system", "plait"}},

        // Users of the public header like anybody else.
        {"src/cli/*_cuda.*",
         {"src/cli/*"},
         {"std", "c", "system", "plait", "cli11", "json", "openmp", "cuda"}},
        {"src/cli/*", {"src/cli/*"}, {"std", "c", "system", "plait", "cli11", "json", "openmp"}},
        {"samples/*", {}, {"std", "c", "system", "plait", "cuda"}},
    };
    return table;
}

/// Never allowed to a folder, whatever its rule says.
bool backend_internal(const std::string &header) {
    return matches(header, "src/backend/cpu/*") || matches(header, "src/backend/cuda/*");
}

struct include_line {
    std::string header;
    bool quoted;
};

/// "" or why `file` may not include this.
std::string verdict(const std::string &file, const include_line &line) {
    const auto at = std::find_if(rules().begin(), rules().end(),
                                 [&](const rule &r) { return matches(file, r.files); });
    if (at == rules().end()) return "no rule for this file";
    if (!line.quoted) {
        const std::string package = package_of(line.header);
        const names &may = at->packages;
        if (std::find(may.begin(), may.end(), package) != may.end()) return "";
        return "package " + package + " is not for " + at->files;
    }
    if (matches(file, "src/cli/*") && line.header == "commit.h") return ""; // written by the build
    if (line.header.find("..") != line.header.npos) return "a path that leaves its folder";
    if (!matches_any(line.header, at->may)) return "is not for " + at->files;
    if (!fs::exists(fs::path(PLAIT_SOURCE_DIR) / line.header))
        return "no such file, seen from the root of the repository";
    // src/backend/*.h would match the folders below it.
    const bool own = fs::path(file).parent_path() == fs::path(line.header).parent_path();
    if (backend_internal(line.header) && !own) return "is internal to its backend";
    return "";
}

std::vector<include_line> includes_of(const fs::path &path) {
    std::vector<include_line> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        size_t at = line.find_first_not_of(" \t");
        if (at == line.npos || line[at] != '#') continue;
        at = line.find_first_not_of(" \t", at + 1);
        if (at == line.npos || line.compare(at, 7, "include") != 0) continue;
        const size_t open = line.find_first_of("\"<", at);
        if (open == line.npos) continue; // a macro
        const size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
        REQUIRE_MESSAGE(close != line.npos, path.string(), ": ", line);
        out.push_back({line.substr(open + 1, close - open - 1), line[open] == '"'});
    }
    return out;
}

} // namespace

TEST_CASE("every include line keeps the rules") {
    int files = 0, lines = 0;
    for (const char *folder : {"include", "lib", "src", "samples"}) {
        const fs::path root = fs::path(PLAIT_SOURCE_DIR);
        if (!fs::exists(root / folder)) continue;
        for (const fs::directory_entry &entry : fs::recursive_directory_iterator(root / folder)) {
            const std::string extension = entry.path().extension().string();
            const names sources = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"};
            if (!entry.is_regular_file() || !matches_any(extension, sources)) continue;
            const std::string file = entry.path().lexically_relative(root).generic_string();
            ++files;
            for (const include_line &line : includes_of(entry.path())) {
                ++lines;
                const std::string why = verdict(file, line);
                CHECK_MESSAGE(why.empty(), file, " includes ", line.header, ": ", why);
            }
        }
    }
    CHECK(files > 30);
    CHECK(lines > 100);
}

TEST_CASE("the table refuses what it must") {
    struct {
        const char *file;
        const char *header;
        bool quoted;
        bool legal;
    } const rows[] = {
        {"include/plait/plait.h", "stdint.h", false, true},
        {"include/plait/plait.h", "vector", false, false},
        {"include/plait/plait.h", "cuda_runtime.h", false, false},
        {"include/plait/plait.hpp", "vector", false, true},
        {"include/plait/plait.hpp", "src/core/status.h", true, false},
        {"lib/common/scalar.h", "plait/plait.h", false, false},
        {"lib/common/scalar.h", "src/core/tables.h", true, false},
        {"lib/cpu/wht/simd.cpp", "hwy/highway.h", false, true},
        {"lib/cpu/wht/simd.cpp", "cuda_runtime.h", false, false},
        {"lib/cpu/wht/simd.cpp", "src/core/status.h", true, false},
        {"lib/cuda/wht/block.cuh", "cub/cub.cuh", false, false},
        {"lib/cuda/wht/block_f32.cu", "cub/cub.cuh", false, true},
        {"lib/cuda/wht/block_layout.h", "cuda_runtime.h", false, false},
        {"lib/cuda/wht/block_layout.h", "lib/common/scalar.h", true, true},
        {"src/core/status.cpp", "src/desc/desc.h", true, false},
        {"src/desc/wht.h", "lib/common/wht_problem.h", true, true},
        {"src/desc/wht.h", "lib/cpu/kernel_table.h", true, false},
        {"src/desc/wht.h", "src/planner/planner.h", true, false},
        {"src/desc/wht.h", "src/pipeline/step.h", true, false},
        {"src/pipeline/step.h", "src/backend/backend.h", true, false},
        {"src/planner/x.cpp", "src/backend/backend.h", true, true},
        {"src/planner/x.cpp", "src/backend/cpu/machine.h", true, false},
        {"src/planner/x.cpp", "lib/cuda/wht/block_layout.h", true, true},
        {"src/planner/x.cpp", "lib/cuda/kernel_table.h", true, false},
        {"src/planner/x.cpp", "cuda_runtime.h", false, false},
        {"src/backend/cpu/x.cpp", "lib/cuda/kernel_table.h", true, false},
        {"src/backend/cpu/x.cpp", "src/planner/planner.h", true, false},
        {"src/backend/cpu/x.cpp", "src/backend/cpu/machine.h", true, true},
        {"src/backend/cuda/x.cpp", "src/backend/cpu/machine.h", true, false},
        {"src/api/x.cpp", "src/backend/cpu/machine.h", true, false},
        {"src/api/x.cpp", "src/planner/planner.h", true, true},
        {"src/api/x.cpp", "lib/common/scalar.h", true, false},
        {"src/cli/main.cpp", "src/core/status.h", true, false},
        {"src/cli/main.cpp", "plait/plait.h", false, true},
        {"src/cli/main.cpp", "cuda_runtime_api.h", false, false},
        {"samples/01_wht.c", "src/core/status.h", true, false},
        {"src/new_folder/x.cpp", "vector", false, false},
        {"src/core/x.cpp", "status.h", true, false},
        {"src/core/x.cpp", "src/core/../desc/desc.h", true, false},
        {"src/core/x.cpp", "src/core/no_such_file.h", true, false},
    };
    for (const auto &r : rows) {
        INFO(r.file, " includes ", r.header);
        CHECK(verdict(r.file, {r.header, r.quoted}).empty() == r.legal);
    }
}
