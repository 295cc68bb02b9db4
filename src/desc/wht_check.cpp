// The contradictions of a Walsh-Hadamard descriptor.
#include "lib/common/factor_matrices.h"
#include "src/core/checked.h"
#include "src/core/status.h"
#include "src/desc/wht.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace plait::impl {

namespace {

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

template <class... Parts> [[noreturn]] void contradiction(const Parts &...parts) {
    fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", parts...);
}

/// The names of all factors that fit a length, "" when none does.
std::string fitting(int64_t n) {
    std::string names;
    for (int number = PLAIT_H12_PALEY2; number <= PLAIT_H172_WILLIAMSON; ++number) {
        const factor_row *row = find_factor(static_cast<plait_wht_factor>(number));
        if (n % row->order == 0 && power_of_two(n / row->order))
            names += text(names.empty() ? "" : " ", row->name);
    }
    return names;
}

/// The next length below (step -1) or above (step 1) that is a power of two or has factors that
/// fit; 0 where there is none in 64 bits.
int64_t next_length(int64_t n, int step) {
    int64_t best = 0;
    for (int number = PLAIT_H1; number <= PLAIT_H172_WILLIAMSON; ++number) {
        int64_t length = find_factor(static_cast<plait_wht_factor>(number))->order;
        if (length > n && step < 0) continue;
        while (length <= INT64_MAX / 2 && (step < 0 ? 2 * length <= n : length < n)) length *= 2;
        if (step > 0 && length < n) continue;
        if (best == 0 || (step < 0 ? length > best : length < best)) best = length;
    }
    return best;
}

std::string with_factors(int64_t n) {
    if (power_of_two(n)) return text(n);
    return text(n, " (", fitting(n), ")");
}

/// What the caller can do about a length that does not decompose.
std::string ways_out(int64_t n) {
    if (power_of_two(n)) return text(n, " needs no factor");
    std::string fits = fitting(n);
    if (!fits.empty()) fits = "factors that fit: " + fits;
    const int64_t block = n & -n; // the largest power of two that divides n
    if (block > 1)
        fits += text(fits.empty() ? "" : "; or ", "blocks of ", block,
                     " as one more batch axis (extents ", n / block, ", ", block, ")");
    if (fits.empty()) fits = "no factor fits, and an odd length has no blocks";
    if (fits.rfind("factors", 0) == 0) return fits;
    const int64_t below = next_length(n, -1), above = next_length(n, 1);
    if (below > 0 && above > 0)
        fits += "; the nearest lengths are " + with_factors(below) + " and " + with_factors(above);
    else if (below > 0 || above > 0)
        fits += "; the nearest length is " + with_factors(std::max(below, above));
    if (const int64_t odd = n / block; block >= 4 && 4 * odd <= wht_factor_given_order)
        fits +=
            text("; or a matrix of order ", 4 * odd, " of your own (plait_wht_set_factor_order)");
    return fits;
}

/// The types of Y for an X of this kind.
const char *results_of(kind x) {
    switch (x) {
    case kind::complex: return "c64 or c128";
    case kind::integer: return "i32 or i64";
    case kind::bit: return "i32 i64 f16 bf16 f32 f64 or e4m3";
    default: return "f16 bf16 f32 f64 or e4m3";
    }
}

} // namespace

void wht_descriptor::check() const {
    check_types();
    check_diagonals();
    check_lengths();
    check_options();
    check_results();
    check_roles();
}

void wht_descriptor::check_diagonals() const {
    const dtype_row &x = dtype_of(dtype_of_role(PLAIT_X));
    for (const plait_role role : {PLAIT_DIAG, PLAIT_DIAG_IN, PLAIT_DIAG_MID}) {
        if (!uses(role)) continue;
        const dtype_row &diag = dtype_of(dtype_of_role(role));
        const char *name = role_name(role);
        if (x.what == kind::integer)
            contradiction("role=", name, " is not for integers, and x is ", x.name);
        if (x.what == kind::bit)
            contradiction("role=", name, " needs x to be of a floating or complex type, and x is ",
                          x.name);
        if (diag.dtype == x.dtype || diag.dtype == x.real) continue;
        if (x.what == kind::complex)
            contradiction(name, ": dtype=", diag.name, " is neither x's type ", x.name,
                          " nor its real type ", dtype_of(x.real).name);
        contradiction(name, ": dtype=", diag.name, " is not x's type ", x.name);
    }
}

void wht_descriptor::check_types() const {
    const dtype_row &x = dtype_of(dtype_of_role(PLAIT_X));
    const dtype_row &y = dtype_of(dtype_of_role(PLAIT_Y));
    const bool integer = y.what == kind::integer;
    const bool goes = x.what == kind::bit ? y.what != kind::complex : x.what == y.what;
    if (!goes)
        contradiction("y: dtype=", y.name, " does not go with x=", x.name, ", whose y is ",
                      results_of(x.what));
    if (uses(PLAIT_OVERFLOW) && !integer)
        contradiction("role=overflow is for integers, and ", x.what == kind::bit ? "y" : "x",
                      " is ", x.what == kind::bit ? y.name : x.name);
    if (scale_ != 1.0 && integer)
        contradiction("scale=", scale_, " does not go with integers, which take 1 only; ",
                      x.what == kind::bit ? "y" : "x", " is ",
                      x.what == kind::bit ? y.name : x.name);
    const bool wide = x.real == PLAIT_F64 || y.real == PLAIT_F64;
    const double magnitude = std::abs(scale_);
    if (!wide && magnitude != 0 && (magnitude > FLT_MAX || magnitude < FLT_MIN))
        contradiction("scale=", scale_, " is not between ", double{FLT_MIN}, " and ",
                      double{FLT_MAX}, ", the range of f32, in which x=", x.name, " and y=", y.name,
                      " accumulate");
    if (bound_ && (x.what == kind::complex || x.what == kind::bit))
        contradiction("bound=", *bound_, " is a promise about integers, and x is ", x.name);
}

