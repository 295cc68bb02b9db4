// The contradictions of a Walsh-Hadamard descriptor.
#include "src/core/status.h"
#include "src/desc/wht.h"

#include <cfloat>
#include <cmath>

namespace plait::impl {

namespace {

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

template <class... Parts> [[noreturn]] void contradiction(const Parts &...parts) {
    fail(PLAIT_ERR_INVALID_DESC, "plait_desc_check: ", parts...);
}

/// What the caller can do about a length that does not decompose.
std::string ways_out(int64_t n) {
    if (power_of_two(n)) return text(n, " needs no factor");
    std::string fits;
    for (int number = PLAIT_H12_PALEY2; number <= PLAIT_H40; ++number) {
        const factor_row *row = find_factor(static_cast<plait_wht_factor>(number));
        if (n % row->order == 0 && power_of_two(n / row->order))
            fits += text(fits.empty() ? "factors that fit: " : " ", row->name);
    }
    const int64_t block = n & -n; // the largest power of two that divides n
    if (block > 1)
        fits += text(fits.empty() ? "" : "; or ", "blocks of ", block,
                     " as one more batch axis (extents ", n / block, ", ", block, ")");
    if (fits.empty()) return "no factor fits, and an odd length has no blocks";
    return fits;
}

} // namespace

void wht_descriptor::check() const {
    check_types();
    check_lengths();
    check_options();
    check_roles();
}

void wht_descriptor::check_types() const {
    const dtype_row &x = dtype_of(dtype_of_role(PLAIT_X));
    const dtype_row &y = dtype_of(dtype_of_role(PLAIT_Y));
    const dtype_row &diag = dtype_of(dtype_of_role(PLAIT_DIAG));
    const bool integer = x.what == kind::integer;
    if (x.what != y.what)
        contradiction("y: dtype=", y.name, " does not go with x=", x.name,
                      "; both from f16 bf16 f32 f64, or c64 c128, or i32 i64");
    if (uses(PLAIT_DIAG) && integer)
        contradiction("role=diag is not for integers, and x is ", x.name);
    if (uses(PLAIT_DIAG) && diag.dtype != x.dtype && diag.dtype != x.real) {
        if (x.what == kind::complex)
            contradiction("diag: dtype=", diag.name, " is neither x's type ", x.name,
                          " nor its real type ", dtype_of(x.real).name);
        contradiction("diag: dtype=", diag.name, " is not x's type ", x.name);
    }
    if (uses(PLAIT_OVERFLOW) && !integer)
        contradiction("role=overflow is for integers, and x is ", x.name);
    if (scale_ != 1.0 && integer)
        contradiction("scale=", scale_, " does not go with integers, which take 1 only; x is ",
                      x.name);
    const bool wide = x.real == PLAIT_F64 || y.real == PLAIT_F64;
    const double magnitude = std::abs(scale_);
    if (!wide && magnitude != 0 && (magnitude > FLT_MAX || magnitude < FLT_MIN))
        contradiction("scale=", scale_, " is not between ", double{FLT_MIN}, " and ",
                      double{FLT_MAX}, ", the range of f32, in which x=", x.name, " and y=", y.name,
                      " accumulate");
    if (bound_ && x.what == kind::complex)
        contradiction("bound=", *bound_, " is a promise about integers, and x is ", x.name);
}

void wht_descriptor::check_lengths() const {
    for (size_t a = 0; a < extents_.size(); ++a) {
        const int64_t n = extents_[a];
        const factor_row &factor = *find_factor(factors_[a]);
        const int64_t m = factor.order;
        if (!transformed(a) && m > 1)
            contradiction("factor=", factor.name, " stands on axis ", a,
                          ", which is not transformed (plait_wht_set_axes)");
        if (!transformed(a) || n == 0) continue;
        if (m == 1 && !power_of_two(n))
            contradiction("extents[", a, "]=", n, " is no power of two, and axis ", a,
                          " has no factor (plait_wht_set_factor); ", ways_out(n));
        if (n % m != 0)
            contradiction("extents[", a, "]=", n, " is not ", m, " * 2^k, as factor=", factor.name,
                          " needs: ", m, " does not divide it; ", ways_out(n));
        if (!power_of_two(n / m))
            contradiction("extents[", a, "]=", n, " is not ", m, " * 2^k, as factor=", factor.name,
                          " needs: ", n, "/", m, "=", n / m, " is no power of two; ", ways_out(n));
    }
}

void wht_descriptor::check_options() const {
    int count = 0;
    int64_t length = 0;
    const char *factor = "";
    for (size_t a = 0; a < extents_.size(); ++a) {
        if (!transformed(a)) continue;
        ++count;
        length = extents_[a];
        if (factors_[a] != PLAIT_H1) factor = find_factor(factors_[a])->name;
    }
    const char *order = order_ == PLAIT_SEQUENCY ? "sequency" : "dyadic";
    if (order_ != PLAIT_NATURAL && *factor)
        contradiction("order=", order, " is for powers of two only, and factor=", factor,
                      " is set");
    if (!bits_) return;
    const std::string bits = "bits=0x" + hex(*bits_);
    if (order_ != PLAIT_NATURAL)
        contradiction("order=", order, " does not go with ", bits, ": a mask keeps natural order");
    if (count != 1) contradiction(bits, " needs exactly one transformed axis, and ", count, " are");
    if (*factor) contradiction(bits, " does not go with factor=", factor);
    if (length > 0 && *bits_ >= static_cast<uint64_t>(length))
        contradiction(bits, " has a bit beyond the index of an axis of length ", length);
}

} // namespace plait::impl
