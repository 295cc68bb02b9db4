// The contradictions of a convolution's descriptor, and its normal form.
#include "src/core/status.h"
#include "src/desc/conv1d.h"

namespace plait::impl {

namespace {

template <class... Parts> [[noreturn]] void contradiction(const Parts &...parts) {
    fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", parts...);
}

/// `channel` and `time`: the places of these axes in tensors of three.
conv1d_view view_of(const std::vector<tensor> &all, plait_role role, size_t channel, size_t time) {
    for (const tensor &t : all) {
        if (t.role != role) continue;
        const std::vector<int64_t> &s = t.strides;
        conv1d_view v{static_cast<scalar>(t.dtype), t.alignment, 0, 0, 0};
        switch (role) {
        case PLAIT_W:
        case PLAIT_DW: v.c = s[0], v.t = s[1]; break;
        case PLAIT_BIAS:
        case PLAIT_DBIAS: v.c = s[0]; break;
        case PLAIT_SEQ_IDX: v.b = s[0], v.t = s[1]; break;
        default: v.b = s[0], v.c = s[channel], v.t = s[time];
        }
        return v;
    }
    return {};
}

} // namespace

bool conv1d_descriptor::any_state() const {
    return uses(PLAIT_STATE) || uses(PLAIT_STATE_IN) || uses(PLAIT_STATE_OUT);
}

void conv1d_descriptor::check() const {
    check_states();
    check_sequences();
    check_roles();
}

void conv1d_descriptor::check_states() const {
    if (entries() < width_ - 1)
        contradiction("entries=", entries(),
                      " of the state are fewer than the width-1=", width_ - 1,
                      " samples that taps reach back (plait_conv1d_set_state)");
    if (kind_ == PLAIT_STATE_RING && direction_ != PLAIT_UPDATE)
        contradiction("a ring state is for updates, and this is ", family(),
                      " (plait_conv1d_set_state)");
    // A ring without entries has no place for a sample, and nothing to remember.
    if (kind_ == PLAIT_STATE_RING && entries() == 0)
        contradiction("entries=0 make no ring (plait_conv1d_set_state)");
    if (slots_ && direction_ == PLAIT_BACKWARD)
        contradiction("slots are for forward and update, and this is ", family(),
                      " (plait_desc_set_slots)");
    if (slots_ && !any_state())
        contradiction("slots hold states, and neither state_in nor state_out is in use");
}

void conv1d_descriptor::check_sequences() const {
    if (varlen_ && direction_ == PLAIT_UPDATE)
        contradiction("packed sequences are not for updates (plait_desc_set_varlen)");
    if (varlen_ && batch_ != 1)
        contradiction("batch=", batch_, " does not go with packed sequences, which need batch=1");
    if (varlen_ && varlen_->sequences == INT64_MAX)
        contradiction("sequences=", varlen_->sequences, ": their offsets are beyond 64 bits");
    if (varlen_ && uses(PLAIT_SEQ_IDX))
        contradiction("role=seq_idx does not go with packed sequences (plait_desc_set_varlen)");
    for (const plait_role role : {PLAIT_POSITION, PLAIT_SLOTS, PLAIT_CU_SEQLENS}) {
        const auto &strides = settings(role).strides;
        if (uses(role) && strides && strides->front() != 1)
            contradiction(role_name(role), ": strides[0]=", strides->front(),
                          "; numbers of rows and sequences lie side by side, stride 1");
    }
    if (uses(PLAIT_STATUS) && !varlen_ && !slots_)
        contradiction("role=status reports on offsets and slots, and the call has neither "
                      "(plait_desc_set_varlen, plait_desc_set_slots)");
}

conv1d_problem conv1d_descriptor::problem() const {
    const std::vector<tensor> all = tensors();
    const int channel = layout_ == PLAIT_BCT ? 1 : 2, time = 3 - channel;
    const auto view = [&](plait_role role) {
        return view_of(all, role, static_cast<size_t>(channel), static_cast<size_t>(time));
    };
    conv1d_problem p{};
    p.direction = static_cast<conv1d_direction>(direction_);
    p.silu = activation_ == PLAIT_ACT_SILU;
    p.residual = residual_;
    p.varlen = varlen_.has_value();
    p.ring = kind_ == PLAIT_STATE_RING;
    p.pooled = slots_.has_value();
    p.alias = direction_ == PLAIT_UPDATE || settings(PLAIT_STATE_OUT).alias.has_value();
    p.status = uses(PLAIT_STATUS);
    p.index = varlen_ ? static_cast<scalar>(dtype_of_role(PLAIT_CU_SEQLENS)) : scalar::none;
    p.pad = slots_ ? slots_->pad : 0;
    p.batch = batch_;
    p.channels = channels_;
    p.length = length_;
    p.width = width_;
    p.sequences = sequences();
    p.max_length = varlen_ ? varlen_->max_length : length_;
    p.entries = entries();
    p.slots = slots_ ? slots_->count : 0;
    p.x = view(PLAIT_X);
    p.y = view(PLAIT_Y);
    p.w = view(PLAIT_W);
    p.bias = view(PLAIT_BIAS);
    p.state_in = view(direction_ == PLAIT_UPDATE ? PLAIT_STATE : PLAIT_STATE_IN);
    p.state_out = view(direction_ == PLAIT_UPDATE ? PLAIT_STATE : PLAIT_STATE_OUT);
    p.seq_idx = view(PLAIT_SEQ_IDX);
    p.dx = view(PLAIT_DX);
    p.dy = view(PLAIT_DY);
    p.dw = view(PLAIT_DW);
    p.dbias = view(PLAIT_DBIAS);
    p.dstate_in = view(PLAIT_DSTATE_IN);
    p.dstate_out = view(PLAIT_DSTATE_OUT);
    p.accumulator = scalar::f32;
    for (const conv1d_view *v : {&p.x, &p.y, &p.w, &p.bias, &p.state_in, &p.state_out, &p.dx, &p.dy,
                                 &p.dw, &p.dbias, &p.dstate_in, &p.dstate_out})
        if (v->type == scalar::f64) p.accumulator = scalar::f64;
    return p;
}

} // namespace plait::impl
