// Kimi Delta Attention through the C API: what each new function refuses, roles of execute, plans,
// what devices refuse, wisdom.
#include "tests/api/common.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace plait::test;

namespace {

constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;

desc_ptr kda_of(plait_direction direction) {
    plait_desc *desc = nullptr;
    OK(plait_kda_create(&desc, direction, PLAIT_F32, 2, 8, 2, 4, 3, 5));
    OK(plait_kda_set_gate(desc, PLAIT_GATE_SOFTPLUS, 0));
    return desc_ptr(desc);
}

/// Buffers for every tensor of a plan's descriptor, far enough from each other.
struct call {
    context_ptr ctx = cpu_context();
    desc_ptr desc;
    plan_ptr plan;
    aligned_buffer memory{size_t{1} << 18};
    aligned_buffer work{0};
    size_t work_bytes = 0;
    std::vector<plait_arg> args;

    explicit call(const char *token) {
        desc = desc_of(std::string(token));
        plan = plan_of(ctx.get(), token);
        work_bytes = workspace_of(plan.get());
        work = aligned_buffer(work_bytes);
        int count = 0;
        OK(plait_desc_num_tensors(desc.get(), &count));
        std::memset(memory.get(), 0, size_t{1} << 18);
        for (int i = 0; i < count; ++i) {
            plait_role role;
            OK(plait_desc_tensor(desc.get(), i, &role, nullptr, nullptr, nullptr, nullptr,
                                 nullptr));
            args.push_back({role, memory.get() + i * 8192});
        }
    }
    size_t at(plait_role role) const {
        for (size_t i = 0; i < args.size(); ++i)
            if (args[i].role == role) return i;
        FAIL("no role " << plait_role_name(role));
        return 0;
    }
    float *f32(plait_role role) const { return static_cast<float *>(args[at(role)].ptr); }
    int32_t *i32(plait_role role) const { return static_cast<int32_t *>(args[at(role)].ptr); }
    int64_t *i64(plait_role role) const { return static_cast<int64_t *>(args[at(role)].ptr); }
    plait_status run(const std::vector<plait_arg> &list) const {
        return plait_execute(plan.get(), list.data(), static_cast<int>(list.size()), work.get(),
                             work_bytes, nullptr);
    }
    plait_status run() const { return run(args); }
    std::vector<plait_arg> with(plait_role role, void *ptr) const {
        std::vector<plait_arg> list = args;
        list[at(role)].ptr = ptr;
        return list;
    }
    std::vector<plait_arg> without(plait_role role) const {
        std::vector<plait_arg> list = args;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(at(role)));
        return list;
    }
};

const char *const everything = "kda.fwd:f32:b1:t8:h2:hv4:k3:v5:gate=softplus:beta=logit.1:norm=1e-"
                               "06:state=vk:seqs=2.8:slots=3.-1:+dt_bias+state_in+state_out+status";

} // namespace

