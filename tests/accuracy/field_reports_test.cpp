// Inputs that broke other libraries, as users reported them: one test for each report that concerns
// this version. The number is the one of the project's list of reports.
//
// Not here:
//   W14, W32  graphs and streams: tests/gpu/graph_test.cpp, streams_test.cpp
//   W19       a store in E4M3: around_test.cpp
//   W23, W28, W33  speed: benchmarks; what they say about results is tested below
//   W42, W43  rows of 4096, more than 2^32 elements: tests/gpu/huge_test.cpp
#include "tests/support/check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace plait::test {
namespace {

wht_call rows(plait_dtype type, int64_t count, int64_t n) {
    wht_call c;
    c.x = type;
    c.extents = {count, n};
    return c;
}

wht_call with_factor(plait_dtype type, int64_t count, int64_t n, plait_wht_factor f) {
    wht_call c = rows(type, count, n);
    c.factor = {{1, f}};
    return c;
}

const plait_dtype floats[] = {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16};

/// Small whole numbers, exact results.
void exactly(const wht_call &call) {
    rng random(config().seed);
    expect_exact(call, random_data(call, filling::integers, random));
}

/// A CUDA device that is not here: planning needs no device.
context_ptr device_of(int cc_major, int cc_minor, int64_t smem_per_block, const char *built) {
    const std::string text = "plait-profile 1\nbackend cuda\nname test\ncopy_bandwidth 1e12\n"
                             "launch_seconds 2e-06\nmemory_bytes 25769803776\ncc_major " +
                             std::to_string(cc_major) + "\ncc_minor " + std::to_string(cc_minor) +
                             "\nsms 24\nsmem_per_block " + std::to_string(smem_per_block) +
                             "\nsmem_per_sm " +
                             std::to_string(std::max<int64_t>(102400, smem_per_block)) +
                             "\nthreads_per_sm 1536\nregisters_per_sm 65536\n"
                             "l2_bytes 25165824\nf32_per_second 7e12\nf64_per_second 1e11\nbuilt " +
                             built + "\n";
    plait_context *ctx = nullptr;
    REQUIRE_MESSAGE(plait_context_create_from_profile(&ctx, text.c_str()) == PLAIT_OK,
                    plait_last_error());
    return context_ptr(ctx);
}

plait_status plan_on(const plait_context *ctx, const wht_call &call, plan_ptr &plan) {
    plait_plan *raw = nullptr;
    const plait_status s = plait_plan_create(&raw, ctx, desc_of(call).get(), nullptr);
    plan.reset(raw);
    return s;
}

std::string json_of(const plait_plan *plan) {
    return text_of(
        [&](char *b, size_t c, size_t *s) { return plait_plan_print(plan, PLAIT_JSON, b, c, s); });
}

} // namespace

TEST_CASE("W1 the identity of order 12 through the factor of order 12") {
    for (plait_wht_factor f : {PLAIT_H12_PALEY2, PLAIT_H12_SLOANE})
        for (plait_dtype type : floats) {
            const wht_call c = with_factor(type, 12, 12, f);
            const auto identity =
                data_of(c, [](int64_t e) { return e / 12 == e % 12 ? 1.0 : 0.0; });
            expect_exact(c, identity);
            for_each_candidate(c, [&](const candidate &by) { // rows orthogonal
                const auto y = values_of(c, result_of(c, identity, by));
                for (size_t i = 0; i < 12 && !y.empty(); ++i)
                    for (size_t j = 0; j < 12; ++j) {
                        double dot = 0;
                        for (size_t k = 0; k < 12; ++k) dot += y[12 * i + k] * y[12 * j + k];
                        CHECK(dot == (i == j ? 12 : 0));
                    }
            });
        }
}

TEST_CASE("W2 n = 48 against the dense product of the named H12 with H4") {
    for (plait_wht_factor f : {PLAIT_H12_PALEY2, PLAIT_H12_SLOANE}) {
        const wht_call c = with_factor(PLAIT_F32, 48, 48, f);
        const auto identity = data_of(c, [](int64_t e) { return e / 48 == e % 48 ? 1.0 : 0.0; });
        for_each_candidate(c, [&](const candidate &by) { // row i of the result is column i of H
            const auto y = values_of(c, result_of(c, identity, by));
            CHECK(first_wrong(y, [&](int64_t e) {
                      const int j = static_cast<int>(e / 48), i = static_cast<int>(e % 48);
                      return factor_matrix(f).at(i / 4, j / 4) * hadamard_sign(i % 4, j % 4);
                  }) == -1);
        });
    }
}

