// plait bench: time against a copy of the same bytes.
#include "src/cli/bench.h"
#include "src/cli/bench_buffers.h"
#include "src/cli/case/output.h"
#include "src/cli/commands.h"
#include "src/cli/text.h"

#include "commit.h" // written by the build

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace plait::cli {
namespace {

using cases::failure;
using json = nlohmann::ordered_json;

json record(const std::string &token, const planned &p, const session &s, const bench_arguments &a,
            const bench_result &b) {
    json j;
    j["token"] = token;
    j["candidate"] = p.candidate;
    j["revision"] = p.revision;
    j["device"] = s.fingerprint;
    j["commit"] = PLAIT_COMMIT;
    j["median_us"] = b.median * 1e6;
    j["min_us"] = b.minimum * 1e6;
    j["spread"] = b.spread;
    j["copy_us"] = b.copy * 1e6;
    j["r"] = b.r();
    j["gbps"] = b.bytes_per_second() * 1e-9;
    j["est_us"] = b.estimate * 1e6;
    j["rel_err"] =
        b.relative_error >= 0 && std::isfinite(b.relative_error) ? json(b.relative_error) : json();
    j["mode"] = a.how.latency ? "latency" : "cold";
    j["rigor"] = a.common.rigor;
    j["threads"] = s.threads;
    j["bytes"] = b.bytes;
    j["work_bytes"] = b.work_bytes;
    j["reps"] = b.repetitions;
    j["calls"] = b.calls_per_sample;
    j["sets"] = b.buffer_sets;
    j["places"] = b.copy_places;
    return j;
}

/// What makes two records comparable.
std::string key_of(const json &j) {
    std::string key;
    for (const char *field : {"token", "candidate", "device", "mode"})
        key += j.value(field, std::string()) + " ";
    return key + std::to_string(j.value("threads", 0));
}

std::map<std::string, double> read_baseline(const std::string &path) {
    std::map<std::string, double> medians;
    std::istringstream lines(read_text(path));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        try {
            const json j = json::parse(line);
            const double median = j.at("median_us").get<double>();
            if (!(median > 0) || !std::isfinite(median))
                throw failure(PLAIT_ERR_IO, path + ": line " + std::to_string(number) +
                                                " has a median_us that is not above 0");
            medians[key_of(j)] = median;
        } catch (const nlohmann::json::exception &) {
            throw failure(PLAIT_ERR_IO, path + ": line " + std::to_string(number) +
                                            " is no record of `plait bench --json`");
        }
    }
    if (medians.empty()) throw failure(PLAIT_ERR_IO, path + ": holds no records");
    return medians;
}

/// Where JSON lines go. The first result empties the file, and each is in it at once: what ends the
/// program later takes nothing away.
class json_sink {
public:
    json_sink(bool wanted, const std::string &path) : wanted_(wanted), path_(path) {}
    bool on_stdout() const { return wanted_ && path_.empty(); }
    void add(const json &j) {
        if (!wanted_) return;
        if (path_.empty()) {
            std::printf("%s\n", j.dump().c_str());
            std::fflush(stdout); // main() asks stdout whether all of it went out
            return;
        }
        if (!file_) file_.reset(std::fopen(path_.c_str(), "wbe"));
        if (!file_ || std::fprintf(file_.get(), "%s\n", j.dump().c_str()) < 0 ||
            std::fflush(file_.get()) != 0)
            throw cases::write_failure(path_ + ": cannot be written: " + std::strerror(errno));
    }

private:
    struct closer {
        void operator()(std::FILE *file) const { std::fclose(file); }
    };
    bool wanted_;
    std::string path_;
    std::unique_ptr<std::FILE, closer> file_;
};

/// A comparison that compared nothing must not pass for one that found nothing.
int judge_baseline(const bench_arguments &a, size_t compared, size_t measured, int code) {
    if (compared == measured) return code;
    const std::string missing = a.baseline + ": has no record of " +
                                std::to_string(measured - compared) + " of " +
                                std::to_string(measured) + " measurements";
    const int all = a.worse && compared == 0 ? 1 : 0;
    complain(missing, all);
    return code != 0 ? code : all;
}

} // namespace

