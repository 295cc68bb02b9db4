// The activation of the SIMD kernels of conv1d, one for all of them, compiled once per level.
//
// With a = min(|p|, clamp) and E = e^-a * 2^lift, where the lift keeps E a normal number:
//   SiLU(p) = p / (1 + e^-a) for p >= 0,   -a * E * 2^-lift / (1 + e^-a) for p < 0
// so that nothing overflows and a result loses bits only when it is itself subnormal.
// What is rounded to 16 bits behind it takes a shorter series and a reciprocal instead of a
// division: relative error 2^-16, a sixteenth of what the rounding of f16 does.
#if defined(PLAIT_LIB_CPU_CONV1D_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#    ifdef PLAIT_LIB_CPU_CONV1D_SIMD_MATH_INL_H_
#        undef PLAIT_LIB_CPU_CONV1D_SIMD_MATH_INL_H_
#    else
#        define PLAIT_LIB_CPU_CONV1D_SIMD_MATH_INL_H_
#    endif

#    include <cstdint>
#    include <hwy/highway.h>
#    include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T> using tag = hn::ScalableTag<T>;
template <typename T> using vec = hn::Vec<tag<T>>;
template <typename T> HWY_INLINE int64_t lanes() {
    return static_cast<int64_t>(hn::Lanes(tag<T>()));
}

template <typename T> struct exp_constants;
/// For results that are rounded to 16 bits.
template <typename T> struct exp_constants_narrow;

template <> struct exp_constants<float> {
    static constexpr float clamp = 131;     ///< a * e^-a is 0 in f32
    static constexpr float drop = 0x1p-64f; ///< undoes the lift
    /// The sum with it is rounded to an integer, whose low bits then stand in the mantissa, the
    /// exponent of the lift added.
    static constexpr float round = 0x1.8p23f + 64;
    static constexpr int mantissa = 23;
    static constexpr float log2e = 0x1.715476p+0f;
    static constexpr float ln2_hi = 0x1.62e4p-1f; ///< its product with the integer is exact
    static constexpr float ln2_lo = 0x1.7f7d1cp-20f;
    /// e^r = 1 + r * (c[0] + c[1] r + ...) on |r| <= ln2 / 2, relative error 3e-8 (Remez).
    static constexpr int terms = 6;
    static constexpr float c[terms] = {1.0f,           0x1.000002p-1f, 0x1.5553cp-3f,
                                       0x1.55515cp-5f, 0x1.1290a4p-7f, 0x1.709c9cp-10f};
};

template <> struct exp_constants_narrow<float> : exp_constants<float> {
    /// Chebyshev, relative error 7e-6.
    static constexpr int terms = 4;
    static constexpr float c[terms] = {0x1.fffe04p-1f, 0x1.ffff56p-2f, 0x1.57647cp-3f,
                                       0x1.56b48cp-5f};
    static constexpr float ln2 = 0x1.62e43p-1f; ///< its product with the integer: error 5e-6
};

template <> struct exp_constants<double> {
    static constexpr double clamp = 800;
    static constexpr double drop = 0x1p-256;
    static constexpr double round = 0x1.8p52 + 256;
    static constexpr int mantissa = 52;
    static constexpr double log2e = 0x1.71547652b82fep+0;
    static constexpr double ln2_hi = 0x1.62e42fefap-1;
    static constexpr double ln2_lo = 0x1.cf79abc9e3b3ap-40;
    /// 1 / n!: the remainder is below 4e-18.
    static constexpr int terms = 13;
    static constexpr double c[terms] = {1.0,
                                        1.0 / 2,
                                        1.0 / 6,
                                        1.0 / 24,
                                        1.0 / 120,
                                        1.0 / 720,
                                        1.0 / 5040,
                                        1.0 / 40320,
                                        1.0 / 362880,
                                        1.0 / 3628800,
                                        1.0 / 39916800,
                                        1.0 / 479001600,
                                        1.0 / 6227020800.0};
};

template <typename k> constexpr auto term(int i) { return i % 2 == 0 ? -k::c[i] : k::c[i]; }

/// A few vectors that take each step together: the sums of one wait for one another, those of
/// several fill the pipes.
template <typename T, int n> struct pack { vec<T> v[n]; };

