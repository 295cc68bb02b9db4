// Convolutions through the C API: what each new function refuses, roles of execute, plans, wisdom.
#include "tests/api/common.h"

#include <algorithm>
#include <cmath>

using namespace plait::test;

namespace {

constexpr plait_status argument = PLAIT_ERR_INVALID_ARGUMENT;

desc_ptr conv1d_of(plait_direction direction) {
    plait_desc *desc = nullptr;
    OK(plait_conv1d_create(&desc, direction, PLAIT_F32, 2, 4, 8, 3));
    return desc_ptr(desc);
}

/// Buffers for every tensor of a plan's descriptor, far enough from each other.
struct call {
    context_ptr ctx = cpu_context();
    desc_ptr desc;
    plan_ptr plan;
    aligned_buffer memory{size_t{1} << 17};
    aligned_buffer work{0};
    size_t work_bytes = 0;
    std::vector<plait_arg> args;

    explicit call(const char *token, const plait_pref *pref = nullptr) {
        desc = desc_of(std::string(token));
        plan = plan_of(ctx.get(), token, pref);
        work_bytes = workspace_of(plan.get());
        work = aligned_buffer(work_bytes);
        int count = 0;
        OK(plait_desc_num_tensors(desc.get(), &count));
        std::memset(memory.get(), 0, size_t{1} << 17);
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

const char *const everything =
    "conv1d.fwd:f32:b1:c4:t8:k3:seqs=2.8:slots=3.-1:+bias+state_in+state_out+status";

} // namespace

TEST_CASE("conv1d: constructor and setters refuse NULL and garbage") {
    plait_desc *desc = reinterpret_cast<plait_desc *>(&desc);
    FAILS(plait_conv1d_create(nullptr, PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 1), argument,
          "desc=NULL");
    FAILS(plait_conv1d_create(&desc, garbage<plait_direction>(), PLAIT_F32, 1, 1, 1, 1), argument,
          "dir=99");
    CHECK(desc == nullptr);
    FAILS(plait_conv1d_create(&desc, PLAIT_FORWARD, garbage<plait_dtype>(), 1, 1, 1, 1), argument,
          "dtype=99");
    FAILS(plait_conv1d_create(&desc, PLAIT_FORWARD, PLAIT_F32, -1, 1, 1, 1), argument, "batch=-1");
    FAILS(plait_conv1d_create(&desc, PLAIT_FORWARD, PLAIT_F32, 1, -1, 1, 1), argument,
          "channels=-1");
    FAILS(plait_conv1d_create(&desc, PLAIT_FORWARD, PLAIT_F32, 1, 1, -1, 1), argument, "length=-1");
    FAILS(plait_conv1d_create(&desc, PLAIT_FORWARD, PLAIT_F32, 1, 1, 1, 0), argument, "width=0");
    FAILS(plait_conv1d_set_layout(nullptr, PLAIT_BTC), argument, "desc=NULL");
    FAILS(plait_conv1d_set_activation(nullptr, PLAIT_ACT_SILU), argument, "desc=NULL");
    FAILS(plait_conv1d_set_residual(nullptr, 1), argument, "desc=NULL");
    FAILS(plait_conv1d_set_state(nullptr, PLAIT_STATE_RING, 3), argument, "desc=NULL");
    FAILS(plait_desc_set_varlen(nullptr, 1, 1), argument, "desc=NULL");
    FAILS(plait_desc_set_slots(nullptr, 1, 1), argument, "desc=NULL");

    const desc_ptr one = conv1d_of(PLAIT_FORWARD);
    const std::string token = token_of(one.get());
    FAILS(plait_conv1d_set_layout(one.get(), garbage<plait_layout>()), argument, "layout=99");
    FAILS(plait_conv1d_set_activation(one.get(), garbage<plait_activation>()), argument, "act=99");
    FAILS(plait_conv1d_set_state(one.get(), garbage<plait_state_kind>(), 3), argument, "kind=99");
    FAILS(plait_conv1d_set_state(one.get(), PLAIT_STATE_LINEAR, -3), argument, "entries=-3");
    FAILS(plait_desc_set_varlen(one.get(), -1, 1), argument, "sequences=-1");
    FAILS(plait_desc_set_varlen(one.get(), 1, -1), argument, "max_length=-1");
    FAILS(plait_desc_set_slots(one.get(), int64_t{1} << 31, 0), argument, "count=2147483648");
    CHECK(token_of(one.get()) == token);
    OK(plait_desc_check(one.get()));
}

TEST_CASE("conv1d: setters of another family are refused, both ways") {
    const desc_ptr conv = conv1d_of(PLAIT_FORWARD);
    const std::string token = token_of(conv.get());
    FAILS(plait_wht_set_axes(conv.get(), 1), argument, "plait_wht_set_axes");
    FAILS(plait_wht_set_bits(conv.get(), 1), argument, "plait_wht_set_bits");
    FAILS(plait_wht_set_factor(conv.get(), 0, PLAIT_H40), argument, "plait_wht_set_factor");
    FAILS(plait_wht_set_order(conv.get(), PLAIT_DYADIC), argument, "plait_wht_set_order");
    FAILS(plait_wht_set_adjoint(conv.get(), 1), argument, "plait_wht_set_adjoint");
    FAILS(plait_wht_set_scale(conv.get(), 2), argument, "plait_wht_set_scale");
    FAILS(plait_wht_set_bound(conv.get(), 2), argument, "plait_wht_set_bound");
    CHECK(token_of(conv.get()) == token);

    const int64_t n = 8;
    plait_desc *raw = nullptr;
    OK(plait_wht_create(&raw, PLAIT_F32, 1, &n));
    const desc_ptr wht(raw);
    FAILS(plait_conv1d_set_layout(wht.get(), PLAIT_BTC), argument, "plait_conv1d_set_layout");
    FAILS(plait_conv1d_set_activation(wht.get(), PLAIT_ACT_SILU), argument,
          "plait_conv1d_set_activation");
    FAILS(plait_conv1d_set_residual(wht.get(), 1), argument, "plait_conv1d_set_residual");
    FAILS(plait_conv1d_set_state(wht.get(), PLAIT_STATE_LINEAR, 3), argument,
          "plait_conv1d_set_state");
    FAILS(plait_desc_set_varlen(wht.get(), 1, 1), argument, "wht has no packed sequences");
    FAILS(plait_desc_set_slots(wht.get(), 1, 1), argument, "wht has no pool");
    CHECK(token_of(wht.get()) == "wht:f32:n8");
}

TEST_CASE("conv1d: an alias of a role that is not in use is a contradiction") {
    const desc_ptr desc = desc_of("conv1d.fwd:f32:b1:c4:t8:k4:+state_in+state_out");
    OK(plait_desc_set_alias(desc.get(), PLAIT_STATE_OUT, PLAIT_STATE_IN));
    OK(plait_desc_check(desc.get()));
    OK(plait_desc_use(desc.get(), PLAIT_STATE_OUT, 0));
    FAILS(plait_desc_check(desc.get()), PLAIT_ERR_INVALID_DESC,
          "role=state_out has an alias but is not in use");
}

TEST_CASE("conv1d: execute wants every role once, aligned and apart") {
    const call c(everything);
    c.i64(PLAIT_CU_SEQLENS)[1] = 3;
    c.i64(PLAIT_CU_SEQLENS)[2] = 8;
    c.i32(PLAIT_SLOTS)[1] = 2;
    REQUIRE(c.args.size() == 9);
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
    for (const plait_role role : {PLAIT_SEQ_IDX, PLAIT_DX, PLAIT_STATE, PLAIT_POSITION}) {
        std::vector<plait_arg> more = c.args;
        more.push_back({role, c.memory.get() + 100000});
        FAILS(c.run(more), PLAIT_ERR_POINTER,
              std::string("role=") + plait_role_name(role) + " is not in use");
    }
    FAILS(c.run(c.with(PLAIT_Y, c.f32(PLAIT_X))), PLAIT_ERR_POINTER,
          "y and x are the same pointer");
    FAILS(c.run(c.with(PLAIT_Y, c.f32(PLAIT_X) + 4)), PLAIT_ERR_POINTER, "y overlaps x");
    FAILS(c.run(c.with(PLAIT_STATE_OUT, c.f32(PLAIT_STATE_IN))), PLAIT_ERR_POINTER,
          "plait_desc_set_alias");
    FAILS(c.run(c.with(PLAIT_STATE_OUT, c.f32(PLAIT_STATE_IN) + 4)), PLAIT_ERR_POINTER,
          "state_out overlaps state_in");
    FAILS(c.run(c.with(PLAIT_STATUS, c.i32(PLAIT_SLOTS))), PLAIT_ERR_POINTER, "status");
    if (c.work_bytes > 0)
        FAILS(plait_execute(c.plan.get(), c.args.data(), static_cast<int>(c.args.size()), nullptr,
                            0, nullptr),
              PLAIT_ERR_WORKSPACE, "workspace");
    c.i32(PLAIT_STATUS)[0] = 77;
    OK(c.run());
    CHECK(c.i32(PLAIT_STATUS)[0] == 0);
    OK(c.run(c.with(PLAIT_BIAS, c.f32(PLAIT_X)))); // two inputs may share memory
}

TEST_CASE("conv1d: a declared alias may be taken or not, and partial overlap never") {
    const call c("conv1d.fwd:f32:b1:c4:t8:k3:+state_in+state_out:state_out@state_in");
    OK(c.run());
    OK(c.run(c.with(PLAIT_STATE_OUT, c.f32(PLAIT_STATE_IN))));
    FAILS(c.run(c.with(PLAIT_STATE_OUT, c.f32(PLAIT_STATE_IN) + 4)), PLAIT_ERR_POINTER,
          "state_out overlaps state_in");
    const call u("conv1d.update:f32:b1:c4:t1:k3:state=ring.4");
    FAILS(u.run(u.with(PLAIT_Y, u.f32(PLAIT_STATE))), PLAIT_ERR_POINTER, "y");
    FAILS(u.run(u.with(PLAIT_X, u.f32(PLAIT_STATE) + 4)), PLAIT_ERR_POINTER, "x");
    FAILS(u.run(u.without(PLAIT_POSITION)), PLAIT_ERR_POINTER, "role position is missing");
    OK(u.run());
    const call b("conv1d.bwd:f32:b1:c4:t8:k3:+bias+state_in+state_out");
    FAILS(b.run(b.with(PLAIT_DX, b.f32(PLAIT_DY))), PLAIT_ERR_POINTER, "dx");
    FAILS(b.run(b.with(PLAIT_DX, b.f32(PLAIT_DY) + 4)), PLAIT_ERR_POINTER, "dx");
    FAILS(b.run(b.with(PLAIT_DW, b.f32(PLAIT_W))), PLAIT_ERR_POINTER, "dw");
    FAILS(b.run(b.with(PLAIT_DSTATE_IN, b.f32(PLAIT_DSTATE_OUT))), PLAIT_ERR_POINTER, "dstate_in");
    OK(b.run());
}

TEST_CASE("conv1d: NULL is what an empty tensor has") {
    const call c("conv1d.fwd:f32:b1:c4:t0:k3:+state_in+state_out");
    for (int i = 0; i < 8; ++i) c.f32(PLAIT_STATE_IN)[i] = static_cast<float>(i + 1);
    std::vector<plait_arg> list = c.with(PLAIT_X, nullptr);
    list[c.at(PLAIT_Y)].ptr = nullptr;
    OK(c.run(list));
    CHECK(std::equal(c.f32(PLAIT_STATE_IN), c.f32(PLAIT_STATE_IN) + 8, c.f32(PLAIT_STATE_OUT)));
    FAILS(c.run(c.with(PLAIT_STATE_IN, nullptr)), PLAIT_ERR_POINTER, "state_in=NULL");
    const call one("conv1d.fwd:f32:b1:c4:t8:k1:+state_in+state_out"); // states without entries
    list = one.with(PLAIT_STATE_IN, nullptr);
    list[one.at(PLAIT_STATE_OUT)].ptr = nullptr;
    OK(one.run(list));
    const call b("conv1d.bwd:f32:b0:c2:t8:k3:+bias");
    b.f32(PLAIT_DW)[5] = b.f32(PLAIT_DBIAS)[1] = 7;
    list = b.args;
    for (plait_arg &a : list)
        if (a.role == PLAIT_X || a.role == PLAIT_DX || a.role == PLAIT_DY) a.ptr = nullptr;
    OK(b.run(list));
    CHECK(b.f32(PLAIT_DW)[5] == 0); // sums over nothing
    CHECK(b.f32(PLAIT_DBIAS)[1] == 0);
}

TEST_CASE("conv1d: STATUS says which sequence or row, and 0 when all is well") {
    const call c(everything);
    const auto status = [&](std::vector<int64_t> cu, std::vector<int32_t> slots) {
        std::copy(cu.begin(), cu.end(), c.i64(PLAIT_CU_SEQLENS));
        std::copy(slots.begin(), slots.end(), c.i32(PLAIT_SLOTS));
        c.i32(PLAIT_STATUS)[0] = -1;
        OK(c.run());
        return c.i32(PLAIT_STATUS)[0];
    };
    CHECK(status({0, 3, 8}, {0, 2}) == 0);
    CHECK(status({0, 0, 0}, {-1, -1}) == 0);
    CHECK(status({0, 3, 9}, {0, 2}) == 2);
    CHECK(status({0, 9, 8}, {0, 2}) == 1);
    CHECK(status({1, 3, 8}, {0, 2}) == 1);
    CHECK(status({0, -3, 8}, {0, 2}) == 1);
    CHECK(status({0, 3, 8}, {0, 3}) == 2);
    CHECK(status({0, 3, 8}, {-2, 0}) == 1);
    CHECK(status({0, 3, 8}, {1, 1}) == 2);
}

TEST_CASE("conv1d: plans print what they do") {
    const context_ptr ctx = cpu_context();
    for (const char *token :
         {"conv1d.fwd:bf16:b2:c8:t64:k4:silu:+bias", "conv1d.bwd:f32:b2:t64:c8:k4",
          "conv1d.update:f16:b2:c8:t1:k4", everything}) {
        const plan_ptr plan = plan_of(ctx.get(), token);
        const std::string text = print_of(plan.get()), json = print_of(plan.get(), PLAIT_JSON);
        CHECK(contains(text, token));
        CHECK(contains(text, candidate_of(plan.get())));
        CHECK(contains(text, "read"));
        CHECK(contains(json, token));
        CHECK(contains(json, "\"steps\""));
        const desc_ptr desc = desc_of(std::string(token));
        const std::string all = text_of([&](char *b, size_t c, size_t *s) {
            return plait_candidates_print(ctx.get(), desc.get(), nullptr, PLAIT_TEXT, b, c, s);
        });
        const std::string family = std::string(token).substr(0, std::string(token).find(':'));
        CHECK(contains(all, family + ".cpu.simd"));
        CHECK(contains(all, family + ".cpu.ref"));
        CHECK_FALSE(contains(all, "wht."));
        for (const plait_plan_attr attr :
             {PLAIT_PLAN_BYTES_READ, PLAIT_PLAN_BYTES_WRITTEN, PLAIT_PLAN_FLOPS}) {
            int64_t value = -1;
            OK(plait_plan_get_i64(plan.get(), attr, &value));
            CHECK(value > 0);
        }
    }
    CHECK(candidate_of(plan_of(ctx.get(), "conv1d.fwd:f32:b0:c4:t8:k4").get()) == "none");
}

TEST_CASE("conv1d: a plan by each candidate computes the same small sum") {
    for (const char *name : {"conv1d.fwd.cpu.simd", "conv1d.fwd.cpu.ref"}) {
        const pref_ptr pref = new_pref();
        OK(plait_pref_set_candidates(pref.get(), name));
        const call c("conv1d.fwd:f32:b1:c2:t3:k2:+bias", pref.get());
        CHECK(candidate_of(c.plan.get()) == name);
        const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {10, 1, 0, 2}, bias[] = {0, 0.5f};
        std::copy(x, x + 6, c.f32(PLAIT_X));
        std::copy(w, w + 4, c.f32(PLAIT_W));
        std::copy(bias, bias + 2, c.f32(PLAIT_BIAS));
        OK(c.run());
        const float want[] = {1, 12, 23, 8.5f, 10.5f, 12.5f};
        CHECK(std::equal(want, want + 6, c.f32(PLAIT_Y)));
    }
}

TEST_CASE("conv1d: measuring on the CPU, also with packed sequences and slots; wisdom") {
    const context_ptr ctx = cpu_context();
    const pref_ptr pref = new_pref();
    OK(plait_pref_set_rigor(pref.get(), PLAIT_MEASURE));
    OK(plait_pref_set_time_limit(pref.get(), 0.01));
    const char *const tokens[] = {
        "conv1d.fwd:f32:b2:c8:t64:k4",
        "conv1d.fwd:bf16:b1:t64:c8:k4:seqs=5.64:slots=7.-1:+state_in+state_out+status:"
        "state_out@state_in",
        "conv1d.fwd:f32:b2:c8:t64:k4:+seq_idx",
        "conv1d.bwd:f32:b1:c8:t64:k4:silu:seqs=3.64:+bias+state_in+state_out",
        "conv1d.update:f16:b4:c8:t1:k4:state=ring.4:slots=9.-1:+status",
    };
    for (const char *token : tokens) {
        INFO(token);
        const plan_ptr plan = plan_of(ctx.get(), token, pref.get());
        double seconds = -1;
        OK(plait_plan_get_f64(plan.get(), PLAIT_PLAN_SECONDS_MEASURED, &seconds));
        CHECK(seconds > 0);
        CHECK(contains(wisdom_of(ctx.get()), std::string("\n") + token + " | cpu/"));
    }
    const context_ptr other = cpu_context();
    int loaded = 0, skipped = -1;
    OK(plait_wisdom_load(other.get(), wisdom_of(ctx.get()).c_str(), &loaded, &skipped));
    CHECK(loaded >= 5);
    CHECK(skipped == 0);
    const pref_ptr only = new_pref();
    OK(plait_pref_set_wisdom_only(only.get(), 1));
    for (const char *token : tokens) {
        int64_t known = 0;
        const plan_ptr plan = plan_of(other.get(), token, only.get());
        OK(plait_plan_get_i64(plan.get(), PLAIT_PLAN_FROM_WISDOM, &known));
        CHECK(known == 1);
    }
}
