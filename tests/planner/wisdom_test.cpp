#include "tests/planner/support.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace plait::test {

namespace {

const std::string here = "cuda/9.0/132sm/NVIDIA_H200";
const std::string token = "wht:f32:b1024:n262144";
const std::string tiled = "wht.cuda.two_pass.tiled";

std::string line(const std::string &t, const std::string &device, const std::string &c,
                 const std::string &revision, const std::string &seconds) {
    return t + " | " + device + " | " + c + " | " + revision + " | " + seconds + "\n";
}

std::string revision_of(const std::string &name) {
    return std::to_string(candidate_named(name).revision);
}

} // namespace

TEST_CASE("wisdom: saved text reads back") {
    wisdom w;
    CHECK(w.save() == "plait-wisdom 1\n");
    w.record(token, here, candidate_named(tiled), 7.95e-4);
    w.record(token, here, candidate_named("wht.cuda.two_pass.shuffle"), 1.0 / 3);
    w.record("wht:f32:n2", here, candidate_named("wht.cuda.block"), 1e-6);
    const std::string text = w.save();
    CHECK(contains(text, line(token, here, tiled, revision_of(tiled), "0.000795")));

    wisdom back;
    const wisdom::loaded count = back.load(text);
    CHECK(count.loaded == 3);
    CHECK(count.skipped == 0);
    CHECK(back.save() == text);
    CHECK(back.find(token, here, candidate_named("wht.cuda.two_pass.shuffle")) == 1.0 / 3);
    CHECK_FALSE(back.find(token, "cuda/8.0/108sm/X", candidate_named(tiled)));
    CHECK_FALSE(back.find("wht:f32:n4", here, candidate_named(tiled)));
    back.clear();
    CHECK(back.save() == "plait-wisdom 1\n");
}

TEST_CASE("wisdom: the files that are shipped") {
    wisdom w;
    const std::string text =
        read_file(golden_path("../../benchmarks/results/NVIDIA_H200/wisdom.txt"));
    const wisdom::loaded count = w.load(text);
    CHECK(count.loaded + count.skipped + 1 == std::count(text.begin(), text.end(), '\n'));
    CHECK(count.loaded > 0);
    const profile &h200 = profile_named("h200");
    const choice by = choose(problem_of("wht:bf16:b128:n8192"), h200, {}, w, nullptr);
    CHECK(by.source == choice_source::wisdom);

    const std::string generic =
        read_file(golden_path("../../benchmarks/results/GENERIC_CPU/wisdom.txt"));
    const wisdom::loaded more = w.load(generic);
    CHECK(more.skipped == 0);
    CHECK(more.loaded + 1 == std::count(generic.begin(), generic.end(), '\n'));
    for (const char *cpu : {"cpu_avx2_2c", "cpu_avx512_64c"})
        for (const char *token : {"wht:f32:b1024:n4096", "wht:f64:n1048576"})
            CHECK(choose(problem_of(token), profile_named(cpu), {}, w, nullptr).source ==
                  choice_source::generic);
}

TEST_CASE("wisdom: times of a generic CPU say who is faster where the device has none") {
    const std::string rows = "wht:f32:b64:n4096", level = "cpu/AVX2/generic";
    const profile &cpu = profile_named("cpu_avx2_2c");
    CHECK(cpu.generic_fingerprint() == level);
    CHECK(profile_named("h200").generic_fingerprint().empty());
    const problem p = problem_of(rows);
    wisdom w;
    CHECK(choose(p, cpu, {}, w, nullptr).source == choice_source::estimate);
    preferences only;
    only.wisdom_only = true;
    CHECK(contains(sentence_of(PLAIT_ERR_NO_WISDOM, [&] { choose(p, cpu, only, w, nullptr); }),
                   rows));
    for (const bool lines_win : {true, false}) {
        w.clear();
        w.record(rows, level, candidate_named("wht.cpu.lines"), lines_win ? 1e-6 : 2e-6);
        w.record(rows, level, candidate_named("wht.cpu.simd"), lines_win ? 2e-6 : 1e-6);
        for (const preferences &pref : {preferences{}, only}) {
            const choice c = choose(p, cpu, pref, w, nullptr);
            CHECK(c.source == choice_source::generic);
            CHECK(c.what->name == std::string(lines_win ? "wht.cpu.lines" : "wht.cpu.simd"));
            CHECK(!c.measured); // it is no time of this device
        }
    }
    // Other instructions, and any time of the device itself.
    CHECK(choose(p, profile_named("cpu_avx512_64c"), {}, w, nullptr).source ==
          choice_source::estimate);
    w.record(rows, cpu.fingerprint(), candidate_named("wht.cpu.lines"), 1.0);
    const choice own = choose(p, cpu, {}, w, nullptr);
    CHECK(own.source == choice_source::wisdom);
    CHECK(own.what->name == std::string("wht.cpu.lines"));
    CHECK(own.measured == 1.0);
}

