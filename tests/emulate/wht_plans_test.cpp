// Plans of every CUDA candidate through the API, on a device whose kernels are emulated.
#include "tests/emulate/orders.h"
#include "tests/support/random_call.h"
#include "tests/support/report.h"
#include "tests/support/runner.h"

#include <doctest/doctest.h>
#include <set>

namespace plait::test {
namespace {

void check_call(const wht_call &call, filling how, rng &random, std::set<std::string> &ran,
                plait_math math = PLAIT_MATH_DEFAULT) {
    const desc_ptr desc = desc_of(call);
    const std::string token = token_of(desc.get());
    CAPTURE(token);
    const wht_data data = random_data(call, how, random);
    const expectation ref = reference(call, data);
    for (const candidate &by : applicable(desc.get(), math)) {
        // it has a test of its own, of problems that only it takes
        if (by.name == "wht.cuda.any" && call.elements() > 1 << 12) continue;
        CAPTURE(by.name);
        bytes first;
        for (const emulation::settings &order : walking_orders) {
            emulation::current_settings() = order;
            const outcome out = run(call, data, by, math);
            CHECK(out.fault == "");
            if (first.empty()) first = out.y;
            CHECK_MESSAGE(out.y == first, "the order of threads changes the result");
        }
        ran.insert(by.name);
        note_count("emulated plans of " + by.name);
        if (how == filling::integers && exact_sums(call) && is_exact(by, call)) {
            CHECK(first_difference(call, ref, first) == "");
            continue;
        }
        const double ratio = worst_ratio(call, ref, first, roundoff_of(by, call));
        CHECK(ratio <= 1);
        note_ratio(by.name, ratio, token, config().seed);
    }
}

} // namespace

TEST_CASE("emulated plans: rows of every length and type, by every candidate") {
    std::set<std::string> ran;
    for (int log_n = 0; log_n <= 18; ++log_n)
        for (const plait_dtype type : {PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16})
            for (int variant = 0; variant < 3; ++variant) {
                if (log_n > 10 && variant != (log_n + type) % 3) continue;
                rng random(derive(config().seed,
                                  static_cast<uint64_t>(log_n * 100 + type * 10 + variant)));
                check_call(rows_call(random, type, log_n, variant),
                           variant == 1 ? filling::integers : filling::uniform, random, ran);
            }
    rng random(1);
    check_call(rows_call(random, PLAIT_F32, 9, 0), filling::uniform, random, ran, PLAIT_MATH_TF32);
    for (const plait_dtype type : {PLAIT_F32, PLAIT_F64}) { // a promise of integers
        wht_call whole = rows_call(random, type, 10, 0);
        whole.bound = 1000;
        check_call(whole, filling::integers, random, ran);
    }
    // These take no plain rows; each has a test of its own.
    const std::set<std::string> no_rows = {
        "wht.cuda.columns", "wht.cuda.composed", "wht.cuda.block_e4m3",   "wht.cuda.mma16_e4m3",
        "wht.cuda.fused",   "wht.cuda.diagonal", "wht.cuda.block_factor", "wht.cuda.mma16_narrow"};
    const desc_ptr any = desc_of(rows_call(random, PLAIT_F32, 1, 0));
    for (const candidate &c : candidates(context(), any.get(), PLAIT_MATH_DEFAULT))
        CHECK_MESSAGE(ran.count(c.name) == (c.name.find(".cuda.") != std::string::npos &&
                                            no_rows.count(c.name) == 0),
                      c.name);
}

} // namespace plait::test
