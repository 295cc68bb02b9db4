// The derivative of SiLU: dy * s * (1 + pre * (1 - s)), s = sigmoid(pre). Finite for finite pre.
#pragma once

#include <cmath>
#include <cstdint>

namespace plait::impl::cuda {

/// Both ends of the sigmoid by exp(-|pre|), which cannot overflow: s and 1 - s keep their relative
/// accuracy.
template <class A> __device__ __forceinline__ A silu_gradient(A dy, A pre) {
    const A e = exp(pre < A(0) ? pre : -pre);
    const A r = A(1) / (A(1) + e);
    const A s = pre < A(0) ? e * r : r;
    const A rest = pre < A(0) ? r : e * r;
    return dy * s * (A(1) + pre * rest);
}

/// For results that are rounded to 16 bits: two special-function operations. Where exp overflows,
/// s is 0 and the product finite.
__device__ __forceinline__ float silu_gradient_fast(float dy, float pre) {
#ifdef __CUDACC__
    float e, s;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(pre * -1.4426950408889634f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s) : "f"(1.0f + e));
#else
    const float e = std::exp2(pre * -1.4426950408889634f);
    const float s = 1.0f / (1.0f + e);
#endif
    return dy * s * __fmaf_rn(pre, 1.0f - s, 1.0f);
}

} // namespace plait::impl::cuda