int run_bench(const bench_arguments &a) {
    // `--json TOKEN`: the file may be left out, so what begins as a token is none.
    std::vector<std::string> tokens = a.json_file;
    std::string path = tokens.empty() ? "" : tokens.front(); // "" where nothing follows --json
    const bool is_token = path.compare(0, 4, "wht:") == 0 || path.compare(0, 7, "conv1d.") == 0 ||
                          path.compare(0, 4, "kda.") == 0;
    if (is_token) path.clear();
    if (!is_token && !tokens.empty()) tokens.erase(tokens.begin());
    tokens.insert(tokens.end(), a.tokens.begin(), a.tokens.end());
    if (!a.suite.empty())
        for (std::string &t : read_suite(a.suite)) tokens.push_back(std::move(t));
    if (tokens.empty())
        throw failure(PLAIT_ERR_INVALID_ARGUMENT, "bench: give tokens or --suite FILE");
    std::map<std::string, double> baseline;
    if (!a.baseline.empty()) baseline = read_baseline(a.baseline);
    int bad = 0;
    tokens = well_formed(tokens, &bad);
    if (tokens.empty()) return bad;

    if (!path.empty()) check_writable(path);

    const session s(a.common);
    const std::unique_ptr<cases::device> dev = s.open();
    json_sink sink(a.json_wanted, path);
    std::vector<table::column> titles = {
        {"token", 30, true}, {"candidate", 24, true}, {"median us", 10}, {"min us", 10},
        {"spread", 6},       {"copy us", 10},         {"r", 6},          {"GB/s", 7},
        {"est/med", 7},      {"rel err", 9}};
    if (!baseline.empty()) titles.push_back({"vs base", 8});
    const table columns(titles);
    if (!sink.on_stdout()) {
        std::printf("%s  commit %s  %s, %d repetitions%s\n", s.fingerprint.c_str(), PLAIT_COMMIT,
                    a.how.latency ? "latency: warm buffers" : "cold: rotated buffers",
                    a.how.repetitions,
                    s.threads ? (", " + std::to_string(s.threads) + " threads").c_str() : "");
        columns.head();
    }
    int64_t done = 0;
    size_t compared = 0, measured = 0;
    progress line("measuring", static_cast<int64_t>(tokens.size()) * 1000);
    const int failed = for_each_token(tokens, [&](const std::string &token) {
        int worse = 0;
        const cases::desc_ptr desc = cases::make_desc(token);
        const std::vector<cases::tensor> tensors = cases::tensors_of(desc.get());
        line.what(token);
        if (yardstick_of(cases::split_token(token), tensors).bytes == 0) {
            done += 1000;
            return complain(token + ": is empty; nothing to measure", 0);
        }
        for (const planned &p : make_plans(s, desc.get(), a.all)) {
            const bench_result b = bench(p, token, tensors, *dev, a.how, [&](double share) {
                line.at(done + static_cast<int64_t>(1000 * share));
            });
            const json j = record(token, p, s, a, b);
            sink.add(j);
            std::string versus = "-";
            ++measured;
            if (const auto base = baseline.find(key_of(j)); base != baseline.end()) {
                const double percent = (b.median * 1e6 / base->second - 1) * 100;
                ++compared;
                versus = (percent >= 0 ? "+" : "") + fixed(percent, 1) + "%";
                if (a.worse && percent > *a.worse) worse = 1;
            }
            if (!sink.on_stdout())
                columns.row({token, p.candidate, fixed(b.median * 1e6, 2),
                             fixed(b.minimum * 1e6, 2), fixed(b.spread, 3), fixed(b.copy * 1e6, 2),
                             fixed(b.r(), 3), fixed(b.bytes_per_second() * 1e-9, 1),
                             fixed(b.estimate / b.median, 2),
                             b.relative_error < 0 ? "-" : number(b.relative_error), versus});
        }
        done += 1000;
        return worse;
    });
    const int code = bad != 0 ? bad : failed;
    return baseline.empty() ? code : judge_baseline(a, compared, measured, code);
}

} // namespace plait::cli
