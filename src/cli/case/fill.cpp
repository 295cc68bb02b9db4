#include "src/cli/case/fill.h"

#include "src/cli/case/dtype.h"
#include "src/cli/case/handle.h"

#include <algorithm>
#include <cstring>

namespace plait::cases {
namespace {

/// The finaliser of a well-known 64-bit mixer: a bijection whose output passes statistical tests.
uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

} // namespace

void fill_random(plait_dtype dtype, const fill_options &options, int64_t first, int64_t count,
                 void *dense) {
    const uint64_t key = mix(options.seed + 0x9e3779b97f4a7c15u);
    const auto draw = [key](int64_t i) {
        return mix(key + static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u);
    };
    if (dtype == PLAIT_B1) {
        uint8_t *out = static_cast<uint8_t *>(dense);
        for (int64_t i = 0; i < count; ++i) out[i] = draw(first + i) >> 63;
        return;
    }
    if (is_integer(dtype)) {
        // Never beyond what the type holds, whatever bound the token promises.
        const int64_t top = dtype == PLAIT_I8    ? INT8_MAX
                            : dtype == PLAIT_I16 ? INT16_MAX
                            : dtype == PLAIT_I32 ? INT32_MAX
                                                 : INT64_MAX / 2;
        const int64_t limit = std::clamp<int64_t>(options.integer_limit, 0, top);
        const uint64_t range = 2 * static_cast<uint64_t>(limit) + 1;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t v = static_cast<int64_t>(draw(first + i) % range) - limit;
            from_int64(dtype, &v, 1, static_cast<char *>(dense) + bytes_for(dtype, i));
        }
        return;
    }
    const plait_dtype real = real_of(dtype);
    const int parts = parts_of(dtype);
    first *= parts;
    count *= parts;
    // As many random bits as the significand holds: nothing is rounded.
    const auto uniform = [&](int64_t i, int bits) {
        const int64_t half = int64_t{1} << (bits - 1);
        const int64_t v = static_cast<int64_t>(draw(first + i) >> (64 - bits)) - half;
        return static_cast<double>(v) / static_cast<double>(half);
    };
    switch (real) {
    case PLAIT_F64:
        for (int64_t i = 0; i < count; ++i) static_cast<double *>(dense)[i] = uniform(i, 53);
        return;
    case PLAIT_F32:
        for (int64_t i = 0; i < count; ++i)
            static_cast<float *>(dense)[i] = static_cast<float>(uniform(i, 24));
        return;
    default: {
        const int bits = real == PLAIT_F16 ? 11 : real == PLAIT_BF16 ? 8 : 4;
        double chunk[256];
        for (int64_t i = 0; i < count; i += 256) {
            const int64_t n = std::min<int64_t>(256, count - i);
            for (int64_t j = 0; j < n; ++j) chunk[j] = uniform(i + j, bits);
            from_double(real, chunk, n, static_cast<char *>(dense) + bytes_for(real, i));
        }
    }
    }
}

guarded_image::guarded_image(size_t span_bytes)
    : bytes(guard_bytes + span_bytes + guard_bytes, poison_byte) {}

std::string guarded_image::untouched(const tensor &t) const {
    guarded_image copy = *this;
    const int64_t total = t.elements();
    const int64_t chunk = std::min<int64_t>(total, 1 << 20);
    std::vector<unsigned char> poison(
        t.dtype == PLAIT_B1 ? static_cast<size_t>(chunk) : bytes_for(t.dtype, chunk), poison_byte);
    for (int64_t done = 0; done < total; done += chunk)
        scatter(t, copy.data(), done, std::min(chunk, total - done), poison.data());
    for (size_t i = 0; i < copy.bytes.size(); ++i) {
        if (copy.bytes[i] == poison_byte) continue;
        if (i < guard_bytes)
            return std::to_string(guard_bytes - i) + " bytes before " + t.name + " was overwritten";
        const size_t at = i - guard_bytes;
        if (at >= t.span_bytes())
            return std::to_string(at - t.span_bytes() + 1) + " bytes behind " + t.name +
                   " was overwritten";
        return "a gap of " + t.name + " at byte " + std::to_string(at) + " was overwritten";
    }
    return "";
}

} // namespace plait::cases
