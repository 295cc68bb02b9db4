#include "src/cli/case/conv1d_check.h"

#include "src/cli/case/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plait::cases {
namespace {

/// Elements of x per call of the reference: its copies in double stay in cache.
constexpr int64_t elements_per_call = 1 << 16;
/// What computing SiLU or its derivative may add: a relative error of 1e-6, in units of 2^-24.
constexpr double activation_error = 17;
/// The largest slopes of SiLU and of its derivative.
constexpr double slope = 1.1, second_slope = 0.5;
/// Sums over all rows and times: 1e-5 of the sum of all moduli, in units of 2^-24.
constexpr double long_sum_error = 168;

constexpr size_t none = ~size_t{0};

/// Which axis counts channels.
size_t channel_axis(plait_role role, bool time_inside) {
    switch (role) {
    case PLAIT_W:
    case PLAIT_DW:
    case PLAIT_BIAS:
    case PLAIT_DBIAS: return 0;
    case PLAIT_POSITION:
    case PLAIT_SLOTS:
    case PLAIT_CU_SEQLENS:
    case PLAIT_SEQ_IDX:
    case PLAIT_STATUS: return none;
    default: return time_inside ? 1 : 2;
    }
}

plait_dtype index_type(const std::vector<tensor> &tensors) {
    const tensor *offsets = find_tensor(tensors, PLAIT_CU_SEQLENS);
    return offsets ? offsets->dtype : PLAIT_I64;
}

std::vector<double> doubles_of(const slice &part, const fetch &source) {
    const int64_t n = part.part.elements();
    std::vector<unsigned char> packed(bytes_for(part.part.dtype, n) + 1);
    std::vector<double> values(static_cast<size_t>(n) + 1); // never a null pointer
    source(part, packed.data());
    to_double(part.part.dtype, packed.data(), n, values.data());
    return values;
}

} // namespace

/// What the reference works on, by role: values, and moduli for the sizes of sums.
struct conv1d_checker::buffers {
    std::vector<tensor> tensors;
    std::map<plait_role, std::vector<double>> values, sizes;
    std::map<plait_role, std::vector<unsigned char>> indices;
    std::vector<double> largest; ///< by channel: no |pre| is larger

    std::map<plait_role, void *> pointers(std::map<plait_role, std::vector<double>> &floats) {
        std::map<plait_role, void *> all;
        for (auto &[role, numbers] : floats) all[role] = numbers.data();
        for (auto &[role, bytes] : indices) all[role] = bytes.data();
        return all;
    }
};

conv1d_checker::conv1d_checker(const std::string &token, const std::vector<tensor> &tensors)
    : parts_(split_token(token)), tensors_(tensors), values_(parts_, false, index_type(tensors)),
      sizes_(parts_, true, index_type(tensors)) {}

void conv1d_checker::load(buffers &b, const int64_t *channels, int64_t count, const fetch &inputs) {
    const bool time_inside = parts_.axes[1].letter == 'c';
    b.tensors = values_.tensors(count);
    b.largest.assign(static_cast<size_t>(count), 0);
    std::vector<double> signal(b.largest), taps(b.largest), bias(b.largest);
    for (const tensor &r : b.tensors) {
        const tensor &t = *find_tensor(tensors_, r.role);
        const size_t axis = channel_axis(t.role, time_inside);
        if (axis == none) {
            std::vector<unsigned char> &bytes = b.indices[t.role];
            if (bytes.empty()) {
                bytes.resize(r.span_bytes() + 1);
                if (t.reads()) inputs({t, 0}, bytes.data());
            }
            continue;
        }
        std::vector<double> &values = b.values[t.role], &sizes = b.sizes[t.role];
        values.assign(static_cast<size_t>(r.elements()) + 1, std::nan(""));
        sizes.assign(values.size(), 0);
        // Slots of no row keep what was in them, also in a state that is only written.
        const tensor *before = t.alias ? find_tensor(tensors_, t.alias) : &t;
        const bool kept = t.role == PLAIT_STATE_OUT && !parts_.option("slots").empty();
        if (!t.reads() && !kept) continue;
        for (int64_t i = 0; i < count; ++i) {
            std::vector<double> own = doubles_of(cut(*before, axis, channels[i]), inputs);
            const slice to = cut(r, channel_axis(r.role, true), i);
            scatter(to, values.data(), own.data());
            double sum = 0, top = 0;
            for (size_t j = 0; j + 1 < own.size(); ++j) {
                own[j] = std::fabs(own[j]);
                sum += own[j];
                top = std::max(top, own[j]);
            }
            scatter(to, sizes.data(), own.data());
            const size_t c = static_cast<size_t>(i);
            if (t.role == PLAIT_W) taps[c] = sum;
            if (t.role == PLAIT_BIAS) bias[c] = sum;
            if (t.role == PLAIT_X || t.role == PLAIT_STATE_IN) signal[c] = std::max(signal[c], top);
        }
    }
    for (size_t c = 0; c < b.largest.size(); ++c) b.largest[c] = bias[c] + taps[c] * signal[c];
}

