#include "src/desc/kda.h"

#include "lib/common/kda_reserve.h"
#include "src/core/status.h"

#include <cmath>

namespace plait::impl {

namespace {

constexpr uint32_t bit(plait_dtype dtype) { return uint32_t{1} << dtype; }
constexpr uint32_t floating_types =
    bit(PLAIT_F16) | bit(PLAIT_BF16) | bit(PLAIT_F32) | bit(PLAIT_F64);
// Entries of states pass 65504, the end of F16.
constexpr uint32_t state_types = bit(PLAIT_BF16) | bit(PLAIT_F32) | bit(PLAIT_F64);
constexpr uint32_t parameter_types = bit(PLAIT_F32) | bit(PLAIT_F64);
constexpr uint32_t index_types = bit(PLAIT_I32) | bit(PLAIT_I64);
constexpr uint32_t byte_type = bit(PLAIT_I8);

plait_dtype checked_dtype(plait_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    if (!row)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_create: dtype=", dtype, " is no plait_dtype");
    if (!(floating_types & bit(dtype)))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_create: dtype=", row->name,
             " is no type of q; possible: f16 bf16 f32 f64");
    return dtype;
}

plait_direction checked_direction(plait_direction direction) {
    if (direction == PLAIT_UPDATE)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_create: dir=PLAIT_UPDATE is not for kda; "
                                         "decoding is PLAIT_FORWARD of small length with state_in "
                                         "and state_out");
    if (direction != PLAIT_FORWARD && direction != PLAIT_BACKWARD)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_create: dir=", direction,
             " is no plait_direction");
    return direction;
}

int64_t not_negative(const char *name, int64_t value) {
    if (value < 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_create: ", name, '=', value, " is less than 0");
    return value;
}

int64_t multiple_of(int64_t heads, int64_t value_heads) {
    if (heads == 0 ? value_heads != 0 : value_heads % heads != 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_create: value_heads=", value_heads,
             " is not a multiple of heads=", heads);
    return value_heads;
}

constexpr plait_role none{};

// In the order of role numbers, as tensors() promises.
const std::vector<role_facts> &forward_roles() {
    static const std::vector<role_facts> table = {
        {PLAIT_Q, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_K, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_V, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_G, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_BETA, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_O, PLAIT_WRITE, presence::required, none, floating_types, 16},
        {PLAIT_A_LOG, PLAIT_READ, presence::usual, none, parameter_types, 16},
        {PLAIT_DT_BIAS, PLAIT_READ, presence::optional, none, parameter_types, 16},
        {PLAIT_RESERVE, PLAIT_WRITE, presence::named, none, byte_type, PLAIT_WORKSPACE_ALIGNMENT},
        {PLAIT_STATE_IN, PLAIT_READ, presence::optional, none, state_types, 16},
        {PLAIT_STATE_OUT, PLAIT_WRITE, presence::optional, PLAIT_STATE_IN, state_types, 16},
        {PLAIT_SLOTS, PLAIT_READ, presence::implied, none, bit(PLAIT_I32), 0},
        {PLAIT_CU_SEQLENS, PLAIT_READ, presence::implied, none, index_types, 0},
        {PLAIT_STATUS, PLAIT_WRITE, presence::optional, none, bit(PLAIT_I32), 0},
    };
    return table;
}

const std::vector<role_facts> &backward_roles() {
    static const std::vector<role_facts> table = {
        {PLAIT_Q, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_K, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_V, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_G, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_BETA, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_O, no_access, presence::required, none, floating_types, 16},
        {PLAIT_A_LOG, PLAIT_READ, presence::usual, none, parameter_types, 16},
        {PLAIT_DT_BIAS, PLAIT_READ, presence::optional, none, parameter_types, 16},
        {PLAIT_RESERVE, PLAIT_READ, presence::named, none, byte_type, PLAIT_WORKSPACE_ALIGNMENT},
        {PLAIT_STATE_IN, PLAIT_READ, presence::optional, none, state_types, 16},
        {PLAIT_STATE_OUT, no_access, presence::optional, PLAIT_STATE_IN, state_types, 16},
        {PLAIT_CU_SEQLENS, PLAIT_READ, presence::implied, none, index_types, 0},
        {PLAIT_STATUS, PLAIT_WRITE, presence::optional, none, bit(PLAIT_I32), 0},
        {PLAIT_DQ, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DK, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DV, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DG, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DBETA, PLAIT_WRITE, presence::gradient, none, floating_types, 16},
        {PLAIT_DO, PLAIT_READ, presence::required, none, floating_types, 16},
        {PLAIT_DA_LOG, PLAIT_WRITE, presence::gradient, none, parameter_types, 16},
        {PLAIT_DDT_BIAS, PLAIT_WRITE, presence::gradient, none, parameter_types, 16},
        {PLAIT_DSTATE_IN, PLAIT_WRITE, presence::gradient, none, state_types, 16},
        {PLAIT_DSTATE_OUT, PLAIT_READ, presence::gradient, none, state_types, 16},
    };
    return table;
}

} // namespace