TEST_CASE("wisdom: merging keeps the smaller time") {
    wisdom w;
    const candidate &c = candidate_named(tiled);
    w.record(token, here, c, 2e-3);
    w.record(token, here, c, 3e-3);
    CHECK(w.find(token, here, c) == 2e-3);
    const std::string rev = revision_of(tiled);
    w.load("plait-wisdom 1\n" + line(token, here, tiled, rev, "1e-3") +
           line(token, here, tiled, rev, "4e-3"));
    CHECK(w.find(token, here, c) == 1e-3);
    w.load("plait-wisdom 1\n" + line(token, here, tiled, rev, "5e-3"));
    CHECK(w.find(token, here, c) == 1e-3);
    // What `sort -u` makes of two files: the header is not in front of every family.
    wisdom sorted;
    CHECK(sorted
              .load(line("a:b", here, "a.cuda", "1", "1") + "plait-wisdom 1\n" +
                    line(token, here, tiled, rev, "1e-3"))
              .loaded == 1);
}

TEST_CASE("wisdom: lines of all devices are kept and told apart") {
    const std::string rev = revision_of(tiled), other = "cuda/8.0/108sm/NVIDIA_A100";
    const std::string text = "plait-wisdom 1\n" + line(token, other, tiled, rev, "0.5") +
                             line(token, here, tiled, rev, "0.25");
    wisdom w;
    const wisdom::loaded count = w.load(text);
    CHECK(count.loaded == 2);
    CHECK(count.skipped == 0);
    CHECK(w.save() == text);
    CHECK(w.find(token, here, candidate_named(tiled)) == 0.25);
    CHECK(w.find(token, other, candidate_named(tiled)) == 0.5);
}

TEST_CASE("wisdom: lines of nobody and torn lines are skipped and counted") {
    const std::string rev = revision_of(tiled);
    const std::string good = line(token, here, tiled, rev, "7.95e-04");
    const std::vector<std::string> bad = {
        line(token, "cuda/8.0/108sm/NVIDIA A100", tiled, rev, "1e-3"),
        line(token, "", tiled, rev, "1e-3"),
        line("wht:zzz", here, tiled, rev, "1e-3"),
        line("wht:f32:n8:scale=1", here, tiled, rev, "1e-3"),
        line(token, here, "wht.cuda.unheard_of", "1", "1e-3"),
        line("kda.fwd:bf16:b1", here, "kda.fwd.cuda.unheard_of", "1", "1e-3"),
        line(token, here, tiled, std::to_string(candidate_named(tiled).revision + 1), "1e-3"),
        line(token, here, tiled, "0", "1e-3"),
        line(token, here, tiled, "one", "1e-3"),
        line(token, here, tiled, rev, "soon"),
        line(token, here, tiled, rev, ""),
        line(token, here, tiled, rev, "1e-3s"),
        line(token, here, tiled, rev, "nan"),
        line(token, here, tiled, rev, "inf"),
        line(token, here, tiled, rev, "1e999"),
        line(token, here, tiled, rev, "-1e-3"),
        line(token, here, tiled, rev, "0"),
        token + " | " + here + "\n",
        line(token, here, tiled, rev, "1e-3 | more"),
        "|||||\n",
        "hello\n",
    };
    for (const std::string &l : bad) {
        INFO(l);
        wisdom w;
        const wisdom::loaded count = w.load("plait-wisdom 1\n" + l + good + "\n# comment\n");
        CHECK(count.loaded == 1);
        CHECK(count.skipped == 1);
        CHECK(w.find(token, here, candidate_named(tiled)) == 7.95e-4);
    }
}