TEST_CASE("kda: constructor and setters refuse NULL and garbage") {
    plait_desc *desc = reinterpret_cast<plait_desc *>(&desc);
    FAILS(plait_kda_create(nullptr, PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1, 1, 1), argument,
          "desc=NULL");
    FAILS(plait_kda_create(&desc, garbage<plait_direction>(), PLAIT_F32, 1, 1, 1, 1, 1, 1),
          argument, "dir=99");
    CHECK(desc == nullptr);
    FAILS(plait_kda_create(&desc, PLAIT_UPDATE, PLAIT_F32, 1, 1, 1, 1, 1, 1), argument,
          "decoding is PLAIT_FORWARD");
    FAILS(plait_kda_create(&desc, PLAIT_FORWARD, garbage<plait_dtype>(), 1, 1, 1, 1, 1, 1),
          argument, "dtype=99");
    FAILS(plait_kda_create(&desc, PLAIT_FORWARD, PLAIT_F32, 1, 1, 4, 6, 1, 1), argument,
          "value_heads=6 is not a multiple of heads=4");
    FAILS(plait_kda_create(&desc, PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1, 1, -1), argument,
          "dim_v=-1");
    CHECK(desc == nullptr);
    FAILS(plait_kda_set_gate(nullptr, PLAIT_GATE_LOG, 0), argument, "desc=NULL");
    FAILS(plait_kda_set_beta(nullptr, 1, 1), argument, "desc=NULL");
    FAILS(plait_kda_set_qk_norm(nullptr, 1, 1e-6), argument, "desc=NULL");
    FAILS(plait_kda_set_scale(nullptr, 1), argument, "desc=NULL");
    FAILS(plait_kda_set_state(nullptr, PLAIT_STATE_KV), argument, "desc=NULL");

    const desc_ptr one = kda_of(PLAIT_FORWARD);
    const std::string token = token_of(one.get());
    FAILS(plait_kda_set_gate(one.get(), garbage<plait_kda_gate>(), 0), argument, "gate=99");
    FAILS(plait_kda_set_gate(one.get(), PLAIT_GATE_BOUNDED, 0), argument, "lower_bound=0");
    FAILS(plait_kda_set_gate(one.get(), PLAIT_GATE_LOG, -1), argument, "lower_bound=-1");
    FAILS(plait_kda_set_beta(one.get(), 0, 2), argument, "scale=2");
    FAILS(plait_kda_set_beta(one.get(), 1, -2), argument, "scale=-2");
    FAILS(plait_kda_set_qk_norm(one.get(), 1, 0), argument, "eps=0");
    FAILS(plait_kda_set_scale(one.get(), HUGE_VAL), argument, "scale=inf");
    FAILS(plait_kda_set_state(one.get(), garbage<plait_state_layout>()), argument, "layout=99");
    CHECK(token_of(one.get()) == token);
    OK(plait_kda_create(&desc, PLAIT_FORWARD, PLAIT_F32, 2, 8, 2, 4, 3, 5));
    const desc_ptr ungated(desc);
    FAILS(plait_desc_check(ungated.get()), PLAIT_ERR_INVALID_DESC, "the gate is not set");
    OK(plait_kda_set_gate(one.get(), PLAIT_GATE_BOUNDED, -5));
    OK(plait_kda_set_beta(one.get(), 1, 2));
    OK(plait_kda_set_qk_norm(one.get(), 1, 1e-6));
    OK(plait_kda_set_scale(one.get(), 0.5));
    OK(plait_desc_check(one.get()));
    OK(plait_desc_use(one.get(), PLAIT_STATE_IN, 1));
    FAILS(plait_desc_check(one.get()), PLAIT_ERR_INVALID_DESC, "orientation of states is not set");
    OK(plait_kda_set_state(one.get(), PLAIT_STATE_VK));
    OK(plait_desc_check(one.get()));
    CHECK(token_of(one.get()) == "kda.fwd:f32:b2:t8:h2:hv4:k3:v5:gate=bounded.-5:beta=logit.2:"
                                 "norm=1e-06:scale=0.5:state=vk:+state_in");
}

TEST_CASE("kda: setters of another family are refused, both ways") {
    const desc_ptr kda = kda_of(PLAIT_BACKWARD);
    const std::string token = token_of(kda.get());
    FAILS(plait_wht_set_scale(kda.get(), 2), argument, "plait_wht_set_scale");
    FAILS(plait_conv1d_set_state(kda.get(), PLAIT_STATE_LINEAR, 3), argument,
          "plait_conv1d_set_state: the descriptor is of family kda.bwd, not conv1d");
    CHECK(token_of(kda.get()) == token);
    plait_desc *raw = nullptr;
    OK(plait_conv1d_create(&raw, PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1));
    const desc_ptr conv(raw);
    FAILS(plait_kda_set_gate(conv.get(), PLAIT_GATE_LOG, 0), argument,
          "plait_kda_set_gate: the descriptor is of family conv1d.fwd, not kda");
    FAILS(plait_kda_set_beta(conv.get(), 1, 1), argument, "plait_kda_set_beta");
    FAILS(plait_kda_set_qk_norm(conv.get(), 1, 1), argument, "plait_kda_set_qk_norm");
    FAILS(plait_kda_set_scale(conv.get(), 1), argument, "plait_kda_set_scale");
    FAILS(plait_kda_set_state(conv.get(), PLAIT_STATE_KV), argument, "plait_kda_set_state");
    CHECK(token_of(conv.get()) == "conv1d.fwd:f32:b1:c1:t1:k1");
}

