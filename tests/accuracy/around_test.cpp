// What stands around the passes of a transform (narrow inputs, diagonals, ROWS, AMAX, SCALES,
// HISTOGRAM, FACTOR), on random problems of every form: the results of the definition, which
// tests/api/wht_test.cpp holds against dense products.
#include "tests/support/around.h"
#include "tests/support/report.h"

#include <cmath>
#include <memory>
#include <set>

#ifdef PLAIT_TEST_EMULATED
#    include "tests/emulate/orders.h"
#endif

namespace plait::test {
namespace {

/// Tensors of a call, on the host or in the memory under test.
struct call_memory {
    std::vector<std::unique_ptr<guarded>> buffers;
    std::vector<plait_arg> args;
};

plan_ptr plan_on(const plait_context *ctx, const plait_desc *desc, const std::string &name) {
    const pref_ptr pref = preferences(name, PLAIT_MATH_F32);
    plait_plan *raw = nullptr;
    const plait_status s = plait_plan_create(&raw, ctx, desc, pref.get());
    REQUIRE_MESSAGE(s == PLAIT_OK, plait_last_error());
    return plan_ptr(raw);
}

struct checked_call {
    const plait_desc *desc;
    std::vector<tensor_facts> facts;
    std::vector<bytes> before, want;
    std::vector<int> shares; ///< the tensor whose memory it is, or -1

    checked_call(const random_problem &p, rng &r) : desc(p.desc.get()), facts(tensors_of(desc)) {
        const std::string token = token_of(desc);
        for (const tensor_facts &t : facts) {
            const bool in_place = t.role == PLAIT_Y && token.find("@x") != token.npos;
            shares.push_back(in_place ? 0 : -1); // X is the first
            before.push_back(t.access == PLAIT_READ ? filled(t, p.how, p.places, r)
                                                    : bytes(t.bytes(), std::byte{0xff}));
        }
        plait_context *raw = nullptr;
        REQUIRE(plait_context_create(&raw, PLAIT_CPU, 0) == PLAIT_OK);
        const context_ptr cpu(raw);
        const plan_ptr plan = plan_on(cpu.get(), desc, "wht.cpu.ref");
        want = before;
        std::vector<plait_arg> args;
        for (size_t i = 0; i < facts.size(); ++i)
            args.push_back({facts[i].role, want[shares[i] < 0 ? i : size_t{0}].data()});
        size_t size = 0;
        REQUIRE(plait_plan_workspace_size(plan.get(), &size) == PLAIT_OK);
        std::vector<std::byte> work(size + 256);
        void *base = work.data() + (256 - reinterpret_cast<uintptr_t>(work.data()) % 256) % 256;
        REQUIRE_MESSAGE(plait_execute(plan.get(), args.data(), static_cast<int>(args.size()), base,
                                      size, nullptr) == PLAIT_OK,
                        plait_last_error());
    }

