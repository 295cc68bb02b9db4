#include "src/desc/wht.h"

#include "lib/common/factor_matrices.h"
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
constexpr uint32_t output_types = floating_types | complex_types | integer_types | bit(PLAIT_E4M3);
constexpr uint32_t data_types =
    floating_types | complex_types | integer_types | bit(PLAIT_I8) | bit(PLAIT_I16) | bit(PLAIT_B1);

/// The one place where the C API and the token meet an unknown type of X.
plait_dtype checked_dtype(plait_dtype dtype) {
    const dtype_row *row = find_dtype(dtype);
    if (!row)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: dtype=", dtype, " is no plait_dtype");
    if (!(data_types & bit(dtype)))
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_create: dtype=", row->name,
             " is no type of x; possible: f16 bf16 f32 f64 c64 c128 i32 i64 i8 i16 b1");
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
      axes_(uint32_t{1} << (rank - 1)), factors_(extents_.size(), PLAIT_H1),
      given_(extents_.size(), 0) {}

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
    given_[static_cast<size_t>(axis)] = 0;
}

void wht_descriptor::set_factor_order(int axis, int order) {
    if (axis < 0 || static_cast<size_t>(axis) >= extents_.size())
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_factor_order: axis=", axis,
             " is not between 0 and ", extents_.size() - 1);
    if (order < 2 || order > wht_factor_given_order)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_factor_order: order=", order,
             " is not between 2 and ", wht_factor_given_order);
    factors_[static_cast<size_t>(axis)] = PLAIT_H1;
    given_[static_cast<size_t>(axis)] = order;
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

void wht_descriptor::set_rows(int64_t count) {
    if (count < 0)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_rows: count=", count, " is negative");
    rows_ = count;
}

void wht_descriptor::set_group(int64_t length) {
    if (length < 1)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_group: length=", length, " is less than 1");
    group_ = length;
}

void wht_descriptor::set_histogram(const wht_bins &bins) {
    if (bins.count < 1)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_histogram: bins=", bins.count,
             " is less than 1");
    if (bins.width < 1)
        fail(PLAIT_ERR_INVALID_ARGUMENT, "plait_wht_set_histogram: width=", bins.width,
             " is less than 1");
    bins_ = bins;
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
        {PLAIT_Y, PLAIT_WRITE, presence::usual, PLAIT_X, output_types, 16},
        {PLAIT_SIGNS, PLAIT_READ, presence::optional, plait_role{}, bit(PLAIT_B1), 16},
        {PLAIT_DIAG, PLAIT_READ, presence::optional, plait_role{}, floating_types | complex_types,
         16},
        {PLAIT_OVERFLOW, PLAIT_WRITE, presence::optional, plait_role{}, bit(PLAIT_I32), 0},
        {PLAIT_FACTOR, PLAIT_READ, presence::implied, plait_role{}, bit(PLAIT_B1), 16},
        {PLAIT_ROWS, PLAIT_READ, presence::implied, plait_role{}, integer_types, 0},
        {PLAIT_DIAG_IN, PLAIT_READ, presence::optional, plait_role{},
         floating_types | complex_types, 16},
        {PLAIT_DIAG_MID, PLAIT_READ, presence::optional, plait_role{},
         floating_types | complex_types, 16},
        {PLAIT_AMAX, PLAIT_WRITE, presence::optional, plait_role{},
         bit(PLAIT_F32) | bit(PLAIT_F64) | bit(PLAIT_I64), 0},
        {PLAIT_SCALES, PLAIT_WRITE, presence::optional, plait_role{}, bit(PLAIT_F32), 0},
        {PLAIT_HISTOGRAM, PLAIT_WRITE, presence::implied, plait_role{}, bit(PLAIT_I64), 0},
        {PLAIT_STATUS, PLAIT_WRITE, presence::optional, plait_role{}, bit(PLAIT_I32), 0},
    };
    return table;
}

