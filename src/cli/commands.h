// The commands of the program: what each takes and what runs it. They return the exit code, or
// throw cases::failure. parser.cpp fills the arguments.
#pragma once

#include "src/cli/bench.h"
#include "src/cli/options.h"

namespace plait::cli {

struct info_arguments {
    options common;
    bool json = false;
    bool profile_text = false; ///< only the profile of the chosen device
};
int run_info(const info_arguments &a);

struct plan_arguments {
    options common;
    std::vector<std::string> tokens;
    bool candidates = false; ///< the list instead of the plan
    bool json = false;
};
int run_plan(const plan_arguments &a);

struct file_arguments {
    options common;
    std::string token;
    std::vector<std::string> in, out; ///< role=file.npy
    bool json = false;
};
int run_files(const file_arguments &a);

struct verify_arguments {
    options common;
    std::vector<std::string> tokens;
    std::string suite;
    std::vector<std::string> in;
    bool all = false, json = false;
    uint64_t seed = 1;
    int64_t sample = 0; ///< transforms or channels; 0: as many as make 2^26 elements
};
int run_verify(const verify_arguments &a);

struct bench_arguments {
    options common;
    std::vector<std::string> tokens;
    std::string suite;
    bool json_wanted = false;
    std::vector<std::string> json_file; ///< what follows --json: a file or none, then tokens
    std::string baseline;
    std::optional<double> worse; ///< percent above the baseline that is a failure
    bool all = false;
    bench_options how;
};
int run_bench(const bench_arguments &a);

struct wisdom_arguments {
    options common;
    std::vector<std::string> tokens, files;
    std::string suite, out;
    bool json = false, generic = false;
};
int make_wisdom(const wisdom_arguments &a);
int show_wisdom(const wisdom_arguments &a);
int merge_wisdom(const wisdom_arguments &a);

} // namespace plait::cli