TEST_CASE("W3 n = 96, 160, 224: no size in the range is skipped") {
    for (plait_dtype type : floats)
        for (const auto &[f, m] : {std::pair{PLAIT_H12_PALEY2, 12},
                                   {PLAIT_H12_SLOANE, 12},
                                   {PLAIT_H20_WILLIAMSON, 20},
                                   {PLAIT_H28_WILLIAMSON, 28},
                                   {PLAIT_H40, 40}})
            for (int k = 0; k <= 6; ++k) exactly(with_factor(type, 3, int64_t{m} << k, f));
}

TEST_CASE("W4 the largest length that a plan accepts, and one step beyond") {
    const context_ptr ctx = device_of(9, 0, 232448, "90");
    for (int k = 0; k <= 40; ++k) { // 24 GiB: 2^31 F32 in place, never more
        wht_call c = rows(PLAIT_F32, 1, int64_t{1} << k);
        c.alias = true;
        plan_ptr plan;
        const plait_status s = plan_on(ctx.get(), c, plan);
        if (k <= 32) {
            CHECK(s == PLAIT_OK);
        } else {
            CHECK((s == PLAIT_OK || s == PLAIT_ERR_NOT_SUPPORTED));
        }
    }
    wht_call c = rows(PLAIT_F32, 1, int64_t{1} << 62); // its bytes are beyond 64 bits
    CHECK(plan_status(c) == PLAIT_ERR_INVALID_DESC);
    c.extents = {int64_t{1} << 40, int64_t{1} << 40};
    CHECK(plan_status(c) == PLAIT_ERR_INVALID_DESC);
}

TEST_CASE("W5 a plan names the matrix: n = 12 without a name is no plan") {
    for (int64_t n : {12, 24, 20, 28, 40, 96})
        CHECK(plan_status(rows(PLAIT_F32, 2, n)) == PLAIT_ERR_INVALID_DESC);
    CHECK(factor_matrix(PLAIT_H12_PALEY2).sign != factor_matrix(PLAIT_H12_SLOANE).sign);
    exactly(with_factor(PLAIT_F32, 2, 24, PLAIT_H12_PALEY2));
    exactly(with_factor(PLAIT_F32, 2, 24, PLAIT_H12_SLOANE));
}

TEST_CASE("W6 the adjoint of the orders 12, 20, 28 and 40 is the transposed matrix") {
    for (plait_dtype type : floats)
        for (const auto &[f, m] : {std::pair{PLAIT_H12_SLOANE, 12},
                                   {PLAIT_H20_WILLIAMSON, 20},
                                   {PLAIT_H28_WILLIAMSON, 28},
                                   {PLAIT_H40, 40}})
            for (int k : {0, 3}) {
                wht_call c = with_factor(type, 2, int64_t{m} << k, f);
                c.adjoint = true;
                exactly(c);
            }
}

TEST_CASE("W7 W8 W25 a device for which this build holds no kernel: an error of the plan") {
    const wht_call c = rows(PLAIT_F32, 64, 64); // W25: the identity must not come back unchanged
    plan_ptr plan;
    const struct {
        int major, minor;
        const char *built;
    } missing[] = {{7, 5, "80 90"}, {8, 9, "90"}, {9, 0, "100"}, {9, 0, "none"}};
    for (const auto &m : missing) {
        const context_ptr ctx = device_of(m.major, m.minor, 101376, m.built);
        CHECK(plan_on(ctx.get(), c, plan) == PLAIT_ERR_NOT_SUPPORTED);
        CHECK(plan == nullptr);
        CHECK(std::string(plait_last_error()).find("build") != std::string::npos);
    }
    // An older target serves a newer device of the same major, and PTX of the newest a later one.
    for (const auto &[major, minor] : {std::pair{8, 0}, {8, 6}, {8, 9}, {9, 0}, {12, 0}}) {
        const context_ptr ctx = device_of(major, minor, 101376, "80 90 120");
        CHECK(plan_on(ctx.get(), c, plan) == PLAIT_OK);
    }
}

