// plait bench: the table, the records, baselines. Times are only checked for being there.
#include "tests/cli/program.h"

#include <cmath>

using namespace cli_test;

namespace {

const char *const quick[] = {"--backend", "cpu", "--threads", "1", "--reps", "3"};

std::vector<std::string> bench(std::vector<std::string> more) {
    std::vector<std::string> all = {"bench"};
    all.insert(all.end(), std::begin(quick), std::end(quick));
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

} // namespace

TEST_CASE("records have every field") {
    const outcome o = program(bench({"wht:f32:b64:n256", "wht:bf16:b8:n64:y@x", "--json"}));
    INFO(o.err);
    CHECK(o.code == 0);
    const auto lines = o.json_lines();
    REQUIRE(lines.size() == 2);
    for (const nlohmann::json &j : lines) {
        CHECK(j.at("revision").get<int>() >= 1);
        for (const char *text : {"token", "candidate", "device", "commit", "mode", "rigor"}) {
            INFO(text);
            CHECK(j.at(text).is_string());
            CHECK(!j.at(text).get<std::string>().empty());
        }
        for (const char *positive :
             {"median_us", "min_us", "copy_us", "r", "gbps", "est_us", "rel_err", "bytes", "reps",
              "calls", "sets", "threads", "places"}) {
            INFO(positive);
            CHECK(j.at(positive).get<double>() > 0);
        }
        CHECK(j.at("spread").get<double>() >= 0);
        const double r = j.at("median_us").get<double>() / j.at("copy_us").get<double>();
        CHECK(std::fabs(j.at("r").get<double>() / r - 1) < 1e-9);
        CHECK(j.at("min_us").get<double>() <= j.at("median_us").get<double>());
    }
    CHECK(lines[0].at("bytes") == 2 * 64 * 256 * 4);
    CHECK(lines[0].at("rel_err").get<double>() < 1e-6);
    CHECK(lines[1].at("rel_err").get<double>() < 1e-2);
}

TEST_CASE("results that are not stored, chosen rows, one-byte types") {
    const outcome o = program(bench({"wht:b1:b8:n256:-y+amax", "wht:f32:b8:n64:rows=10",
                                     "wht:f32:b8:n64:+scales:y.e4m3", "--rigor", "measure"}));
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(contains(o.out, "wht:f32:b8:n64:+scales:y.e4m3"));
}

TEST_CASE("--json without a file may stand before the token") {
    CHECK(program(bench({"--json", "wht:f32:b8:n64"})).json().at("token") == "wht:f32:b8:n64");
    const auto two = program(bench({"--json", "wht:f32:b8:n64", "wht:f32:n8"})).json_lines();
    REQUIRE(two.size() == 2);
    CHECK(two[0].at("token") == "wht:f32:b8:n64");
    CHECK(two[1].at("token") == "wht:f32:n8");
    CHECK(program(bench({"--json", "lines.json", "wht:f32:b8:n64", "wht:f32:n8"})).code == 0);
    CHECK(contains(read_file("lines.json"), "\"wht:f32:n8\""));
}

TEST_CASE("table, file, baseline") {
    const outcome o =
        program(bench({"wht:f32:b8:n64", "--json", "base.jsonl", "--latency", "--no-accuracy"}));
    CHECK(o.code == 0);
    CHECK(contains(o.out, "median us"));
    CHECK(contains(o.out, "wht:f32:b8:n64"));
    nlohmann::json record = nlohmann::json::parse(read_file("base.jsonl"));
    CHECK(record.at("rel_err").is_null());
    CHECK(record.at("mode") == "latency");

    const auto against = [&](double median, const char *percent) {
        record["median_us"] = median;
        write_file("base.jsonl", record.dump() + "\n");
        return program(bench(
            {"wht:f32:b8:n64", "--baseline", "base.jsonl", "--latency", "--fail-above", percent}));
    };
    const outcome slower = against(1e-6, "50");
    CHECK(slower.code == 1);
    CHECK(contains(slower.out, "vs base"));
    CHECK(contains(slower.out, "+"));
    CHECK(against(1e12, "50").code == 0);

    write_file("bad.jsonl", "{\"token\": \n");
    check_refused(bench({"wht:f32:n8", "--baseline", "bad.jsonl"}), 2, "bad.jsonl: line 1");
    check_refused(bench({"wht:f32:n8", "--baseline", "gone.jsonl"}), 2, "gone.jsonl");
}

TEST_CASE("a comparison that compares nothing fails") {
    const std::string token = "wht:f32:b8:n64";
    nlohmann::json record = program(bench({token, "--json", "--no-accuracy"})).json();
    const auto against = [&](const std::string &text, std::vector<std::string> more = {}) {
        write_file("old.jsonl", text);
        std::vector<std::string> all = {token, "--baseline", "old.jsonl", "--no-accuracy"};
        all.insert(all.end(), more.begin(), more.end());
        return bench(all);
    };
    check_refused(against("\n"), 2, "old.jsonl: holds no records");
    for (const double median : {0.0, -1.0}) {
        record["median_us"] = median;
        check_refused(against(record.dump() + "\n"), 2, "line 1 has a median_us");
    }
    record["median_us"] = 1e9;
    record["token"] = "wht:f32:b8:n128";
    const outcome gate = program(against(record.dump() + "\n", {"--fail-above", "1"}));
    CHECK(gate.code == 1);
    CHECK(contains(gate.err, "old.jsonl: has no record of 1 of 1 measurements"));
    const outcome look = program(against(record.dump() + "\n"));
    CHECK(look.code == 0);
    CHECK(contains(look.err, "no record of 1 of 1"));
}

TEST_CASE("results are in the file before the last is measured") {
    // The second token does not fit the machine: what came before it stays.
    write_file("grow.jsonl", "old\n");
    CHECK(program(bench({"wht:f32:b8:n64", "wht:f32:b1048576:n1048576", "--no-accuracy", "--json",
                         "grow.jsonl"}))
              .code != 0);
    CHECK(nlohmann::json::parse(read_file("grow.jsonl")).at("token") == "wht:f32:b8:n64");
    write_file("grow.jsonl", "old\n");
    CHECK(program(bench({"wht:f32:b1048576:n1048576", "--json", "grow.jsonl"})).code != 0);
    CHECK(read_file("grow.jsonl") == "old\n");
}

TEST_CASE("all candidates, suites") {
    const auto lines =
        program(bench({"wht:f32:b8:n64", "--all-candidates", "--json"})).json_lines();
    REQUIRE(lines.size() >= 2);
    CHECK(lines[0].at("candidate") != lines[1].at("candidate"));
    const outcome o = program(bench(
        {"--suite", std::string(PLAIT_SOURCE_DIR) + "/benchmarks/suites/wht_smoke.txt", "--json"}));
    CHECK(o.code == 0);
    CHECK(o.json_lines().size() == 7);
    const outcome conv = program(
        bench({"--suite", std::string(PLAIT_SOURCE_DIR) + "/benchmarks/suites/conv1d_smoke.txt",
               "--all-candidates", "--json"}));
    INFO(conv.err);
    CHECK(conv.code == 0);
    CHECK(conv.json_lines().size() >= 4);
}

TEST_CASE("what cannot be measured") {
    check_refused(bench({"wht:f32:b0:n8", "--json"}), 0, "is empty; nothing to measure");
    // In place it fits the machine, so there is a plan; with the copy's buffer it cannot.
    const std::string profile = program({"info", "--backend", "cpu", "--profile-text"}).out;
    const size_t at = profile.find("memory_bytes ");
    REQUIRE(at != std::string::npos);
    const long long memory = std::stoll(profile.substr(at + 13));
    const long long rows = memory / 10 * 6 / 4 / 1048576;
    check_refused(bench({"wht:f32:b" + std::to_string(rows) + ":n1048576:y@x", "--json"}), 1,
                  "of host memory");
}
