// The channels of a thread of conv1d.fwd_btc: one aligned vector, or single elements 32 apart, so
// that a warp's accesses are whole pieces of a row that begins anywhere.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/conv1d/fwd_btc_layout.h"
#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

PLAIT_HD constexpr int conv1d_log2(int n) { return n == 8 ? 3 : n == 4 ? 2 : n == 2 ? 1 : 0; }

template <scalar S, int V, bool Strided> struct conv1d_btc_lane {
    using bits = typename stored<S>::bits;
    using raw = raw_elements<S, conv1d_log2(V)>;
    static constexpr int cell = sizeof(raw); ///< bytes of a token in the ring

    int64_t channel; ///< the first

    conv1d_btc_lane() = default;
    __device__ __forceinline__ conv1d_btc_lane(const conv1d_fwd_args &, uint32_t item)
        : channel(static_cast<int64_t>(item) * V) {}

    __device__ __forceinline__ bool owns(int) const { return true; }
    __device__ __forceinline__ int64_t channel_of(int i) const { return channel + i; }

    __device__ __forceinline__ raw load(const bits *p) const {
        return __ldg(reinterpret_cast<const raw *>(p));
    }
    __device__ __forceinline__ void copy(char *to, const bits *p) const {
        async_copy<cell>(shared_at_of(to), p);
    }
    static __device__ __forceinline__ void read(const char *from, float (&out)[V]) {
        widen_all(*reinterpret_cast<const raw *>(from), out);
    }
    static __device__ __forceinline__ void widen_all(const raw &r, float (&out)[V]) {
        widen_raw<S, conv1d_log2(V)>(r, out);
    }
    __device__ __forceinline__ void store(bits *p, const float (&out)[V]) const {
        store_elements<S, conv1d_log2(V)>(p, 0, out, 1.0f);
    }
    template <int Taps>
    __device__ __forceinline__ void load_taps(const conv1d_fwd_args &a, float (&taps)[V][Taps],
                                              float (&bias)[V]) const {
        conv1d_load_taps<S>(a, channel, taps, bias);
    }
};

template <scalar S, int V> struct conv1d_btc_lane<S, V, true> {
    using bits = typename stored<S>::bits;
    struct raw {
        bits element[V];
    };

    int64_t channel;
    int owned; ///< how many of the V are channels

    conv1d_btc_lane() = default;
    __device__ __forceinline__ conv1d_btc_lane(const conv1d_fwd_args &a, uint32_t item)
        : channel(conv1d_btc_strided_channel(item, V)) {
        owned = 1;
#pragma unroll
        for (int i = 1; i < V; ++i) owned += channel_of(i) < a.channels ? 1 : 0;
    }

    __device__ __forceinline__ bool owns(int i) const { return i == 0 || i < owned; }
    __device__ __forceinline__ int64_t channel_of(int i) const {
        return channel + i * conv1d_btc_stride;
    }

    __device__ __forceinline__ raw load(const bits *p) const {
        raw r;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            r.element[i] = 0;
            if (owns(i)) r.element[i] = __ldg(p + i * conv1d_btc_stride);
        }
        return r;
    }
    static __device__ __forceinline__ void widen_all(const raw &r, float (&out)[V]) {
#pragma unroll
        for (int i = 0; i < V; ++i) out[i] = widen<S>(r.element[i]);
    }
    /// Not streaming: the sectors at both ends of a warp's access are written in two pieces.
    __device__ __forceinline__ void store(bits *p, const float (&out)[V]) const {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (!owns(i)) continue;
            if constexpr (S == scalar::f32) {
                p[i * conv1d_btc_stride] = __float_as_uint(out[i]);
            } else {
                p[i * conv1d_btc_stride] = round_half<S>(out[i]);
            }
        }
    }
    template <int Taps>
    __device__ __forceinline__ void load_taps(const conv1d_fwd_args &a, float (&taps)[V][Taps],
                                              float (&bias)[V]) const {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            float one[1][Taps] = {}, one_bias[1] = {};
            if (owns(i)) conv1d_load_taps<S>(a, channel_of(i), one, one_bias);
#pragma unroll
            for (int d = 0; d < Taps; ++d) taps[i][d] = one[0][d];
            bias[i] = one_bias[0];
        }
    }
};

/// How many of `count` ids from the first on are `id` before another comes.
__device__ __forceinline__ int conv1d_btc_equal(const int32_t *ids, int64_t stride, int32_t id,
                                                int count) {
    int n = 0;
    // Eight loads are on their way at once: the strip has not begun and nothing else hides them.
#pragma unroll 1
    for (; n + 8 <= count; n += 8) {
        int32_t some[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) some[i] = __ldg(ids + (n + i) * stride);
        bool all = true;
#pragma unroll
        for (int i = 0; i < 8; ++i) all = all && some[i] == id;
        if (!all) break;
    }
#pragma unroll 1
    for (; n < count; ++n)
        if (__ldg(ids + n * stride) != id) break;
    return n;
}

} // namespace plait::impl::cuda
