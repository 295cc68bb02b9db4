// Register-level pieces of wht.simd, compiled once per instruction level: stages between lanes of a
// vector and between 2^k vectors held in registers. Stages always run from the lowest bit up, here
// and in every pass, so each output is the same tree of sums at every level and for every blocking.
#if defined(PLAIT_LIB_CPU_WHT_SIMD_REGISTERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_WHT_SIMD_REGISTERS_INL_H_
#        undef PLAIT_LIB_CPU_WHT_SIMD_REGISTERS_INL_H_
#    else
#        define PLAIT_LIB_CPU_WHT_SIMD_REGISTERS_INL_H_
#    endif

#    include <cstddef>
#    include <cstdint>
#    include <hwy/highway.h>
#    include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T> using tag = hn::ScalableTag<T>;
template <typename T> using vec = hn::Vec<tag<T>>;

template <typename T> constexpr int64_t lanes = HWY_LANES(T);

constexpr int log2_ct(int64_t n) { return n <= 1 ? 0 : 1 + log2_ct(n / 2); }

/// Stages that happen between the lanes of one vector.
template <typename T> constexpr int lane_bits = log2_ct(lanes<T>);

#    if HWY_TARGET != HWY_SCALAR
/// Lanes i and i xor 2^bit exchanged.
template <int bit, typename T> HWY_INLINE vec<T> partner(vec<T> v) {
    constexpr int byte_bit = bit + (sizeof(T) == 8 ? 1 : 0);
    if constexpr (byte_bit == 0)
        return hn::Shuffle2301(v);
    else if constexpr (byte_bit == 1) {
        if constexpr (sizeof(T) == 8)
            return hn::Shuffle01(v);
        else
            return hn::Shuffle1032(v);
    } else if constexpr (byte_bit == 2)
        return hn::SwapAdjacentBlocks(v);
    else
        return hn::ConcatLowerUpper(tag<T>(), v, v);
}
#    endif

/// What turns v into -v in the lanes whose index has the stage's bit: factors of +-1 where the
/// machine fuses multiply and add, else sign bits (floats) or all ones (integers).
template <typename T> struct lane_signs {
    vec<T> of[4];

    HWY_INLINE lane_signs() {
        const tag<T> d;
        HWY_ALIGN T row[lanes<T>];
        for (int bit = 0; bit < lane_bits<T>; ++bit) {
            for (int64_t i = 0; i < lanes<T>; ++i) row[i] = entry((i >> bit & 1) != 0);
            of[bit] = hn::Load(d, row);
        }
        for (int bit = lane_bits<T>; bit < 4; ++bit) of[bit] = hn::Zero(d);
    }

    static constexpr bool fused = !std::is_integral_v<T> && HWY_NATIVE_FMA;

    static T entry(bool negative) {
        if constexpr (fused)
            return negative ? T(-1) : T(1);
        else if constexpr (std::is_integral_v<T>)
            return negative ? T(-1) : T(0);
        else
            return negative ? T(-0.0) : T(0);
    }
};

/// The stage of one lane bit within a vector.
template <int bit, typename T> HWY_INLINE vec<T> butterfly_lanes(const lane_signs<T> &s, vec<T> v) {
#    if HWY_TARGET != HWY_SCALAR
    const vec<T> other = partner<bit, T>(v);
    if constexpr (lane_signs<T>::fused)
        return hn::MulAdd(v, s.of[bit], other);
    else if constexpr (std::is_integral_v<T>)
        return hn::Add(hn::Sub(hn::Xor(v, s.of[bit]), s.of[bit]), other);
    else
        return hn::Add(hn::Xor(v, s.of[bit]), other);
#    else
    (void)s;
    return v;
#    endif
}

/// 2^bits vectors as a tree of named values, so that no loop must be unrolled and no array be
/// taken apart for them to stay in registers. Stages go over all vectors one after the other: what
/// stands next to each other is independent, which a small scheduling window needs.
template <typename T, int bits> struct registers {
    registers<T, bits - 1> lo, hi;

    HWY_INLINE void read(const T *p, int64_t h) {
        lo.read(p, h);
        hi.read(p + (h << (bits - 1)), h);
    }
    template <int bit> HWY_INLINE void lane_stage(const lane_signs<T> &s) {
        lo.template lane_stage<bit>(s);
        hi.template lane_stage<bit>(s);
    }
    /// Lane bits 0..count-1.
    template <int count, int bit = 0> HWY_INLINE void lane_stages(const lane_signs<T> &s) {
        if constexpr (bit < count) {
            lane_stage<bit>(s);
            lane_stages<count, bit + 1>(s);
        }
    }
    template <int level> HWY_INLINE void stage() {
        if constexpr (level == bits - 1) {
            lo.combine(hi);
        } else {
            lo.template stage<level>();
            hi.template stage<level>();
        }
    }
    /// All stages between the vectors.
    template <int level = 0> HWY_INLINE void stages() {
        if constexpr (level < bits) {
            stage<level>();
            stages<level + 1>();
        }
    }
    HWY_INLINE void combine(registers &other) {
        lo.combine(other.lo);
        hi.combine(other.hi);
    }
    template <bool scaled> HWY_INLINE void store(T *p, int64_t h, vec<T> scale) const {
        lo.template store<scaled>(p, h, scale);
        hi.template store<scaled>(p + (h << (bits - 1)), h, scale);
    }
};

template <typename T> struct registers<T, 0> {
    vec<T> v;

    HWY_INLINE void read(const T *p, int64_t) { v = hn::LoadU(tag<T>(), p); }
    template <int bit> HWY_INLINE void lane_stage(const lane_signs<T> &s) {
        v = butterfly_lanes<bit, T>(s, v);
    }
    template <int count, int bit = 0> HWY_INLINE void lane_stages(const lane_signs<T> &s) {
        if constexpr (bit < count) {
            lane_stage<bit>(s);
            lane_stages<count, bit + 1>(s);
        }
    }
    template <int level = 0> HWY_INLINE void stages() {}
    HWY_INLINE void combine(registers &other) {
        const vec<T> sum = hn::Add(v, other.v);
        other.v = hn::Sub(v, other.v);
        v = sum;
    }
    template <bool scaled> HWY_INLINE void store(T *p, int64_t, vec<T> scale) const {
        if constexpr (scaled)
            hn::StoreU(hn::Mul(v, scale), tag<T>(), p);
        else
            hn::StoreU(v, tag<T>(), p);
        (void)scale;
    }
};

} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
