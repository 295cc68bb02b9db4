// plait run: a problem whose tensors are NumPy files.
#include "src/cli/case/bound_plan.h"
#include "src/cli/case/dtype.h"
#include "src/cli/case/output.h"
#include "src/cli/commands.h"
#include "src/cli/files.h"
#include "src/cli/memory_check.h"
#include "src/cli/options.h"
#include "src/cli/text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace plait::cli {
namespace {

using cases::failure;
using cases::tensor;

const char *access_name(const tensor &t) {
    return t.access == PLAIT_READ ? "--in" : t.access == PLAIT_WRITE ? "--out" : "--in --out";
}

/// Without files: what the token wants.
int describe(const std::string &token, const std::vector<tensor> &tensors, bool json) {
    if (json) {
        nlohmann::ordered_json j;
        j["token"] = token;
        for (const tensor &x : tensors)
            j["tensors"].push_back(
                {{"role", x.name},
                 {"read", x.reads()},
                 {"written", x.writes()},
                 {"dtype", cases::dtype_name(x.dtype)},
                 {"npy", x.reads() ? readable_types(x) : cases::npy_type_of(x.dtype).text()},
                 {"shape", cases::distinct(x).extents}});
        std::printf("%s\n", j.dump().c_str());
        return 0;
    }
    std::printf("%s\n", token.c_str());
    const table t({{"role", 10, true},
                   {"", 12, true},
                   {"type", 6, true},
                   {"npy", 16, true},
                   {"shape", 0, true}});
    t.head();
    for (const tensor &x : tensors)
        t.row({x.name, access_name(x), cases::dtype_name(x.dtype),
               x.reads() ? readable_types(x) : cases::npy_type_of(x.dtype).text(),
               cases::npy_shape_text(cases::distinct(x).extents)});
    return 0;
}

/// Each file has one content. An output may replace an input that it names alike: all is read
/// first.
void check_distinct(const std::map<plait_role, std::string> &in,
                    const std::map<plait_role, std::string> &out) {
    for (auto at = out.begin(); at != out.end(); ++at) {
        const std::string here =
            std::string("--out ") + plait_role_name(at->first) + "=" + at->second;
        for (auto other = out.begin(); other != at; ++other)
            if (cases::same_file(at->second, other->second))
                throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                              here + ": is also the file of role " + plait_role_name(other->first));
        for (const auto &[role, path] : in)
            if (path != at->second && cases::same_file(path, at->second))
                throw failure(PLAIT_ERR_INVALID_ARGUMENT, here + ": is the input " + path +
                                                              "; give the same name to replace it");
    }
}

/// Every file is looked at before anything is read, planned or allocated.
void check_files(const std::string &token, const std::vector<tensor> &tensors,
                 const std::map<plait_role, std::string> &in,
                 const std::map<plait_role, std::string> &out) {
    for (const tensor &t : tensors) {
        if (in.count(t.role) && !t.reads())
            throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                          "--in " + t.name + ": role " + t.name + " is an output");
        if (out.count(t.role) && !t.writes())
            throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                          "--out " + t.name + ": role " + t.name + " is an input");
    }
    for (const tensor &t : tensors) {
        if (!t.reads()) continue;
        if (!in.count(t.role))
            throw failure(PLAIT_ERR_INVALID_ARGUMENT,
                          "role " + t.name + " is read and has no --in " + t.name + "=file.npy");
        tensor_file(in.at(t.role), t);
        check_indices(in.at(t.role), cases::split_token(token), t);
    }
    for (const auto &[role, path] : out) check_writable(path);
    check_distinct(in, out);
    if (out.empty())
        throw failure(PLAIT_ERR_INVALID_ARGUMENT, "no --out: the result would be thrown away");
}

void zero(cases::device &dev, void *at, size_t bytes) {
    const std::vector<unsigned char> zeros(std::min<size_t>(bytes, size_t{16} << 20));
    for (size_t done = 0; done < bytes; done += zeros.size())
        dev.upload(static_cast<char *>(at) + done, zeros.data(),
                   std::min(zeros.size(), bytes - done));
}