kda_descriptor::kda_descriptor(plait_direction direction, plait_dtype dtype, int64_t batch,
                               int64_t length, int64_t heads, int64_t value_heads, int64_t dim_k,
                               int64_t dim_v)
    : direction_(checked_direction(direction)), dtype_(checked_dtype(dtype)),
      batch_(not_negative("batch", batch)), length_(not_negative("length", length)),
      heads_(not_negative("heads", heads)),
      value_heads_(multiple_of(heads, not_negative("value_heads", value_heads))),
      dim_k_(not_negative("dim_k", dim_k)), dim_v_(not_negative("dim_v", dim_v)) {}

void kda_descriptor::set_gate(plait_kda_gate gate, double lower_bound) {
    if (gate != PLAIT_GATE_LOG && gate != PLAIT_GATE_SOFTPLUS && gate != PLAIT_GATE_BOUNDED)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_gate: gate=", gate,
             " is no plait_kda_gate");
    if (gate == PLAIT_GATE_BOUNDED && !(std::isfinite(lower_bound) && lower_bound < 0))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_gate: lower_bound=", lower_bound,
             " is not finite and below 0, which PLAIT_GATE_BOUNDED needs");
    if (gate != PLAIT_GATE_BOUNDED && lower_bound != 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_gate: lower_bound=", lower_bound,
             " is for PLAIT_GATE_BOUNDED alone; pass 0");
    gate_ = gate;
    lower_bound_ = gate == PLAIT_GATE_BOUNDED ? lower_bound : 0;
}

void kda_descriptor::set_beta(bool is_logit, double scale) {
    if (is_logit && !(std::isfinite(scale) && scale > 0))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_beta: scale=", scale,
             " is not finite and above 0");
    if (!is_logit && scale != 1)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_beta: scale=", scale,
             " is for logits alone; with is_logit=0 pass 1");
    beta_logit_ = is_logit;
    beta_scale_ = scale;
}

void kda_descriptor::set_qk_norm(bool enable, double eps) {
    // With 0 the gradient at a row of zeros would be infinite.
    if (enable && !(std::isfinite(eps) && eps > 0))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_qk_norm: eps=", eps,
             " is not finite and above 0");
    eps_ = enable ? std::optional<double>(eps) : std::nullopt;
}

void kda_descriptor::set_scale(double scale) {
    if (!std::isfinite(scale))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_scale: scale=", scale, " is not finite");
    scale_ = scale == 0 ? 0 : scale; // one zero: equal descriptors have equal tokens
}

void kda_descriptor::set_state(plait_state_layout layout) {
    if (layout != PLAIT_STATE_KV && layout != PLAIT_STATE_VK)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_kda_set_state: layout=", layout,
             " is no plait_state_layout");
    orientation_ = layout;
}

void kda_descriptor::set_varlen(int64_t sequences, int64_t max_length) {
    check_varlen_argument(sequences, max_length);
    varlen_ = packing{sequences, max_length};
}

void kda_descriptor::set_slots(int64_t count, int32_t pad) {
    check_slots_argument(count);
    slots_ = pool{count, pad};
}

std::unique_ptr<descriptor> kda_descriptor::clone() const {
    return std::make_unique<kda_descriptor>(*this);
}

const char *kda_descriptor::family() const {
    return direction_ == PLAIT_FORWARD ? "kda.fwd" : "kda.bwd";
}

