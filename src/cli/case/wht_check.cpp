#include "src/cli/case/wht_check.h"

#include "src/cli/case/dtype.h"

#include <algorithm>

namespace plait::cases {
namespace {

/// Elements of reference input per call: keeps the double copies of tiny transforms in cache.
constexpr int64_t elements_per_call = 1 << 16;
/// The definition in float64 takes seconds beyond this length.
constexpr int64_t slow_length = int64_t{1} << 22;

/// Judges of huge transforms: any kernel in float64 where the problem itself accumulates in less.
std::string judges(const token_parts &parts, const std::vector<tensor> &tensors, bool quick) {
    const bool wide = real_of(find_tensor(tensors, PLAIT_X)->dtype) == PLAIT_F64 ||
                      real_of(find_tensor(tensors, PLAIT_Y)->dtype) == PLAIT_F64;
    return quick && !wide && parts.length() > slow_length ? "wht.cpu.*" : "";
}

} // namespace

tolerance wht_tolerance(const token_parts &parts, plait_dtype x, plait_dtype y, rounding how) {
    if (is_integer(y)) return {0, y, true};
    const bool wide = real_of(y) == PLAIT_F64;
    double u = unit_roundoff(wide ? PLAIT_F64 : PLAIT_F32);
    if (how == rounding::stored) u = std::max({u, unit_roundoff(x), unit_roundoff(y)});
    const int m = std::max(1, parts.factor_orders());
    const double products = how == rounding::tf32 ? 2 * 0x1p-11 : 0;
    return {(parts.stages() + m) * u + products, y, false};
}

wht_checker::wht_checker(const std::string &token, const std::vector<tensor> &tensors, bool quick)
    : parts_(split_token(token)), tensors_(tensors),
      reference_(token, judges(parts_, tensors, quick)) {}

slice wht_checker::part_of(const tensor &t, int64_t transform) const {
    return transform_slice(t, parts_.axes, transform);
}

std::vector<uint32_t> wht_checker::signs_of(int64_t transform, const fetch &inputs) const {
    const tensor *signs = find_tensor(tensors_, PLAIT_SIGNS);
    if (!signs) return {};
    const int64_t n = parts_.length();
    std::vector<uint8_t> flags(static_cast<size_t>(n));
    inputs(part_of(*signs, transform), flags.data());
    std::vector<uint32_t> bits(bytes_for(PLAIT_B1, n) / 4);
    tensor all = *signs;
    all.extents = {n};
    all.strides = {1};
    scatter(all, bits.data(), 0, n, flags.data());
    return bits;
}

std::vector<double> wht_checker::diag_of(int64_t transform, const fetch &inputs) const {
    const tensor *diag = find_tensor(tensors_, PLAIT_DIAG);
    if (!diag) return {};
    const int64_t n = parts_.length();
    std::vector<unsigned char> own(bytes_for(diag->dtype, n));
    inputs(part_of(*diag, transform), own.data());
    std::vector<double> values(static_cast<size_t>(n * parts_of(diag->dtype)));
    to_double(diag->dtype, own.data(), n, values.data());
    const bool widens =
        is_complex(find_tensor(tensors_, PLAIT_X)->dtype) && !is_complex(diag->dtype);
    if (!widens) return values;
    std::vector<double> pairs(2 * values.size());
    for (size_t i = 0; i < values.size(); ++i) pairs[2 * i] = values[i];
    return pairs;
}

check_result wht_checker::check(const std::vector<int64_t> &which, rounding how,
                                const fetch &inputs, const fetch &outputs) {
    const tensor &x = *find_tensor(tensors_, PLAIT_X), &y = *find_tensor(tensors_, PLAIT_Y);
    const tolerance tol = wht_tolerance(parts_, x.dtype, y.dtype, how);
    const int64_t n = parts_.length();
    const size_t numbers = static_cast<size_t>(parts_of(x.dtype)), length = static_cast<size_t>(n);
    const bool integer = is_integer(x.dtype);

    check_result result;
    int32_t overflow = 0;
    const size_t at_once = static_cast<size_t>(
        reference_.batches() && n > 0 ? std::max<int64_t>(1, elements_per_call / n) : 1);
    const size_t room = at_once * length;
    std::vector<unsigned char> packed(bytes_for(x.dtype, n)), got(bytes_for(y.dtype, n));
    std::vector<double> in(integer ? 0 : room * numbers), want(in.size()), scale;
    std::vector<int64_t> exact_in(integer ? room : 0), exact(exact_in.size());
    std::vector<uint32_t> bits;
    for (size_t begin = 0; n > 0 && begin < which.size(); begin += at_once) {
        const size_t count = std::min(at_once, which.size() - begin);
        for (size_t i = 0; i < count; ++i) {
            inputs(part_of(x, which[begin + i]), packed.data());
            if (integer)
                to_int64(x.dtype, packed.data(), n, exact_in.data() + i * length);
            else
                to_double(x.dtype, packed.data(), n, in.data() + i * length * numbers);
        }
        if (begin == 0 || !reference_.batches()) {
            bits = signs_of(which[begin], inputs);
            scale = diag_of(which[begin], inputs);
        }
        const void *from = integer ? static_cast<void *>(exact_in.data()) : in.data();
        void *to = integer ? static_cast<void *>(exact.data()) : want.data();
        overflow |=
            reference_.run(static_cast<int64_t>(count), from, bits.empty() ? nullptr : bits.data(),
                           scale.empty() ? nullptr : scale.data(), to);
        for (size_t i = 0; i < count; ++i) {
            outputs(part_of(y, which[begin + i]), got.data());
            deviation d;
            if (integer) {
                const int64_t *expected = exact.data() + i * length;
                if (y.dtype == PLAIT_I32)
                    for (size_t j = 0; j < length; ++j)
                        overflow |= expected[j] != static_cast<int32_t>(expected[j]);
                d = compare_integers(y.dtype, got.data(), expected, n);
            } else {
                d = compare_floats(tol, got.data(), want.data() + i * length * numbers, n);
            }
            result.values.add(which[begin + i], d);
        }
    }
    // The flag speaks of all transforms.
    const tensor *flag = find_tensor(tensors_, PLAIT_OVERFLOW);
    if (flag && static_cast<int64_t>(which.size()) == parts()) {
        int32_t said = 0;
        outputs({*flag, 0}, &said);
        if (said != overflow)
            result.wrong = "overflow is " + std::to_string(said) + ", it should be " +
                           std::to_string(overflow);
    }
    return result;
}

} // namespace plait::cases
