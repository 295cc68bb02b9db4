#include "tests/unit/kda_support.h"

#include <limits>

namespace unit {

namespace {

const std::vector<plait_dtype> floating = {PLAIT_F64, PLAIT_F32, PLAIT_F16, PLAIT_BF16};

int64_t any_count(dice &d) {
    switch (d.between(0, 9)) {
    case 0: return std::numeric_limits<int64_t>::max() - d.between(0, 2);
    case 1: return d.between(0, std::numeric_limits<int64_t>::max());
    default: return d.between(0, 9);
    }
}

bool is_index(plait_role role) {
    return role == PLAIT_SLOTS || role == PLAIT_CU_SEQLENS || role == PLAIT_STATUS ||
           role == PLAIT_RESERVE;
}
bool is_state(plait_role role) {
    return (role & 255) == PLAIT_STATE_IN || (role & 255) == PLAIT_STATE_OUT;
}
bool is_parameter(plait_role role) {
    return (role & 255) == PLAIT_A_LOG || (role & 255) == PLAIT_DT_BIAS;
}

size_t rank_of(plait_role role) {
    if (is_index(role)) return 1;
    switch (role & 255) {
    case PLAIT_A_LOG: return 1;
    case PLAIT_DT_BIAS: return 2;
    case PLAIT_BETA: return 3;
    default: return 4;
    }
}

bool is_required(plait_role role) {
    return (role >= PLAIT_Q && role <= PLAIT_O) || role == PLAIT_DO;
}

} // namespace

const std::vector<plait_role> &kda_roles(plait_direction direction) {
    static const std::vector<plait_role> forward = {
        PLAIT_Q,         PLAIT_K,     PLAIT_V,          PLAIT_G,       PLAIT_BETA,
        PLAIT_O,         PLAIT_A_LOG, PLAIT_DT_BIAS,    PLAIT_RESERVE, PLAIT_STATE_IN,
        PLAIT_STATE_OUT, PLAIT_SLOTS, PLAIT_CU_SEQLENS, PLAIT_STATUS};
    static const std::vector<plait_role> backward = {
        PLAIT_Q,         PLAIT_K,          PLAIT_V,         PLAIT_G,       PLAIT_BETA,
        PLAIT_O,         PLAIT_A_LOG,      PLAIT_DT_BIAS,   PLAIT_RESERVE, PLAIT_STATE_IN,
        PLAIT_STATE_OUT, PLAIT_CU_SEQLENS, PLAIT_STATUS,    PLAIT_DQ,      PLAIT_DK,
        PLAIT_DV,        PLAIT_DG,         PLAIT_DBETA,     PLAIT_DO,      PLAIT_DA_LOG,
        PLAIT_DDT_BIAS,  PLAIT_DSTATE_IN,  PLAIT_DSTATE_OUT};
    return direction == PLAIT_FORWARD ? forward : backward;
}

kda_descriptor any_kda(dice &d) {
    const auto direction = static_cast<plait_direction>(d.between(0, 1));
    const int64_t heads = any_count(d);
    const int64_t group = d.one_in(2) ? 1 : d.between(0, 4);
    kda_descriptor desc(direction, d.pick(floating), d.one_in(2) ? 1 : any_count(d), any_count(d),
                        heads, heads > 1000 ? heads : heads * group, any_count(d), any_count(d));
    if (!d.one_in(8)) switch (d.between(0, 2)) {
        case 0: desc.set_gate(PLAIT_GATE_LOG, 0); break;
        case 1: desc.set_gate(PLAIT_GATE_SOFTPLUS, 0); break;
        default: desc.set_gate(PLAIT_GATE_BOUNDED, -0.1 * static_cast<double>(d.between(1, 999)));
        }
    if (d.one_in(2)) desc.set_beta(true, 0.25 * static_cast<double>(d.between(1, 9)));
    if (d.one_in(6)) desc.set_beta(false, 1);
    if (d.one_in(2)) desc.set_qk_norm(true, 1e-6 * static_cast<double>(d.between(1, 7)));
    if (d.one_in(6)) desc.set_qk_norm(false, 0);
    if (d.one_in(3)) desc.set_scale(0.1 * static_cast<double>(d.between(-9, 9)));
    if (!d.one_in(4)) desc.set_state(static_cast<plait_state_layout>(d.between(1, 2)));
    if (d.one_in(5)) desc.set_varlen(any_count(d), any_count(d));
    if (d.one_in(5))
        desc.set_slots(d.between(0, 20), static_cast<int32_t>(d.between(INT32_MIN, INT32_MAX)));
    for (const plait_role role : kda_roles(direction)) {
        const bool implied = role == PLAIT_SLOTS || role == PLAIT_CU_SEQLENS;
        if (!implied && d.one_in(5)) desc.use(role, is_required(role) || d.one_in(2));
        if (d.one_in(16)) {
            std::vector<int64_t> strides(rank_of(role));
            for (int64_t &s : strides) s = any_count(d);
            set_strides(desc, role, strides);
        }
        if (d.one_in(12)) desc.set_alignment(role, 1 << d.between(0, 12));
        if (role == PLAIT_CU_SEQLENS && d.one_in(4)) desc.set_dtype(role, PLAIT_I32);
        if (is_index(role) || !d.one_in(8)) continue;
        const plait_dtype type = d.pick(floating);
        if (is_parameter(role))
            desc.set_dtype(role, type == PLAIT_F64 ? PLAIT_F64 : PLAIT_F32);
        else
            desc.set_dtype(role, is_state(role) && type == PLAIT_F16 ? PLAIT_BF16 : type);
    }
    if (direction == PLAIT_FORWARD && d.one_in(8)) desc.set_alias(PLAIT_STATE_OUT, PLAIT_STATE_IN);
    return desc;
}

const std::vector<std::string> &kda_corpus() {
    static const std::vector<std::string> tokens = {
        "kda.fwd:bf16:b1:t8192:h16:k128:v128:gate=bounded.-5:beta=logit.1:norm=1e-06:state=vk:"
        "+state_out",
        "kda.fwd:bf16:b64:t1:h32:k128:v128:gate=softplus:state=vk:slots=512.-1:+state_in+state_out:"
        "state_out@state_in",
        "kda.fwd:f32:b2:t7:h1:hv3:k4:v6:gate=log",
        "kda.fwd:f64:b0:t7:h2:k4:v6:gate=log:scale=0.25:state=kv:+state_out",
        "kda.fwd:f16:b1:t512:h2:k64:v64:gate=bounded.-0.5:seqs=9.512:-a_log:g.f32:cu_seqlens.i32",
        "kda.fwd:bf16:b1:t512:h2:k64:v64:gate=bounded.-5:beta=logit.2:state=kv:seqs=9.512:"
        "slots=40.-1:+dt_bias+state_in+status:state_in.bf16",
        "kda.fwd:bf16:b2:t8:h2:k4:v6:gate=log:q.s128.16.8.1:g.f32:beta.f32",
        "kda.bwd:bf16:b1:t8192:h8:hv32:k128:v128:gate=log:seqs=17.4096:g.f32",
        "kda.bwd:bf16:b8:t2048:h16:k128:v128:gate=softplus:beta=logit.1:norm=1e-06:state=kv:"
        "+dt_bias+state_in+state_out-dstate_in",
        "kda.bwd:f32:b1:t9:h2:k3:v5:gate=bounded.-5:+dt_bias-dq-da_log",
        "kda.bwd:f32:b1:t9:h2:k3:v5:gate=bounded.-5:-a_log:do.s0.0.0.0",
        "kda.fwd:bf16:b1:t8192:h16:k128:v128:gate=bounded.-5:beta=logit.1:norm=1e-06:state=vk:"
        "reserve=chunk64:+state_out",
        "kda.bwd:bf16:b1:t8192:h8:hv32:k128:v128:gate=log:seqs=17.4096:reserve=chunk64:g.f32",
        "kda.bwd:f32:b1:t9:h2:k3:v5:gate=log:reserve=chunk64:+status",
    };
    return tokens;
}

} // namespace unit