TEST_CASE("kda: execute wants every role once, aligned and apart") {
    const call c(everything);
    c.i64(PLAIT_CU_SEQLENS)[1] = 3;
    c.i64(PLAIT_CU_SEQLENS)[2] = 8;
    c.i32(PLAIT_SLOTS)[1] = 2;
    REQUIRE(c.args.size() == 13);
    for (const plait_arg &a : c.args) {
        const auto role = static_cast<plait_role>(a.role);
        const std::string name = plait_role_name(role);
        FAILS(c.run(c.without(role)), PLAIT_ERR_POINTER, "role " + name + " is missing");
        FAILS(c.run(c.with(role, nullptr)), PLAIT_ERR_POINTER, name + "=NULL");
        std::vector<plait_arg> doubled = c.args;
        doubled.push_back(a);
        FAILS(c.run(doubled), PLAIT_ERR_POINTER, "role=" + name + " is given twice");
        FAILS(c.run(c.with(role, static_cast<char *>(a.ptr) + 2)), PLAIT_ERR_POINTER, name + "=0x");
    }
    for (const plait_role role : {PLAIT_X, PLAIT_DQ, PLAIT_DO, PLAIT_SEQ_IDX}) {
        std::vector<plait_arg> more = c.args;
        more.push_back({role, c.memory.get() + 200000});
        FAILS(c.run(more), PLAIT_ERR_POINTER,
              std::string("role=") + plait_role_name(role) + " is not in use");
    }
    FAILS(c.run(c.with(PLAIT_O, c.f32(PLAIT_V))), PLAIT_ERR_POINTER, "o");
    FAILS(c.run(c.with(PLAIT_STATE_OUT, c.f32(PLAIT_STATE_IN))), PLAIT_ERR_POINTER,
          "plait_desc_set_alias");
    FAILS(plait_execute(c.plan.get(), c.args.data(), static_cast<int>(c.args.size()), nullptr, 0,
                        nullptr),
          PLAIT_ERR_WORKSPACE, "workspace");
    c.i32(PLAIT_STATUS)[0] = 77;
    OK(c.run());
    CHECK(c.i32(PLAIT_STATUS)[0] == 0);
    c.i64(PLAIT_CU_SEQLENS)[2] = 9;
    OK(c.run());
    CHECK(c.i32(PLAIT_STATUS)[0] == 2);
    c.i64(PLAIT_CU_SEQLENS)[2] = 8;
    c.i32(PLAIT_SLOTS)[0] = 3;
    OK(c.run());
    CHECK(c.i32(PLAIT_STATUS)[0] == 1);

    const call b("kda.bwd:f32:b1:t4:h1:k3:v5:gate=bounded.-5:state=kv:+state_in+state_out");
    FAILS(b.run(b.with(PLAIT_DQ, b.f32(PLAIT_Q))), PLAIT_ERR_POINTER, "dq");
    FAILS(b.run(b.with(PLAIT_DV, b.f32(PLAIT_DO) + 4)), PLAIT_ERR_POINTER, "dv");
    FAILS(b.run(b.with(PLAIT_DSTATE_IN, b.f32(PLAIT_DSTATE_OUT))), PLAIT_ERR_POINTER, "dstate_in");
    FAILS(b.run(b.without(PLAIT_DA_LOG)), PLAIT_ERR_POINTER, "role da_log is missing");
    OK(b.run());
}