TEST_CASE("W9 an empty batch, shape (0, 64): success, no launch") {
    const desc_ptr desc = desc_of(rows(PLAIT_F16, 0, 64));
    plait_plan *raw = nullptr;
    REQUIRE(plait_plan_create(&raw, context(), desc.get(), nullptr) == PLAIT_OK);
    const plan_ptr plan(raw);
    int64_t steps = -1;
    CHECK(plait_plan_get_i64(raw, PLAIT_PLAN_STEPS, &steps) == PLAIT_OK);
    CHECK(steps == 0);
    const plait_arg args[] = {{PLAIT_X, nullptr}, {PLAIT_Y, nullptr}};
    CHECK(plait_execute(raw, args, 2, nullptr, 0, target().stream()) == PLAIT_OK);
}

TEST_CASE("W10 a view that starts one element in: the same bits as the aligned copy") {
    rng random(config().seed);
    for (plait_dtype type : floats)
        for (int64_t n : {64, 1024, 4096}) {
            wht_call aligned = rows(type, 7, n);
            aligned.scale = 0.3;
            wht_call shifted = aligned;
            shifted.x_offset = 1;
            const wht_data data = random_data(aligned, filling::uniform, random);
            for_each_candidate(aligned, [&](const candidate &by) {
                for (const candidate &also : applicable(desc_of(shifted).get()))
                    if (also.name == by.name)
                        CHECK(result_of(shifted, data, by) == result_of(aligned, data, by));
            });
        }
}

TEST_CASE("W11 16-bit rows of 64, row counts 1 to 4 modulo 8 above 8192") {
    rng random(config().seed);
    for (plait_dtype type : {PLAIT_F16, PLAIT_BF16})
        for (int64_t count : {8193, 8194, 8195, 8196}) {
            wht_call c = rows(type, count, 64);
            c.scale = 0.125;
            if (config().brief && count != 8195) continue;
            const wht_data data = random_data(c, filling::integers, random);
            expect_exact(c, data);
            for_each_candidate(c, [&](const candidate &by) {
                CHECK(result_of(c, data, by) == result_of(c, data, by));
            });
        }
}

TEST_CASE("W12 an odd number of chunks of 256 elements") {
    for (plait_dtype type : floats)
        for (int64_t count : {1, 3, 5, 7, 9, 31, 33}) exactly(rows(type, count, 256));
}

TEST_CASE("W13 out of place: the input is unchanged, the output is written") {
    for (plait_dtype type : floats) // the runner compares X and poisons Y
        for (int64_t n : {16, 512, 8192}) exactly(rows(type, 4, n));
}

TEST_CASE("W15 the output is the input by accident: refused unless the alias is declared") {
    for (bool alias : {false, true}) {
        wht_call c = rows(PLAIT_F32, 4, 256);
        c.alias = alias;
        const desc_ptr desc = desc_of(c);
        for (const candidate &by : applicable(desc.get())) {
            const plan_ptr plan = plan_by(by.name, desc.get());
            guarded x(4 * 256 * 4, 0, 0);
            size_t bytes_needed = 0;
            REQUIRE(plait_plan_workspace_size(plan.get(), &bytes_needed) == PLAIT_OK);
            guarded work(bytes_needed, 0, 0);
            const bytes before = x.get();
            const plait_arg args[] = {{PLAIT_X, x.data()}, {PLAIT_Y, x.data()}};
            CHECK(plait_execute(plan.get(), args, 2, work.data(), bytes_needed,
                                target().stream()) == (alias ? PLAIT_OK : PLAIT_ERR_POINTER));
            target().wait();
            CHECK(x.get() == before); // zeros either way
        }
    }
}

