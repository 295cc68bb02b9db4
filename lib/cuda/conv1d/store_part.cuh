// Part of a vector of 16 bytes, where a row begins or ends inside of it, without a branch.
#pragma once

#include "lib/cuda/common/convert.cuh"

namespace plait::impl::cuda {

/// Elements of the vector at `base`, a multiple of 16 bytes, whose bit of `mask` is set.
template <scalar S>
__device__ __forceinline__ void conv1d_store_part(typename stored<S>::bits *base, uint32_t mask,
                                                  const float *v) {
    uint32_t *const words = reinterpret_cast<uint32_t *>(base);
    if constexpr (S == scalar::f32) {
        if (mask == 15u) {
            *reinterpret_cast<uint4 *>(base) =
                make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                           __float_as_uint(v[3]));
            mask = 0;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (mask >> i & 1u) words[i] = __float_as_uint(v[i]);
    } else {
        uint32_t w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) w[i] = round_pair<S>(v[2 * i], v[2 * i + 1]);
        if (mask == 255u) {
            *reinterpret_cast<uint4 *>(base) = make_uint4(w[0], w[1], w[2], w[3]);
            mask = 0;
        }
        const uint32_t next = mask >> 1, both = mask & next, low = mask & ~next,
                       high = next & ~mask;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (both >> (2 * i) & 1u) words[i] = w[i];
            if (low >> (2 * i) & 1u) base[2 * i] = static_cast<uint16_t>(w[i]);
            if (high >> (2 * i) & 1u) base[2 * i + 1] = static_cast<uint16_t>(w[i] >> 16);
        }
    }
}

} // namespace plait::impl::cuda