/// e^-a * 2^lift for 0 <= a <= clamp.
template <typename k, typename T, int n> HWY_INLINE pack<T, n> lifted_exp(const pack<T, n> &a) {
    constexpr bool narrow = std::is_same_v<k, exp_constants_narrow<T>>;
    const tag<T> d;
    const hn::RebindToSigned<tag<T>> di;
    const vec<T> shifter = hn::Set(d, k::round);
    pack<T, n> bits, r, poly;
    for (int i = 0; i < n; ++i) bits.v[i] = hn::NegMulAdd(a.v[i], hn::Set(d, k::log2e), shifter);
    for (int i = 0; i < n; ++i) poly.v[i] = hn::Sub(bits.v[i], shifter); // the integer
    if constexpr (narrow) {
        for (int i = 0; i < n; ++i) r.v[i] = hn::MulAdd(poly.v[i], hn::Set(d, k::ln2), a.v[i]);
    } else {
        for (int i = 0; i < n; ++i) r.v[i] = hn::MulAdd(poly.v[i], hn::Set(d, k::ln2_hi), a.v[i]);
        for (int i = 0; i < n; ++i) r.v[i] = hn::MulAdd(poly.v[i], hn::Set(d, k::ln2_lo), r.v[i]);
    }
    // e^-r by the series with alternating signs, so that no step negates.
    for (int i = 0; i < n; ++i) poly.v[i] = hn::Set(d, term<k>(k::terms - 1));
    for (int t = k::terms - 2; t >= 0; --t)
        for (int i = 0; i < n; ++i)
            poly.v[i] = hn::MulAdd(poly.v[i], r.v[i], hn::Set(d, term<k>(t)));
    for (int i = 0; i < n; ++i) poly.v[i] = hn::MulAdd(poly.v[i], r.v[i], hn::Set(d, T(1)));
    for (int i = 0; i < n; ++i) {
        const auto exponent = hn::ShiftLeft<k::mantissa>(hn::BitCast(di, bits.v[i]));
        poly.v[i] = hn::BitCast(d, hn::Add(hn::BitCast(di, poly.v[i]), exponent));
    }
    return poly;
}

template <typename T, int n> HWY_INLINE pack<T, n> magnitude(const pack<T, n> &p) {
    const tag<T> d;
    pack<T, n> a;
    for (int i = 0; i < n; ++i)
        a.v[i] = hn::Min(hn::Abs(p.v[i]), hn::Set(d, exp_constants<T>::clamp));
    return a;
}

/// narrow: the result is rounded to 16 bits.
template <bool narrow, typename T, int n> HWY_INLINE pack<T, n> silu(const pack<T, n> &p) {
    using k = std::conditional_t<narrow, exp_constants_narrow<T>, exp_constants<T>>;
    const tag<T> d;
    const vec<T> drop = hn::Set(d, k::drop), one = hn::Set(d, T(1));
    const pack<T, n> a = magnitude<T, n>(p), e = lifted_exp<k, T, n>(a);
    pack<T, n> y;
    for (int i = 0; i < n; ++i) {
        const vec<T> below = hn::Mul(hn::Mul(a.v[i], e.v[i]), hn::Neg(drop));
        const auto negative = hn::Lt(p.v[i], hn::Zero(d));
        const vec<T> top = hn::IfThenElse(negative, below, p.v[i]); // NaN stays p
        const vec<T> bottom = hn::MulAdd(e.v[i], drop, one);
        if constexpr (narrow) {
            // One step of Newton; bottom lies between 1 and 2.
            const vec<T> near = hn::ApproximateReciprocal(bottom);
            const vec<T> twice = hn::NegMulAdd(bottom, near, hn::Set(d, T(2)));
            y.v[i] = hn::Mul(top, hn::Mul(near, twice));
        } else {
            y.v[i] = hn::Div(top, bottom);
        }
    }
    return y;
}

/// The derivative of SiLU: s * (1 + p * (1 - s)) with s = sigmoid(p).
template <typename T, int n> HWY_INLINE pack<T, n> silu_slope(const pack<T, n> &p) {
    const tag<T> d;
    const vec<T> one = hn::Set(d, T(1)), drop = hn::Set(d, exp_constants<T>::drop);
    const pack<T, n> lifted = lifted_exp<exp_constants<T>, T, n>(magnitude<T, n>(p));
    pack<T, n> y;
    for (int i = 0; i < n; ++i) {
        const vec<T> e = hn::Mul(lifted.v[i], drop);
        // s for |p| and its complement, without cancellation.
        const vec<T> large = hn::Div(one, hn::Add(one, e));
        const vec<T> small = hn::Mul(e, large);
        const auto negative = hn::Lt(p.v[i], hn::Zero(d));
        const vec<T> s = hn::IfThenElse(negative, small, large);
        const vec<T> rest = hn::IfThenElse(negative, large, small);
        y.v[i] = hn::Mul(s, hn::MulAdd(p.v[i], rest, one));
    }
    return y;
}

} // namespace conv1d_simd
} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#endif