TEST_CASE("W16 W31 head sizes 80, 96, 192, 320, 512 as blocks; the scale is of the block") {
    for (plait_dtype type : floats)
        for (int64_t d : {80, 96, 192, 320, 512}) {
            const int64_t block = d & -d;
            wht_call c;
            c.x = type;
            c.extents = {5, d / block, block};
            if (block == 16 || block == 64) c.scale = 1 / std::sqrt(static_cast<double>(block));
            exactly(c);
            if (type != PLAIT_F32) continue;
            const context_ptr ctx = device_of(9, 0, 232448, "90"); // no fall-back to the CPU
            plan_ptr plan;
            REQUIRE(plan_on(ctx.get(), c, plan) == PLAIT_OK);
            CHECK(candidate_of(plan.get()).rfind("wht.cuda.", 0) == 0);
        }
}

TEST_CASE("W17 W30 d = 80 cannot be padded: no length but its own is a plan") {
    for (int64_t d : {80, 96, 192, 100}) {
        CHECK(plan_status(rows(PLAIT_F16, 2, d)) == PLAIT_ERR_INVALID_DESC);
        // With a named factor the whole norm must come back: 80 = 40 * 2.
    }
    rng random(config().seed);
    wht_call c = with_factor(PLAIT_F64, 1, 80, PLAIT_H40);
    c.scale = 1 / std::sqrt(80.0);
    const wht_data data = random_data(c, filling::uniform, random);
    for_each_candidate(c, [&](const candidate &by) {
        double x2 = 0, y2 = 0;
        for (int64_t e = 0; e < 80; ++e) x2 += std::pow(load(PLAIT_F64, data.x.data(), e), 2);
        for (double v : values_of(c, result_of(c, data, by))) y2 += v * v;
        CHECK(std::fabs(y2 - x2) <= 1e-13 * x2);
    });
}

TEST_CASE("W18 the caller's arguments are as before after a call") {
    wht_call c = rows(PLAIT_F32, 3, 64);
    const desc_ptr desc = desc_of(c);
    const std::string before = token_of(desc.get());
    rng random(config().seed);
    const wht_data data = random_data(c, filling::integers, random);
    for (const candidate &by : applicable(desc.get())) {
        const plan_ptr plan = plan_by(by.name, desc.get());
        bound_call bound(c, plan.get(), data);
        const std::vector<plait_arg> args = bound.args();
        REQUIRE(bound.execute() == PLAIT_OK);
        CHECK(bound.damage() == "");
        for (size_t i = 0; i < args.size(); ++i) {
            CHECK(bound.args()[i].role == args[i].role);
            CHECK(bound.args()[i].ptr == args[i].ptr);
        }
    }
    CHECK(token_of(desc.get()) == before);
}

TEST_CASE("W20 n = 12, 20, 28 exactly, and 24, 40, 56") {
    for (plait_dtype type : floats)
        for (const auto &[n, f] : {std::pair{12, PLAIT_H12_PALEY2},
                                   {20, PLAIT_H20_WILLIAMSON},
                                   {28, PLAIT_H28_WILLIAMSON},
                                   {24, PLAIT_H12_PALEY2},
                                   {40, PLAIT_H20_WILLIAMSON},
                                   {40, PLAIT_H40},
                                   {56, PLAIT_H28_WILLIAMSON}})
            exactly(with_factor(type, 3, n, f));
}

TEST_CASE("W21 n = 36, 60, 240 with a factor of 12 or 20: the quotient is no power of two") {
    for (plait_wht_factor f : {PLAIT_H12_PALEY2, PLAIT_H12_SLOANE, PLAIT_H20_WILLIAMSON})
        for (int64_t n : {36, 60, 240}) {
            const int64_t q = n % factor_matrix(f).order ? 3 : n / factor_matrix(f).order;
            if ((q & (q - 1)) == 0) continue;
            CHECK(plan_status(with_factor(PLAIT_F32, 1, n, f)) == PLAIT_ERR_INVALID_DESC);
        }
}

TEST_CASE("W22 n = 16384 in place on a device with few resources") {
    for (plait_dtype type : floats) {
        wht_call c = rows(type, 2, 16384);
        c.alias = true;
        c.scale = 1.0 / 128;
        exactly(c);
        const context_ptr ctx = device_of(7, 5, 65536, "75");
        plan_ptr plan;
        CHECK(plan_on(ctx.get(), c, plan) == PLAIT_OK);
    }
}