TEST_CASE("wisdom: every cut of a file keeps only whole lines") {
    const std::string rev = revision_of(tiled);
    const std::string header = "plait-wisdom 1\n";
    const std::string text = header + line(token, here, tiled, rev, "7.95e-04") +
                             line("wht:f32:n65536", here, tiled, rev, "1.25e-04");
    const size_t first = text.find('\n', header.size()) + 1;
    for (size_t length = header.size(); length <= text.size(); ++length) {
        INFO(length);
        wisdom w;
        const wisdom::loaded count = w.load(text.substr(0, length));
        CHECK(count.loaded == (length < first ? 0 : length < text.size() ? 1 : 2));
        const bool cut = length != header.size() && length != first && length != text.size();
        CHECK(count.skipped == (cut ? 1 : 0));
        const auto time = w.find(token, here, candidate_named(tiled));
        if (time) CHECK(*time == 7.95e-4);
    }
}

TEST_CASE("wisdom: the header decides") {
    wisdom w;
    w.record(token, here, candidate_named(tiled), 1e-3);
    const std::string before = w.save();
    const std::string good = line(token, here, tiled, revision_of(tiled), "1e-6");
    CHECK(contains(sentence_of(PLAIT_ERR_VERSION, [&] { w.load("plait-wisdom 2\n" + good); }),
                   "line 1: version 2 is newer"));
    for (const std::string &text :
         {good, std::string("plait-profile 1\n"), std::string("plait-wisdom\n"),
          std::string("plait-wisdom one\n"), std::string("plait-wisdoms 1\n")}) {
        INFO(text);
        CHECK(contains(sentence_of(PLAIT_ERR_INVALID_ARGUMENT, [&] { w.load(text); }), "line 1"));
    }
    CHECK(w.save() == before);
    for (const char *blank : {"", "\n", " \r\n\n"}) { // made before its first time
        CHECK(w.load(blank).loaded == 0);
        CHECK(w.load(blank).skipped == 0);
    }
    CHECK(w.load("plait-wisdom 1\r\n" + good.substr(0, good.size() - 1) + "\r\n").loaded == 1);
    // Whichever line says it, and however many digits it has.
    for (const char *newer : {"2", "99999999999999999999"})
        CHECK(contains(sentence_of(PLAIT_ERR_VERSION,
                                   [&] {
                                       w.load("plait-wisdom 1\n" + good + "plait-wisdom " + newer +
                                              "\n" + good);
                                   }),
                       std::string("line 3: version ") + newer + " is newer"));
}

TEST_CASE("wisdom: times that are none are not recorded") {
    wisdom w;
    for (const double t : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
        w.record(token, here, candidate_named(tiled), t);
    CHECK(w.save() == "plait-wisdom 1\n");
}

TEST_CASE("wisdom: threads share a table") {
    wisdom w;
    const candidate &c = candidate_named(tiled);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 1; i <= 200; ++i) {
                w.record("wht:f32:n" + std::to_string(i), here, c, 1e-3 * (t + 1));
                (void)w.find("wht:f32:n" + std::to_string(201 - i), here, c);
                if (i % 50 == 0) {
                    wisdom copy;
                    copy.load(w.save());
                }
            }
        });
    for (std::thread &t : threads) t.join();
    for (int i = 1; i <= 200; ++i) CHECK(w.find("wht:f32:n" + std::to_string(i), here, c) == 1e-3);
}

} // namespace plait::test
