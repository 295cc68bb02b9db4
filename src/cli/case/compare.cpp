#include "src/cli/case/compare.h"

#include "src/cli/case/dtype.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plait::cases {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

void deviation::add(int64_t part, const deviation &of_one) {
    ++compared;
    if (worst >= 0 && !(of_one.ratio > ratio)) return;
    error = of_one.error;
    bound = of_one.bound;
    ratio = of_one.ratio;
    worst = part;
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
    const double allowed = tol.relative * std::max(norm, tol.least_norm) + std::sqrt(stored);
    deviation d;
    d.error = norm > 0 ? wrong / norm : wrong;
    d.bound = norm > 0 ? allowed / norm : allowed;
    d.ratio = wrong > 0 ? wrong / allowed : 0;
    return d;
}

deviation compare_elements(const element_tolerance &tol, const void *got, const double *want,
                           const double *size, int64_t length) {
    const size_t bytes = bytes_of(tol.stored);
    double wrong = 0, norm = 0, allowed = 0;
    deviation d;
    double chunk[512];
    for (int64_t begin = 0; begin < length; begin += 512) {
        const int64_t n = std::min<int64_t>(512, length - begin);
        to_double(tol.stored, static_cast<const char *>(got) + static_cast<size_t>(begin) * bytes,
                  n, chunk);
        for (int64_t i = 0; i < n; ++i) {
            const double y = chunk[i], ref = want[begin + i];
            const double target = rounded(tol.stored, ref);
            const double may =
                tol.relative * size[begin + i] + tol.half_ulps * half_ulp(tol.stored, ref);
            if (std::isfinite(ref)) norm += ref * ref;
            if (std::isfinite(may)) allowed += may * may;
            if (y == target || (std::isnan(y) && std::isnan(target))) {
                if (std::isfinite(y)) wrong += (y - ref) * (y - ref);
                if (may > 0 && std::isfinite(y))
                    d.ratio = std::max(d.ratio, std::fabs(y - ref) / may);
                continue;
            }
            // A neighbour of the largest number may round to it or to infinity.
            const double off =
                std::isinf(y) && std::isfinite(ref)
                    ? std::fabs(rounded(tol.stored, ref + std::copysign(may, y)) == y ? may
                                                                                      : infinity)
                    : std::fabs(y - ref);
            if (!std::isfinite(off) || std::isnan(target) || !(may > 0))
                return {infinity, 0, infinity, -1, 0};
            d.ratio = std::max(d.ratio, off / may);
            wrong += off * off;
        }
    }
    d.error = norm > 0 ? std::sqrt(wrong / norm) : std::sqrt(wrong);
    d.bound = norm > 0 ? std::sqrt(allowed / norm) : std::sqrt(allowed);
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
