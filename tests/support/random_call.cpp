#include "tests/support/random_call.h"

#include <algorithm>
#include <cmath>

namespace plait::test {
namespace {

plait_dtype random_type(rng &r) {
    return r.pick({PLAIT_F32, PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_F16, PLAIT_BF16, PLAIT_BF16,
                   PLAIT_C64, PLAIT_C128, PLAIT_I32, PLAIT_I64, PLAIT_I8, PLAIT_I16});
}

plait_dtype output_type(rng &r, plait_dtype x) {
    if (is_complex(x)) return r.pick({PLAIT_C64, PLAIT_C128});
    if (is_integer(x)) return r.pick({PLAIT_I32, PLAIT_I64});
    return r.pick({PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16});
}

/// Nested strides with gaps, in the order of the axes or with two of them exchanged.
std::vector<int64_t> gapped(rng &r, const wht_call &c) {
    std::vector<size_t> order(c.extents.size());
    for (size_t a = 0; a < order.size(); ++a) order[a] = order.size() - 1 - a;
    if (order.size() > 1 && r.chance(0.2)) std::swap(order[0], order[1]);
    std::vector<int64_t> s(order.size());
    int64_t step = r.chance(0.15) ? r.between(2, 3) : 1;
    for (size_t a : order) {
        s[a] = step;
        step = step * c.extents[a] + (r.chance(0.6) ? r.between(0, 9) : 0);
    }
    return s;
}

/// Rows with a distance; the elements of a row stay packed.
std::vector<int64_t> row_pitch(rng &r, const wht_call &c) {
    std::vector<int64_t> s = c.packed();
    const int64_t n = c.extents.back();
    s.front() = n + r.pick<int64_t>({1, 3, 4, 8, 16, 64});
    return s;
}

void shape(rng &r, wht_call &c, int log_limit) {
    const auto log_n = [&](int limit) {
        return static_cast<int>(r.between(0, std::max(0, limit)));
    };
    const auto batch = [&](int limit) { return r.between(1, int64_t{1} << std::max(0, limit)); };
    switch (r.between(0, 7)) {
    case 0: { // one vector
        c.extents = {int64_t{1} << log_n(log_limit)};
        return;
    }
    case 1: { // a strided axis
        const int k = log_n(log_limit);
        c.extents = {int64_t{1} << k, batch(std::min(6, log_limit - k))};
        c.axes = 1;
        return;
    }
    case 2: { // blocks of rows, or an axis in the middle
        const int k = log_n(log_limit - 4);
        c.extents = {batch(2), batch(2), int64_t{1} << k};
        if (r.chance(0.3)) {
            std::swap(c.extents[1], c.extents[2]);
            c.axes = 2;
        }
        return;
    }
    case 3: { // several axes
        const int k = log_n(log_limit / 2);
        c.extents = {batch(2), int64_t{1} << log_n(log_limit / 2 - 2), int64_t{1} << k};
        c.axes = 6;
        return;
    }
    case 4: { // a factor
        const auto f =
            r.pick({PLAIT_H12_PALEY2, PLAIT_H12_SLOANE, PLAIT_H20_WILLIAMSON, PLAIT_H28_WILLIAMSON,
                    PLAIT_H40, PLAIT_H4_REGULAR, PLAIT_H28_PALEY2, PLAIT_H36_PALEY2,
                    PLAIT_H52_WILLIAMSON, PLAIT_H60_PALEY1, PLAIT_H20_PALEY1, PLAIT_H108_PALEY1,
                    PLAIT_H116_WILLIAMSON, PLAIT_H124_WILLIAMSON, PLAIT_H140_PALEY1,
                    PLAIT_H156_WILLIAMSON, PLAIT_H172_WILLIAMSON});
        const int room = log_limit - (factor_matrix(f).order > 60 ? 9 : 6);
        const int k = log_n(room);
        c.extents = {batch(std::min(3, room - k)), factor_matrix(f).order * (int64_t{1} << k)};
        c.factor = {{1, f}};
        return;
    }
    case 5: { // some bits
        const int k = log_n(log_limit);
        c.extents = {int64_t{1} << k};
        c.bits = r.next() & ((uint64_t{1} << k) - 1);
        return;
    }
    default: { // rows
        const int k = log_n(log_limit);
        c.extents = {batch(std::min(6, log_limit - k)), int64_t{1} << k};
    }
    }
}

double random_scale(rng &r, const wht_call &c, bool power_of_two) {
    const auto n = static_cast<double>(c.transform());
    if (power_of_two)
        return r.pick({1.0, 0.5, -2.0, std::exp2(-std::floor(c.stages() / 2.0)), 0.0});
    return r.pick({1 / std::sqrt(n), 1 / n, -0.3, 1.7});
}

} // namespace

wht_call random_call(rng &r, int log_limit, double plain_share) {
    wht_call c;
    const bool plain = r.chance(plain_share);
    c.x = random_type(r);
    if (plain) {
        c.x = r.pick({PLAIT_F32, PLAIT_F64, PLAIT_F16, PLAIT_BF16});
        const int k = static_cast<int>(r.between(0, log_limit));
        c.extents = {r.between(1, int64_t{1} << std::min(8, log_limit - k)), int64_t{1} << k};
    } else {
        shape(r, c, log_limit);
    }
    if (r.chance(0.25)) c.y = output_type(r, c.x);
    if (!plain && !c.factor && !c.bits && r.chance(0.3))
        c.order = r.pick({PLAIT_SEQUENCY, PLAIT_DYADIC});
    if (r.chance(0.25)) c.adjoint = true;
    if (!is_integer(c.x) && r.chance(0.6)) c.scale = random_scale(r, c, r.chance(0.5));
    if (is_integer(c.x) && r.chance(0.2)) c.bound = r.between(1, 1000);
    if (!plain && r.chance(0.25)) c.signs = true;
    if (!plain && !is_integer(c.x) && r.chance(0.2))
        c.diag = is_complex(c.x) && r.chance(0.5) ? c.x : real_of(c.x);
    if (is_integer(c.x) && r.chance(0.5)) c.overflow = true;
    const auto strides = [&] { return plain ? row_pitch(r, c) : gapped(r, c); };
    if (r.chance(0.4)) c.x_strides = strides();
    if (r.chance(0.4)) c.y_strides = strides();
    if (r.chance(0.3) && bytes_of(c.x) == bytes_of(c.y_type())) {
        c.alias = true;
        c.y_strides = c.x_strides;
    }
    if (r.chance(0.3)) c.x_offset = r.between(1, 16);
    if (r.chance(0.3)) c.y_offset = r.between(1, 16);
    if (c.alias) c.y_offset = c.x_offset;
    return c;
}

wht_call rows_call(rng &r, plait_dtype type, int log_n, int variant) {
    wht_call c;
    c.x = type;
    const int64_t n = int64_t{1} << log_n;
    const int64_t rows = log_n <= 8    ? r.between(2, 70)
                         : log_n <= 16 ? r.between(2, 5)
                                       : 1 + variant % 2;
    c.extents = {variant == 2 ? rows | 1 : rows, n};
    if (variant == 1) {
        c.x_strides = c.y_strides = {n + 5, 1};
        c.x_offset = c.y_offset = 1;
        c.alias = true;
        c.scale = std::exp2(-std::floor(log_n / 2.0));
    }
    if (variant == 2) {
        c.scale = 1 / std::sqrt(static_cast<double>(n));
        c.x_strides = {n + 8, 1};
        c.y_strides = {n + 16, 1};
    }
    return c;
}

bool exact_sums(const wht_call &c) {
    // |x| <= 3; a factor product is exact too, and DIAG and a scale of a power of two only move the
    // exponent or multiply by one bit. Sums of real and imaginary parts of a complex DIAG: one
    // more.
    int exponent = 0;
    const double s = c.scale_value();
    if (s != 0 && std::fabs(std::frexp(s, &exponent)) != 0.5) return false;
    const double digits = c.accumulates_f64() ? 0x1p53 : 0x1p24;
    return 3.0 * static_cast<double>(c.transform()) * (c.diag ? 64 : 1) < digits;
}

} // namespace plait::test
