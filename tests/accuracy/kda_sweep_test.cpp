// Random calls of Kimi Delta Attention through every candidate that applies, against the
// definition; and the definition's gradients against differences of its values.
#include "tests/support/kda_check.h"

#include <cmath>
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

void check_one(uint64_t seed, const kda_call &call, rng &random) {
    desc_ptr desc;
    if (make_desc(call, desc) != PLAIT_OK) {
        fail_line(seed, "-", "-", plait_last_error());
        return;
    }
    const std::string token = token_of(desc.get());
    const std::vector<candidate> all = candidates_for(call);
    if (all.empty()) {
        if (!only_on_cpus(call)) fail_line(seed, token, "-", "no candidate");
        note_count("kda sweep: not on this backend");
        return;
    }
    const kda_inputs in = random_inputs(call, random);
    const kda_results ref = kda_reference(call, in);
    for (const candidate &by : all) {
        const kda_outcome out = run(call, in, by);
        if (!out.fault.empty()) {
            fail_line(seed, token, by.name, out.fault);
            continue;
        }
        note_count("kda sweep: runs of " + (by.name.empty() ? "no steps" : by.name));
        const kda_verdict v = judge(call, ref, out, by);
        note_ratio(by.name, v.ratio, token, seed);
        if (!v.wrong.empty()) fail_line(seed, token, by.name, v.wrong);
    }
}

/// sum(O * DO) + sum(STATE_OUT * DSTATE_OUT)
long double loss(const kda_call &forward, const kda_inputs &in) {
    const kda_results r = kda_reference(forward, in);
    long double sum = 0;
    const auto add = [&](plait_role out, plait_role weight) {
        const kda_array &a = r.arrays.at(out), &w = in[weight];
        for (size_t e = 0; e < a.v.size(); ++e) sum += a.v[e] * w.v[e];
    };
    add(PLAIT_O, PLAIT_DO);
    if (r.arrays.count(PLAIT_STATE_OUT)) add(PLAIT_STATE_OUT, PLAIT_DSTATE_OUT);
    return sum;
}

} // namespace

TEST_CASE("kda sweep: random problems of every form") {
    const int items = config().small ? 60 : on_device() ? 480 : config().brief ? 100 : 300;
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, static_cast<uint64_t>(900000 + i));
        rng random(seed);
        const int64_t work = config().small || config().brief ? 20000 : i % 10 ? 60000 : 400000;
        check_one(seed, random_kda(random, work), random);
    }
}

TEST_CASE("kda sweep: random problems in chunks") {
    const int items = config().small || config().brief ? 12 : on_device() ? 160 : 40;
    for (int i = 0; i < items; ++i) {
        const uint64_t seed = derive(config().seed, static_cast<uint64_t>(920000 + i));
        rng random(seed);
        const auto direction = i % 2 ? PLAIT_BACKWARD : PLAIT_FORWARD;
        check_one(seed, random_kda_chunks(random, direction, 3000000), random);
    }
}

TEST_CASE("kda sweep: gates, betas, norms and states in every combination, V other than K") {
    int item = 0;
    for (const plait_direction direction : {PLAIT_FORWARD, PLAIT_BACKWARD})
        for (const plait_kda_gate gate : {PLAIT_GATE_LOG, PLAIT_GATE_SOFTPLUS, PLAIT_GATE_BOUNDED})
            for (const double logit : {0.0, 1.0, 2.0})
                for (const bool norm : {false, true})
                    for (const int states : {0, 1, 2, 3}) {
                        const uint64_t seed =
                            derive(config().seed, 950000 + static_cast<uint64_t>(++item));
                        if (config().small && seed % 2) continue; // another half with every seed
                        rng random(seed);
                        kda_call c = kda(direction, random.pick({PLAIT_F32, PLAIT_BF16}), 1, 33, 2,
                                         4, 8, 12);
                        c.gate = gate;
                        if (gate == PLAIT_GATE_BOUNDED) c.lower_bound = -5;
                        if (logit != 0) c.beta_scale = logit;
                        if (norm) c.eps = 1e-6;
                        if (gate != PLAIT_GATE_LOG && item % 2) c.used.push_back(PLAIT_DT_BIAS);
                        if (states & 1) c.used.push_back(PLAIT_STATE_IN);
                        if (states & 2) c.used.push_back(PLAIT_STATE_OUT);
                        c.orientation = item % 3 ? PLAIT_STATE_VK : PLAIT_STATE_KV;
                        if (item % 4 == 0) c.types[PLAIT_STATE_IN] = PLAIT_BF16;
                        check_one(seed, c, random);
                    }
}

TEST_CASE("kda sweep: gradients of the definition are its derivatives") {
    rng random(derive(config().seed, 970000));
    for (const plait_kda_gate gate : {PLAIT_GATE_LOG, PLAIT_GATE_SOFTPLUS, PLAIT_GATE_BOUNDED})
        for (const bool packed : {false, true}) {
            kda_call c = kda_layer(PLAIT_BACKWARD, PLAIT_F64, packed ? 1 : 2, 11, 2, 4, 3, 5);
            c.gate = gate;
            c.lower_bound = gate == PLAIT_GATE_BOUNDED ? -5 : 0;
            if (gate == PLAIT_GATE_LOG) c.used = {PLAIT_STATE_IN, PLAIT_STATE_OUT};
            if (packed) c.varlen = {4, 11};
            kda_call forward = c;
            forward.direction = PLAIT_FORWARD;
            kda_inputs in = random_inputs(c, random);
            in.offsets = {0, 4, 4, 5, 9};
            for (auto &[role, a] : in.arrays) // no NaN, and gates that differences can resolve
                for (long double &v : a.v)
                    if (std::isnan(v) || (role == PLAIT_G && std::fabs(v) > 3)) v = -random.unit();
            in.arrays[PLAIT_STATE_OUT] = kda_array(c.shape(PLAIT_STATE_OUT));
            const kda_results d = kda_reference(c, in);
            for (const auto &[gradient, a] : d.arrays) {
                const auto role = static_cast<plait_role>(gradient - 256);
                const long double h = 1e-4L;
                for (size_t e = 0; e<a.v.size(); e += a.v.size()> 40 ? 7 : 1) {
                    long double at[4];
                    int x = 0;
                    for (const int step : {-2, -1, 1, 2}) {
                        kda_inputs moved = in;
                        moved.arrays.at(role).v[e] += step * h;
                        at[x++] = loss(forward, moved);
                    }
                    const long double slope = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
                    CAPTURE(plait_role_name(gradient));
                    CAPTURE(e);
                    CHECK(std::fabs(slope - a.v[e]) <= 1e-9L * (1 + std::fabs(a.v[e])));
                }
            }
        }
}

} // namespace plait::test
