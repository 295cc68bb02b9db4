// Random convolutions through every candidate that applies, against the definition.
#include "tests/support/conv1d_check.h"

#include <cstdio>

namespace plait::test {
namespace {

/// One line for one failure: what repeats it.
void fail_line(uint64_t seed, const std::string &token, const std::string &candidate,
               const std::string &what) {
    char line[1024];
    std::snprintf(line, sizeof line, "seed=%llu token=%s candidate=%s: %s",
                  static_cast<unsigned long long>(seed), token.c_str(), candidate.c_str(),
                  what.c_str());
    FAIL_CHECK(std::string(line));
}

void check_one(uint64_t seed, const conv1d_call &call, conv1d_filling how, rng &random) {
    desc_ptr desc;
    if (make_desc(call, desc) != PLAIT_OK) {
        fail_line(seed, "-", "-", plait_last_error());
        return;
    }
    const std::string token = token_of(desc.get());
    const std::vector<candidate> all = candidates_for(call);
    if (all.empty()) {
        if (!on_device()) fail_line(seed, token, "-", "no candidate on the CPU");
        note_count("conv1d sweep: not on this backend");
        return;
    }
    const conv1d_inputs in = random_inputs(call, how, random);
    // Sums of products of quarters are exact in the accumulator; the activation is not.
    const bool exact = how == conv1d_filling::quarters && !call.silu;
    const conv1d_results ref = conv1d_reference(in, exact ? 0 : roundoff_of(call));
    for (const candidate &by : all) {
        const conv1d_outcome out = run(call, in, by);
        if (!out.fault.empty()) {
            fail_line(seed, token, by.name, out.fault);
            continue;
        }
        note_count("conv1d sweep: runs of " + (by.name.empty() ? "no steps" : by.name));
        const conv1d_verdict v = judge(call, ref, out);
        if (!exact) note_ratio(by.name, v.ratio, token, seed);
        if (!v.wrong.empty()) fail_line(seed, token, by.name, v.wrong);
    }
}

} // namespace

TEST_CASE("conv1d sweep: random problems of every form") {
    const int items = config().small ? 120 : on_device() ? 2000 : config().brief ? 300 : 1500;
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, static_cast<uint64_t>(500000 + i));
        rng random(seed);
        const auto how = random.chance(0.4) ? conv1d_filling::quarters : conv1d_filling::uniform;
        const int64_t work = config().small || config().brief ? 20000 : i % 10 ? 60000 : 400000;
        check_one(seed, random_conv1d(random, work), how, random);
    }
}

TEST_CASE("conv1d sweep: every width up to 9 in every direction, type and layout") {
    for (int64_t width = 1; width <= 9; ++width)
        for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD, PLAIT_UPDATE})
            for (const plait_dtype type : {PLAIT_F32, PLAIT_F16, PLAIT_BF16, PLAIT_F64})
                for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC}) {
                    if (config().small && type == PLAIT_F64) continue;
                    const auto item =
                        static_cast<uint64_t>(width * 100 + direction * 30 + type * 3 + layout);
                    const uint64_t seed = derive(config().seed, 700000 + item);
                    rng random(seed);
                    const bool update = direction == PLAIT_UPDATE;
                    conv1d_call c = conv1d(direction, type, random.between(1, 3),
                                           random.pick<int64_t>({1, 5, 8, 64, 72}),
                                           update ? random.between(1, 3)
                                                  : random.pick<int64_t>({1, 63, 64, 65, 200, 512}),
                                           width);
                    c.silu = random.chance(0.5);
                    if (random.chance(0.5)) c.used.push_back(PLAIT_BIAS);
                    if (!update && random.chance(0.5))
                        c.used.insert(c.used.end(), {PLAIT_STATE_IN, PLAIT_STATE_OUT});
                    c.layout = layout;
                    check_one(seed, c, conv1d_filling::uniform, random);
                }
}

} // namespace plait::test