/// Each rounding adds at most `unit_` of the terms that it meets; a rounded argument of the
/// activation is carried on by its slope. Approximations of the activation may cost a 16-bit result
/// one ulp.
element_tolerance conv1d_checker::tolerance_of(plait_role role, plait_dtype stored,
                                               double largest) const {
    const double width = static_cast<double>(parts_.extent('k'));
    const bool silu = parts_.flag("silu");
    const double extra_ulps = silu && bytes_of(stored) == 2 ? 2 : 0;
    // Of a gradient before the activation, relative to |dy|.
    const double gradient = silu ? second_slope * (width + 1) * largest + activation_error + 3 : 0;
    const double grown = silu ? slope : 1;
    switch (role) {
    case PLAIT_STATE:
    case PLAIT_STATE_OUT: return {0, 0, stored};
    case PLAIT_Y: {
        const double roundings = grown * (width + 1) + (silu ? activation_error : 0) + 2;
        return {roundings * unit_, 1 + extra_ulps, stored};
    }
    case PLAIT_DW:
    case PLAIT_DBIAS: return {(gradient + grown * long_sum_error) * unit_, 1, stored};
    default: // dx, dstate_in
        return {(gradient + grown * (width + 3)) * unit_ + extra_ulps * unit_roundoff(stored), 1,
                stored};
    }
}

deviation conv1d_checker::compare(const buffers &b, const tensor &t, int64_t channel, int64_t at,
                                  const fetch &outputs) const {
    const slice part = cut(t, channel_axis(t.role, parts_.axes[1].letter == 'c'), channel);
    const int64_t n = part.part.elements();
    std::vector<unsigned char> got(bytes_for(t.dtype, n) + 1);
    outputs(part, got.data());
    std::vector<double> want(static_cast<size_t>(n) + 1), size(want.size());
    const slice from = cut(*find_tensor(b.tensors, t.role), channel_axis(t.role, true), at);
    gather(from, b.values.at(t.role).data(), want.data());
    gather(from, b.sizes.at(t.role).data(), size.data());
    return compare_elements(tolerance_of(t.role, t.dtype, b.largest[static_cast<size_t>(at)]),
                            got.data(), want.data(), size.data(), n);
}

check_result conv1d_checker::check(const std::vector<int64_t> &which, rounding how,
                                   const fetch &inputs, const fetch &outputs) {
    unit_ = unit_roundoff(PLAIT_F32);
    double widest = unit_;
    for (const tensor &t : tensors_)
        if (!is_integer(t.dtype)) {
            // The reference rounds as often as the result.
            if (t.dtype == PLAIT_F64) unit_ = 2 * unit_roundoff(PLAIT_F64);
            widest = std::max(widest, unit_roundoff(t.dtype));
        }
    if (how == rounding::stored) unit_ = widest;

    check_result result;
    buffers b;
    const int64_t total = static_cast<int64_t>(which.size());
    const int64_t at_once = std::clamp<int64_t>(
        elements_per_call / std::max<int64_t>(elements(), 1), 1, std::max<int64_t>(total, 1));
    for (int64_t begin = 0; begin < total; begin += at_once) {
        const int64_t count = std::min(at_once, total - begin);
        load(b, &which[static_cast<size_t>(begin)], count, inputs);
        values_.run(count, b.pointers(b.values));
        sizes_.run(count, b.pointers(b.sizes));
        for (int64_t i = 0; i < count; ++i) {
            const int64_t channel = which[static_cast<size_t>(begin + i)];
            deviation worst;
            for (const tensor &t : tensors_)
                if (t.writes() && !is_integer(t.dtype))
                    worst.add(channel, compare(b, t, channel, i, outputs));
            result.values.add(channel, worst);
        }
    }
    if (const tensor *status = find_tensor(tensors_, PLAIT_STATUS); status && total > 0) {
        int32_t said = 0, should = 0;
        outputs({*status, 0}, &said);
        std::memcpy(&should, b.indices.at(PLAIT_STATUS).data(), sizeof should);
        if (said != should)
            result.wrong =
                "status is " + std::to_string(said) + ", it should be " + std::to_string(should);
    }
    return result;
}

} // namespace plait::cases