/// Bytes of a result and the report must not be one stream.
bool goes_to_stdout(const std::map<plait_role, std::string> &out) {
    struct stat own {};
    if (fstat(STDOUT_FILENO, &own) != 0) return false;
    return std::any_of(out.begin(), out.end(), [&](const auto &file) {
        struct stat facts {};
        return stat(file.second.c_str(), &facts) == 0 && facts.st_dev == own.st_dev &&
               facts.st_ino == own.st_ino;
    });
}

class stopwatch {
public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const double seconds = std::chrono::duration<double>(now - begin_).count();
        begin_ = now;
        return seconds;
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace

int run_files(const file_arguments &a) {
    const cases::desc_ptr desc = cases::make_desc(a.token);
    const std::vector<tensor> tensors = cases::tensors_of(desc.get());
    if (a.in.empty() && a.out.empty()) return describe(a.token, tensors, a.json);
    const auto in = parse_files(a.in, tensors, "--in");
    const auto out = parse_files(a.out, tensors, "--out");
    check_files(cases::token_of(desc.get()), tensors, in, out);

    const session s(a.common);
    const std::unique_ptr<cases::device> dev = s.open();
    const cases::plan_ptr plan = cases::make_plan(s.context.get(), desc.get(), s.preferences.get());
    size_t work_bytes = 0;
    cases::check(plait_plan_workspace_size(plan.get(), &work_bytes));
    need_memory(*dev, a.token, cases::placement::bytes_needed(tensors) + work_bytes);

    size_t read_bytes = 0, written_bytes = 0;
    for (const tensor &t : tensors) {
        if (in.count(t.role)) read_bytes += cases::distinct(t).dense_bytes();
        if (out.count(t.role)) written_bytes += t.dense_bytes();
    }
    std::FILE *const report = goes_to_stdout(out) ? stderr : stdout;
    stopwatch watch;
    double transform_seconds = 0, read_seconds = 0, write_seconds = 0;
    {
        progress line("reading", static_cast<int64_t>(read_bytes + written_bytes));
        size_t done = 0;
        const on_bytes moved = [&](size_t bytes) {
            done += bytes;
            line.at(static_cast<int64_t>(done));
        };
        cases::placement where(*dev, tensors, 0, false);
        const cases::workspace work(*dev, plan.get());
        for (const tensor &t : tensors)
            if (in.count(t.role)) load_tensor(in.at(t.role), t, *dev, where.at(t.role), moved);
        int64_t steps = 0;
        cases::check(plait_plan_get_i64(plan.get(), PLAIT_PLAN_STEPS, &steps));
        // Written by nobody: slots of no row, what is spare in a reserve, and everything where
        // there is nothing to compute.
        for (const tensor &t : tensors)
            if (t.writes() && !t.reads() && !t.alias &&
                (t.role == PLAIT_STATE_OUT || t.role == PLAIT_RESERVE || steps == 0))
                zero(*dev, where.at(t.role), t.span_bytes());
        read_seconds = watch.lap();

        line.what("transforming");
        moved(0);
        transform_seconds =
            dev->seconds([&] { cases::execute(plan.get(), where, work, dev->stream()); });
        watch.lap();

        line.what("writing");
        for (const tensor &t : tensors)
            if (out.count(t.role)) save_tensor(out.at(t.role), t, *dev, where.at(t.role), moved);
        write_seconds = watch.lap();
    }

    const std::string candidate = cases::candidate_of(plan.get());
    if (a.json) {
        nlohmann::ordered_json j;
        j["token"] = a.token;
        j["candidate"] = candidate;
        j["device"] = s.fingerprint;
        j["read_bytes"] = read_bytes;
        j["written_bytes"] = written_bytes;
        j["read_s"] = read_seconds;
        j["transform_s"] = transform_seconds;
        j["write_s"] = write_seconds;
        std::fprintf(report, "%s\n", j.dump().c_str());
        return 0;
    }
    std::fprintf(report, "%s by %s on %s\n", a.token.c_str(), candidate.c_str(),
                 s.fingerprint.c_str());
    std::fprintf(report, "read %s in %s, transformed in %s (first run), wrote %s in %s\n",
                 cases::readable_bytes(static_cast<double>(read_bytes)).c_str(),
                 readable_seconds(read_seconds).c_str(),
                 readable_seconds(transform_seconds).c_str(),
                 cases::readable_bytes(static_cast<double>(written_bytes)).c_str(),
                 readable_seconds(write_seconds).c_str());
    return 0;
}

} // namespace plait::cli
