// Filters, rigor and limits, on a fake device that knows how long each pipeline takes.
#include "src/core/log.h"
#include "src/core/status.h"
#include "tests/planner/support.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

namespace plait::test {

namespace {

class no_memory final : public allocator {
public:
    void *allocate(size_t, plait_stream) override { return nullptr; }
    void release(void *, size_t, plait_stream) noexcept override {}
};

/// Steps "wht.block wht.columns_tiled" name a candidate well enough.
std::string kernels(const pipeline &p) {
    std::string out;
    for (const step &s : p.steps) out += (out.empty() ? "" : " ") + s.kernel;
    return out;
}

class fake_device final : public backend {
public:
    struct answer {
        double seconds = 1e-3;
        std::optional<failure> error;
        int sleep_ms = 0;
    };
    std::map<std::string, answer> answers; ///< by kernels()
    mutable std::vector<std::string> order;
    mutable std::vector<double> budgets;
    mutable std::atomic<int> running{0}, most{0};
    mutable allocator *used = nullptr;

    plait_backend kind() const override { return PLAIT_CUDA; }
    int device() const override { return 0; }
    profile describe() const override { return profile_named("h200"); }
    std::shared_ptr<const prepared> prepare(const pipeline &) const override { return nullptr; }
    void check_current() const override {}
    std::shared_ptr<allocator> default_allocator() const override {
        return std::make_shared<no_memory>();
    }
    double measure(const pipeline &p, const problem &of, allocator &memory,
                   double budget) const override {
        most = std::max(most.load(), ++running);
        CHECK(of.tensors.size() == 2);
        used = &memory;
        order.push_back(kernels(p));
        budgets.push_back(budget);
        const auto at = answers.find(order.back());
        const answer a = at == answers.end() ? answer{} : at->second;
        std::this_thread::sleep_for(std::chrono::milliseconds(a.sleep_ms));
        --running;
        if (a.error) throw *a.error;
        return a.seconds;
    }
};

const char *const shuffle_steps = "wht.block wht.columns_shuffle";
const char *const tiled_steps = "wht.block wht.columns_tiled";
const char *const any_steps = "wht.any wht.any";
/// Bytes that start anywhere: only passes over the memory take them.
const char *const token = "wht:f32:b1024:n262144:x.a4";

preferences with_rigor(plait_rigor rigor) {
    preferences pref;
    pref.rigor = rigor;
    return pref;
}

std::string chosen(const std::string &t, const std::string &device, const preferences &pref) {
    wisdom none;
    return choose(problem_of(t), profile_named(device), pref, none, nullptr).what->name;
}

std::string refused(const std::string &t, const std::string &device, const preferences &pref) {
    return sentence_of(PLAIT_ERR_NOT_SUPPORTED, [&] { (void)chosen(t, device, pref); });
}

struct logged {
    std::vector<std::string> lines;
    std::vector<int> bits;
};

} // namespace

TEST_CASE("rank: admissible first and best first, each refusal is a sentence") {
    wisdom known;
    const profile &h200 = profile_named("h200");
    for (const std::string &t : corpus()) {
        INFO(t);
        const problem p = problem_of(t);
        const std::vector<ranked> rows = rank(p, h200, {}, known);
        REQUIRE(rows.size() == candidates_of("wht").size());
        bool refusals = false, general = false;
        double before = 0;
        for (const ranked &r : rows) {
            if (!r.refusal.empty()) {
                refusals = true;
                continue;
            }
            CHECK_FALSE(refusals);
            CHECK_FALSE((general && !r.what->general)); // what takes everything comes behind
            if (r.what->general == general) CHECK(r.estimate.seconds >= before);
            general = r.what->general;
            before = r.estimate.seconds;
            CHECK(r.work_bytes == r.what->build(p, h200).work.bytes());
        }
    }
}

TEST_CASE("an empty problem has no steps on any device, whatever the preferences") {
    preferences pref = with_rigor(PLAIT_EXHAUSTIVE);
    pref.wisdom_only = true;
    pref.pattern = "nothing";
    for (const named_profile &device : profiles()) {
        wisdom none;
        const choice c = choose(problem_of("wht:f32:b0:n4096"), device.facts, pref, none, nullptr);
        CHECK(c.what == nullptr);
        CHECK(c.steps.steps.empty());
        CHECK(c.steps.work.bytes() == 0);
        CHECK(c.source == choice_source::empty);
        for (const ranked &r : rank(problem_of("wht:i32:b0:n4096"), device.facts, {}, none))
            CHECK_FALSE(r.refusal.empty());
    }
}

TEST_CASE("filters: backend, pattern, workspace, math, determinism") {
    preferences pref;
    CHECK(chosen("wht:f32:b8:n1024", "h200", pref) == "wht.cuda.block");
    CHECK(chosen("wht:f32:b8:n1024", "cpu_avx2_2c", pref) == "wht.cpu.simd");
    pref.pattern = "*.ref";
    CHECK(chosen("wht:f32:b8:n1024", "cpu_avx2_2c", pref) == "wht.cpu.ref");
    CHECK(contains(refused("wht:f32:b8:n1024", "h200", pref), "the pattern \"*.ref\" excludes it"));
    pref.pattern = "wht.cuda.block";
    CHECK(contains(refused(token, "h200", pref),
                   "the nearest is wht.cuda.block: n=262144 is over 65536"));
    pref.pattern = "-*.tiled";
    CHECK(chosen(token, "h200", pref) != "wht.cuda.two_pass.tiled");
    pref.pattern = "*.shuffle";
    CHECK(chosen(token, "h200", pref) == "wht.cuda.two_pass.shuffle");

    const char *const half = "wht:bf16:b1024:n262144:x.a2";
    pref = {};
    CHECK(contains(chosen(half, "h200", pref), "two_pass"));
    pref.math = PLAIT_MATH_TF32;
    CHECK(contains(chosen(half, "h200", pref), "two_pass"));
    pref.math = PLAIT_MATH_F32;
    CHECK(chosen(half, "h200", pref) == "wht.cuda.multi_pass");
    CHECK(chosen("wht:bf16:b1024:n32768", "h200", pref) == "wht.cuda.mma16");
    CHECK(contains(chosen(token, "h200", pref), "two_pass"));
    wisdom none;
    for (const ranked &r : rank(problem_of(half), profile_named("h200"), pref, none))
        if (r.what->operands == narrowest::stored) CHECK(contains(r.refusal, "rounds to bf16"));

    pref.workspace_limit = 1024;
    CHECK(contains(refused(half, "h200", pref),
                   "wht.cuda.any: its workspace of 1073741824 bytes is over the limit of "
                   "1024"));
    pref.workspace_limit = 1073741824;
    CHECK(chosen(half, "h200", pref) == "wht.cuda.multi_pass");
    pref.workspace_limit = 0;
    CHECK(contains(chosen(token, "h200", pref), "two_pass"));

    pref = {};
    pref.determinism = PLAIT_RUN_TO_RUN;
    CHECK(chosen("wht:f32:b8:n1024", "h200", pref) == "wht.cuda.block");
}

TEST_CASE("the nearest is one that another size brings in, not another type") {
    CHECK(contains(refused("kda.fwd:f32:b1:t1125899906842624:h1:k1:v1:gate=log", "h200", {}),
                   "the nearest is kda.fwd.cuda.recurrent: an extent of 1125899906842624"));
    CHECK(contains(refused("kda.bwd:f32:b1:t1125899906842624:h1:k1:v1:gate=log", "h200", {}),
                   "the nearest is kda.bwd.cuda.recurrent: an extent of 1125899906842624"));
}

TEST_CASE("the nearest is one for problems of that kind") {
    // too large for wht.cuda.composed, which alone takes AMAX of such rows; wht.cuda.any would say
    // that amax is in use
    const std::string large = refused("wht:f32:n1125899906842624:+amax", "h200", {});
    CHECK(contains(large, "the nearest is wht.cuda.composed: "));
    CHECK_FALSE(contains(large, "amax is in use"));
    CHECK(contains(refused("wht:i64:n4294967296:adj:+signs+overflow", "h200", {}),
                   "the nearest is wht.cuda.composed: overflow needs sums beyond 64 bits"));
}

TEST_CASE("a type that is refused comes with those that are not") {
    preferences simd;
    simd.pattern = "wht.cpu.simd";
    for (const char *t : {"wht:i8:n64", "wht:f32:n64:y.e4m3"}) {
        const std::string sentence = refused(t, "cpu_avx2_2c", simd);
        INFO(sentence);
        CHECK(contains(sentence, "; needs f16, bf16, f32, f64, c64, c128, i32 or i64"));
    }
}

TEST_CASE("not supported names the nearest candidate and its rule") {
    // What the kernels for rows refuse: wht.cuda.any takes everything.
    preferences rows;
    rows.pattern = "-*.any";
    const auto says = [&](const char *t, const char *part) {
        const std::string sentence = refused(t, "h200", rows);
        INFO(sentence);
        CHECK(contains(sentence, std::string(t) + ": no candidate applies on cuda/9.0/132sm/"));
        CHECK(contains(sentence, "the nearest is wht.cuda."));
        CHECK(contains(sentence, part));
        if (!contains(part, "tensors and workspace"))
            CHECK(chosen(t, "h200", {}) == "wht.cuda.any");
    };
    says("wht:i32:n65536:y.i64", "there is no kernel that stores i32 rows of 65536 as i64");
    says("wht:i32:n1024:+overflow", "overflow is in use");
    says("wht:c64:n1024:y.c128", "there is no kernel that stores f32 rows");
    says("wht:f32:n1024:b300", "the transformed axis of x has stride 300; needs 1");
    says("wht:f32:b16:n256:n256:seq", "order=sequency; needs natural");
    says("wht:i32:b4:n1024:dya", "order=dyadic; needs natural");
    says("wht:i32:b64:n1536.h12p2", "n=1536 has a factor matrix; needs a power of two");
    says("wht:i32:b64:n1024:+signs", "signs is in use");
    says("wht:c64:b64:n1024:+diag:diag.s1024.1", "diag is in use");
    says("wht:f32:b4:b100:n1024:x.s204800.1024.1", "2 batch axes do not merge; needs one");
    says("wht:f32:n4:b3:n1024", "2 transformed axes do not merge; needs one");
    says("wht:f32:b100:n1024:x.s0.1", "rows of x overlap: row stride 0 is below n=1024");
    says("wht:f32:b100:n1024:y.f64", "there is no kernel that stores f32 rows");
    says("wht:f32:b10:n17179869184", "tensors and workspace take");
    says("wht:f32:b3000000000:n8", "the nearest is wht.cuda.block: tensors and workspace take");
    says("wht:f32:n8:bits=5", "bits=5 has a gap below its highest bit; needs the lowest bits");
    says("wht:f32:b4:n64:bits=30", "bits=30 has a gap below");
    says("wht:f16:n134217728:y.f64", "there is no kernel that stores f16 rows");
    profile old = profile_named("h200");
    old.built = {100, 120};
    wisdom none;
    CHECK(contains(sentence_of(PLAIT_ERR_NOT_SUPPORTED,
                               [&] { choose(problem_of(token), old, {}, none, nullptr); }),
                   "this build holds kernels from 100 up; the device is 9.0"));
    old.built.clear();
    CHECK(contains(sentence_of(PLAIT_ERR_NOT_SUPPORTED,
                               [&] { choose(problem_of(token), old, {}, none, nullptr); }),
                   "this build holds no CUDA kernels"));
}

TEST_CASE("16 bits between passes: a scale that sinks below the normal range needs f32") {
    CHECK(contains(chosen("wht:f16:n67108864:scale=0.0001220703125", "h200", {}), "two_pass"));
    CHECK(chosen("wht:f16:n67108864:scale=1.4901161193847656e-08", "h200", {}) ==
          "wht.cuda.multi_pass");
    CHECK(contains(chosen("wht:bf16:n67108864:scale=1.4901161193847656e-08", "h200", {}),
                   "two_pass"));
    wisdom none;
    for (const ranked &r : rank(problem_of("wht:f16:n67108864:scale=1.4901161193847656e-08"),
                                profile_named("h200"), {}, none))
        if (std::string(r.what->name) == "wht.cuda.two_pass.tiled")
            CHECK(contains(r.refusal, "below the normal range"));
}

TEST_CASE("estimate uses wisdom, and the fastest time wins") {
    wisdom known;
    const profile &h200 = profile_named("h200");
    const problem p = problem_of(token);
    CHECK(choose(p, h200, {}, known, nullptr).source == choice_source::estimate);
    const std::string first = choose(p, h200, {}, known, nullptr).what->name;
    known.record(p.token, h200.fingerprint(), candidate_named("wht.cuda.two_pass.shuffle"), 2.0);
    choice c = choose(p, h200, {}, known, nullptr);
    CHECK(std::string(c.what->name) == "wht.cuda.two_pass.shuffle");
    CHECK(c.source == choice_source::wisdom);
    CHECK(c.measured == 2.0);
    known.record(p.token, h200.fingerprint(), candidate_named("wht.cuda.two_pass.tiled"), 1.0);
    c = choose(p, h200, {}, known, nullptr);
    CHECK(std::string(c.what->name) == "wht.cuda.two_pass.tiled");
    // Preferences filter wisdom too, and another device does not see it.
    preferences pref;
    pref.pattern = "-*.tiled";
    CHECK(std::string(choose(p, h200, pref, known, nullptr).what->name) ==
          "wht.cuda.two_pass.shuffle");
    CHECK(choose(p, profile_named("a100"), {}, known, nullptr).source == choice_source::estimate);
}

TEST_CASE("wisdom_only plans from wisdom or not at all") {
    preferences pref = with_rigor(PLAIT_MEASURE);
    pref.wisdom_only = true;
    wisdom known;
    const profile &h200 = profile_named("h200");
    const problem p = problem_of(token);
    CHECK(contains(sentence_of(PLAIT_ERR_NO_WISDOM, [&] { choose(p, h200, pref, known, nullptr); }),
                   "wisdom has no time on cuda/9.0/132sm/NVIDIA_H200"));
    known.record(p.token, h200.fingerprint(), candidate_named("wht.cuda.two_pass.tiled"), 1.0);
    fake_device device;
    CHECK(choose(p, h200, pref, known, &device).source == choice_source::wisdom);
    CHECK(device.order.empty());
    pref.pattern = "-*.tiled";
    CHECK(contains(sentence_of(PLAIT_ERR_NO_WISDOM, [&] { choose(p, h200, pref, known, nullptr); }),
                   token));
    const problem integers = problem_of("wht:i32:n65536:y.i64");
    pref.pattern = "-*.any";
    (void)sentence_of(PLAIT_ERR_NOT_SUPPORTED,
                      [&] { choose(integers, h200, pref, known, nullptr); });
}

TEST_CASE("measuring: best first, recorded, and not repeated") {
    for (const plait_rigor rigor : {PLAIT_MEASURE, PLAIT_EXHAUSTIVE}) {
        fake_device device;
        device.answers[shuffle_steps].seconds = 5e-4;
        device.answers[tiled_steps].seconds = 7e-4;
        wisdom known;
        const profile &h200 = profile_named("h200");
        const problem p = problem_of(token);
        const std::vector<ranked> before = rank(p, h200, {}, known);
        no_memory mine;
        choice c = choose(p, h200, with_rigor(rigor), known, &device, &mine);
        CHECK(device.used == &mine);
        CHECK(std::string(c.what->name) == "wht.cuda.two_pass.shuffle");
        CHECK(c.source == choice_source::measured);
        CHECK(c.measured == 5e-4);
        CHECK(kernels(c.steps) == shuffle_steps);
        REQUIRE(device.order.size() == 4);
        for (size_t i = 0; i < device.order.size(); ++i)
            CHECK(device.order[i] == kernels(before[i].what->build(p, h200)));
        for (const double budget : device.budgets) CHECK(budget > 0);
        for (const char *name :
             {"wht.cuda.two_pass.shuffle", "wht.cuda.two_pass.tiled", "wht.cuda.multi_pass"})
            CHECK(known.find(p.token, h200.fingerprint(), candidate_named(name)));

        c = choose(p, h200, with_rigor(rigor), known, &device);
        CHECK(device.order.size() == 4);
        CHECK(c.source == choice_source::wisdom);
        CHECK(choose(p, h200, with_rigor(rigor), known, nullptr).source == choice_source::wisdom);
    }
}

TEST_CASE("measuring without a device") {
    wisdom none;
    CHECK(contains(sentence_of(PLAIT_ERR_NO_DEVICE,
                               [&] {
                                   choose(problem_of(token), profile_named("h200"),
                                          with_rigor(PLAIT_MEASURE), none, nullptr);
                               }),
                   "rigor=measure has to measure"));
}

TEST_CASE("a time limit ends measuring with the best so far, after at least one") {
    fake_device device;
    device.answers[shuffle_steps].sleep_ms = 30;
    device.answers[tiled_steps].sleep_ms = 30;
    wisdom known;
    preferences pref = with_rigor(PLAIT_EXHAUSTIVE);
    pref.time_limit = 0.01;
    const choice c = choose(problem_of(token), profile_named("h200"), pref, known, &device);
    CHECK(device.order.size() == 1);
    CHECK(device.budgets.front() <= 0.01);
    CHECK(c.source == choice_source::measured);
    CHECK(kernels(c.steps) == device.order.front());

    fake_device again;
    pref.time_limit = 0.0;
    wisdom empty;
    choose(problem_of(token), profile_named("h200"), pref, empty, &again);
    CHECK(again.order.size() == 1);
}

TEST_CASE("a candidate that cannot be measured is passed over") {
    fake_device device;
    device.answers[tiled_steps].error = failure(PLAIT_ERR_OUT_OF_MEMORY, "no 4 GB for scratch");
    wisdom known;
    const choice c =
        choose(problem_of(token), profile_named("h200"), with_rigor(PLAIT_MEASURE), known, &device);
    CHECK(std::string(c.what->name) == "wht.cuda.two_pass.shuffle");
    CHECK(device.order.size() == 4);

    // A backend that answers nonsense has not measured.
    device.answers[tiled_steps] = {-1.0, std::nullopt, 0};
    wisdom other;
    CHECK(std::string(choose(problem_of(token), profile_named("h200"), with_rigor(PLAIT_MEASURE),
                             other, &device)
                          .what->name) == "wht.cuda.two_pass.shuffle");

    device.answers[tiled_steps].error = failure(PLAIT_ERR_OUT_OF_MEMORY, "no 4 GB for scratch");
    device.answers[shuffle_steps].error = device.answers[tiled_steps].error;
    device.answers[any_steps].error = device.answers[tiled_steps].error;
    wisdom none;
    CHECK(contains(sentence_of(PLAIT_ERR_OUT_OF_MEMORY,
                               [&] {
                                   choose(problem_of(token), profile_named("h200"),
                                          with_rigor(PLAIT_MEASURE), none, &device);
                               }),
                   "no candidate could be measured; the first: no 4 GB for scratch"));
}

TEST_CASE("failures that concern everything end planning") {
    for (const plait_status code : {PLAIT_ERR_CAPTURING, PLAIT_ERR_NO_DEVICE, PLAIT_ERR_INTERNAL}) {
        fake_device device;
        device.answers[tiled_steps].error = failure(code, "stop");
        device.answers[shuffle_steps].error = failure(code, "stop");
        wisdom none;
        CHECK(sentence_of(code, [&] {
                  choose(problem_of(token), profile_named("h200"), with_rigor(PLAIT_MEASURE), none,
                         &device);
              }) == "stop");
        CHECK(device.order.size() == 1);
    }
}

TEST_CASE("threads plan with one wisdom: one measurement at a time, each once") {
    fake_device device;
    device.answers[shuffle_steps] = {5e-4, std::nullopt, 2};
    device.answers[tiled_steps] = {7e-4, std::nullopt, 2};
    wisdom known;
    const profile &h200 = profile_named("h200");
    const problem p = problem_of(token);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i) {
                const choice c = choose(p, h200, with_rigor(PLAIT_MEASURE), known, &device);
                right += std::string(c.what->name) == "wht.cuda.two_pass.shuffle";
                (void)known.save();
            }
        });
    for (std::thread &t : threads) t.join();
    CHECK(right == 30);
    CHECK(device.most == 1);
    CHECK(device.order.size() == 4);
}

TEST_CASE("the log tells what was chosen and why the others were not") {
    logged got;
    set_log(
        PLAIT_LOG_PLAN | PLAIT_LOG_DISPATCH,
        [](int bit, const char *line, void *user) {
            static_cast<logged *>(user)->bits.push_back(bit);
            static_cast<logged *>(user)->lines.emplace_back(line);
        },
        &got);
    wisdom none;
    choose(problem_of("wht:f32:b8:n1024"), profile_named("h200"), {}, none, nullptr);
    set_log(0, nullptr, nullptr);
    REQUIRE(got.lines.size() == candidates_of("wht").size() + 1);
    CHECK(contains(got.lines.front(), "wht:f32:b8:n1024: wht.cuda.block: ok, estimate "));
    for (size_t i = 0; i + 1 < got.lines.size(); ++i) CHECK(got.bits[i] == PLAIT_LOG_DISPATCH);
    size_t passes = 0;
    for (const std::string &line : got.lines)
        passes += contains(line, "no, n=1024 fits one block") ? 1 : 0;
    CHECK(passes == 3);
    CHECK(got.bits.back() == PLAIT_LOG_PLAN);
    CHECK(contains(got.lines.back(), "-> wht.cuda.block by cost-model"));
}

} // namespace plait::test
