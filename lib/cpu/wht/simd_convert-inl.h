// 16-bit floats to and from f32 for wht.simd, compiled once per instruction level: hardware
// conversions where they exist, else the same rounding (to nearest even, subnormals kept) in
// integer arithmetic on vectors; single elements at the end go through lib/common/half.h.
#if defined(PLAIT_LIB_CPU_WHT_SIMD_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_WHT_SIMD_CONVERT_INL_H_
#        undef PLAIT_LIB_CPU_WHT_SIMD_CONVERT_INL_H_
#    else
#        define PLAIT_LIB_CPU_WHT_SIMD_CONVERT_INL_H_
#    endif

#    include "lib/common/half.h"
#    include "lib/common/scalar.h"

#    include <cstdint>
#    include <cstring>
#    include <hwy/highway.h>

#    undef PLAIT_F16_HARDWARE
#    if !defined(HWY_DISABLE_F16C) &&                                                              \
        (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)
#        define PLAIT_F16_HARDWARE 1
#    else
#        define PLAIT_F16_HARDWARE 0
#    endif

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace convert {
namespace hn = hwy::HWY_NAMESPACE;

using f32_tag = hn::ScalableTag<float>;
using u32_tag = hn::RebindToUnsigned<f32_tag>;
using i32_tag = hn::RebindToSigned<f32_tag>;
using u16_tag = hn::Rebind<uint16_t, f32_tag>;
using f32_vec = hn::Vec<f32_tag>;
using u32_vec = hn::Vec<u32_tag>;

HWY_INLINE u32_vec load16(const uint16_t *p) {
    return hn::PromoteTo(u32_tag(), hn::LoadU(u16_tag(), p));
}

/// Every lane at most 0xffff.
HWY_INLINE void store16(u32_vec v, uint16_t *p) {
    hn::StoreU(hn::DemoteTo(u16_tag(), hn::BitCast(i32_tag(), v)), u16_tag(), p);
}

HWY_INLINE f32_vec from_bf16(const uint16_t *p) {
    return hn::BitCast(f32_tag(), hn::ShiftLeft<16>(load16(p)));
}

HWY_INLINE void to_bf16(f32_vec v, uint16_t *p) {
    const u32_tag d;
    const u32_vec u = hn::BitCast(d, v);
    const u32_vec upper = hn::ShiftRight<16>(u);
    const u32_vec odd = hn::And(upper, hn::Set(d, 1u));
    const u32_vec rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(d, 0x7fffu))));
    const u32_vec quiet = hn::Or(upper, hn::Set(d, 0x40u));
    // As integers: the comparison v != v is false for NaN on some levels.
    const auto magnitude = hn::BitCast(i32_tag(), hn::And(u, hn::Set(d, 0x7fffffffu)));
    const auto is_nan = hn::Gt(magnitude, hn::Set(i32_tag(), 0x7f800000));
    store16(hn::IfThenElse(hn::RebindMask(d, is_nan), quiet, rounded), p);
}

HWY_INLINE f32_vec from_f16(const uint16_t *p) {
#    if PLAIT_F16_HARDWARE
    const hn::Rebind<hwy::float16_t, f32_tag> d16;
    return hn::PromoteTo(f32_tag(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t *>(p)));
#    else
    const f32_tag df;
    const u32_tag d;
    const u32_vec h = load16(p);
    const u32_vec sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(d, 0x8000u)));
    // Exponent and mantissa in place, the exponent too small by 127 - 15: one exact product mends
    // normal and subnormal numbers alike.
    const u32_vec rest = hn::ShiftLeft<13>(hn::And(h, hn::Set(d, 0x7fffu)));
    const u32_vec finite = hn::BitCast(d, hn::Mul(hn::BitCast(df, rest), hn::Set(df, 0x1p112f)));
    const auto special = hn::Gt(hn::BitCast(i32_tag(), rest), hn::Set(i32_tag(), 0x0f7fffff));
    const u32_vec nan_or_inf = hn::Or(rest, hn::Set(d, 0x7f800000u));
    const auto is_nan = hn::Gt(hn::BitCast(i32_tag(), rest), hn::Set(i32_tag(), 0x0f800000));
    const u32_vec quiet =
        hn::Or(nan_or_inf, hn::IfThenElseZero(hn::RebindMask(d, is_nan), hn::Set(d, 0x00400000u)));
    return hn::BitCast(df, hn::Or(sign, hn::IfThenElse(hn::RebindMask(d, special), quiet, finite)));