    /// The outputs of one run by a candidate of the backend under test.
    std::vector<bytes> run(const std::string &name) const {
        const plan_ptr plan = plan_on(context(), desc, name);
        size_t size = 0;
        REQUIRE(plait_plan_workspace_size(plan.get(), &size) == PLAIT_OK);
        guarded work(size, 0, workspace_fill());
        call_memory m;
        for (size_t i = 0; i < facts.size(); ++i) {
            m.buffers.push_back(
                std::make_unique<guarded>(shares[i] < 0 ? before[i].size() : size_t{0}, 0, 0xff));
            if (shares[i] < 0) m.buffers.back()->put(before[i]);
            m.args.push_back({facts[i].role, m.buffers[shares[i] < 0 ? i : size_t{0}]->data()});
        }
        target().wait();
        const plait_status s =
            plait_execute(plan.get(), m.args.data(), static_cast<int>(m.args.size()), work.data(),
                          size, target().stream());
        CHECK_MESSAGE(s == PLAIT_OK, plait_last_error());
        target().wait();
        if (on_device()) note_steps(plan.get());
        CHECK(work.damage() == "");
        std::vector<bytes> out;
        for (size_t i = 0; i < facts.size(); ++i) {
            CHECK(m.buffers[i]->damage() == "");
            out.push_back(m.buffers[shares[i] < 0 ? i : size_t{0}]->get());
            if (facts[i].access == PLAIT_READ && !shared(i)) CHECK(out.back() == before[i]);
        }
        return out;
    }
    bool shared(size_t i) const {
        return std::find(shares.begin(), shares.end(), static_cast<int>(i)) != shares.end();
    }
};

void check_one(const random_problem &p, uint64_t seed, rng &r,
               std::set<std::string> *ran = nullptr) {
    if (!p.desc) return note_count("around: contradictions");
    const std::string token = token_of(p.desc.get());
    CAPTURE(token);
    CAPTURE(seed);
    plait_desc *again = nullptr;
    REQUIRE_MESSAGE(plait_desc_from_token(&again, token.c_str()) == PLAIT_OK, plait_last_error());
    const desc_ptr same(again);
    CHECK(token_of(again) == token);
    const std::vector<candidate> all = applicable(p.desc.get());
    CHECK(!all.empty());
    const checked_call call(p, r);
    const bool wide = token.find("64") != token.npos || token.find("c128") != token.npos;
    for (const candidate &by : all) {
        CAPTURE(by.name);
        std::vector<bytes> first;
#ifdef PLAIT_TEST_EMULATED
        for (const emulation::settings &order : walking_orders) {
            emulation::current_settings() = order;
#else
        for (int repeat = 0; repeat < 2; ++repeat) {
#endif
            const std::vector<bytes> out = call.run(by.name);
            if (first.empty()) first = out;
            CHECK_MESSAGE(out == first, "the order of threads changes the result");
        }
        note_count("around: runs of " + by.name);
        if (ran) ran->insert(by.name);
        for (size_t i = 0; i < call.facts.size(); ++i) {
            const tensor_facts &t = call.facts[i];
            if (t.access == PLAIT_READ) continue;
            const std::string name = plait_role_name(t.role);
            if (t.role == PLAIT_OVERFLOW)
                note_count(first[i] == bytes(4) ? "around: all fits" : "around: overflow");
            const bool f64 = wide && (t.dtype == PLAIT_F64 || t.dtype == PLAIT_C128) &&
                             token.find("amax.f64") == token.npos;
            // The largest of a group is as exact as the norm of its transform.
            const double share = t.role == PLAIT_AMAX || t.role == PLAIT_SCALES
                                     ? std::sqrt(static_cast<double>(p.places))
                                     : 1;
            CHECK_MESSAGE(differs(t, first[i], call.want[call.shares[i] < 0 ? i : size_t{0}],
                                  f64 ? 0x1p-53 : 0x1p-24,
                                  share * static_cast<double>(p.depth)) == "",
                          name);
        }
    }
}

} // namespace

TEST_CASE("around wht: random problems with everything that stands around the passes") {
#ifdef PLAIT_TEST_EMULATED
    const int items = 120;
#else
    const int items = config().small ? 120 : config().brief ? 300 : on_device() ? 1000 : 700;
#endif
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, 400000 + static_cast<uint64_t>(i));
        rng r(seed);
        check_one(random_problem(r, i % 20 == 0 ? 12 : 6), seed, r);
    }
}

TEST_CASE("around wht: rows in E4M3, with and without scales, of every length") {
    rng r(config().seed);
    const char *const forms[] = {":+scales:y.e4m3", ":group=16:+amax+scales:y.e4m3", ":y.e4m3",
                                 ":group=128:+scales:y.e4m3", ":+amax:y.e4m3:amax.f64"};
    int form = 0;
    for (int k = 7; k <= 15; ++k)
        for (const char *type : {"bf16", "f16", "f32"}) {
            const int64_t n = int64_t{1} << k, rows = k < 10 ? 37 : k < 14 ? 3 : 1;
            const std::string token = std::string("wht:") + type + ":b" + std::to_string(rows) +
                                      ":n" + std::to_string(n) + ":scale=0.125" + forms[form++ % 5];
            std::set<std::string> ran;
            check_one({token, n, r.pick({content::small, content::uniform, content::infinite})},
                      config().seed, r, &ran);
            if (!on_device()) continue;
            CHECK(ran.count("wht.cuda.block_e4m3") == 1);
            // A row of 2^15 is two parts, one after the other.
            const bool by_row = token.find('+') != token.npos && token.find("group") == token.npos;
            CHECK(ran.count("wht.cuda.mma16_e4m3") ==
                  (std::string(type) != "f32" && !(k == 15 && by_row)));
        }
    // What a thread has of one of two rounds; gaps of Y; groups that no warp holds.
    std::set<std::string> ran;
    check_one({"wht:f16:b2:n16384:group=1024:+amax+scales:y.e4m3", 16384, content::uniform}, 3, r,
              &ran);
    if (on_device()) CHECK(ran.count("wht.cuda.block_e4m3") == 1);
    ran.clear();
    check_one({"wht:bf16:b5:n256:+scales:y.e4m3.s264.1", 256, content::uniform}, 1, r, &ran);
    if (on_device()) CHECK(ran.count("wht.cuda.block_e4m3") == 1);
    ran.clear();
    check_one({"wht:bf16:b2:n8192:group=4096:+scales:y.e4m3", 8192, content::uniform}, 2, r, &ran);
    CHECK(ran.count("wht.cuda.block_e4m3") == 0);
}

