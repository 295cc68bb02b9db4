#include "src/desc/conv1d.h"

#include "src/core/status.h"

namespace plait::impl {

namespace {

constexpr uint32_t bit(plait_dtype dtype) { return uint32_t{1} << dtype; }
constexpr uint32_t floating_types =
    bit(PLAIT_F16) | bit(PLAIT_BF16) | bit(PLAIT_F32) | bit(PLAIT_F64);
constexpr uint32_t index_types = bit(PLAIT_I32) | bit(PLAIT_I64);

plait_dtype checked_dtype(plait_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    if (!row)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_create: dtype=", dtype,
             " is no plait_dtype");
    if (!(floating_types & bit(dtype)))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_create: dtype=", row->name,
             " is no type of x; possible: f16 bf16 f32 f64");
    return dtype;
}

plait_direction checked_direction(plait_direction direction) {
    if (direction != PLAIT_FORWARD && direction != PLAIT_BACKWARD && direction != PLAIT_UPDATE)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_create: dir=", direction,
             " is no plait_direction");
    return direction;
}

int64_t at_least(int64_t least, const char *name, int64_t value) {
    if (value < least)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_create: ", name, '=', value,
             " is less than ", least);
    return value;
}

constexpr plait_role none{};

// In the order of role numbers, as tensors() promises. OVERFLOW-like words and indices are often
// variables of their own: no more than the alignment of an element.
const std::vector<role_facts> &forward_roles() {
    static const std::vector<role_facts> table = {
        {PLAIT_X, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_Y, PLAIT_WRITE, presence::required, none, floating_types, 16},
        {PLAIT_W, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_BIAS, PLAIT_READ, presence::optional, none, floating_types, 16},
        {PLAIT_STATE_IN, PLAIT_READ, presence::optional, none, floating_types, 16},
        {PLAIT_STATE_OUT, PLAIT_WRITE, presence::optional, PLAIT_STATE_IN, floating_types, 16},
        {PLAIT_SLOTS, PLAIT_READ, presence::implied, none, bit(PLAIT_I32), 0},
        {PLAIT_CU_SEQLENS, PLAIT_READ, presence::implied, none, index_types, 0},
        {PLAIT_SEQ_IDX, PLAIT_READ, presence::optional, none, bit(PLAIT_I32), 0},
        {PLAIT_STATUS, PLAIT_WRITE, presence::optional, none, bit(PLAIT_I32), 0},
    };
    return table;
}

const std::vector<role_facts> &backward_roles() {
    static const std::vector<role_facts> table = {
        {PLAIT_X, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_Y, no_access, presence::required, none, floating_types, 16},
        {PLAIT_W, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_BIAS, PLAIT_READ, presence::optional, none, floating_types, 16},
        {PLAIT_STATE_IN, PLAIT_READ, presence::optional, none, floating_types, 16},
        {PLAIT_STATE_OUT, no_access, presence::optional, PLAIT_STATE_IN, floating_types, 16},
        {PLAIT_CU_SEQLENS, PLAIT_READ, presence::implied, none, index_types, 0},
        {PLAIT_SEQ_IDX, PLAIT_READ, presence::optional, none, bit(PLAIT_I32), 0},
        {PLAIT_STATUS, PLAIT_WRITE, presence::optional, none, bit(PLAIT_I32), 0},
        {PLAIT_DX, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DY, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_DW, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DBIAS, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DSTATE_IN, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DSTATE_OUT, PLAIT_READ, presence::gradient, none, floating_types, 16},
    };
    return table;
}

const std::vector<role_facts> &update_roles() {
    static const std::vector<role_facts> table = {
        {PLAIT_X, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_Y, PLAIT_WRITE, presence::required, none, floating_types, 16},
        {PLAIT_W, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_BIAS, PLAIT_READ, presence::optional, none, floating_types, 16},
        {PLAIT_STATE, PLAIT_READ_WRITE, presence::required, none, floating_types, 16},
        {PLAIT_POSITION, PLAIT_READ, presence::implied, none, bit(PLAIT_I32), 0},
        {PLAIT_SLOTS, PLAIT_READ, presence::implied, none, bit(PLAIT_I32), 0},
        {PLAIT_STATUS, PLAIT_WRITE, presence::optional, none, bit(PLAIT_I32), 0},
    };
    return table;
}

} // namespace

conv1d_descriptor::conv1d_descriptor(plait_direction direction, plait_dtype dtype, int64_t batch,
                                     int64_t channels, int64_t length, int64_t width)
    : direction_(checked_direction(direction)), dtype_(checked_dtype(dtype)),
      batch_(at_least(0, "batch", batch)), channels_(at_least(0, "channels", channels)),
      length_(at_least(0, "length", length)), width_(at_least(1, "width", width)) {}

