// Every case of tests/cases/conv1d.json in every layout and type, through every candidate of the
// backend that applies.
#include "tests/support/conv1d_cases.h"
#include "tests/support/conv1d_check.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

const plait_dtype floats[] = {PLAIT_F32, PLAIT_F16, PLAIT_BF16, PLAIT_F64};

conv1d_output *result_of(conv1d_results &r, plait_role role) {
    switch (role) {
    case PLAIT_Y: return &r.y;
    case PLAIT_DX: return &r.dx;
    case PLAIT_DW: return &r.dw;
    case PLAIT_DBIAS: return &r.dbias;
    case PLAIT_DSTATE_IN: return &r.dstate_in;
    default: return &r.state_out;
    }
}

/// The oracle's bounds around the answers of the case; exact ones have none.
conv1d_results answers(const conv1d_case &k, const conv1d_step &s, double u) {
    conv1d_results ref = conv1d_reference(s.in, k.exact() ? 0 : u);
    for (const auto &[role, want] : s.expected) {
        conv1d_output &o = *result_of(ref, role);
        o.value = want;
        for (long double &b : o.bound.v)
            if (b > 0) b += k.floor();
    }
    return ref;
}

void run_steps(const conv1d_case &k, const std::vector<conv1d_step> &steps, plait_layout layout,
               int64_t pitch, int64_t shift) {
    const conv1d_call first = laid_out(steps[0].call, layout, pitch, shift);
    for_each_candidate(first, [&](const candidate &by) {
        std::vector<double> state; // of a chain
        for (const conv1d_step &given : steps) {
            conv1d_step s = given;
            if (s.state_follows) s.in.state.v.assign(state.begin(), state.end());
            const conv1d_call call = laid_out(s.call, layout, pitch, shift);
            const conv1d_outcome out = result_of(call, s.in, by);
            if (!out.fault.empty()) return;
            conv1d_results ref = answers(k, s, roundoff_of(call));
            const conv1d_verdict v = judge(call, ref, out);
            CHECK(v.wrong == "");
            if (out.values.count(PLAIT_STATE)) state = out.values.at(PLAIT_STATE);
        }
        note_count("conv1d cases: run with " + (by.name.empty() ? "no steps" : by.name));
    });
}

/// The call that an error case describes.
conv1d_call error_call(const nlohmann::json &in) {
    conv1d_call c = conv1d(in.value("update", false) ? PLAIT_UPDATE : PLAIT_FORWARD, PLAIT_F32,
                           in.value("B", 1), in.value("C", 2), in.value("L", in.value("T", 8)),
                           in.value("K", 4));
    if (in.contains("entries")) c.entries = in.at("entries").get<int64_t>();
    c.ring = in.value("ring", false);
    if (in.value("seq_idx", false)) c.used.push_back(PLAIT_SEQ_IDX);
    if (in.contains("cu_seqlens"))
        c.varlen = {static_cast<int64_t>(in.at("cu_seqlens").size()) - 1,
                    in.value("max_length", c.length)};
    else if (in.value("varlen", false))
        c.varlen = {2, c.length};
    if (in.contains("slots")) {
        c.slots = {in.at("pool").get<int64_t>(), in.at("pad").get<int32_t>()};
        c.batch = static_cast<int64_t>(in.at("slots").size());
        c.used.insert(c.used.end(), {PLAIT_STATE_IN, PLAIT_STATE_OUT});
        c.alias = true;
    }
    return c;
}

const std::pair<const char *, const char *> refusals[] = {
    {"err_K0", "width=0 is less than 1"},
    {"err_state_too_short", "entries=2 of the state are fewer than the width-1=3"},
    {"err_seq_and_update", "role=seq_idx is no role of conv1d.update"},
    {"err_negative_L", "length=-1 is less than 0"},
    {"err_act", "act=99 is no plait_activation"},
    {"err_varlen_batch", "batch=2 does not go with packed sequences"},
};

} // namespace

TEST_CASE("conv1d cases: every answer of conv1d.json") {
    int count = 0;
    for (const conv1d_case &k : conv1d_cases()) {
        if (k.op() == "error") continue;
        const std::string name = k.name();
        CAPTURE(name);
        ++count;
        for (const plait_dtype type : floats) {
            if (config().small && type == PLAIT_F64) continue;
            CAPTURE(name_of(type));
            const std::vector<conv1d_step> steps = k.steps(type);
            for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC})
                for (const int64_t pitch : {0, 3})
                    for (const int64_t shift : {0, 1}) run_steps(k, steps, layout, pitch, shift);
        }
    }
    CHECK(count == 49);
}

