// Part of a vector of 16 bytes, where a row begins or ends inside of it: at most three accesses.
#pragma once

#include "lib/cuda/common/convert.cuh"

namespace plait::impl::cuda {

/// Elements from .. to - 1 of the vector at `base`, a multiple of 16 bytes; 0 <= from < to, and not
/// all of them.
template <scalar S>
__device__ __forceinline__ void conv1d_store_part(typename stored<S>::bits *base, int from, int to,
                                                  const float *v) {
    constexpr bool half = S != scalar::f32;
    constexpr int n = half ? 8 : 4;
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (half) {
            w[i] = round_pair<S>(v[2 * i], v[2 * i + 1]);
        } else {
            w[i] = __float_as_uint(v[i]);
        }
    }
    const auto element = [&](int e) {
        if constexpr (half) {
            const uint32_t two = e & 4 ? (e & 2 ? w[3] : w[2]) : (e & 2 ? w[1] : w[0]);
            base[e] = static_cast<uint16_t>(e & 1 ? two >> 16 : two);
        } else {
            base[e] = e & 2 ? (e & 1 ? w[3] : w[2]) : (e & 1 ? w[1] : w[0]);
        }
    };
    const bool tail = from > 0;
    if (tail && to < n) {
#pragma unroll 1
        for (int e = from; e < to; ++e) element(e);
        return;
    }
    // the largest piece at the end of the vector that is written
    const int count = to - from;
    const bool pair = (count & (half ? 4 : 2)) != 0;
    if (pair)
        *reinterpret_cast<uint2 *>(base + (tail ? n / 2 : 0)) =
            tail ? make_uint2(w[2], w[3]) : make_uint2(w[0], w[1]);
    if constexpr (half) {
        if (count & 2) {
            const uint32_t word = tail ? (pair ? w[1] : w[3]) : (pair ? w[2] : w[0]);
            *reinterpret_cast<uint32_t *>(base + (tail ? (pair ? 2 : 6) : (pair ? 4 : 0))) = word;
        }
    }
    if (count & 1) element(tail ? from : to - 1);
}

} // namespace plait::impl::cuda
