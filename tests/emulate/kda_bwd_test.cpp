// Plans of kda.bwd.cuda.* on emulated kernels: tensor cores at every width, in every order of
// threads.
#include "tests/emulate/orders.h"
#include "tests/support/kda_check.h"

#include <array>
#include <cmath>

namespace plait::test {
namespace {

void check(const kda_call &call, const kda_inputs &in, bool orders) {
    const kda_results ref = kda_reference(call, in);
    for_each_candidate(call, [&](const candidate &by) {
        if (by.name.find("chunk") == by.name.npos) return; // others have their tests
        kda_outcome first;
        for (const emulation::settings &order : walking_orders) {
            emulation::current_settings() = order;
            const kda_outcome out = result_of(call, in, by);
            emulation::current_settings() = {};
            if (!out.fault.empty()) return; // result_of has reported it
            if (first.values.empty()) first = out;
            CHECK(difference(first, out) == "");
            if (!orders) break;
        }
        const kda_verdict v = judge(call, ref, first, by);
        CHECK(v.wrong == "");
        note_ratio(by.name, v.ratio, token_of(desc_of(call).get()), config().seed);
        note_count("emulated plans of " + by.name);
    });
}

} // namespace

TEST_CASE("emulated kda backward: every width, V other than K, states of both types") {
    rng random(derive(config().seed, 30));
    int item = 0;
    for (const auto &[k, v, t] : {std::array<int64_t, 3>{64, 80, 65},
                                  {96, 64, 64},
                                  {128, 128, 64},
                                  {192, 64, 64},
                                  {256, 64, 64},
                                  {64, 112, 64}}) {
        ++item;
        kda_call c = kda_layer(PLAIT_BACKWARD, item % 3 ? PLAIT_BF16 : PLAIT_F16, 1, t,
                               2 - item % 2, 2, k, v);
        c.gate = item % 3 == 0   ? PLAIT_GATE_SOFTPLUS
                 : item % 3 == 1 ? PLAIT_GATE_BOUNDED
                                 : PLAIT_GATE_LOG;
        if (c.gate != PLAIT_GATE_BOUNDED) c.lower_bound = 0;
        if (c.gate == PLAIT_GATE_LOG) c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT};
        c.orientation = item % 2 ? PLAIT_STATE_KV : PLAIT_STATE_VK;
        if (item % 2) c.types[PLAIT_STATE_IN] = c.types[PLAIT_STATE_OUT] = PLAIT_BF16;
        check(c, random_inputs(c, random), false);
    }
}

TEST_CASE("emulated kda backward: bounded gates in whole chunks and tails, in every order") {
    rng random(derive(config().seed, 33));
    for (const auto &[k, v, t] :
         {std::array<int64_t, 3>{128, 128, 192}, {64, 64, 130}, {96, 72, 80}, {128, 48, 128}}) {
        kda_call c =
            kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 1, t, k == 64 ? 3 : 1, k == 64 ? 3 : 1, k, v);
        check(c, random_inputs(c, random), true);
    }
}

TEST_CASE("emulated kda backward: packed sequences, tails, beta of 0, gates of -1000") {
    rng random(derive(config().seed, 31));
    for (const bool logit : {false, true}) {
        kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 1, 64, 1, 2, 64, 80);
        c.gate = PLAIT_GATE_LOG;
        c.lower_bound = 0;
        c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT, PLAIT_STATUS};
        if (!logit) c.beta_scale.reset();
        c.varlen = {5, 17};
        kda_inputs in = random_inputs(c, random);
        in.offsets = {0, 1, 1, 16, 33, 50};
        for (auto &[role, a] : in.arrays)
            for (size_t e = 0; e < a.v.size(); ++e)
                if (std::isnan(a.v[e])) a.v[e] = -0.5;
        for (size_t e = 0; e < in.arrays[PLAIT_G].v.size(); e += 7)
            in.arrays[PLAIT_G].v[e] = rounded(c.type(PLAIT_G), -1000);
        for (size_t e = 0; !logit && e < in.arrays[PLAIT_BETA].v.size(); e += 3)
            in.arrays[PLAIT_BETA].v[e] = 0;
        check(c, in, logit);
    }
}

TEST_CASE("emulated kda backward: few heads, chains of chunks by 16 and by 32 values") {
    rng random(derive(config().seed, 32));
    for (const bool packed : {false, true}) {
        kda_call c = packed ? kda_layer(PLAIT_BACKWARD, PLAIT_BF16, 1, 330, 1, 2, 72, 40)
                            : kda_layer(PLAIT_BACKWARD, PLAIT_F16, 1, 130, 1, 1, 128, 96);
        c.orientation = packed ? PLAIT_STATE_KV : PLAIT_STATE_VK;
        if (packed) c.varlen = {9, 128};
        kda_inputs in = random_inputs(c, random);
        if (packed) in.offsets = {0, 65, 65, 193, 194, 199, 200, 264, 300, 326};
        check(c, in, !packed);
    }
}

} // namespace plait::test