TEST_CASE("around wht: diagonals on both sides, and between two transforms, of every length") {
    rng r(config().seed);
    const char *const forms[] = {":scale=0.125:+diag_in",
                                 ":scale=0.125:+diag_mid",
                                 ":scale=0.125:+signs+diag+diag_in",
                                 ":adj:scale=0.125:+signs+diag+diag_in",
                                 ":adj:scale=0.125:+signs+diag+diag_in+diag_mid",
                                 ":scale=0.125:+diag_mid",
                                 ":scale=0.125:+signs+diag+diag_in+diag_mid"};
    size_t form = 0;
    for (int k = 3; k <= 15; ++k)
        for (const char *type : {"f32", "c64", "f64", "c128", "bf16", "f16"}) {
            const std::string x = type;
            const bool half = x == "bf16" || x == "f16", wide = x == "f64" || x == "c128";
            const int log_n = x == "c64" || x == "c128" ? k - 1 : k;
            if (wide && k > 14) continue;
            const int64_t n = int64_t{1} << log_n, rows = k < 10 ? 37 : k < 14 ? 3 : 1;
            std::string tail = forms[form++ % std::size(forms)];
            // diagonals of a complex transform: complex, or real; rows without gaps, and with them
            const std::string options = tail + "+";
            if (form % 2 == 0 && x[0] == 'c')
                for (const std::string name : {"diag", "diag_in", "diag_mid"})
                    if (options.find("+" + name + "+") != options.npos)
                        tail += ":" + name + (x == "c64" ? ".f32" : ".f64");
            if (form % 3 == 0) tail += ":x.s" + std::to_string(n + 1) + ".1.a8";
            if (half && form % 3 == 0) tail.back() = '2';
            std::set<std::string> ran;
            check_one({"wht:" + x + ":b" + std::to_string(rows) + ":n" + std::to_string(n) + tail,
                       n, r.pick({content::small, content::uniform, content::infinite})},
                      config().seed, r, &ran);
            if (on_device()) CHECK(ran.count("wht.cuda.diagonal") == 1);
        }
}

TEST_CASE("around wht: bits and bytes of every length, stored, sized and counted") {
    rng r(config().seed);
    const char *const forms[] = {"",
                                 ":-y+amax",
                                 ":+amax",
                                 ":hist=9.-40.8:-y",
                                 "",
                                 ":hist=40.-60.3",
                                 ":hist=7.-100.30:-y+amax",
                                 ":hist=12.0.1:+amax"};
    size_t form = 0;
    for (int log_n = 7; log_n <= 15; ++log_n)
        for (const std::string x : {"b1", "i8"})
            for (int turn = 0; turn < 3; ++turn) {
                const int64_t n = int64_t{1} << log_n, rows = log_n < 11 ? 37 : log_n < 14 ? 3 : 2;
                std::string token = "wht:" + x + ":b" + std::to_string(rows) + ":n" +
                                    std::to_string(n) + forms[form++ % std::size(forms)];
                if (form % 3 == 0) token += ":x.s" + std::to_string(n + 8) + ".1";
                std::set<std::string> ran;
                check_one({token, n, r.pick({content::small, content::uniform})}, config().seed, r,
                          &ran);
                if (on_device()) CHECK(ran.count("wht.cuda.mma16_narrow") == 1);
            }
}

TEST_CASE("around wht: diagonals in place, with gaps, strided axes, masks and sizes") {
    rng r(config().seed);
    const char *const diagonals[] = {"+diag+diag_in:y@x", "+diag+diag_in+diag_mid:y@x",
                                     "+signs+diag_in:y@x", "+diag_in+amax:y@x",
                                     "+diag_in+diag_mid+amax:y@x"};
    for (const std::string shape : {"f32:b3:n256", "f64:b3:n32:b5", "c64:n512:bits=f3",
                                    "f32:n8:b3:n16", "c128:b2:n24.h12s:b3", "f32:b2:n52.h52w"})
        for (const char *adjoint : {":", ":adj:"})
            for (const std::string diagonal : diagonals) {
                const bool complex = shape[0] == 'c';
                if (complex && diagonal.find("amax") != diagonal.npos) continue;
                std::set<std::string> ran;
                check_one({"wht:" + shape + adjoint + diagonal, 512,
                           r.pick({content::small, content::uniform, content::infinite})},
                          config().seed, r, &ran);
                if (on_device()) CHECK(ran.count("wht.cuda.composed") == 1);
            }
    check_one({"wht:f32:b3:n64:adj:+diag_in:x.s66.1.a8:y.s66.1.a4@x", 64, content::uniform},
              config().seed, r);
    check_one({"wht:c64:b3:n64:+diag_in:x.s66.1:y.s66.1.a4@x", 64, content::uniform}, config().seed,
              r);
}