TEST_CASE("kda: a reserve from forward to backward, and from nobody") {
    const call f("kda.fwd:f32:b1:t4:h1:k2:v3:gate=log:reserve=chunk64");
    const call b("kda.bwd:f32:b1:t4:h1:k2:v3:gate=log:reserve=chunk64");
    const call alone("kda.bwd:f32:b1:t4:h1:k2:v3:gate=log");
    size_t bytes = 0;
    OK(plait_plan_reserve_size(f.plan.get(), &bytes));
    CHECK(bytes == 512);
    OK(plait_plan_reserve_size(b.plan.get(), &bytes));
    CHECK(bytes == 512);
    OK(plait_plan_reserve_size(alone.plan.get(), &bytes));
    CHECK(bytes == 0);
    CHECK(contains(print_of(f.plan.get()), "reserve 512 B"));
    CHECK(contains(print_of(b.plan.get(), PLAIT_JSON), "\"reserve\""));
    CHECK(!contains(print_of(alone.plan.get()), "reserve"));
    for (const call *c : {&f, &b, &alone})
        for (const plait_role role : {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_DO})
            for (const plait_arg &a : c->args)
                for (int i = 0; a.role == role && i < 12; ++i)
                    static_cast<float *>(a.ptr)[i] =
                        static_cast<float>((i * 7 + role) % 5) * (role == PLAIT_G ? -0.25f : 0.25f);
    FAILS(b.run(), argument, "reserve: no forward wrote it; this is kda.bwd:f32:b1:t4:h1:k2:v3");
    OK(f.run());
    OK(b.run(b.with(PLAIT_RESERVE, f.f32(PLAIT_RESERVE))));
    OK(alone.run());
    for (const plait_role role : {PLAIT_DQ, PLAIT_DK, PLAIT_DV, PLAIT_DG, PLAIT_DBETA})
        for (int i = 0; i < (role == PLAIT_DBETA ? 4 : role == PLAIT_DV ? 12 : 8); ++i)
            CHECK(b.f32(role)[i] == alone.f32(role)[i]);
    FAILS(b.run(b.with(PLAIT_RESERVE, f.f32(PLAIT_RESERVE) + 4)), PLAIT_ERR_POINTER,
          "is not aligned to the 256 bytes");
    FAILS(b.run(b.without(PLAIT_RESERVE)), PLAIT_ERR_POINTER, "role reserve is missing");
    FAILS(b.run(b.with(PLAIT_RESERVE, b.f32(PLAIT_DQ))), PLAIT_ERR_POINTER, "the same pointer");
    const call other("kda.bwd:f32:b1:t4:h1:k2:v3:gate=log:scale=2:reserve=chunk64");
    FAILS(other.run(other.with(PLAIT_RESERVE, f.f32(PLAIT_RESERVE))), argument,
          "reserve: the forward that wrote it had other extents, types or options, or another "
          "backend; this is kda.bwd:f32:b1:t4:h1:k2:v3:gate=log:scale=2");
}

TEST_CASE("kda: two tokens by hand; prefill and decode in place") {
    const char *const token = "kda.fwd:f32:b1:t2:h1:k1:v1:gate=log:scale=2:state=vk:+state_out";
    const call c(token);
    for (const plait_role role : {PLAIT_Q, PLAIT_K}) c.f32(role)[0] = c.f32(role)[1] = 1;
    c.f32(PLAIT_V)[0] = 4, c.f32(PLAIT_V)[1] = 6;
    for (int t = 0; t < 2; ++t) {
        c.f32(PLAIT_G)[t] = std::log(0.5f);
        c.f32(PLAIT_BETA)[t] = 0.5f;
    }
    OK(c.run());
    // The state halves, then half of what it lacks is added: 2, then 1 + (6 - 1) / 2.
    CHECK(c.f32(PLAIT_O)[0] == 4);
    CHECK(c.f32(PLAIT_O)[1] == doctest::Approx(7));
    CHECK(c.f32(PLAIT_STATE_OUT)[0] == doctest::Approx(3.5));

    const call step("kda.fwd:f32:b1:t1:h1:k1:v1:gate=log:scale=2:state=vk:slots=3.-1:"
                    "+state_in+state_out:state_out@state_in");
    step.i32(PLAIT_SLOTS)[0] = 2;
    float *pool = step.f32(PLAIT_STATE_IN);
    pool[0] = pool[1] = 9;
    for (int t = 0; t < 2; ++t) {
        for (const plait_role role : {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA})
            step.f32(role)[0] = c.f32(role)[t];
        OK(step.run(step.with(PLAIT_STATE_OUT, pool)));
        CHECK(step.f32(PLAIT_O)[0] == doctest::Approx(c.f32(PLAIT_O)[t]));
    }
    CHECK(pool[2] == doctest::Approx(3.5));
    CHECK(pool[0] == 9);
    CHECK(pool[1] == 9);
}

TEST_CASE("kda: NULL is what an empty tensor has; states are handed through") {
    const call c("kda.fwd:f32:b1:t0:h1:k2:v3:gate=log:state=kv:+state_in+state_out");
    for (int i = 0; i < 6; ++i) c.f32(PLAIT_STATE_IN)[i] = static_cast<float>(i + 1);
    std::vector<plait_arg> list = c.args;
    for (plait_arg &a : list)
        if (a.role != PLAIT_STATE_IN && a.role != PLAIT_STATE_OUT) a.ptr = nullptr;
    OK(c.run(list));
    CHECK(std::equal(c.f32(PLAIT_STATE_IN), c.f32(PLAIT_STATE_IN) + 6, c.f32(PLAIT_STATE_OUT)));
    const call b("kda.bwd:f32:b0:t8:h1:k2:v3:gate=softplus:+dt_bias");
    b.f32(PLAIT_DA_LOG)[0] = b.f32(PLAIT_DDT_BIAS)[1] = 7;
    list = b.args;
    for (plait_arg &a : list)
        if (a.role != PLAIT_DA_LOG && a.role != PLAIT_DDT_BIAS && a.role != PLAIT_A_LOG &&
            a.role != PLAIT_DT_BIAS)
            a.ptr = nullptr;
    OK(b.run(list));
    CHECK(b.f32(PLAIT_DA_LOG)[0] == 0); // sums over nothing
    CHECK(b.f32(PLAIT_DDT_BIAS)[1] == 0);
    const call r("kda.bwd:f32:b0:t8:h1:k2:v3:gate=softplus:reserve=chunk64");
    r.f32(PLAIT_DA_LOG)[0] = 7;
    OK(r.run(r.with(PLAIT_RESERVE, nullptr)));
    CHECK(r.f32(PLAIT_DA_LOG)[0] == 0);
}