void wht_descriptor::check_lengths() const {
    for (size_t a = 0; a < extents_.size(); ++a) {
        const int64_t n = extents_[a];
        const std::string factor = factor_name(a);
        const int64_t m = factor_order(a);
        if (!transformed(a) && m > 1)
            contradiction("factor=", factor, " stands on axis ", a,
                          ", which is not transformed (plait_wht_set_axes)");
        if (!transformed(a) || n == 0) continue;
        if (m == 1 && !power_of_two(n))
            contradiction("extents[", a, "]=", n, " is no power of two, and axis ", a,
                          " has no factor (plait_wht_set_factor); ", ways_out(n));
        if (n % m != 0)
            contradiction("extents[", a, "]=", n, " is not ", m, " * 2^k, as factor=", factor,
                          " needs: ", m, " does not divide it; ", ways_out(n));
        if (!power_of_two(n / m))
            contradiction("extents[", a, "]=", n, " is not ", m, " * 2^k, as factor=", factor,
                          " needs: ", n, "/", m, "=", n / m, " is no power of two; ", ways_out(n));
    }
}

void wht_descriptor::check_options() const {
    const std::vector<size_t> axes = transformed_axes();
    const size_t count = axes.size();
    const int64_t length = count > 0 ? extents_[axes.back()] : 0;
    std::string factor;
    int given = 0;
    for (const size_t a : axes) {
        if (factor_order(a) > 1) factor = factor_name(a);
        if (given > 0 && given_[a] > 0 && given_[a] != given)
            contradiction("factor=m", given_[a], " on axis ", a, " and factor=m", given,
                          " on another need two matrices, and there is one role=factor");
        given = std::max(given, given_[a]);
    }
    const char *order = order_ == PLAIT_SEQUENCY ? "sequency" : "dyadic";
    if (order_ != PLAIT_NATURAL && !factor.empty())
        contradiction("order=", order, " is for powers of two only, and factor=", factor,
                      " is set");
    if (!bits_) return;
    const std::string bits = "bits=0x" + hex(*bits_);
    if (order_ != PLAIT_NATURAL)
        contradiction("order=", order, " does not go with ", bits, ": a mask keeps natural order");
    if (count != 1) contradiction(bits, " needs exactly one transformed axis, and ", count, " are");
    if (!factor.empty()) contradiction(bits, " does not go with factor=", factor);
    if (length > 0 && *bits_ >= static_cast<uint64_t>(length))
        contradiction(bits, " has a bit beyond the index of an axis of length ", length);
}

void wht_descriptor::check_results() const {
    const dtype_row &x = dtype_of(dtype_of_role(PLAIT_X));
    const dtype_row &y = dtype_of(dtype_of_role(PLAIT_Y));
    const size_t count = transformed_axes().size();
    const auto refuse_bits = [&](const std::string &what) {
        if (!bits_are_default())
            contradiction(what, " does not go with bits=0x", hex(bits_.value_or(0)));
    };
    if (rows_) {
        const std::string rows = text("rows=", *rows_);
        if (count != 1)
            contradiction(rows, " needs exactly one transformed axis, and ", count, " are");
        refuse_bits(rows);
    }
    if (uses(PLAIT_STATUS) && !rows_)
        contradiction("role=status is in use without role=rows, of which it reports "
                      "(plait_wht_set_rows)");
    const bool amax = uses(PLAIT_AMAX), scales = uses(PLAIT_SCALES), stored = uses(PLAIT_Y);
    if (!stored && !amax && !bins_)
        contradiction("role=y is not in use, and neither is amax nor histogram: there is nothing "
                      "to compute (plait_desc_use)");
    if (!stored && settings(PLAIT_Y).alias)
        contradiction("alias=y@x is set, but role=y is not in use (plait_desc_use)");
    if (amax) refuse_bits("role=amax");
    if (amax && y.what == kind::complex)
        contradiction("role=amax is for real types and integers, and x is ", x.name);
    const dtype_row &largest = dtype_of(dtype_of_role(PLAIT_AMAX));
    if (amax && (largest.what == kind::integer) != (y.what == kind::integer))
        contradiction("amax: dtype=", largest.name, " does not go with y=", y.name,
                      "; i64 goes with integers, f32 and f64 with floating types");
    if (scales && (y.dtype != PLAIT_E4M3 || !stored))
        contradiction("role=scales is for a y of type e4m3, and y is ",
                      stored ? y.name : "not in use");
    if (scales) refuse_bits("role=scales");
    if (group_) {
        const std::string group = text("group=", *group_);
        if (!amax && !scales)
            contradiction(group, " is set, but neither amax nor scales is in use (plait_desc_use)");
        if (count != 1)
            contradiction(group, " needs exactly one transformed axis, and ", count, " are");
        const size_t axis = transformed_axes().back();
        const int64_t results = extents_of(PLAIT_Y)[axis];
        if (results % *group_ != 0)
            contradiction(group, " does not divide the ", results, " results along axis ", axis);
    }
    if (bins_) {
        if (y.what != kind::integer)
            contradiction("role=histogram counts integers, and y is ", y.name);
        if (count == 0) contradiction("role=histogram needs a transformed axis, and none is");
        refuse_bits("role=histogram");
        const auto reach = try_mul(bins_->count, bins_->width);
        if (!reach || !try_add(bins_->first, *reach))
            contradiction("hist=", bins_->count, '.', bins_->first, '.', bins_->width,
                          ": the last bin ends beyond 64 bits");
    }
}

} // namespace plait::impl