TEST_CASE("around wht: the largest magnitude alone") {
    rng r(config().seed);
    for (const char *token : {"wht:b1:b3:n4096:-y+amax", "wht:b1:b5:n16:-y+amax",
                              "wht:f32:b3:n2048:-y+amax", "wht:i32:b2:n8192:-y+amax"}) {
        std::set<std::string> ran;
        check_one({token, 4096, content::small}, config().seed, r, &ran);
        if (on_device()) CHECK(ran.count("wht.cuda.composed") == 1);
    }
}

TEST_CASE("around wht: W19 a store in E4M3 is the transform and then the rounding, byte for byte") {
    rng r(config().seed);
    for (const char *type : {"f32", "bf16"})
        for (const int64_t n : {64, 512})
            for (const auto &[form, group] : {std::pair{":y.e4m3", int64_t{0}},
                                              {":+scales:y.e4m3", n},
                                              {":group=16:+amax+scales:y.e4m3", int64_t{16}}}) {
                const std::string head =
                    std::string("wht:") + type + ":b5:n" + std::to_string(n) + ":scale=0.0625";
                // Whole numbers: sums are exact, so that both have the same results to round.
                const random_problem one(head + form, n, content::small);
                const random_problem two(head + (*type == 'f' ? "" : ":y.f32"), n, content::small);
                const checked_call fused(one, r);
                checked_call plain(two, r);
                plain.before[0] = fused.before[0];
                const bytes results = plain.run("")[1];
                for (const candidate &by : applicable(one.desc.get())) {
                    CAPTURE(by.name);
                    const std::vector<bytes> out = fused.run(by.name);
                    int64_t wrong = 0;
                    for (int64_t e = 0; e < 5 * n; ++e) {
                        float top = 0;
                        for (int64_t i = e - e % std::max<int64_t>(group, 1); group > 0; ++i) {
                            if (i == e - e % group + group) break;
                            top = std::max(top, std::fabs(static_cast<float>(
                                                    load(PLAIT_F32, results.data(), i))));
                        }
                        const float scale = top > 0 ? static_cast<float>(top / 448.0) : 1;
                        const double v = load(PLAIT_F32, results.data(), e);
                        const std::byte got = out[1][static_cast<size_t>(e)];
                        if (v == 0 && (got & std::byte{0x7f}) == std::byte{0}) continue; // any sign
                        // Divided in the accumulate type or, by the definition, in F64.
                        wrong += got != to_e4m3(static_cast<float>(v) / scale) &&
                                 got != to_e4m3(v / scale);
                    }
                    CHECK(wrong == 0);
                }
            }
}

TEST_CASE("around wht: whether results fit, where sums are beyond 64 bits") {
    rng r(config().seed);
    for (const auto &[token, n] : {std::pair{"wht:i64:b3:n2:rows=1:+overflow", 2},
                                   {"wht:i64:b2:n4:rows=2:+signs+overflow:rows.i32", 4},
                                   {"wht:i64:n64:b3:rows=5:+overflow+status:y.i32", 64},
                                   {"wht:i64:b2:n4:adj:+signs+overflow", 4},
                                   {"wht:i64:b2:n24.m12:adj:+signs+overflow", 24},
                                   {"wht:i64:n2:adj:rows=3:+signs+overflow", 2},
                                   {"wht:i64:n104.h52w:rows=2:+overflow+amax", 104},
                                   {"wht:i64:n104.h52w:adj:+signs+overflow:y.i32", 104},
                                   {"wht:i64:b3:n8:dya:rows=2:hist=9.-40.9:+overflow+amax", 8},
                                   {"wht:i64:b2:n2048:adj:+signs+overflow:y@x", 2048}})
        for (int repeat = 0; repeat < (n > 100 ? 2 : 6); ++repeat)
            check_one({token, n, repeat % 3 == 2 ? content::small : content::whole}, config().seed,
                      r);
}

TEST_CASE("around wht: the tokens of all users") {
    rng r(config().seed);
    for (const std::string &token : user_tokens())
        check_one({token, places_of(token), r.pick({content::small, content::uniform})},
                  config().seed, r);
}

TEST_CASE("around wht: factors of large orders") {
    rng r(config().seed);
    for (const char *token : {"wht:f32:b35:n172.h172w", "wht:f32:b2:n344.h172w:adj",
                              "wht:f32:n512.m256", "wht:bf16:n140.h140p1:b33", "wht:f64:n156.h156w",
                              "wht:c64:b2:n496.h124w:adj", "wht:i32:b2:n208.m208:+overflow"})
        check_one({token, 512, content::small}, config().seed, r);
}

} // namespace plait::test
