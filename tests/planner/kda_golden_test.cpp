// Golden plans of Kimi Delta Attention, and the sentences where there is none.
#include "src/planner/operands.h"
#include "tests/planner/golden_text.h"

#include <map>

namespace plait::test {

namespace {

const std::vector<std::string> &kda_corpus() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> list;
        const std::string text = read_file(golden_path("kda_corpus.txt"));
        size_t from = 0;
        for (size_t end; (end = text.find('\n', from)) != text.npos; from = end + 1)
            if (end > from && text[from] != '#') list.push_back(text.substr(from, end - from));
        return list;
    }();
    return all;
}

std::string plan_of(const std::string &token, const profile &device) {
    const problem p = problem_of(token);
    wisdom none;
    bool solved = false, excused = false;
    for (const ranked &r : rank(p, device, {}, none)) {
        if (r.what->backend != device.backend) continue;
        solved |= r.refusal.empty();
        // The reasons for which a legal call may have no plan: f64 on a device, a reserve where no
        // candidate has records, and memory.
        excused |= contains(r.refusal, " is f64; the arithmetic of kda on CUDA is f32") ||
                   contains(r.refusal, "role=reserve is in use, and it ") ||
                   contains(r.refusal, " bytes; the device has ");
    }
    if (!p.empty && !solved) {
        CHECK(excused);
        return text(token, "\n  none\n");
    }
    const choice c = choose(p, device, {}, none, nullptr);
    if (!c.what) return token + "\n  empty\n";
    return text(token, "\n  ", c.what->name, " rev ", c.what->revision, '\n',
                steps_text(c.steps, [](const step &) { return std::string(); }),
                work_text(c.steps));
}

} // namespace

TEST_CASE("kda: golden plans, and every token of the corpus has one on every profile") {
    for (const named_profile &device : profiles()) {
        std::string text = "# " + device.facts.fingerprint() + "\n";
        for (const std::string &token : kda_corpus()) {
            INFO(device.name, " ", token);
            std::string plan;
            CHECK_NOTHROW(plan = plan_of(token, device.facts));
            text += plan;
        }
        check_golden("kda_" + device.name + ".txt", text);
    }
}

TEST_CASE("kda: estimates of a candidate grow with every extent") {
    for (const named_profile &device : profiles()) {
        for (const char *family : {"kda.fwd", "kda.bwd"})
            for (const char *shape :
                 {":b%:t256:h4:k64:v64", ":b2:t%:h4:k64:v64", ":b2:t256:h%:k64:v64",
                  ":b2:t256:h4:k%:v64", ":b2:t256:h4:k64:v%"}) {
                std::map<std::string, double> last;
                for (const int64_t n : {4, 64, 1024}) {
                    std::string token = text(family, ":bf16", shape, ":gate=log");
                    token.replace(token.find('%'), 1, std::to_string(n));
                    INFO(device.name, " ", token);
                    wisdom none;
                    int found = 0;
                    for (const ranked &r : rank(problem_of(token), device.facts, {}, none)) {
                        if (!r.refusal.empty()) continue;
                        CAPTURE(r.what->name);
                        CHECK(r.estimate.seconds > last[r.what->name]);
                        last[r.what->name] = r.estimate.seconds;
                        ++found;
                    }
                    CHECK(found > 0);
                }
            }
    }
}

TEST_CASE("kda: scratch beyond the memory, or beyond 64 bits, is refused with a sentence") {
    const profile &device = profile_named("cpu_avx2_2c");
    for (const char *token : {"kda.bwd:bf16:b1:t1048576:h4:k16384:v16384:gate=log",
                              "kda.bwd:bf16:b1:t1:h1:k1073741824:v1:gate=log"}) {
        INFO(token);
        wisdom none;
        const std::string sentence = sentence_of(
            PLAIT_ERR_NOT_SUPPORTED, [&] { choose(problem_of(token), device, {}, none, nullptr); });
        CHECK(contains(sentence, "bytes"));
    }
}

} // namespace plait::test
