#include "src/cli/case/checker.h"

#include "src/cli/case/dtype.h"

#include <algorithm>

namespace plait::cases {
namespace {

/// Elements of reference input per call: keeps the double copies of tiny transforms in cache.
constexpr int64_t elements_per_call = 1 << 16;

/// One transform's part of a tensor, packed, in the tensor's own type (B1: a byte per element).
void take(const tensor &t, const token_parts &parts, int64_t transform, const fetch &source,
          std::vector<unsigned char> *span, void *packed) {
    slice s = transform_slice(t, parts.axes, transform);
    int64_t offset = s.offset;
    int64_t inside = 0;
    if (t.dtype == PLAIT_B1) { // a fetch copies whole words
        inside = offset % 32;
        offset -= inside;
    }
    const int64_t elements = s.part.span() + inside;
    span->resize(bytes_for(t.dtype, elements));
    source(t, offset, elements, span->data());
    if (inside == 0) {
        gather(s.part, span->data(), 0, s.part.elements(), packed);
        return;
    }
    tensor all = s.part;
    all.extents = {elements};
    all.strides = {1};
    std::vector<uint8_t> flags(static_cast<size_t>(elements));
    gather(all, span->data(), 0, elements, flags.data());
    std::vector<uint32_t> words(bytes_for(PLAIT_B1, elements - inside) / 4);
    all.extents = {elements - inside};
    scatter(all, words.data(), 0, elements - inside, flags.data() + inside);
    gather(s.part, words.data(), 0, s.part.elements(), packed);
}

} // namespace

std::vector<int64_t> pick_transforms(int64_t transforms, int64_t limit) {
    limit = std::min(transforms, std::max<int64_t>(limit, 1));
    std::vector<int64_t> which;
    which.reserve(static_cast<size_t>(limit));
    for (int64_t i = 0; i < limit; ++i)
        which.push_back(limit == 1 ? 0
                                   : static_cast<int64_t>(static_cast<long double>(i) *
                                                          static_cast<long double>(transforms - 1) /
                                                          static_cast<long double>(limit - 1)));
    return which;
}

check_result check_transforms(const std::string &token, const std::vector<tensor> &tensors,
                              const std::vector<int64_t> &which, reference &ref, bool narrow,
                              const fetch &inputs, const fetch &outputs) {
    const token_parts parts = split_token(token);
    const tensor &x = *find_tensor(tensors, PLAIT_X), &y = *find_tensor(tensors, PLAIT_Y);
    const tensor *signs = find_tensor(tensors, PLAIT_SIGNS);
    const tensor *diag = find_tensor(tensors, PLAIT_DIAG);
    const tensor *overflow = find_tensor(tensors, PLAIT_OVERFLOW);
    const tolerance tol = wht_tolerance(parts, x.dtype, y.dtype, narrow);
    const int64_t n = ref.length();
    const size_t parts_each = static_cast<size_t>(parts_of(x.dtype));
    const bool integer = is_integer(x.dtype);

    check_result result;
    if (n == 0) return result;
    const int64_t at_once = ref.batches() ? std::max<int64_t>(1, elements_per_call / n) : 1;
    const size_t room = static_cast<size_t>(at_once * n);
    std::vector<unsigned char> span, packed(bytes_for(x.dtype, n)), got(bytes_for(y.dtype, n));
    std::vector<double> in(integer ? 0 : room * parts_each), want(in.size()), scale;
    std::vector<int64_t> exact_in(integer ? room : 0), exact(exact_in.size());
    std::vector<uint32_t> bits;
    std::vector<uint8_t> flags;
    const size_t total = which.size();
    for (size_t begin = 0; begin < total; begin += static_cast<size_t>(at_once)) {
        const size_t count = std::min(static_cast<size_t>(at_once), total - begin);
        for (size_t i = 0; i < count; ++i) {
            take(x, parts, which[begin + i], inputs, &span, packed.data());
            const size_t to = i * static_cast<size_t>(n);
            if (integer)
                to_int64(x.dtype, packed.data(), n, exact_in.data() + to);
            else
                to_double(x.dtype, packed.data(), n, in.data() + to * parts_each);
        }
        if (signs && (begin == 0 || !ref.batches())) {
            tensor all = *signs;
            all.extents = {n};
            all.strides = {1};
            flags.resize(static_cast<size_t>(n));
            bits.assign(bytes_for(PLAIT_B1, n) / 4, 0);
            take(*signs, parts, which[begin], inputs, &span, flags.data());
            scatter(all, bits.data(), 0, n, flags.data());
        }
        if (diag && (begin == 0 || !ref.batches())) {
            std::vector<unsigned char> own(bytes_for(diag->dtype, n));
            take(*diag, parts, which[begin], inputs, &span, own.data());
            const size_t factors = static_cast<size_t>(n * parts_of(diag->dtype));
            std::vector<double> values(factors);
            to_double(diag->dtype, own.data(), n, values.data());
            if (is_complex(x.dtype) && !is_complex(diag->dtype)) {
                scale.assign(2 * factors, 0);
                for (size_t i = 0; i < factors; ++i) scale[2 * i] = values[i];
            } else {
                scale = values;
            }
        }
        const void *from = integer ? static_cast<void *>(exact_in.data()) : in.data();
        void *to = integer ? static_cast<void *>(exact.data()) : want.data();
        result.overflow_wanted |=
            ref.run(static_cast<int64_t>(count), from, signs ? bits.data() : nullptr,
                    diag ? scale.data() : nullptr, to);
        for (size_t i = 0; i < count; ++i) {
            take(y, parts, which[begin + i], outputs, &span, got.data());
            const size_t at = i * static_cast<size_t>(n);
            deviation d;
            if (integer) {
                const int64_t *expected = exact.data() + at;
                if (y.dtype == PLAIT_I32)
                    for (int64_t j = 0; j < n; ++j)
                        result.overflow_wanted |= expected[j] != static_cast<int32_t>(expected[j]);
                d = compare_integers(y.dtype, got.data(), expected, n);
            } else {
                d = compare_floats(tol, got.data(), want.data() + at * parts_each, n);
            }
            result.values.add(which[begin + i], d);
        }
    }
    result.overflow_checked = overflow && static_cast<int64_t>(which.size()) == parts.transforms();
    return result;
}

} // namespace plait::cases
