// The derivative of SiLU: dy * s * (1 + pre * (1 - s)), s = sigmoid(pre). Finite for finite pre.
#pragma once

#include "lib/cuda/conv1d/common.cuh"

namespace plait::impl::cuda {

/// 1 / v rounded to nearest, for v from 1 to 2: two steps of __frcp_rn without its tests.
__device__ __forceinline__ float conv1d_inverse(float v) {
#ifdef __CUDACC__
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return __fmaf_rn(r, -__fmaf_rn(v, r, -1.0f), r);
#else
    return 1.0f / v;
#endif
}
__device__ __forceinline__ double conv1d_inverse(double v) { return 1.0 / v; }

/// Accurate: s and 1 - s come from the same exp(-|pre|), neither by cancellation.
/// Fast: for results of 16 bits; where s has become 0 the product is finite.
template <bool Fast, class A> __device__ __forceinline__ A conv1d_silu_gradient(A dy, A pre) {
    if constexpr (Fast) {
        const float s = conv1d_fast_sigmoid(pre), product = __fmul_rn(dy, s);
        return __fmaf_rn(product, __fmaf_rn(-pre, s, pre), product);
    } else {
        const A h = conv1d_half_decay(pre);
        const A e = conv1d_mul(h, h);
        const A large = conv1d_inverse(conv1d_add(A(1), e));
        const A small = conv1d_mul(e, large);
        const A s = pre < A(0) ? small : large;
        const A bend = conv1d_fma(pre, pre < A(0) ? large : small, A(1));
        return conv1d_mul(conv1d_mul(dy, s), bend);
    }
}

} // namespace plait::impl::cuda