TEST_CASE("W23 n = 16 and 32, very many rows") {
    const int64_t count = config().brief || config().small || !on_device() ? 10001 : 300001;
    for (plait_dtype type : floats)
        for (int64_t n : {16, 32}) exactly(rows(type, count, n));
}

TEST_CASE("W24 n = 2") {
    for (plait_dtype type : floats)
        for (int64_t count : {1, 2, 3, 1001}) exactly(rows(type, count, 2));
}

TEST_CASE("W26 n = 13696, 10944, 29568, 18944: refused, with the rule and blocks as the way out") {
    for (int64_t n : {13696, 10944, 29568, 18944}) {
        CHECK(plan_status(rows(PLAIT_F16, 1, n)) == PLAIT_ERR_INVALID_DESC);
        const std::string sentence = plait_last_error();
        CHECK(sentence.find("blocks of " + std::to_string(n & -n)) != std::string::npos);
        wht_call c;
        c.x = PLAIT_F16;
        c.extents = {2, n / (n & -n), n & -n};
        exactly(c);
    }
}

TEST_CASE("W27 25600 = 256 * 100: the named factor decides") {
    for (plait_wht_factor f :
         {PLAIT_H40, PLAIT_H20_WILLIAMSON}) // 640 and 1280 are no powers of two
        CHECK(plan_status(with_factor(PLAIT_F32, 1, 25600, f)) == PLAIT_ERR_INVALID_DESC);
}

TEST_CASE("W28 W29 W34 lengths of models: 28672, 3584, 384, 640, 768, 1280") {
    for (plait_dtype type : {PLAIT_F32, PLAIT_BF16})
        for (const auto &[n, f] : {std::pair{28672, PLAIT_H28_WILLIAMSON},
                                   {3584, PLAIT_H28_WILLIAMSON},
                                   {384, PLAIT_H12_PALEY2},
                                   {640, PLAIT_H20_WILLIAMSON},
                                   {768, PLAIT_H12_PALEY2},
                                   {1280, PLAIT_H20_WILLIAMSON},
                                   {640, PLAIT_H40}})
            exactly(with_factor(type, 2, n, f));
}

TEST_CASE("W33 one row of 2048 or 4096 is one launch") {
    const context_ptr ctx = device_of(9, 0, 232448, "90");
    for (plait_dtype type : floats)
        for (int64_t n : {2048, 4096}) {
            exactly(rows(type, 1, n));
            plan_ptr plan;
            REQUIRE(plan_on(ctx.get(), rows(type, 1, n), plan) == PLAIT_OK);
            int64_t steps = 0;
            CHECK(plait_plan_get_i64(plan.get(), PLAIT_PLAN_STEPS, &steps) == PLAIT_OK);
            CHECK(steps == 1);
        }
}

TEST_CASE("W35 a device with 99 KB of shared memory: every plan fits it") {
    const int64_t limit = 101376;
    const context_ptr ctx = device_of(8, 9, limit, "80");
    for (plait_dtype type : floats)
        for (int k = 0; k <= 28; ++k) {
            plan_ptr plan;
            REQUIRE(plan_on(ctx.get(), rows(type, 1, int64_t{1} << k), plan) == PLAIT_OK);
            const std::string json = json_of(plan.get());
            for (size_t at = json.find("\"smem\""); at != std::string::npos;
                 at = json.find("\"smem\"", at + 1))
                CHECK(std::stoll(json.substr(json.find(':', at) + 1)) <= limit);
        }
}

TEST_CASE("W36 W52 one rounding: sums in F32, bit-exact 16-bit results") {
    for (plait_dtype type : {PLAIT_F16, PLAIT_BF16})
        for (int64_t n : {512, 2048, 16384}) {
            wht_call c = rows(type, 2, n);
            exactly(c); // values between -3n and 3n, rounded once
            const auto ones = data_of(c, [n](int64_t e) { return e % n == n - 1 ? -1.0 : 1.0; });
            expect_exact(c, ones);
        }
}

