#include "src/cli/case/wht_check.h"

#include "src/cli/case/dtype.h"

#include <algorithm>

namespace plait::cases {
namespace {

/// Elements of reference input per call: keeps the double copies of tiny transforms in cache.
constexpr int64_t elements_per_call = 1 << 16;
/// The definition in float64 takes seconds beyond this length.
constexpr int64_t slow_length = int64_t{1} << 22;

/// Of Y, also where it is not in use.
plait_dtype result_type(const std::vector<tensor> &tensors) {
    if (const tensor *y = find_tensor(tensors, PLAIT_Y)) return y->dtype;
    const plait_dtype x = find_tensor(tensors, PLAIT_X)->dtype;
    return x == PLAIT_I8 || x == PLAIT_I16 || x == PLAIT_B1 ? PLAIT_I32 : x;
}

/// Packed values of a part of a tensor, B1 as (-1)^bit: doubles (pairs), or integers for the types
/// that are or for all that will be.
wht_values values_of(const slice &part, bool integer, const fetch &from) {
    const plait_dtype dtype = part.part.dtype;
    wht_values v;
    v.count = part.part.elements();
    const size_t count = static_cast<size_t>(v.count);
    std::vector<unsigned char> packed(dtype == PLAIT_B1 ? count : bytes_for(dtype, v.count));
    from(part, packed.data());
    v.integers.resize(integer ? count : 0);
    v.floats.resize(integer ? 0 : count * static_cast<size_t>(parts_of(dtype)));
    if (dtype == PLAIT_B1) {
        for (size_t i = 0; i < v.integers.size(); ++i) v.integers[i] = packed[i] ? -1 : 1;
        for (size_t i = 0; i < v.floats.size(); ++i) v.floats[i] = packed[i] ? -1 : 1;
    } else if (integer) {
        to_int64(dtype, packed.data(), v.count, v.integers.data());
    } else {
        to_double(dtype, packed.data(), v.count, v.floats.data());
    }
    return v;
}

/// Judges of huge transforms: any kernel in float64 where the problem itself accumulates in less.
std::string judges(const token_parts &parts, const std::vector<tensor> &tensors, bool quick) {
    const bool wide = real_of(find_tensor(tensors, PLAIT_X)->dtype) == PLAIT_F64 ||
                      real_of(result_type(tensors)) == PLAIT_F64;
    return quick && !wide && parts.length() > slow_length ? "wht.cpu.*" : "";
}

} // namespace

tolerance wht_tolerance(const token_parts &parts, plait_dtype x, plait_dtype y, rounding how) {
    if (is_integer(y)) return {0, y, true};
    const bool wide = real_of(y) == PLAIT_F64;
    double u = unit_roundoff(wide ? PLAIT_F64 : PLAIT_F32);
    if (how == rounding::stored) u = std::max({u, unit_roundoff(x), unit_roundoff(y)});
    int roundings = parts.stages() + std::max(1, parts.factor_orders());
    if (parts.used("diag_mid")) roundings *= 2;
    for (const char *diagonal : {"diag_in", "diag_mid"})
        if (parts.used(diagonal)) roundings += 2;
    const double products = how == rounding::tf32 ? 2 * 0x1p-11 : 0;
    return {roundings * u + products, y, false};
}

wht_checker::wht_checker(const std::string &token, const std::vector<tensor> &tensors, bool quick)
    : parts_(split_token(token)), tensors_(tensors),
      reference_(token, judges(parts_, tensors, quick)) {}

slice wht_checker::part_of(const tensor &t, int64_t transform) const {
    return transform_slice(t, parts_.axes, transform);
}

std::vector<uint32_t> wht_checker::bits_of(const slice &part, const fetch &inputs) const {
    const int64_t n = part.part.elements();
    std::vector<uint8_t> flags(static_cast<size_t>(n));
    inputs(part, flags.data());
    std::vector<uint32_t> bits(bytes_for(PLAIT_B1, n) / 4);
    tensor all = part.part;
    all.extents = {n};
    all.strides = {1};
    scatter(all, bits.data(), 0, n, flags.data());
    return bits;
}

std::vector<double> wht_checker::diagonal_of(const tensor &diag, int64_t transform,
                                             const fetch &inputs) const {
    std::vector<double> values = values_of(part_of(diag, transform), false, inputs).floats;
    if (!is_complex(find(PLAIT_X)->dtype) || is_complex(diag.dtype)) return values;
    std::vector<double> pairs(2 * values.size());
    for (size_t i = 0; i < values.size(); ++i) pairs[2 * i] = values[i];
    return pairs;
}

wht_values wht_checker::load_x(int64_t transform, const fetch &inputs) const {
    const tensor &x = *find(PLAIT_X);
    wht_values given = values_of(part_of(x, transform), is_integer(result_type(tensors_)), inputs);
    if (rows_.empty() || !parts_.flag("adj")) return given;
    const int64_t n = parts_.length();
    const size_t width = static_cast<size_t>(parts_of(x.dtype));
    wht_values out;
    out.count = n;
    out.integers.resize(given.integers.empty() ? 0 : static_cast<size_t>(n));
    out.floats.resize(given.floats.empty() ? 0 : static_cast<size_t>(n) * width);
    for (size_t r = 0; r < rows_.size(); ++r) {
        if (rows_[r] < 0 || rows_[r] >= n) continue;
        const size_t k = static_cast<size_t>(rows_[r]);
        if (!out.integers.empty()) out.integers[k] += given.integers[r];
        for (size_t c = 0; c < width && !out.floats.empty(); ++c)
            out.floats[k * width + c] += given.floats[r * width + c];
    }
    return out;
}

wht_values wht_checker::results_of(const wht_values &whole) const {
    if (!find(PLAIT_ROWS) || parts_.flag("adj")) return whole;
    const size_t width = static_cast<size_t>(parts_of(find(PLAIT_X)->dtype));
    wht_values out;
    out.count = static_cast<int64_t>(rows_.size());
    out.integers.resize(whole.integers.empty() ? 0 : rows_.size());
    out.floats.resize(whole.floats.empty() ? 0 : rows_.size() * width);
    for (size_t r = 0; r < rows_.size(); ++r) {
        if (rows_[r] < 0 || rows_[r] >= whole.count) continue;
        const size_t k = static_cast<size_t>(rows_[r]);
        if (!out.integers.empty()) out.integers[r] = whole.integers[k];
        for (size_t c = 0; c < width && !out.floats.empty(); ++c)
            out.floats[r * width + c] = whole.floats[k * width + c];
    }
    return out;
}

struct wht_checker::others {
    std::vector<uint32_t> signs, factor;
    std::vector<double> diagonals[3];
};

std::vector<plait_arg> wht_checker::others_of(int64_t transform, const fetch &inputs,
                                              others &keep) const {
    std::vector<plait_arg> args;
    if (const tensor *t = find(PLAIT_SIGNS)) {
        keep.signs = bits_of(part_of(*t, transform), inputs);
        args.push_back({PLAIT_SIGNS, keep.signs.data()});
    }
    if (const tensor *t = find(PLAIT_FACTOR)) {
        keep.factor = bits_of({*t, 0}, inputs);
        args.push_back({PLAIT_FACTOR, keep.factor.data()});
    }
    int number = 0;
    for (const plait_role role : {PLAIT_DIAG, PLAIT_DIAG_IN, PLAIT_DIAG_MID}) {
        std::vector<double> &values = keep.diagonals[number++];
        const tensor *t = find(role);
        if (!t) continue;
        values = diagonal_of(*t, transform, inputs);
        args.push_back({role, values.data()});
    }
    return args;
}

std::string wht_checker::wrong_around(int64_t transform, const wht_values &results,
                                      const tolerance &tol, const fetch &outputs) const {
    for (const plait_role role : {PLAIT_AMAX, PLAIT_SCALES}) {
        const tensor *t = find(role);
        if (!t) continue;
        const slice part = part_of(*t, transform);
        std::vector<unsigned char> said(bytes_for(t->dtype, part.part.elements()));
        outputs(part, said.data());
        const std::string wrong = wrong_group(*t, said.data(), part.part.elements(), results, tol);
        if (!wrong.empty()) return wrong;
    }
    const tensor *t = find(PLAIT_HISTOGRAM);
    if (!t) return "";
    const slice part = part_of(*t, transform);
    std::vector<int64_t> said(static_cast<size_t>(part.part.elements()));
    outputs(part, said.data());
    return wrong_histogram(parts_.option("hist"), said.data(), results, tol.stored);
}

deviation wht_checker::compare(int64_t transform, wht_values &results, const tolerance &tol,
                               const fetch &outputs) const {
    const tensor *y = find(PLAIT_Y);
    if (!y) return {};
    std::vector<unsigned char> got(bytes_for(y->dtype, results.count));
    outputs(part_of(*y, transform), got.data());
    if (is_integer(y->dtype))
        return compare_integers(y->dtype, got.data(), results.integers.data(), results.count);
    if (const tensor *scales = find(PLAIT_SCALES)) { // those that were written: they are judged
        const std::vector<double> by =
            values_of(part_of(*scales, transform), false, outputs).floats;
        for (size_t r = 0; r < results.floats.size() && !by.empty(); ++r)
            results.floats[r] /= by[r / (results.floats.size() / by.size())];
    }
    return compare_floats(tol, got.data(), results.floats.data(), results.count);
}

check_result wht_checker::check(const std::vector<int64_t> &which, rounding how,
                                const fetch &inputs, const fetch &outputs) {
    const plait_dtype x = find(PLAIT_X)->dtype, stored = result_type(tensors_);
    const tolerance tol = wht_tolerance(parts_, x, stored, how);
    const int64_t n = parts_.length();
    const size_t length = static_cast<size_t>(n), width = static_cast<size_t>(parts_of(x));
    const bool integer = is_integer(stored);
    rows_.clear();
    if (const tensor *rows = find(PLAIT_ROWS)) rows_ = values_of({*rows, 0}, true, inputs).integers;

    check_result result;
    int32_t overflow = 0;
    const size_t at_once = static_cast<size_t>(
        reference_.batches() && n > 0 ? std::max<int64_t>(1, elements_per_call / n) : 1);
    const size_t room = at_once * length;
    std::vector<double> in(integer ? 0 : room * width), want(in.size());
    std::vector<int64_t> exact_in(integer ? room : 0), exact(exact_in.size());
    others keep;
    std::vector<plait_arg> other_args;
    for (size_t begin = 0; n > 0 && begin < which.size(); begin += at_once) {
        const size_t count = std::min(at_once, which.size() - begin);
        for (size_t i = 0; i < count; ++i) {
            const wht_values v = load_x(which[begin + i], inputs);
            std::copy(v.integers.begin(), v.integers.end(), exact_in.data() + i * length);
            std::copy(v.floats.begin(), v.floats.end(), in.data() + i * length * width);
        }
        if (begin == 0 || !reference_.batches()) other_args = others_of(which[begin], inputs, keep);
        const void *from = integer ? static_cast<void *>(exact_in.data()) : in.data();
        void *to = integer ? static_cast<void *>(exact.data()) : want.data();
        overflow |= reference_.run(static_cast<int64_t>(count), from, other_args, to);
        for (size_t i = 0; i < count; ++i) {
            wht_values whole;
            whole.count = n;
            if (integer)
                whole.integers.assign(exact.data() + i * length, exact.data() + (i + 1) * length);
            else
                whole.floats.assign(want.data() + i * length * width,
                                    want.data() + (i + 1) * length * width);
            wht_values results = results_of(whole);
            const int64_t transform = which[begin + i];
            if (result.wrong.empty()) result.wrong = wrong_around(transform, results, tol, outputs);
            if (stored == PLAIT_I32)
                for (const int64_t v : results.integers) overflow |= v != static_cast<int32_t>(v);
            result.values.add(transform, compare(transform, results, tol, outputs));
        }
    }
    const auto check_flag = [&](plait_role role, int32_t expected) {
        const tensor *flag = find(role);
        if (!flag || !result.wrong.empty()) return;
        int32_t said = 0;
        outputs({*flag, 0}, &said);
        if (said != expected)
            result.wrong = flag->name + " is " + std::to_string(said) + ", it should be " +
                           std::to_string(expected);
    };
    // The flag speaks of all transforms.
    if (static_cast<int64_t>(which.size()) == parts()) check_flag(PLAIT_OVERFLOW, overflow);
    const auto first =
        std::find_if(rows_.begin(), rows_.end(), [n](int64_t k) { return k < 0 || k >= n; });
    const int64_t number = first == rows_.end() ? 0 : first - rows_.begin() + 1;
    check_flag(PLAIT_STATUS, static_cast<int32_t>(number));
    return result;
}

} // namespace plait::cases
