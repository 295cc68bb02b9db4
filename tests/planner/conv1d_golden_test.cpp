// Golden plans of convolutions: what is chosen for every token of the corpus on every profile.
#include "src/planner/operands.h"
#include "tests/planner/golden_text.h"

#include <set>

namespace plait::test {

namespace {

const std::vector<std::string> &conv1d_corpus() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> list;
        const std::string text = read_file(golden_path("conv1d_corpus.txt"));
        size_t from = 0;
        for (size_t end; (end = text.find('\n', from)) != text.npos; from = end + 1)
            if (end > from && text[from] != '#') list.push_back(text.substr(from, end - from));
        return list;
    }();
    return all;
}

std::string plan_of(const std::string &token, const profile &device) {
    std::string out = token + '\n';
    const problem p = problem_of(token);
    // The one reason for which a legal call may have no plan.
    const std::string reason = fits_memory(p, device, 0);
    if (!reason.empty()) return text(out, "  none: ", reason, '\n');
    wisdom none;
    const choice c = choose(p, device, {}, none, nullptr);
    if (!c.what) return out + "  empty\n";
    out += text("  ", c.what->name, " rev ", c.what->revision, '\n');
    // Arguments repeat the token; grids, bytes and operands are what a plan decides.
    out += steps_text(c.steps, [](const step &) { return std::string(); });
    return out + work_text(c.steps);
}

} // namespace

TEST_CASE("conv1d: golden plans, and every token of the corpus has one on every profile") {
    for (const named_profile &device : profiles()) {
        std::string text = "# " + device.facts.fingerprint() + "\n";
        for (const std::string &token : conv1d_corpus()) {
            INFO(device.name, " ", token);
            std::string plan;
            CHECK_NOTHROW(plan = plan_of(token, device.facts));
            text += plan;
        }
        check_golden("conv1d_" + device.name + ".txt", text);
    }
}

TEST_CASE("conv1d: no candidate is unreachable, and the definition is never the choice") {
    std::set<std::string> applied, chosen;
    for (const named_profile &device : profiles())
        for (const std::string &token : conv1d_corpus()) {
            const problem p = problem_of(token);
            if (p.empty || !fits_memory(p, device.facts, 0).empty()) continue;
            wisdom none;
            for (const ranked &r : rank(p, device.facts, {}, none))
                if (r.refusal.empty()) applied.insert(r.what->name);
            chosen.insert(choose(p, device.facts, {}, none, nullptr).what->name);
        }
    for (const char *family : {"conv1d.fwd", "conv1d.bwd", "conv1d.update"})
        for (const candidate &c : candidates_of(family)) {
            INFO(std::string(c.name));
            CHECK(applied.count(c.name) == 1);
            // It rounds less than the others: a chunk that it computes has other bits.
            if (c.operands == narrowest::exact) CHECK(chosen.count(c.name) == 0);
        }
}

TEST_CASE("conv1d: estimates grow with every extent") {
    const char *const families[] = {"conv1d.fwd", "conv1d.bwd", "conv1d.update"};
    for (const named_profile &device : profiles())
        for (const char *family : families)
            for (const char *shape :
                 {":c%:t1024:k4", ":t1024:c%:k4", ":c512:t%:k4", ":t%:c512:k4"}) {
                const bool update = std::string(family) == "conv1d.update";
                double first = 0, last = 0;
                for (const int64_t n : {256, 4096, 65536}) {
                    std::string token = text(family, ":bf16:b4", shape);
                    token.replace(token.find('%'), 1, std::to_string(n));
                    // A decode walks the samples of a row one after the other: few samples of many
                    // rows, or their latency hides all channels.
                    if (const size_t at = token.find(":t1024"); update && at != token.npos) {
                        token.replace(at, 6, ":t4");
                        token.replace(token.find(":b4"), 3, ":b256");
                    }
                    INFO(device.name, " ", token);
                    wisdom none;
                    const choice c = choose(problem_of(token), device.facts, {}, none, nullptr);
                    // Equal while a few rows leave most of a device idle.
                    CHECK(c.estimate.seconds >= 0.95 * last);
                    last = c.estimate.seconds;
                    if (n == 256) first = last;
                }
                INFO(device.name, " ", std::string(family), std::string(shape));
                CHECK(last > 2 * first);
            }
}

TEST_CASE("conv1d.update: the kernels of channels that README's table says") {
    const auto general = [](const char *token) {
        wisdom none;
        const choice c = choose(problem_of(token), profile_named("h200"), {}, none, nullptr);
        return c.steps.steps.back().variant.rfind("any.", 0) == 0;
    };
    for (const char *token :
         {"conv1d.update:bf16:b8:t1:c512:k2", "conv1d.update:f32:b8:t3:c512:k3:state=ring.6",
          "conv1d.update:f16:b8:t3:c512:k4", "conv1d.update:bf16:b8:c512:t1:k4"}) {
        INFO(std::string(token));
        CHECK(!general(token));
    }
    for (const char *token :
         {"conv1d.update:bf16:b8:t1:c512:k1", "conv1d.update:bf16:b8:t1:c512:k5",
          "conv1d.update:bf16:b8:c512:t2:k4", "conv1d.update:bf16:b8:c512:t1:k4:state=ring.3",
          "conv1d.update:bf16:b8:t1:c512:k4:state=lin.4",
          "conv1d.update:bf16:b8:t1:c512:k4:state.f32"}) {
        INFO(std::string(token));
        CHECK(general(token));
    }
}

TEST_CASE("conv1d: steps read and write the bytes of the tensors") {
    // The chosen plan of a plain forward moves x, w and y and nothing else of their size.
    for (const named_profile &device : profiles())
        for (const char *token :
             {"conv1d.fwd:bf16:b8:c2048:t2048:k4", "conv1d.fwd:bf16:b8:t2048:c2048:k4"}) {
            INFO(device.name, " ", token);
            wisdom none;
            const choice c = choose(problem_of(token), device.facts, {}, none, nullptr);
            int64_t read = 0, written = 0;
            for (const step &s : c.steps.steps) {
                read += s.bytes_read;
                written += s.bytes_written;
            }
            const int64_t tensor = int64_t{8} * 2048 * 2048 * 2;
            CHECK(written == tensor);
            CHECK(read >= tensor);
            CHECK(read < tensor + tensor / 8);
        }
}

} // namespace plait::test
