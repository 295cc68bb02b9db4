// The contradictions of a descriptor of Kimi Delta Attention, and its normal form.
#include "src/core/status.h"
#include "src/desc/kda.h"

namespace plait::impl {

namespace {

template <class... Parts> [[noreturn]] void contradiction(const Parts &...parts) {
    fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", parts...);
}

const tensor *find(const std::vector<tensor> &all, plait_role role) {
    for (const tensor &t : all)
        if (t.role == role) return &t;
    return nullptr;
}

kda_view view_of(const std::vector<tensor> &all, plait_role role) {
    const tensor *t = find(all, role);
    if (!t) return {};
    const std::vector<int64_t> &s = t->strides;
    kda_view v{static_cast<scalar>(t->dtype), t->alignment, 0, 0, 0, 0};
    switch (role) {
    case PLAIT_A_LOG:
    case PLAIT_DA_LOG: v.h = s[0]; break;
    case PLAIT_DT_BIAS:
    case PLAIT_DDT_BIAS: v.h = s[0], v.c = s[1]; break;
    case PLAIT_BETA:
    case PLAIT_DBETA: v.b = s[0], v.t = s[1], v.h = s[2]; break;
    default: v.b = s[0], v.t = s[1], v.h = s[2], v.c = s[3];
    }
    return v;
}

kda_state_view state_of(const std::vector<tensor> &all, plait_role role, bool value_first) {
    const tensor *t = find(all, role);
    if (!t) return {};
    const std::vector<int64_t> &s = t->strides;
    return {static_cast<scalar>(t->dtype), t->alignment, s[0], s[1], value_first ? s[3] : s[2],
            value_first ? s[2] : s[3]};
}

} // namespace

void kda_descriptor::check() const {
    check_gate();
    check_states();
    check_sequences();
    check_reserve();
    check_roles();
}

void kda_descriptor::check_gate() const {
    if (!gate_)
        contradiction("the gate is not set; log, softplus and bounded are different functions, and "
                      "none is the default (plait_kda_set_gate)");
    if (gate_ == PLAIT_GATE_SOFTPLUS && !uses(PLAIT_A_LOG))
        contradiction("role=a_log is off, and gate=softplus needs it; gate=bounded alone may drop "
                      "it (plait_desc_use)");
    if (gate_ != PLAIT_GATE_LOG) return;
    for (const plait_role role : {PLAIT_A_LOG, PLAIT_DT_BIAS})
        if (uses(role))
            contradiction("role=", role_name(role),
                          " is in use, but gate=log takes g as it is (plait_kda_set_gate)");
}

void kda_descriptor::check_states() const {
    const bool any = uses(PLAIT_STATE_IN) || uses(PLAIT_STATE_OUT);
    for (const plait_role role : {PLAIT_STATE_IN, PLAIT_STATE_OUT})
        if (uses(role) && !orientation_)
            contradiction(
                "role=", role_name(role),
                " is in use, and the orientation of states is not set: kv or vk, there is "
                "no default (plait_kda_set_state)");
    if (slots_ && direction_ == PLAIT_BACKWARD)
        contradiction("slots are for forward, and this is ", family(), " (plait_desc_set_slots)");
    if (slots_ && !any)
        contradiction("slots hold states, and neither state_in nor state_out is in use");
}

void kda_descriptor::check_sequences() const {
    if (varlen_ && batch_ != 1)
        contradiction("batch=", batch_, " does not go with packed sequences, which need batch=1");
    if (varlen_ && varlen_->sequences == INT64_MAX)
        contradiction("sequences=", varlen_->sequences, ": their offsets are beyond 64 bits");
    for (const plait_role role : {PLAIT_SLOTS, PLAIT_CU_SEQLENS}) {
        const auto &strides = settings(role).strides;
        if (uses(role) && strides && strides->front() != 1)
            contradiction(role_name(role), ": strides[0]=", strides->front(),
                          "; numbers of sequences lie side by side, stride 1");
    }
    const bool reads_reserve = direction_ == PLAIT_BACKWARD && uses(PLAIT_RESERVE);
    if (uses(PLAIT_STATUS) && !varlen_ && !slots_ && !reads_reserve)
        contradiction("role=status reports on offsets and slots, and the call has neither "
                      "(plait_desc_set_varlen, plait_desc_set_slots), nor a reserve that it reads "
                      "(plait_desc_use)");
}

void kda_descriptor::check_reserve() const {
    if (!uses(PLAIT_RESERVE)) return;
    if (slots_)
        contradiction("role=reserve is for a backward, which has no slots (plait_desc_set_slots)");
    const role_settings &set = settings(PLAIT_RESERVE);
    if (set.strides && set.strides->front() != 1)
        contradiction("reserve: strides[0]=", set.strides->front(),
                      "; its bytes lie side by side, stride 1");
    if (set.alignment && *set.alignment < PLAIT_WORKSPACE_ALIGNMENT)
        contradiction("reserve: alignment=", *set.alignment, " is less than ",
                      PLAIT_WORKSPACE_ALIGNMENT, ", PLAIT_WORKSPACE_ALIGNMENT");
}

kda_problem kda_descriptor::problem() const {
    const std::vector<tensor> all = tensors();
    const auto view = [&](plait_role role) { return view_of(all, role); };
    const auto state = [&](plait_role role) {
        return state_of(all, role, orientation_ == PLAIT_STATE_VK);
    };
    kda_problem p{};
    p.direction = direction_ == PLAIT_FORWARD ? kda_direction::forward : kda_direction::backward;
    p.gate = static_cast<kda_gate>(*gate_);
    p.norm = eps_.has_value();
    p.beta_logit = beta_logit_;
    p.varlen = varlen_.has_value();
    p.pooled = slots_.has_value();
    p.alias = settings(PLAIT_STATE_OUT).alias.has_value();
    p.status = uses(PLAIT_STATUS);
    p.reserve = uses(PLAIT_RESERVE) && reserve_bytes() > 0;
    p.index = varlen_ ? static_cast<scalar>(dtype_of_role(PLAIT_CU_SEQLENS)) : scalar::none;
    p.pad = slots_ ? slots_->pad : 0;
    p.lower_bound = lower_bound_;
    p.beta_scale = beta_scale_;
    p.eps = eps_.value_or(0);
    p.scale = scale();
    p.batch = batch_;
    p.length = length_;
    p.heads = heads_;
    p.value_heads = value_heads_;
    p.dim_k = dim_k_;
    p.dim_v = dim_v_;
    p.sequences = sequences();
    p.max_length = varlen_ ? varlen_->max_length : length_;
    p.slots = slots_ ? slots_->count : 0;
    p.q = view(PLAIT_Q);
    p.k = view(PLAIT_K);
    p.v = view(PLAIT_V);
    p.g = view(PLAIT_G);
    p.beta = view(PLAIT_BETA);
    p.o = view(PLAIT_O);
    p.a_log = view(PLAIT_A_LOG);
    p.dt_bias = view(PLAIT_DT_BIAS);
    p.state_in = state(PLAIT_STATE_IN);
    p.state_out = state(PLAIT_STATE_OUT);
    p.dq = view(PLAIT_DQ);
    p.dk = view(PLAIT_DK);
    p.dv = view(PLAIT_DV);
    p.dg = view(PLAIT_DG);
    p.dbeta = view(PLAIT_DBETA);
    p.d_o = view(PLAIT_DO);
    p.da_log = view(PLAIT_DA_LOG);
    p.ddt_bias = view(PLAIT_DDT_BIAS);
    p.dstate_in = state(PLAIT_DSTATE_IN);
    p.dstate_out = state(PLAIT_DSTATE_OUT);
    p.accumulator = scalar::f32;
    for (const tensor &t : all)
        if (t.dtype == PLAIT_F64) p.accumulator = scalar::f64;
    return p;
}

} // namespace plait::impl