const char *wht_descriptor::implied_by(plait_role role) const {
    switch (role) {
    case PLAIT_FACTOR: return given_order() > 0 ? "" : "plait_wht_set_factor_order";
    case PLAIT_ROWS: return rows_ ? "" : "plait_wht_set_rows";
    case PLAIT_HISTOGRAM: return bins_ ? "" : "plait_wht_set_histogram";
    default: return ""; // Y
    }
}

int wht_descriptor::factor_order(size_t axis) const {
    return given_[axis] > 0 ? given_[axis] : find_factor(factors_[axis])->order;
}

std::string wht_descriptor::factor_name(size_t axis) const {
    return given_[axis] > 0 ? text('m', given_[axis]) : find_factor(factors_[axis])->name;
}

int wht_descriptor::given_order() const {
    int order = 0;
    for (size_t a = 0; a < extents_.size() && order == 0; ++a) order = given_[a];
    return order;
}

std::vector<size_t> wht_descriptor::transformed_axes() const {
    std::vector<size_t> out;
    for (size_t a = 0; a < extents_.size(); ++a)
        if (transformed(a)) out.push_back(a);
    return out;
}

std::vector<int64_t> wht_descriptor::gathered_extents() const {
    std::vector<int64_t> out = extents_;
    if (!rows_) return out;
    for (const size_t a : transformed_axes()) out[a] = *rows_;
    return out;
}

std::vector<int64_t> wht_descriptor::group_extents() const {
    const std::vector<int64_t> results = adjoint_ ? extents_ : gathered_extents();
    std::vector<int64_t> out = extents_;
    for (const size_t a : transformed_axes()) out[a] = group_ ? results[a] / *group_ : 1;
    return out;
}

std::vector<int64_t> wht_descriptor::extents_of(plait_role role) const {
    switch (role) {
    case PLAIT_X: return adjoint_ ? gathered_extents() : extents_;
    case PLAIT_Y: return adjoint_ ? extents_ : gathered_extents();
    case PLAIT_OVERFLOW:
    case PLAIT_STATUS: return {1};
    case PLAIT_FACTOR: return {given_order(), given_order()};
    case PLAIT_ROWS: return {rows_.value_or(0)};
    case PLAIT_AMAX:
    case PLAIT_SCALES: return group_extents();
    case PLAIT_HISTOGRAM: {
        std::vector<int64_t> out = extents_;
        const std::vector<size_t> axes = transformed_axes();
        for (const size_t a : axes) out[a] = 1;
        if (!axes.empty()) out[axes.back()] = bins_ ? bins_->count : 0;
        return out;
    }
    default: return extents_;
    }
}

uint32_t wht_descriptor::packed_axes_of(plait_role role) const {
    const bool like_x = role == PLAIT_SIGNS || role == PLAIT_DIAG || role == PLAIT_DIAG_IN ||
                        role == PLAIT_DIAG_MID;
    return like_x ? axes_ : ~uint32_t{0};
}

plait_dtype wht_descriptor::default_dtype(plait_role role) const {
    if (role == PLAIT_X)
        return settings(PLAIT_X).dtype.value_or(dtype_); // the token begins with it
    const plait_dtype x = dtype_of_role(PLAIT_X);
    switch (role) {
    case PLAIT_Y: return x == PLAIT_I8 || x == PLAIT_I16 || x == PLAIT_B1 ? PLAIT_I32 : x;
    case PLAIT_SIGNS:
    case PLAIT_FACTOR: return PLAIT_B1;
    case PLAIT_OVERFLOW:
    case PLAIT_STATUS: return PLAIT_I32;
    case PLAIT_ROWS:
    case PLAIT_HISTOGRAM: return PLAIT_I64;
    case PLAIT_SCALES: return PLAIT_F32;
    case PLAIT_AMAX: {
        const dtype_row &y = dtype_of(dtype_of_role(PLAIT_Y));
        if (y.what == kind::integer) return PLAIT_I64;
        return x == PLAIT_F64 || y.dtype == PLAIT_F64 ? PLAIT_F64 : PLAIT_F32;
    }
    default: return x;
    }
}

} // namespace plait::impl
