#include "src/cli/case/wht_results.h"

#include "src/cli/case/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace plait::cases {
namespace {

int64_t wrapped(plait_dtype stored, int64_t v) {
    return stored == PLAIT_I32 ? static_cast<int32_t>(static_cast<uint32_t>(v)) : v;
}

std::string differs(const tensor &t, const std::string &said, const std::string &expected) {
    return t.name + " is " + said + ", it should be " + expected;
}

std::string wrong_integer(const tensor &t, int64_t said, const int64_t *of, int64_t count,
                          plait_dtype stored) {
    int64_t largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t v = wrapped(stored, of[i]);
        largest = std::max(largest, v == INT64_MIN ? INT64_MAX : std::abs(v));
    }
    return said == largest ? "" : differs(t, std::to_string(said), std::to_string(largest));
}

std::string wrong_float(const tensor &t, double said, const double *of, int64_t count,
                        double error) {
    double expected = 0;
    for (int64_t i = 0; i < count; ++i)
        if (const double v = std::fabs(of[i]); v > expected || std::isnan(v)) expected = v;
    if (t.role == PLAIT_SCALES) { // a factor 1 / 448, at least the smallest normal number
        const bool usual = expected > 0 && std::isfinite(expected);
        expected = usual ? std::max(expected / 448, std::ldexp(1.0, -126)) : 1;
        error /= 448;
    }
    if (std::isnan(expected) ? std::isnan(said) : said == rounded(t.dtype, expected)) return "";
    if (std::fabs(said - expected) <= error + half_ulp(t.dtype, expected)) return "";
    return differs(t, std::to_string(said), std::to_string(expected));
}

} // namespace

std::string wrong_group(const tensor &t, const void *said, int64_t groups, const wht_values &of,
                        const tolerance &tol) {
    double norm = 0;
    for (const double v : of.floats) norm += v * v;
    const double error = tol.relative * std::sqrt(norm);
    const int64_t length = groups > 0 ? of.count / groups : 0;
    for (int64_t g = 0; g < groups; ++g) {
        const void *at = static_cast<const char *>(said) + bytes_for(t.dtype, g);
        std::string wrong;
        if (t.dtype == PLAIT_I64) {
            int64_t v = 0;
            to_int64(t.dtype, at, 1, &v);
            wrong = wrong_integer(t, v, of.integers.data() + g * length, length, tol.stored);
        } else {
            double v = 0;
            to_double(t.dtype, at, 1, &v);
            wrong = wrong_float(t, v, of.floats.data() + g * length, length, error);
        }
        if (!wrong.empty()) return wrong;
    }
    return "";
}

std::string wrong_histogram(const std::string &option, const int64_t *said, const wht_values &of,
                            plait_dtype stored) {
    char *rest = nullptr;
    const int64_t bins = std::strtoll(option.c_str(), &rest, 10);
    const int64_t first = std::strtoll(rest + 1, &rest, 10);
    const int64_t width = std::strtoll(rest + 1, nullptr, 10);
    std::vector<int64_t> expected(static_cast<size_t>(bins));
    for (const int64_t value : of.integers) {
        const long double above = static_cast<long double>(wrapped(stored, value)) - first;
        const long double bin = std::floor(above / width);
        if (bin >= 0 && bin < bins) ++expected[static_cast<size_t>(bin)];
    }
    for (int64_t b = 0; b < bins; ++b)
        if (const int64_t e = expected[static_cast<size_t>(b)]; said[b] != e)
            return "bin " + std::to_string(b) + " of histogram is " + std::to_string(said[b]) +
                   ", it should be " + std::to_string(e);
    return "";
}

} // namespace plait::cases