TEST_CASE("W37 W38 eight threads make plans at once and share one plan of a batch") {
    const wht_call c = rows(PLAIT_F32, 64, 256);
    rng random(config().seed);
    const wht_data data = random_data(c, filling::integers, random);
    const expectation ref = reference(c, data);
    plait_plan *raw = nullptr;
    REQUIRE(plait_plan_create(&raw, context(), desc_of(c).get(), nullptr) == PLAIT_OK);
    const plan_ptr shared(raw);
    std::vector<std::unique_ptr<bound_call>> bound;
    for (int t = 0; t < 8; ++t) bound.push_back(std::make_unique<bound_call>(c, raw, data));
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 50; ++i) {
                plait_plan *own = nullptr;
                if (plait_plan_create(&own, context(), desc_of(c).get(), nullptr) != PLAIT_OK)
                    ++failures;
                plait_plan_destroy(own);
                if (bound[static_cast<size_t>(t)]->execute() != PLAIT_OK) ++failures;
            }
        });
    for (std::thread &t : threads) t.join();
    target().wait();
    CHECK(failures == 0);
    for (auto &b : bound) {
        CHECK(first_difference(c, ref, b->y()) == "");
        CHECK(b->damage() == "");
    }
}

TEST_CASE("W39 pointers off by 4 or 8 bytes") {
    for (plait_dtype type : floats)
        for (int64_t off : {4, 8}) {
            wht_call c = rows(type, 3, 1024);
            c.x_offset = off / std::min<int64_t>(off, bytes_of(type));
            c.y_offset = 2 * c.x_offset;
            exactly(c);
            c.alias = true;
            c.y_offset = c.x_offset;
            exactly(c);
        }
}

TEST_CASE("W40 every second element of a vector") {
    for (plait_dtype type : floats) {
        wht_call c;
        c.x = type;
        c.extents = {1024};
        c.x_strides = std::vector<int64_t>{2};
        exactly(c);
        c.y_strides = std::vector<int64_t>{3};
        exactly(c);
    }
}

TEST_CASE("W41 rows with a gap: the distance is honoured, the gap untouched") {
    for (plait_dtype type : floats)
        for (int64_t pitch : {257, 260, 272, 512}) {
            wht_call c = rows(type, 9, 256);
            c.x_strides = std::vector<int64_t>{pitch, 1};
            exactly(c);
            c.y_strides = std::vector<int64_t>{pitch + 3, 1};
            exactly(c);
            c.y_strides = c.x_strides;
            c.alias = true;
            exactly(c);
        }
}

TEST_CASE("W43 batches of 65536 and more rows") {
    const int64_t n = 16; // rows of 4096: tests/gpu/huge_test.cpp
    const wht_call c = rows(PLAIT_F32, 65537, n);
    const desc_ptr desc = desc_of(c);
    wht_data data;
    data.x.assign(static_cast<size_t>(c.elements() * 4), std::byte{0});
    for (const int64_t row : {int64_t{0}, int64_t{65535}, int64_t{65536}})
        for (int64_t j = 0; j < n; ++j)
            store(PLAIT_F32, data.x.data(), row * n + j,
                  static_cast<double>(row % 5 + 1) * (j == 3));
    for (const candidate &by : applicable(desc.get())) {
        const bytes y = result_of(c, data, by);
        int64_t wrong = y.empty() ? 0 : -1;
        for (int64_t e = 0; e < c.elements() && wrong < 0; ++e) {
            const int64_t row = e / n;
            const bool hit = row == 0 || row >= 65535;
            const double want =
                hit ? static_cast<double>(row % 5 + 1) * hadamard_sign(e % n, 3) : 0;
            if (load(PLAIT_F32, y.data(), e) != want) wrong = e;
        }
        CHECK(wrong == -1);
    }
}