void conv1d_descriptor::set_layout(plait_layout layout) {
    if (layout != PLAIT_BCT && layout != PLAIT_BTC)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_set_layout: layout=", layout,
             " is no plait_layout");
    layout_ = layout;
}

void conv1d_descriptor::set_activation(plait_activation activation) {
    if (activation != PLAIT_ACT_NONE && activation != PLAIT_ACT_SILU)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_set_activation: act=", activation,
             " is no plait_activation");
    activation_ = activation;
}

void conv1d_descriptor::set_residual(bool enable) { residual_ = enable; }

void conv1d_descriptor::set_state(plait_state_kind kind, int64_t entries) {
    if (kind != PLAIT_STATE_LINEAR && kind != PLAIT_STATE_RING)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_set_state: kind=", kind,
             " is no plait_state_kind");
    if (entries < 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_conv1d_set_state: entries=", entries,
             " is negative");
    kind_ = kind;
    entries_ = entries;
}

void conv1d_descriptor::set_varlen(int64_t sequences, int64_t max_length) {
    check_varlen_argument(sequences, max_length);
    varlen_ = packing{sequences, max_length};
}

void conv1d_descriptor::set_slots(int64_t count, int32_t pad) {
    check_slots_argument(count);
    slots_ = pool{count, pad};
}

std::unique_ptr<descriptor> conv1d_descriptor::clone() const {
    return std::make_unique<conv1d_descriptor>(*this);
}

const char *conv1d_descriptor::family() const {
    switch (direction_) {
    case PLAIT_FORWARD: return "conv1d.fwd";
    case PLAIT_BACKWARD: return "conv1d.bwd";
    case PLAIT_UPDATE: return "conv1d.update";
    }
    return "";
}

const std::vector<role_facts> &conv1d_descriptor::role_table() const {
    switch (direction_) {
    case PLAIT_BACKWARD: return backward_roles();
    case PLAIT_UPDATE: return update_roles();
    default: return forward_roles();
    }
}

std::vector<int64_t> conv1d_descriptor::extents_of(plait_role role) const {
    const auto laid_out = [&](int64_t rows, int64_t time) {
        return layout_ == PLAIT_BCT ? std::vector<int64_t>{rows, channels_, time}
                                    : std::vector<int64_t>{rows, time, channels_};
    };
    switch (role) {
    case PLAIT_W:
    case PLAIT_DW: return {channels_, width_};
    case PLAIT_BIAS:
    case PLAIT_DBIAS: return {channels_};
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT:
    case PLAIT_STATE:
    case PLAIT_DSTATE_IN:
    case PLAIT_DSTATE_OUT: return laid_out(slots_ ? slots_->count : sequences(), entries());
    case PLAIT_POSITION: return {batch_};
    case PLAIT_SLOTS: return {sequences()};
    // The count of an int64_t is one below what could overflow: sequences >= 0.
    case PLAIT_CU_SEQLENS: return {sequences() == INT64_MAX ? INT64_MAX : sequences() + 1};
    case PLAIT_SEQ_IDX: return {batch_, length_};
    case PLAIT_STATUS: return {1};
    default: return laid_out(batch_, length_);
    }
}

plait_dtype conv1d_descriptor::default_dtype(plait_role role) const {
    switch (role) {
    case PLAIT_X: return settings(PLAIT_X).dtype.value_or(dtype_); // the token begins with it
    case PLAIT_CU_SEQLENS: return PLAIT_I64;
    case PLAIT_POSITION:
    case PLAIT_SLOTS:
    case PLAIT_SEQ_IDX:
    case PLAIT_STATUS: return PLAIT_I32;
    case PLAIT_DX:
    case PLAIT_DY:
    case PLAIT_DW:
    case PLAIT_DBIAS:
    case PLAIT_DSTATE_IN:
    case PLAIT_DSTATE_OUT: return dtype_of_role(primal_of(role));
    default: return dtype_of_role(PLAIT_X);
    }
}

const char *conv1d_descriptor::implied_by(plait_role role) const {
    switch (role) {
    case PLAIT_POSITION:
        return kind_ == PLAIT_STATE_RING ? "" : "plait_conv1d_set_state with PLAIT_STATE_RING";
    case PLAIT_SLOTS: return slots_ ? "" : "plait_desc_set_slots";
    default: return varlen_ ? "" : "plait_desc_set_varlen";
    }
}

} // namespace plait::impl
