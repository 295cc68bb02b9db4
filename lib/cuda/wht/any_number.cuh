// Numbers of wht.any: additions, stored forms, and what is applied on the way in and out.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/wht/any_layout.h"

#include <type_traits>

namespace plait::impl::cuda {

template <class T> struct wht_pair { T re, im; };

/// Integers whose additions say when a result does not fit. If an addition of a butterfly does not
/// fit, neither does some final result: the largest magnitude never shrinks over a whole stage.
template <class I> struct wht_checked { I v; };

template <wht_any_number N> struct wht_any_type;
template <> struct wht_any_type<wht_any_number::f32> { using type = float; };
template <> struct wht_any_type<wht_any_number::f64> { using type = double; };
template <> struct wht_any_type<wht_any_number::c64> { using type = wht_pair<float>; };
template <> struct wht_any_type<wht_any_number::c128> { using type = wht_pair<double>; };
template <> struct wht_any_type<wht_any_number::i32> { using type = uint32_t; };
template <> struct wht_any_type<wht_any_number::i64> { using type = uint64_t; };
template <> struct wht_any_type<wht_any_number::checked32> { using type = wht_checked<int32_t>; };
template <> struct wht_any_type<wht_any_number::checked64> { using type = wht_checked<int64_t>; };

// ---- Additions; `lost`: a result did not fit -------------------------------------------------

template <class T> __device__ __forceinline__ void wht_butterfly(T &a, T &b, bool &) {
    const T u = a, v = b;
    a = u + v;
    b = u - v;
}
template <class T>
__device__ __forceinline__ void wht_butterfly(wht_pair<T> &a, wht_pair<T> &b, bool &lost) {
    wht_butterfly(a.re, b.re, lost);
    wht_butterfly(a.im, b.im, lost);
}
template <class I>
__device__ __forceinline__ void wht_butterfly(wht_checked<I> &a, wht_checked<I> &b, bool &lost) {
    using U = std::make_unsigned_t<I>;
    const auto u = static_cast<U>(a.v), v = static_cast<U>(b.v);
    const U sum = u + v, difference = u - v;
    lost |= static_cast<I>(((sum ^ u) & (sum ^ v)) | ((u ^ v) & (u ^ difference))) < 0;
    a.v = static_cast<I>(sum);
    b.v = static_cast<I>(difference);
}

/// A signed sum of up to 2^32 numbers; only the whole sum must fit.
template <class T> struct wht_sum {
    T value = T(0);
    __device__ __forceinline__ void add(T v, bool minus) { value = minus ? value - v : value + v; }
    __device__ __forceinline__ T result(bool &) const { return value; }
};
template <class T> struct wht_sum<wht_pair<T>> {
    wht_sum<T> re, im;
    __device__ __forceinline__ void add(wht_pair<T> v, bool minus) {
        re.add(v.re, minus);
        im.add(v.im, minus);
    }
    __device__ __forceinline__ wht_pair<T> result(bool &) const { return {re.value, im.value}; }
};
template <> struct wht_sum<wht_checked<int32_t>> {
    int64_t value = 0;
    __device__ __forceinline__ void add(wht_checked<int32_t> v, bool minus) {
        value += minus ? -int64_t{v.v} : int64_t{v.v};
    }
    __device__ __forceinline__ wht_checked<int32_t> result(bool &lost) const {
        lost |= value != static_cast<int32_t>(value);
        return {static_cast<int32_t>(value)};
    }
};
template <> struct wht_sum<wht_checked<int64_t>> {
    uint64_t low = 0; // with `high`: modulo 2^96
    int32_t high = 0;
    __device__ __forceinline__ void add(wht_checked<int64_t> number, bool minus) {
        const auto v = static_cast<uint64_t>(number.v);
        const uint64_t sum = minus ? low - v : low + v;
        const int carry = minus ? -static_cast<int>(low < v) : static_cast<int>(sum < low);
        const int sign = number.v < 0 ? -1 : 0;
        high += carry + (minus ? -sign : sign);
        low = sum;
    }
    __device__ __forceinline__ wht_checked<int64_t> result(bool &lost) const {
        lost |= high != (static_cast<int64_t>(low) < 0 ? -1 : 0);
        return {static_cast<int64_t>(low)};
    }
};

template <class T> __device__ __forceinline__ T wht_negative(T v, bool &) {
    if constexpr (std::is_floating_point_v<T>) {
        return -v;
    } else {
        return T(0) - v;
    }
}
template <class T> __device__ __forceinline__ wht_pair<T> wht_negative(wht_pair<T> v, bool &) {
    return {-v.re, -v.im};
}
template <class I>
__device__ __forceinline__ wht_checked<I> wht_negative(wht_checked<I> number, bool &lost) {
    using U = std::make_unsigned_t<I>;
    const I v = static_cast<I>(U(0) - static_cast<U>(number.v));
    lost |= number.v < 0 && v < 0; // the smallest number has no negative
    return {v};
}

// ---- Stored forms ----------------------------------------------------------------------------

/// Rounded once: to odd as F32, which has bits to spare, then to nearest even.
template <scalar S> __device__ __forceinline__ uint16_t wht_round_half(double v) {
#ifdef __CUDACC__
    const float cut = __double2float_rz(v);
    const uint32_t odd = static_cast<double>(cut) != v ? 1u : 0u; // NaN stays NaN
    return round_half<S>(__uint_as_float(__float_as_uint(cut) | odd));
#else
    return S == scalar::f16 ? f64_to_f16(v) : f64_to_bf16(v);
#endif
}
template <scalar S> __device__ __forceinline__ uint16_t wht_round_half(float v) {
    return round_half<S>(v);
}

/// An element of X or Y as stored in S.
template <scalar S, class T> struct wht_any_stored {
    static __device__ __forceinline__ T load(const void *base, int64_t i, bool) {
        const auto *p = static_cast<const typename stored<S>::bits *>(base) + i;
        return static_cast<T>(widen<S>(__ldcs(p)));
    }
    static __device__ __forceinline__ void store(void *base, int64_t i, T v, bool, bool &) {
        auto *p = static_cast<typename stored<S>::bits *>(base) + i;
        if constexpr (S == scalar::f64) {
            __stcs(p, static_cast<uint64_t>(__double_as_longlong(static_cast<double>(v))));
        } else if constexpr (S == scalar::f32) {
            __stcs(p, __float_as_uint(static_cast<float>(v)));
        } else {
            __stcs(p, wht_round_half<S>(v));
        }
    }
};

/// `paired`: the base is aligned to both parts.
template <class Real, class Pair, class T> struct wht_any_stored_pair {
    static __device__ __forceinline__ wht_pair<T> load(const void *base, int64_t i, bool paired) {
        if (paired) {
            const Pair v = __ldcs(static_cast<const Pair *>(base) + i);
            return {static_cast<T>(v.x), static_cast<T>(v.y)};
        }
        const Real *p = static_cast<const Real *>(base) + 2 * i;
        return {static_cast<T>(__ldcs(p)), static_cast<T>(__ldcs(p + 1))};
    }
    static __device__ __forceinline__ void store(void *base, int64_t i, wht_pair<T> v, bool paired,
                                                 bool &) {
        const Real re = static_cast<Real>(v.re), im = static_cast<Real>(v.im);
        if (paired) {
            Pair both;
            both.x = re, both.y = im;
            __stcs(static_cast<Pair *>(base) + i, both);
            return;
        }
        Real *p = static_cast<Real *>(base) + 2 * i;
        __stcs(p, re);
        __stcs(p + 1, im);
    }
};
template <class T>
struct wht_any_stored<scalar::c64, wht_pair<T>> : wht_any_stored_pair<float, float2, T> {};
template <class T>
struct wht_any_stored<scalar::c128, wht_pair<T>> : wht_any_stored_pair<double, double2, T> {};

template <class T> struct wht_integer {
    // through int64_t, so that the sign goes on: then all is right modulo 2^64
    static __device__ __forceinline__ T from(int64_t v) { return static_cast<T>(v); }
    template <class I> static __device__ __forceinline__ I as(T v, bool &) {
        return static_cast<I>(v);
    }
};
template <class C> struct wht_integer<wht_checked<C>> {
    static __device__ __forceinline__ wht_checked<C> from(int64_t v) {
        return {static_cast<C>(v)}; // C is no narrower than X
    }
    template <class I> static __device__ __forceinline__ I as(wht_checked<C> v, bool &lost) {
        lost |= static_cast<C>(static_cast<I>(v.v)) != v.v;
        return static_cast<I>(v.v);
    }
};

template <class I, class T> struct wht_any_stored_integer {
    static __device__ __forceinline__ T load(const void *base, int64_t i, bool) {
        return wht_integer<T>::from(__ldcs(static_cast<const I *>(base) + i));
    }
    static __device__ __forceinline__ void store(void *base, int64_t i, T v, bool, bool &lost) {
        __stcs(static_cast<I *>(base) + i, wht_integer<T>::template as<I>(v, lost));
    }
};
template <class T> struct wht_any_stored<scalar::i32, T> : wht_any_stored_integer<int32_t, T> {};
template <class T> struct wht_any_stored<scalar::i64, T> : wht_any_stored_integer<int64_t, T> {};

/// Calls `use` with wht_any_stored of the type, among those that go with numbers T.
template <class T> struct wht_any_types {
    template <class Use> static __device__ __forceinline__ void pick(scalar type, Use use) {
        if (type == scalar::i32) {
            use(wht_any_stored<scalar::i32, T>{});
        } else {
            use(wht_any_stored<scalar::i64, T>{});
        }
    }
};
template <class T> struct wht_any_real_types {
    template <class Use> static __device__ __forceinline__ void pick(scalar type, Use use) {
        if (type == scalar::f16) {
            use(wht_any_stored<scalar::f16, T>{});
        } else if (type == scalar::bf16) {
            use(wht_any_stored<scalar::bf16, T>{});
        } else if (type == scalar::f32) {
            use(wht_any_stored<scalar::f32, T>{});
        } else if constexpr (sizeof(T) == 8) { // F64 tensors have F64 numbers
            use(wht_any_stored<scalar::f64, T>{});
        }
    }
};
template <> struct wht_any_types<float> : wht_any_real_types<float> {};
template <> struct wht_any_types<double> : wht_any_real_types<double> {};
template <class T> struct wht_any_types<wht_pair<T>> {
    template <class Use> static __device__ __forceinline__ void pick(scalar type, Use use) {
        if (type == scalar::c64) {
            use(wht_any_stored<scalar::c64, wht_pair<T>>{});
        } else if constexpr (sizeof(T) == 8) {
            use(wht_any_stored<scalar::c128, wht_pair<T>>{});
        }
    }
};

// ---- SIGNS, DIAG, scale ----------------------------------------------------------------------

/// SIGNS: 32 bits to a word.
__device__ __forceinline__ bool wht_sign_at(const void *words, int64_t bit) {
    return __ldg(static_cast<const uint32_t *>(words) + (bit >> 5)) >> (bit & 31) & 1u;
}

template <class T>
__device__ __forceinline__ T wht_times_diag(T v, scalar type, const void *diag, int64_t i, bool) {
    if constexpr (std::is_floating_point_v<T>) {
        wht_any_types<T>::pick(
            type, [&](auto stored_as) { v *= decltype(stored_as)::load(diag, i, false); });
    }
    return v;
}
/// A real coefficient multiplies both parts alone: 0 * Inf of a full product would make NaN.
template <class T>
__device__ __forceinline__ wht_pair<T> wht_times_diag(wht_pair<T> v, scalar type, const void *diag,
                                                      int64_t i, bool conj) {
    if (type == scalar::c64 || type == scalar::c128) {
        wht_pair<T> d{};
        wht_any_types<wht_pair<T>>::pick(
            type, [&](auto stored_as) { d = decltype(stored_as)::load(diag, i, false); });
        if (conj) d.im = -d.im;
        return {v.re * d.re - v.im * d.im, v.re * d.im + v.im * d.re};
    }
    T d = T(1);
    wht_any_types<T>::pick(type,
                           [&](auto stored_as) { d = decltype(stored_as)::load(diag, i, false); });
    return {v.re * d, v.im * d};
}

template <class T> __device__ __forceinline__ T wht_times(T v, double scale) {
    if constexpr (std::is_floating_point_v<T>) v *= static_cast<T>(scale);
    return v;
}
template <class T> __device__ __forceinline__ wht_pair<T> wht_times(wht_pair<T> v, double scale) {
    return {v.re * static_cast<T>(scale), v.im * static_cast<T>(scale)};
}

} // namespace plait::impl::cuda