TEST_CASE("kda: plans print what they do; a device says that it has no candidate yet") {
    const context_ptr ctx = cpu_context();
    for (const char *token : {everything, "kda.bwd:bf16:b2:t8:h2:k4:v6:gate=bounded.-5"}) {
        const plan_ptr plan = plan_of(ctx.get(), token);
        const std::string text = print_of(plan.get()), json = print_of(plan.get(), PLAIT_JSON);
        CHECK(contains(text, token));
        CHECK(contains(text, candidate_of(plan.get())));
        CHECK(contains(json, "\"steps\""));
        for (const plait_plan_attr attr :
             {PLAIT_PLAN_BYTES_READ, PLAIT_PLAN_BYTES_WRITTEN, PLAIT_PLAN_FLOPS}) {
            int64_t value = -1;
            OK(plait_plan_get_i64(plan.get(), attr, &value));
            CHECK(value > 0);
        }
    }
    CHECK(candidate_of(plan_of(ctx.get(), "kda.fwd:f32:b0:t8:h1:k4:v4:gate=log").get()) == "none");

    std::ifstream file(PLAIT_SOURCE_DIR "/tests/golden/profiles/h200.txt");
    std::ostringstream profile;
    profile << file.rdbuf();
    plait_context *raw = nullptr;
    OK(plait_context_create_from_profile(&raw, profile.str().c_str()));
    const context_ptr device(raw);
    const desc_ptr desc = desc_of(std::string("kda.bwd:f64:b1:t64:h1:k64:v64:gate=log"));
    plait_plan *plan = nullptr;
    FAILS(plait_plan_create(&plan, device.get(), desc.get(), nullptr), PLAIT_ERR_NOT_SUPPORTED,
          "q is f64; the arithmetic of kda on CUDA is f32");
    CHECK(plan == nullptr);
    const std::string all = text_of([&](char *b, size_t c, size_t *s) {
        return plait_candidates_print(device.get(), desc.get(), nullptr, PLAIT_TEXT, b, c, s);
    });
    CHECK(contains(all, "kda.bwd.cpu.ref"));
    CHECK(contains(all, "backend cpu; this context is cuda"));
}

TEST_CASE("kda: measuring on the CPU, also with packed sequences and slots; wisdom") {
    const context_ptr ctx = cpu_context();
    const pref_ptr pref = new_pref();
    OK(plait_pref_set_rigor(pref.get(), PLAIT_MEASURE));
    OK(plait_pref_set_time_limit(pref.get(), 0.01));
    for (const char *token :
         {"kda.fwd:f32:b2:t64:h2:k8:v8:gate=log", "kda.bwd:f16:b2:t64:h2:k8:v8:gate=softplus",
          "kda.fwd:bf16:b1:t64:h2:k8:v8:gate=bounded.-5:state=kv:seqs=5.64:slots=7.-1:+state_in+"
          "state_out+status:state_out@state_in",
          "kda.bwd:f64:b1:t64:h2:k8:v8:gate=log:state=vk:seqs=3.64:+state_in+state_out",
          "kda.fwd:f32:b2:t64:h2:k8:v8:gate=log:reserve=chunk64",
          "kda.bwd:bf16:b2:t64:h2:k32:v16:gate=log:reserve=chunk64"}) {
        INFO(token);
        const plan_ptr plan = plan_of(ctx.get(), token, pref.get());
        double seconds = -1;
        OK(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_MEASURED, &seconds));
        CHECK(seconds > 0);
        CHECK(contains(wisdom_of(ctx.get()), std::string("\n") + token + " | cpu/"));
    }
}
