// Lines of a tensor to and from buffers of accumulators, compiled once per level.
#if defined(PLAIT_LIB_CPU_CONV1D_SIMD_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_CONV1D_SIMD_LINES_INL_H_
#        undef PLAIT_LIB_CPU_CONV1D_SIMD_LINES_INL_H_
#    else
#        define PLAIT_LIB_CPU_CONV1D_SIMD_LINES_INL_H_
#    endif

#    include "lib/common/half.h"
#    include "lib/common/scalar.h"
#    include "lib/cpu/wht/simd_convert-inl.h"

#    include <algorithm>
#    include <cstdint>
#    include <cstring>
#    include <hwy/cache_control.h>
#    include <hwy/highway.h>
#    include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {
namespace hn = hwy::HWY_NAMESPACE;

// How one element of a stored type becomes an accumulator and back.

struct as_f64 {
    using stored = double;
    static double load(double v) { return v; }
    template <typename T> static double store(T v) { return v; }
};
struct as_f32 {
    using stored = float;
    static float load(float v) { return v; }
    template <typename T> static float store(T v) { return static_cast<float>(v); }
};
struct as_f16 {
    using stored = uint16_t;
    static float load(uint16_t v) { return f16_to_f32(v); }
    static uint16_t store(float v) { return f32_to_f16(v); }
    static uint16_t store(double v) { return f64_to_f16(v); }
};
struct as_bf16 {
    using stored = uint16_t;
    static float load(uint16_t v) { return bf16_to_f32(v); }
    static uint16_t store(float v) { return f32_to_bf16(v); }
    static uint16_t store(double v) { return f64_to_bf16(v); }
};

template <typename As, typename T>
HWY_INLINE void gather(const void *base, int64_t at, int64_t step, T *to, int64_t count) {
    const auto *from = static_cast<const typename As::stored *>(base) + at;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(As::load(from[i * step]));
}

template <typename As, typename T>
HWY_INLINE void scatter(const T *from, void *base, int64_t at, int64_t step, int64_t count) {
    auto *to = static_cast<typename As::stored *>(base) + at;
    for (int64_t i = 0; i < count; ++i) to[i * step] = As::store(from[i]);
}

HWY_INLINE char *address(scalar type, void *base, int64_t at) {
    return static_cast<char *>(base) + at * scalar_bytes(type);
}
HWY_INLINE const char *address(scalar type, const void *base, int64_t at) {
    return static_cast<const char *>(base) + at * scalar_bytes(type);
}

/// `count` elements from element `at` on, `step` apart.
template <typename T>
HWY_NOINLINE void load_line(scalar type, const void *base, int64_t at, int64_t step, T *to,
                            int64_t count) {
    if constexpr (std::is_same_v<T, float>)
        if (step == 1) return convert::load_row(type, address(type, base, at), to, count);
    switch (type) {
    case scalar::f64: return gather<as_f64>(base, at, step, to, count);
    case scalar::f32: return gather<as_f32>(base, at, step, to, count);
    case scalar::f16: return gather<as_f16>(base, at, step, to, count);
    default: return gather<as_bf16>(base, at, step, to, count);
    }
}

/// Stores past the caches: what is written is not read again, and its lines are not read first.
inline HWY_NOINLINE void stream_bytes(const char *from, char *to, int64_t bytes) {
    const hn::ScalableTag<uint8_t> d;
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));
    const auto off = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64);
    const int64_t head = std::min(bytes, off == 0 ? 0 : 64 - off);
    std::memcpy(to, from, static_cast<size_t>(head));
    int64_t i = head;
    for (; i + step <= bytes; i += step)
        hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t *>(from + i)), d,
                   reinterpret_cast<uint8_t *>(to + i));
    std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

/// The inverse of load_line. `from` may be overwritten where it streams.
template <typename T>
HWY_NOINLINE void store_line(scalar type, T *from, void *base, int64_t at, int64_t step,
                             int64_t count, bool stream) {
    if constexpr (std::is_same_v<T, float>)
        if (step == 1) {
            char *to = address(type, base, at);
            if (!stream) return convert::store_row(type, from, to, count);
            // In place: a narrow element never lies behind its wide one.
            if (type != scalar::f32) convert::store_row(type, from, from, count);
            return stream_bytes(reinterpret_cast<const char *>(from), to,
                                count * scalar_bytes(type));
        }
    switch (type) {
    case scalar::f64: return scatter<as_f64>(from, base, at, step, count);
    case scalar::f32: return scatter<as_f32>(from, base, at, step, count);
    case scalar::f16: return scatter<as_f16>(from, base, at, step, count);
    default: return scatter<as_bf16>(from, base, at, step, count);
    }
}

inline HWY_NOINLINE void zero_line(scalar type, void *base, int64_t at, int64_t step,
                                   int64_t count) {
    const auto size = static_cast<size_t>(scalar_bytes(type));
    char *to = address(type, base, at);
    if (step == 1) {
        std::memset(to, 0, size * static_cast<size_t>(count));
        return;
    }
    for (int64_t i = 0; i < count; ++i)
        std::memset(to + i * step * static_cast<int64_t>(size), 0, size);
}

} // namespace conv1d_simd
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