TEST_CASE("conv1d cases: the oracle has the same answers") {
    for (const conv1d_case &k : conv1d_cases()) {
        if (k.op() == "error") continue;
        const std::string name = k.name();
        CAPTURE(name);
        conv1d_array state;
        for (conv1d_step &s : k.steps(PLAIT_F64)) {
            if (s.state_follows) s.in.state = state;
            conv1d_results ref = conv1d_reference(s.in, 0);
            for (const auto &[role, want] : s.expected) {
                CAPTURE(plait_role_name(role));
                const conv1d_array &got = result_of(ref, role)->value;
                REQUIRE(got.v.size() == want.v.size());
                long double worst = 0;
                for (size_t e = 0; e < got.v.size(); ++e) {
                    const bool nan = std::isnan(want.v[e]);
                    REQUIRE(nan == std::isnan(got.v[e]));
                    if (!nan)
                        worst = std::max(worst, std::fabs(got.v[e] - want.v[e]) /
                                                    std::max(1.0L, std::fabs(want.v[e])));
                }
                CHECK(worst <= (k.exact() ? 0.0L : 4e-16L));
            }
            state = ref.state_out.value;
        }
    }
}

TEST_CASE("conv1d cases: refusals before anything is planned") {
    int refused = 0;
    for (const conv1d_case &k : conv1d_cases()) {
        if (k.status() != "plan_error") continue;
        const std::string name = k.name();
        CAPTURE(name);
        const auto *row = std::find_if(std::begin(refusals), std::end(refusals),
                                       [&](const auto &r) { return name == r.first; });
        REQUIRE(row != std::end(refusals));
        const nlohmann::json &in = k.text.at("inputs");
        plait_status s = PLAIT_OK;
        desc_ptr desc;
        if (in.contains("act")) {
            desc = desc_of(error_call(in));
            s = plait_conv1d_set_activation(desc.get(),
                                            static_cast<plait_activation>(in.at("act").get<int>()));
        } else {
            s = make_desc(error_call(in), desc);
        }
        CHECK((s == PLAIT_ERR_INVALID_ARGUMENT || s == PLAIT_ERR_INVALID_DESC));
        const std::string sentence = plait_last_error();
        CHECK_MESSAGE(sentence.find(row->second) != std::string::npos, sentence);
        ++refused;
    }
    CHECK(refused == 6);
}

TEST_CASE("conv1d cases: refusals of execute leave the buffers alone") {
    int refused = 0;
    for (const conv1d_case &k : conv1d_cases()) {
        if (k.status() != "execute_error") continue;
        const std::string name = k.name();
        CAPTURE(name);
        const nlohmann::json &facts = k.text.at("inputs");
        for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC}) {
            conv1d_call call = error_call(facts);
            call.layout = layout;
            if (facts.contains("y_offset")) call.offsets[PLAIT_Y] = 1; // an aligned base otherwise
            rng random(config().seed);
            const conv1d_inputs in = random_inputs(call, conv1d_filling::quarters, random);
            for_each_candidate(call, [&](const candidate &by) {
                const desc_ptr desc = desc_of(call);
                const plan_ptr plan = plan_by(by.name, desc.get());
                conv1d_bound bound(call, desc.get(), plan.get(), in);
                std::vector<plait_arg> &args = bound.args();
                std::string sentence;
                if (facts.contains("missing")) {
                    args.erase(std::find_if(args.begin(), args.end(), [](const plait_arg &a) {
                        return a.role == PLAIT_POSITION;
                    }));
                    sentence = "role position is missing";
                } else {
                    for (plait_arg &a : args)
                        if (a.role == PLAIT_Y) a.ptr = static_cast<float *>(args[0].ptr) + 1;
                    sentence = "y overlaps x";
                }
                CHECK(bound.execute() == PLAIT_ERR_POINTER);
                const std::string said = plait_last_error();
                CHECK_MESSAGE(said.find(sentence) != std::string::npos, said);
                CHECK(bound.damage() == "");
            });
            ++refused;
        }
    }
    CHECK(refused == 4);
}

TEST_CASE("conv1d cases: index data that breaks its rules is reported and touches nothing") {
    int reported = 0;
    for (const conv1d_case &k : conv1d_cases()) {
        if (k.status() != "verify_error") continue;
        const std::string name = k.name();
        CAPTURE(name);
        const nlohmann::json &facts = k.text.at("inputs");
        for (const plait_dtype type : floats)
            for (const plait_layout layout : {PLAIT_BCT, PLAIT_BTC}) {
                conv1d_call call = error_call(facts);
                call.x = type;
                call.layout = layout;
                call.used.push_back(PLAIT_STATUS);
                if (call.varlen)
                    call.used.insert(call.used.end(), {PLAIT_STATE_IN, PLAIT_STATE_OUT});
                rng random(config().seed);
                conv1d_inputs in = random_inputs(call, conv1d_filling::quarters, random);
                if (call.varlen) in.offsets = facts.at("cu_seqlens").get<std::vector<int64_t>>();
                if (call.slots) in.slot = facts.at("slots").get<std::vector<int32_t>>();
                CHECK(conv1d_reference(in, 0).status != 0);
                expect(call, in, 0);
                ++reported;
            }
    }
    CHECK(reported == 32);
}

} // namespace plait::test
