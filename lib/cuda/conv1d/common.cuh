// Elements, taps and the activation of all convolution kernels. Products and sums are written as
// instructions, so that the compiler fuses none: every kernel gives the same bits.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/conv1d/common_layout.h"

#ifndef __CUDACC__
#    include <cmath>
#endif

namespace plait::impl::cuda {

__device__ __forceinline__ float conv1d_fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
__device__ __forceinline__ double conv1d_fma(double a, double b, double c) {
    return __fma_rn(a, b, c);
}
__device__ __forceinline__ float conv1d_mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double conv1d_mul(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float conv1d_add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double conv1d_add(double a, double b) { return __dadd_rn(a, b); }

/// The value is computed here: the compiler neither moves it to its use nor computes it again.
template <class T> __device__ __forceinline__ void conv1d_pin(T &v) {
#ifdef __CUDACC__
    if constexpr (sizeof(T) == 8) {
        asm volatile("" : "+l"(v));
    } else {
        asm volatile("" : "+r"(v));
    }
#else
    (void)v;
#endif
}

// ---- Elements whose type is known at run time ------------------------------------------------

/// One element; T = float holds all types but f64.
template <class T>
__device__ __forceinline__ T conv1d_load(const void *base, int64_t index, scalar type) {
    if constexpr (sizeof(T) == 8) {
        if (type == scalar::f64) return static_cast<const double *>(base)[index];
    }
    if (type == scalar::f32) return static_cast<const float *>(base)[index];
    const uint16_t bits = static_cast<const uint16_t *>(base)[index];
    return type == scalar::bf16 ? widen<scalar::bf16>(bits) : widen<scalar::f16>(bits);
}

/// f64 to f32 toward zero with the last bit set when that was not exact: a second rounding, to 16
/// bits, then gives what one rounding would.
__device__ __forceinline__ float conv1d_round_to_odd(double v) {
#ifdef __CUDACC__
    const float f = __double2float_rz(v);
    if (static_cast<double>(f) == v) return f;
    return __uint_as_float(__float_as_uint(f) | 1u);
#else
    float f = static_cast<float>(v);
    if (static_cast<double>(f) == v || f != f) return f;
    if (std::fabs(static_cast<double>(f)) > std::fabs(v)) f = std::nextafter(f, 0.0f);
    return __uint_as_float(__float_as_uint(f) | 1u);
#endif
}

/// One element, rounded once.
template <class T>
__device__ __forceinline__ void conv1d_store(void *base, int64_t index, scalar type, T value) {
    if (type == scalar::f32) {
        static_cast<float *>(base)[index] = static_cast<float>(value);
        return;
    }
    float narrow;
    if constexpr (sizeof(T) == 8) {
        if (type == scalar::f64) {
            static_cast<double *>(base)[index] = value;
            return;
        }
        narrow = conv1d_round_to_odd(value);
    } else {
        narrow = value;
    }
    static_cast<uint16_t *>(base)[index] =
        type == scalar::bf16 ? round_half<scalar::bf16>(narrow) : round_half<scalar::f16>(narrow);
}

/// The bits of an element, for copies between tensors of one type.
__device__ __forceinline__ uint64_t conv1d_load_bits(const void *base, int64_t index, scalar type) {
    if (type == scalar::f64) return static_cast<const uint64_t *>(base)[index];
    if (type == scalar::f32) return static_cast<const uint32_t *>(base)[index];
    return static_cast<const uint16_t *>(base)[index];
}

__device__ __forceinline__ void conv1d_store_bits(void *base, int64_t index, scalar type,
                                                  uint64_t bits) {
    if (type == scalar::f64) {
        static_cast<uint64_t *>(base)[index] = bits;
    } else if (type == scalar::f32) {
        static_cast<uint32_t *>(base)[index] = static_cast<uint32_t>(bits);
    } else {
        static_cast<uint16_t *>(base)[index] = static_cast<uint16_t>(bits);
    }
}

__device__ __forceinline__ double conv1d_widen_bits(uint64_t bits, scalar type) {
    if (type == scalar::f64) return __longlong_as_double(static_cast<long long>(bits));
    if (type == scalar::f32) return __uint_as_float(static_cast<uint32_t>(bits));
    const uint16_t half = static_cast<uint16_t>(bits);
    return type == scalar::bf16 ? widen<scalar::bf16>(half) : widen<scalar::f16>(half);
}

// ---- Activation ------------------------------------------------------------------------------

/// 1 / (1 + e^-p) in six issue slots with the product of SiLU, for results of 16 bits: a few 2^-22
/// of its value. Both terms of the sum are divided by 2^15, so that it does not overflow before
/// p times the result is less than half of bf16's smallest number.
__device__ __forceinline__ float conv1d_fast_sigmoid(float p) {
    const float power = __fmaf_rn(p, -1.4426950408889634f, -15.0f); // log2(e)
    float e, r;
#ifdef __CUDACC__
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(power));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(__fadd_rn(e, 0x1p-15f)));
#else
    e = std::exp2(power);
    r = 1.0f / (e + 0x1p-15f);
#endif
    return __fmul_rn(r, 0x1p-15f);
}

/// e^(-|p|/2), which does not underflow where p times its square is still a normal number.
__device__ __forceinline__ float conv1d_half_decay(float p) {
    return expf(__fmul_rn(fabsf(p), -0.5f));
}
__device__ __forceinline__ double conv1d_half_decay(double p) {
    return exp(__dmul_rn(fabs(p), -0.5));
}

__device__ __forceinline__ float conv1d_divide(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double conv1d_divide(double a, double b) { return a / b; }

/// p * sigmoid(p) for any p: with h = e^(-|p|/2) it is p / (1 + h h), times h h where p < 0.
/// Fast where y has 16 bits. p = -Inf gives NaN.
template <bool Fast, class T> __device__ __forceinline__ T conv1d_silu(T p) {
    if constexpr (Fast) {
        return __fmul_rn(p, conv1d_fast_sigmoid(p));
    } else {
        const T h = conv1d_half_decay(p);
        const T q = conv1d_divide(p, conv1d_fma(h, h, T(1)));
        const T down = p < T(0) ? h : T(1);
        return conv1d_mul(conv1d_mul(q, down), down);
    }
}

/// What follows the taps, before the rounding to y.
template <bool Fast, class T>
__device__ __forceinline__ T conv1d_finish(T pre, bool silu, bool residual, T x) {
    T y = pre;
    if (silu) y = conv1d_silu<Fast>(pre);
    if (residual) y = conv1d_add(y, x);
    return y;
}

} // namespace plait::impl::cuda
