#include "src/cli/case/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plait::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

tolerance wht_tolerance(const token_parts &parts, plait_dtype x, plait_dtype y, bool narrow) {
    if (is_integer(y)) return {0, y, true};
    const bool wide = real_of(y) == PLAIT_F64;
    double u = unit_roundoff(wide ? PLAIT_F64 : PLAIT_F32);
    if (narrow) u = std::max({u, unit_roundoff(x), unit_roundoff(y)});
    const int m = std::max(1, parts.factor_orders());
    return {(parts.stages() + m) * u, y, false};
}

void deviation::add(int64_t transform, const deviation &of_one) {
    ++transforms;
    if (worst >= 0 && !(of_one.ratio > ratio)) return;
    error = of_one.error;
    bound = of_one.bound;
    ratio = of_one.ratio;
    worst = transform;
}

deviation compare_floats(const tolerance &tol, const void *got, const double *want,
                         int64_t length) {
    const int64_t count = length * parts_of(tol.stored);
    const plait_dtype real = real_of(tol.stored);
    const size_t size = bytes_of(real);
    double wrong = 0, norm = 0, stored = 0;
    double chunk[512];
    for (int64_t begin = 0; begin < count; begin += 512) {
        const int64_t n = std::min<int64_t>(512, count - begin);
        to_double(real, static_cast<const char *>(got) + static_cast<size_t>(begin) * size, n,
                  chunk);
        for (int64_t i = 0; i < n; ++i) {
            const double y = chunk[i], ref = want[begin + i];
            const double target = rounded(real, ref);
            if (!std::isfinite(target)) {
                // NaN for NaN; infinity for what does not fit.
                if (std::isnan(target) ? !std::isnan(y) : y != target)
                    return {infinity, 0, infinity, -1, 0};
                continue;
            }
            if (!std::isfinite(y)) return {infinity, 0, infinity, -1, 0};
            const double half = half_ulp(real, ref);
            wrong += (y - ref) * (y - ref);
            norm += ref * ref;
            stored += half * half;
        }
    }
    wrong = std::sqrt(wrong);
    norm = std::sqrt(norm);
    const double allowed = tol.relative * norm + std::sqrt(stored);
    deviation d;
    d.error = norm > 0 ? wrong / norm : wrong;
    d.bound = norm > 0 ? allowed / norm : allowed;
    d.ratio = wrong > 0 ? wrong / allowed : 0;
    return d;
}

deviation compare_integers(plait_dtype stored, const void *got, const int64_t *want,
                           int64_t length) {
    const uint64_t mask = stored == PLAIT_I32 ? 0xffffffffu : ~uint64_t{0};
    int64_t wrong = 0;
    for (int64_t i = 0; i < length; ++i) {
        int64_t y;
        to_int64(stored, static_cast<const char *>(got) + static_cast<size_t>(i) * bytes_of(stored),
                 1, &y);
        wrong += ((static_cast<uint64_t>(y) ^ static_cast<uint64_t>(want[i])) & mask) != 0;
    }
    deviation d;
    d.error = static_cast<double>(wrong) / static_cast<double>(std::max<int64_t>(length, 1));
    d.ratio = wrong ? infinity : 0;
    return d;
}

} // namespace plait::cases