TEST_CASE("W44 H D H on a state vector, in place, on some qubits") {
    wht_call c;
    c.x = PLAIT_C64;
    c.extents = {1024};
    c.bits = 0x2d5;
    c.alias = true;
    exactly(c);
    c.diag = PLAIT_C64;
    exactly(c);
    // 32 qubits: no scratch of the size of the vector.
    c.extents = {int64_t{1} << 32};
    c.diag.reset();
    plait_plan *raw = nullptr;
    const plait_status s = plait_plan_create(&raw, context(), desc_of(c).get(), nullptr);
    const plan_ptr plan(raw);
    if (s == PLAIT_OK) {
        size_t work = 0;
        CHECK(plait_plan_workspace_size(raw, &work) == PLAIT_OK);
        CHECK(work < size_t{1} << 30);
    } else { // this machine's memory is too small for the vector itself
        CHECK(s == PLAIT_ERR_NOT_SUPPORTED);
    }
    // H D H in one plan, where a second vector would not fit.
    const context_ptr ctx = device_of(9, 0, 232448, "90");
    plait_desc *made = nullptr;
    REQUIRE(plait_desc_from_token(&made, "wht:c64:n1073741824:+diag_mid:y@x") == PLAIT_OK);
    const desc_ptr desc(made);
    REQUIRE(plait_plan_create(&raw, ctx.get(), made, nullptr) == PLAIT_OK);
    const plan_ptr both(raw);
    size_t work = 1;
    CHECK(plait_plan_workspace_size(raw, &work) == PLAIT_OK);
    CHECK(work == 0);
}

TEST_CASE("W45 one vector, three conventions") {
    for (plait_dtype type : floats) {
        wht_call c = rows(type, 1, 16);
        exactly(c);
        c.order = PLAIT_SEQUENCY;
        c.scale = 1.0 / 16;
        exactly(c);
        c.order = PLAIT_NATURAL;
        c.scale = 0.25;
        exactly(c);
    }
}

TEST_CASE("W46 a 64 x 64 image in sequency order") {
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64}) {
        wht_call c;
        c.x = type;
        c.extents = {64, 64};
        c.axes = 3;
        c.order = PLAIT_SEQUENCY;
        exactly(c);
    }
}

TEST_CASE("W47 a 0/1 table is transformed as it is") {
    wht_call c = rows(PLAIT_I32, 1, 8);
    const double f[] = {0, 1, 1, 0, 1, 0, 0, 0};
    const auto data = data_of(c, [&](int64_t e) { return f[e]; });
    for_each_candidate(c, [&](const candidate &by) {
        CHECK(values_of(c, result_of(c, data, by)) ==
              std::vector<double>{3, 1, 1, -1, 1, -1, -1, -3});
    });
}

TEST_CASE("W48 columns of a row-major matrix, from the left and from the right") {
    for (plait_dtype type : {PLAIT_F32, PLAIT_F64}) {
        wht_call c;
        c.x = type;
        c.extents = {128, 33};
        c.axes = 1; // H A
        exactly(c);
        c.adjoint = true;
        exactly(c);
        c.extents = {33, 128};
        c.axes = 2; // A H
        exactly(c);
    }
}

TEST_CASE("W49 a scale of NaN or Inf is no plan") {
    for (double scale : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        wht_call c = rows(PLAIT_F32, 1, 8);
        c.scale = scale;
        CHECK(plan_status(c) == PLAIT_ERR_INVALID_ARGUMENT);
    }
}

TEST_CASE("W50 a row count that fills no tile, Inf in a neighbouring row") {
    for (plait_dtype type : floats)
        for (int64_t n : {1, 2, 4, 8, 16, 64}) {
            const wht_call c = rows(type, 19, n);
            const auto value = [n](int64_t e) {
                return e / n % 3 == 1 && e % n == 0 ? HUGE_VAL : static_cast<double>(e % 5 - 2);
            };
            const wht_data data = data_of(c, value);
            expect_exact(c, data);
        }
}

TEST_CASE("W51 integer overflow is reported at the edge, -2^31 is not") {
    if (!applicable(desc_of(rows(PLAIT_I32, 1, 2)).get()).empty())
        for (const auto &[value, want] : {std::pair{16384.0, 1}, {-16384.0, 0}}) {
            wht_call c = rows(PLAIT_I32, 1, 131072); // 2^17 * 2^14 = 2^31
            c.overflow = true;
            const wht_data data = data_of(c, [value = value](int64_t) { return value; });
            const expectation ref = reference(c, data);
            for_each_candidate(c, [&, want = want](const candidate &by) {
                const outcome out = run(c, data, by);
                CHECK(out.fault == "");
                CHECK(first_difference(c, ref, out.y) == "");
                CHECK(out.overflow == want);
            });
        }
}

} // namespace plait::test
