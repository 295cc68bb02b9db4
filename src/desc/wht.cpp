#include "src/desc/wht.h"

#include "src/core/status.h"

#include <algorithm>
#include <cmath>

namespace plait::impl {

namespace {

constexpr uint32_t bit(plait_dtype dtype) { return uint32_t{1} << dtype; }
constexpr uint32_t floating_types =
    bit(PLAIT_F16) | bit(PLAIT_BF16) | bit(PLAIT_F32) | bit(PLAIT_F64);
constexpr uint32_t complex_types = bit(PLAIT_C64) | bit(PLAIT_C128);
constexpr uint32_t integer_types = bit(PLAIT_I32) | bit(PLAIT_I64);
constexpr uint32_t data_types = floating_types | complex_types | integer_types;

/// The one place where the C API and the token meet an unknown type of X.
plait_dtype checked_dtype(plait_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    if (!row)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: dtype=", dtype, " is no plait_dtype");
    if (!(data_types & bit(dtype)))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: dtype=", row->name,
             " is no type of x; possible: f16 bf16 f32 f64 c64 c128 i32 i64");
    return dtype;
}

std::vector<int64_t> checked_extents(int rank, const int64_t *extents) {
    if (rank < 1 || rank > PLAIT_MAX_RANK)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: rank=", rank, " is not between 1 and ",
             PLAIT_MAX_RANK);
    if (!extents)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: extents=NULL needs ", rank, " values");
    for (int a = 0; a < rank; ++a)
        if (extents[a] < 0)
            fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: extents[", a, "]=", extents[a],
                 " is negative");
    return std::vector<int64_t>(extents, extents + rank);
}

} // namespace

wht_descriptor::wht_descriptor(plait_dtype dtype, int rank, const int64_t *extents)
    : dtype_(checked_dtype(dtype)), extents_(checked_extents(rank, extents)),
      axes_(uint32_t{1} << (rank - 1)), factors_(extents_.size(), PLAIT_H1) {}

void wht_descriptor::set_axes(uint32_t axes) {
    if (axes >> extents_.size() != 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_axes: axes=0x", hex(axes),
             " names an axis beyond rank ", extents_.size());
    axes_ = axes;
}

void wht_descriptor::set_bits(uint64_t bits) { bits_ = bits; }

void wht_descriptor::set_factor(int axis, plait_wht_factor factor) {
    if (axis < 0 || static_cast<size_t>(axis) >= extents_.size())
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_factor: axis=", axis,
             " is not between 0 and ", extents_.size() - 1);
    if (!find_factor(factor))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_factor: factor=", factor,
             " is no plait_wht_factor");
    factors_[static_cast<size_t>(axis)] = factor;
}

void wht_descriptor::set_order(plait_wht_order order) {
    if (order != PLAIT_NATURAL && order != PLAIT_SEQUENCY && order != PLAIT_DYADIC)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_order: order=", order,
             " is no plait_wht_order");
    order_ = order;
}

void wht_descriptor::set_adjoint(bool enable) { adjoint_ = enable; }

void wht_descriptor::set_scale(double scale) {
    if (!std::isfinite(scale))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_scale: scale=", scale, " is not finite");
    scale_ = scale;
}

void wht_descriptor::set_bound(int64_t bound) {
    if (bound < 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_bound: bound=", bound, " is negative");
    bound_ = bound;
}

std::unique_ptr<descriptor> wht_descriptor::clone() const {
    return std::make_unique<wht_descriptor>(*this);
}

bool wht_descriptor::empty() const {
    return std::find(extents_.begin(), extents_.end(), 0) != extents_.end();
}

const std::vector<role_facts> &wht_descriptor::role_table() const {
    // OVERFLOW is one int, often a variable on the caller's stack: no more than its own alignment.
    static const std::vector<role_facts> table = {
        {PLAIT_X, PLAIT_READ, presence::required, plait_role{}, data_types, 16},
        {PLAIT_Y, PLAIT_WRITE, presence::required, PLAIT_X, data_types, 16},
        {PLAIT_SIGNS, PLAIT_READ, presence::optional, plait_role{}, bit(PLAIT_B1), 16},
        {PLAIT_DIAG, PLAIT_READ, presence::optional, plait_role{}, floating_types | complex_types,
         16},
        {PLAIT_OVERFLOW, PLAIT_WRITE, presence::optional, plait_role{}, bit(PLAIT_I32), 0},
    };
    return table;
}

std::vector<int64_t> wht_descriptor::extents_of(plait_role role) const {
    return role == PLAIT_OVERFLOW ? std::vector<int64_t>{1} : extents_;
}

uint32_t wht_descriptor::packed_axes_of(plait_role role) const {
    return role == PLAIT_SIGNS || role == PLAIT_DIAG ? axes_ : ~uint32_t{0};
}

plait_dtype wht_descriptor::default_dtype(plait_role role) const {
    switch (role) {
    case PLAIT_X: return settings(PLAIT_X).dtype.value_or(dtype_); // the token begins with it
    case PLAIT_SIGNS: return PLAIT_B1;
    case PLAIT_OVERFLOW: return PLAIT_I32;
    default: return dtype_of_role(PLAIT_X);
    }
}

} // namespace plait::impl