const std::vector<role_facts> &kda_descriptor::role_table() const {
    return direction_ == PLAIT_FORWARD ? forward_roles() : backward_roles();
}

double kda_descriptor::default_scale() const {
    return dim_k_ == 0 ? 1 : 1 / std::sqrt(static_cast<double>(dim_k_));
}

std::vector<int64_t> kda_descriptor::extents_of(plait_role role) const {
    switch (role) {
    case PLAIT_V:
    case PLAIT_DV:
    case PLAIT_O:
    case PLAIT_DO: return {batch_, length_, value_heads_, dim_v_};
    case PLAIT_G:
    case PLAIT_DG: return {batch_, length_, value_heads_, dim_k_};
    case PLAIT_BETA:
    case PLAIT_DBETA: return {batch_, length_, value_heads_};
    case PLAIT_A_LOG:
    case PLAIT_DA_LOG: return {value_heads_};
    case PLAIT_DT_BIAS:
    case PLAIT_DDT_BIAS: return {value_heads_, dim_k_};
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT:
    case PLAIT_DSTATE_IN:
    case PLAIT_DSTATE_OUT: {
        const int64_t rows = slots_ ? slots_->count : sequences();
        return orientation_ == PLAIT_STATE_VK
                   ? std::vector<int64_t>{rows, value_heads_, dim_v_, dim_k_}
                   : std::vector<int64_t>{rows, value_heads_, dim_k_, dim_v_};
    }
    case PLAIT_SLOTS: return {sequences()};
    // The count of an int64_t is one below what could overflow: sequences >= 0.
    case PLAIT_CU_SEQLENS: return {sequences() == INT64_MAX ? INT64_MAX : sequences() + 1};
    case PLAIT_STATUS: return {1};
    case PLAIT_RESERVE: return {reserve_bytes()};
    default: return {batch_, length_, heads_, dim_k_}; // q, k and their gradients
    }
}

plait_dtype kda_descriptor::default_dtype(plait_role role) const {
    switch (role) {
    case PLAIT_Q: return settings(PLAIT_Q).dtype.value_or(dtype_); // the token begins with it
    case PLAIT_A_LOG:
    case PLAIT_DT_BIAS:
    case PLAIT_STATE_IN:
    case PLAIT_STATE_OUT: return dtype_of_role(PLAIT_Q) == PLAIT_F64 ? PLAIT_F64 : PLAIT_F32;
    case PLAIT_CU_SEQLENS: return PLAIT_I64;
    case PLAIT_SLOTS:
    case PLAIT_STATUS: return PLAIT_I32;
    case PLAIT_RESERVE: return PLAIT_I8;
    default: break;
    }
    return role >= PLAIT_DQ ? dtype_of_role(primal_of(role)) : dtype_of_role(PLAIT_Q);
}

int64_t kda_descriptor::reserve_bytes() const {
    const auto type = [this](plait_role role) { return static_cast<scalar>(dtype_of_role(role)); };
    scalar state = scalar::f32;
    for (const plait_role role : {PLAIT_Q, PLAIT_K, PLAIT_V, PLAIT_G, PLAIT_BETA, PLAIT_A_LOG,
                                  PLAIT_DT_BIAS, PLAIT_STATE_IN})
        if (uses(role) && type(role) == scalar::f64) state = scalar::f64;
    const scalar q = type(PLAIT_Q), k = type(PLAIT_K), v = type(PLAIT_V);
    return kda_reserve_shape_of(
               kda_reserve_has_records(q, k, v, dim_k_, dim_v_),
               kda_reserve_entry(q, k, v, state, dim_k_, dim_v_), dim_k_, dim_v_, sequences(),
               kda_reserve_slots(varlen_.has_value(), sequences(), length_), value_heads_)
        .bytes;
}

const char *kda_descriptor::implied_by(plait_role role) const {
    switch (role) {
    case PLAIT_A_LOG:
        return gate_ == PLAIT_GATE_SOFTPLUS || gate_ == PLAIT_GATE_BOUNDED ? ""
                                                                           : "plait_kda_set_gate";
    case PLAIT_SLOTS: return slots_ ? "" : "plait_desc_set_slots";
    default: return varlen_ ? "" : "plait_desc_set_varlen";
    }
}

} // namespace plait::impl