#    endif
}

HWY_INLINE void to_f16(f32_vec v, uint16_t *p) {
#    if PLAIT_F16_HARDWARE
    const hn::Rebind<hwy::float16_t, f32_tag> d16;
    hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t *>(p));
#    else
    const f32_tag df;
    const u32_tag d;
    const i32_tag di;
    const u32_vec u = hn::BitCast(d, v);
    const u32_vec sign = hn::ShiftRight<16>(hn::And(u, hn::Set(d, 0x80000000u)));
    const u32_vec rest = hn::And(u, hn::Set(d, 0x7fffffffu));
    // Normal results: rebias, then round the 13 dropped bits; a carry may reach Inf by itself.
    const u32_vec odd = hn::And(hn::ShiftRight<13>(rest), hn::Set(d, 1u));
    const u32_vec rebiased = hn::Sub(rest, hn::Set(d, 0x38000000u - 0xfffu));
    const u32_vec normal = hn::ShiftRight<13>(hn::Add(rebiased, odd));
    // Results below 2^-14: adding 0.5 puts the last mantissa bit at 2^-24, and the sum rounds.
    const f32_vec half = hn::Set(df, 0.5f);
    const u32_vec small =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, rest), half)), hn::BitCast(d, half));
    const auto signed_rest = hn::BitCast(di, rest);
    const auto is_small = hn::Lt(signed_rest, hn::Set(di, 0x38800000)); // 2^-14
    const auto is_large = hn::Gt(signed_rest, hn::Set(di, 0x477fffff)); // 65536 and above
    const auto is_nan = hn::Gt(signed_rest, hn::Set(di, 0x7f800000));
    const u32_vec payload =
        hn::Or(hn::Set(d, 0x7e00u), hn::And(hn::ShiftRight<13>(rest), hn::Set(d, 0x3ffu)));
    u32_vec r = hn::IfThenElse(hn::RebindMask(d, is_small), small, normal);
    r = hn::IfThenElse(hn::RebindMask(d, is_large), hn::Set(d, 0x7c00u), r);
    r = hn::IfThenElse(hn::RebindMask(d, is_nan), payload, r);
    store16(hn::Or(sign, r), p);
#    endif
}

/// `count` elements of a stored type to f32.
inline HWY_NOINLINE void load_row(scalar type, const void *from, float *to, int64_t count) {
    const f32_tag d;
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));
    const uint16_t *p = static_cast<const uint16_t *>(from);
    int64_t i = 0;
    if (type == scalar::f16) {
        for (; i + step <= count; i += step) hn::StoreU(from_f16(p + i), d, to + i);
        for (; i < count; ++i) to[i] = f16_to_f32(p[i]);
    } else if (type == scalar::bf16) {
        for (; i + step <= count; i += step) hn::StoreU(from_bf16(p + i), d, to + i);
        for (; i < count; ++i) to[i] = bf16_to_f32(p[i]);
    } else {
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    }
}

inline HWY_NOINLINE void store_row(scalar type, const float *from, void *to, int64_t count) {
    const f32_tag d;
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));
    uint16_t *p = static_cast<uint16_t *>(to);
    int64_t i = 0;
    if (type == scalar::f16) {
        for (; i + step <= count; i += step) to_f16(hn::LoadU(d, from + i), p + i);
        for (; i < count; ++i) p[i] = f32_to_f16(from[i]);
    } else if (type == scalar::bf16) {
        for (; i + step <= count; i += step) to_bf16(hn::LoadU(d, from + i), p + i);
        for (; i < count; ++i) p[i] = f32_to_bf16(from[i]);
    } else {
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    }
}

} // namespace convert
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
