// Random problems through every candidate that applies, against the definition.
#include "tests/support/random_call.h"
#include "tests/support/report.h"
#include "tests/support/runner.h"

#include <cmath>
#include <cstdio>
#include <doctest/doctest.h>

namespace plait::test {
namespace {

/// One line for one failure: what repeats it.
void fail_line(uint64_t seed, const std::string &token, const std::string &candidate,
               const std::string &what) {
    char line[512];
    std::snprintf(line, sizeof line, "seed=%llu token=%s candidate=%s: %s",
                  static_cast<unsigned long long>(seed), token.c_str(), candidate.c_str(),
                  what.c_str());
    FAIL_CHECK(std::string(line));
}

void check_one(uint64_t seed, const wht_call &call, filling how, rng &random) {
    const desc_ptr desc = desc_of(call);
    const std::string token = token_of(desc.get());
    const std::vector<candidate> all = applicable(desc.get());
    if (all.empty()) return fail_line(seed, token, "-", "no candidate");
    const wht_data data = random_data(call, how, random);
    const expectation ref = reference(call, data);
    const bool exact = is_integer(call.x) || (how == filling::integers && exact_sums(call));
    for (const candidate &by : all) {
        outcome out;
        try {
            out = run(call, data, by);
        } catch (const std::exception &e) {
            out.fault = e.what();
        }
        if (!out.fault.empty()) {
            fail_line(seed, token, by.name, out.fault);
            continue;
        }
        note_count("sweep: runs of " + by.name);
        if (exact && is_exact(by, call)) {
            const std::string diff = first_difference(call, ref, out.y);
            if (!diff.empty()) fail_line(seed, token, by.name, diff);
            if (call.overflow && (out.overflow != 0) != ref.overflow)
                fail_line(seed, token, by.name, "overflow flag " + std::to_string(out.overflow));
            continue;
        }
        const double ratio = worst_ratio(call, ref, out.y, roundoff_of(by, call));
        note_ratio(by.name + (is_sixteen_bit(call.y_type()) ? " (16-bit y)" : ""), ratio, token,
                   seed);
        if (!(ratio <= 1))
            fail_line(seed, token, by.name, "error / bound " + std::to_string(ratio));
    }
}

} // namespace

TEST_CASE("sweep: random problems of every form") {
    const int items = config().small ? 60 : on_device() ? 2000 : config().brief ? 200 : 500;
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, static_cast<uint64_t>(i));
        rng random(seed);
        const filling how = random.pick({filling::uniform, filling::integers, filling::huge});
        const wht_call call = random_call(random, config().small || config().brief ? 13
                                                  : i % 25 == 0                    ? 20
                                                                                   : 15);
        check_one(seed, call, is_integer(call.x) || how != filling::huge ? how : filling::uniform,
                  random);
    }
}

TEST_CASE("sweep: ten thousand small problems, most of them no plain rows") {
    const int items = config().small ? 400 : on_device() ? 500 : config().brief ? 1000 : 10000;
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, 200000 + static_cast<uint64_t>(i));
        rng random(seed);
        const filling how = random.pick({filling::uniform, filling::integers, filling::huge});
        const wht_call call = random_call(random, static_cast<int>(random.between(0, 8)), 0.1);
        check_one(seed, call, is_integer(call.x) || how != filling::huge ? how : filling::uniform,
                  random);
    }
}

TEST_CASE("sweep: problems of several passes, most of them no plain rows") {
    const int items = config().small || config().brief ? 20 : on_device() ? 50 : 150;
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, 300000 + static_cast<uint64_t>(i));
        rng random(seed);
        const wht_call call = random_call(random, 14 + i % 4, 0.1);
        check_one(seed, call, i % 2 == 0 ? filling::uniform : filling::integers, random);
    }
}

TEST_CASE("sweep: rows of every length, every floating type") {
    const int top = config().small || config().brief ? 16 : 20;
    for (int log_n = 0; log_n <= top; ++log_n)
        for (plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16})
            for (int variant = 0; variant < 3; ++variant) {
                if (!on_device() && log_n > 16 && variant != log_n % 3) continue;
                const uint64_t seed =
                    derive(config().seed,
                           static_cast<uint64_t>(100000 + log_n * 100 + type * 10 + variant));
                rng random(seed);
                check_one(seed, rows_call(random, type, log_n, variant),
                          variant == 1 ? filling::integers : filling::uniform, random);
            }
}

} // namespace plait::test
