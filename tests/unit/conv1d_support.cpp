#include "tests/unit/conv1d_support.h"

#include <limits>

namespace unit {

namespace {

const std::vector<plait_dtype> floating = {PLAIT_F64, PLAIT_F32, PLAIT_F16, PLAIT_BF16};

int64_t any_count(dice &d) {
    switch (d.between(0, 7)) {
    case 0: return std::numeric_limits<int64_t>::max() - d.between(0, 2);
    case 1: return d.between(0, std::numeric_limits<int64_t>::max());
    default: return d.between(0, 9);
    }
}

bool is_index(plait_role role) {
    return role == PLAIT_POSITION || role == PLAIT_SLOTS || role == PLAIT_CU_SEQLENS ||
           role == PLAIT_SEQ_IDX || role == PLAIT_STATUS;
}

size_t rank_of(plait_role role) {
    switch (role) {
    case PLAIT_W:
    case PLAIT_DW:
    case PLAIT_SEQ_IDX: return 2;
    case PLAIT_BIAS:
    case PLAIT_DBIAS:
    case PLAIT_POSITION:
    case PLAIT_SLOTS:
    case PLAIT_CU_SEQLENS:
    case PLAIT_STATUS: return 1;
    default: return 3;
    }
}

} // namespace

const std::vector<plait_role> &conv1d_roles(plait_direction direction) {
    static const std::vector<plait_role> forward = {
        PLAIT_X,         PLAIT_Y,     PLAIT_W,          PLAIT_BIAS,    PLAIT_STATE_IN,
        PLAIT_STATE_OUT, PLAIT_SLOTS, PLAIT_CU_SEQLENS, PLAIT_SEQ_IDX, PLAIT_STATUS};
    static const std::vector<plait_role> backward = {
        PLAIT_X,         PLAIT_Y,          PLAIT_W,       PLAIT_BIAS,      PLAIT_STATE_IN,
        PLAIT_STATE_OUT, PLAIT_CU_SEQLENS, PLAIT_SEQ_IDX, PLAIT_STATUS,    PLAIT_DX,
        PLAIT_DY,        PLAIT_DW,         PLAIT_DBIAS,   PLAIT_DSTATE_IN, PLAIT_DSTATE_OUT};
    static const std::vector<plait_role> update = {PLAIT_X,     PLAIT_Y,     PLAIT_W,
                                                   PLAIT_BIAS,  PLAIT_STATE, PLAIT_POSITION,
                                                   PLAIT_SLOTS, PLAIT_STATUS};
    return direction == PLAIT_FORWARD ? forward : direction == PLAIT_BACKWARD ? backward : update;
}

conv1d_descriptor any_conv1d(dice &d) {
    const auto direction = static_cast<plait_direction>(d.between(0, 2));
    conv1d_descriptor desc(direction, d.pick(floating), d.one_in(3) ? 1 : any_count(d),
                           any_count(d), any_count(d), 1 + any_count(d) / 2);
    if (d.one_in(2)) desc.set_layout(static_cast<plait_layout>(d.between(0, 1)));
    if (d.one_in(2)) desc.set_activation(static_cast<plait_activation>(d.between(0, 1)));
    if (d.one_in(4)) desc.set_residual(d.one_in(2));
    if (d.one_in(4))
        desc.set_state(static_cast<plait_state_kind>(d.between(0, 1)), d.between(0, 12));
    if (d.one_in(5)) desc.set_varlen(any_count(d), any_count(d));
    if (d.one_in(5))
        desc.set_slots(d.between(0, 20), static_cast<int32_t>(d.between(INT32_MIN, INT32_MAX)));
    for (const plait_role role : conv1d_roles(direction)) {
        const bool implied =
            role == PLAIT_SLOTS || role == PLAIT_POSITION || role == PLAIT_CU_SEQLENS;
        const bool required = role == PLAIT_X || role == PLAIT_Y || role == PLAIT_W ||
                              role == PLAIT_STATE || role == PLAIT_DY;
        if (!implied && d.one_in(3)) desc.use(role, required || d.one_in(2));
        if (d.one_in(8)) {
            std::vector<int64_t> strides(rank_of(role));
            for (int64_t &s : strides) s = any_count(d);
            set_strides(desc, role, strides);
        }
        if (d.one_in(8)) desc.set_alignment(role, 1 << d.between(0, 12));
        if (!is_index(role) && d.one_in(6)) desc.set_dtype(role, d.pick(floating));
        if (role == PLAIT_CU_SEQLENS && d.one_in(4)) desc.set_dtype(role, PLAIT_I32);
    }
    if (direction != PLAIT_UPDATE && d.one_in(8) && direction == PLAIT_FORWARD)
        desc.set_alias(PLAIT_STATE_OUT, PLAIT_STATE_IN);
    return desc;
}

const std::vector<std::string> &conv1d_corpus() {
    static const std::vector<std::string> tokens = {
        "conv1d.fwd:bf16:b8:c2048:t2048:k4:silu:+bias",
        "conv1d.fwd:f16:b1:t4096:c1536:k4:+bias+state_in+state_out:state_out@state_in",
        "conv1d.fwd:f32:b2:c3:t7:k1",
        "conv1d.fwd:f64:b0:c3:t7:k4:+state_out",
        "conv1d.fwd:bf16:b1:t65536:c2048:k4:silu:seqs=17.4096:+state_in+state_out",
        "conv1d.fwd:bf16:b1:t512:c64:k4:seqs=9.512:slots=40.-1:+state_in+state_out+status:"
        "state_out@state_in:cu_seqlens.i32",
        "conv1d.fwd:bf16:b4:c64:t128:k4:silu:residual:+bias+state_in+state_out+seq_idx:w.f32",
        "conv1d.fwd:bf16:b2:t8:c4:k4:x.s294912.36864.1:y.s64.8.2",
        "conv1d.fwd:f32:b2:c4:t8:k4:state=lin.7:+state_in",
        "conv1d.bwd:bf16:b8:c2048:t2048:k4:silu:+bias",
        "conv1d.bwd:f32:b3:t9:c5:k4:+bias+state_in+state_out-dbias-dstate_in",
        "conv1d.bwd:f16:b1:c64:t4096:k4:seqs=5.4096:+state_in+state_out+status-dx",
        "conv1d.bwd:bf16:b2:c4:t8:k4:dy.s0.0.0",
        "conv1d.update:bf16:b256:c8192:t1:k4:silu:+bias",
        "conv1d.update:bf16:b8:t3:c64:k4:state=ring.6",
        "conv1d.update:f32:b64:c2048:t1:k4:slots=1024.-1:+status:state.bf16",
    };
    return tokens;
}

} // namespace unit
