// conv1d.fwd_bct_tiled of 8, 16 and 32 taps in rows that all begin at multiples of 16 bytes. A
// thread takes units of one vector, beyond 8 taps of two adjacent ones, which share what lies
// before them; of 8 taps two units at a time: their samples are widened, then the next ones asked
// for, then the sums formed side by side. Taps by aligned accesses: 32 single ones took 7 slots an
// output. It takes 22, 30 and 44 issue slots, K of which are multiply-adds, where 28 are
// free at the copy rate of an H200. Measured there: r = 1.32, 1.61, 2.36; issue slots 65 % busy at
// K = 16 and 32, with 3 or 4 warps a scheduler, by registers.
#pragma once

#include "lib/cuda/conv1d/fwd_vector.cuh"

namespace plait::impl::cuda {

template <scalar S, int Taps> struct conv1d_bct_wide {
    using bits = typename stored<S>::bits;
    static constexpr int v = conv1d_vector(S), near = conv1d_bct_near(Taps);
    static constexpr int units = conv1d_bct_units(Taps), outputs = near * v, halo = Taps;
    static constexpr int samples = halo + outputs;

    uint32_t words[units][conv1d_words<S, samples>];

    /// Samples t - halo .. t + outputs - 1; in front of the row others. Addresses are chosen, not
    /// loads: values that meet behind a branch would be waited for there.
    __device__ __forceinline__ void load(const bits *row, int unit, int t) {
        const bits *const at = row + t;
#pragma unroll
        for (int i = 0; i < samples; i += v)
            conv1d_load_words<S, v>(t + i >= halo ? at + (i - halo) : at,
                                    words[unit] + conv1d_words<S, v> * (i / v));
    }
    __device__ __forceinline__ void widen(int unit, int t, float (&window)[samples]) const {
        conv1d_widen_words<S, samples>(words[unit], window);
        if (t >= halo) return;
#pragma unroll
        for (int i = 0; i < halo; ++i)
            if (t + i < halo) window[i] = 0.0f;
    }
};

/// Silu: width is Taps, SiLU follows, and no residual.
template <scalar S, int Taps, bool Silu>
__device__ __forceinline__ void conv1d_bct_wide_body(const conv1d_fwd_args &a,
                                                     const conv1d_bct_self &self) {
    using wide = conv1d_bct_wide<S, Taps>;
    using bits = typename wide::bits;
    constexpr int v = wide::v, units = wide::units, outputs = wide::outputs;
    const int length = static_cast<int>(a.length);
    const bits *x = static_cast<const bits *>(a.x) + self.b * a.x_stride.b + self.c * a.x_stride.c;
    bits *y = static_cast<bits *>(a.y) + self.b * a.y_stride.b + self.c * a.y_stride.c;
    const int stride = static_cast<int>(self.lanes) * outputs;
    const int end = conv1d_bct_wide_end(a.vectors, wide::near, stride);
    int t = conv1d_bct_wide_first(S, self.tile, self.lanes, self.lane, a.vectors, wide::near);
    if (t >= length) return;
    const int stop = t + end;
    const auto whole = [&](int from) { return from < stop && from + outputs <= length; };
    wide ahead;
#pragma unroll
    for (int u = 0; u < units; ++u)
        if (whole(t + u * stride)) ahead.load(x, u, t + u * stride);
    float taps[1][Taps], bias[1];
    conv1d_load_taps_by<S, true>(a, self.c, taps, bias);
#pragma unroll 1
    for (; whole(t); t += units * stride) {
        float window[units][wide::samples];
#pragma unroll
        for (int u = 0; u < units; ++u) ahead.widen(u, t + u * stride, window[u]);
#pragma unroll
        for (int u = 0; u < units; ++u) {
            const int next = t + (units + u) * stride;
            if (whole(next)) ahead.load(x, u, next);
        }
#pragma unroll
        for (int u = 0; u < units; ++u) {
            const int at = t + u * stride;
            if (u > 0 && !whole(at)) continue;
            float out[outputs];
            if constexpr (Silu) {
                conv1d_compute_silu<S, Taps, Taps, outputs>(taps[0], bias[0], window[u], out);
            } else {
                conv1d_compute<S, Taps, Taps, outputs>(a, taps[0], bias[0], window[u], out);
            }
#pragma unroll
            for (int i = 0; i < outputs; i += v)
                store_elements<S, v == 8 ? 3 : 2>(y, at + i, out + i, 1.0f);
        }
    }
    // A row's last unit, which is not whole.
    const int from = t - (units - 1) * stride;
#pragma unroll 1
    for (int u = 0; u < units; ++u) {
        const int at = from + u * stride;
        if (at < 0 || at >= stop || at >= length || at + outputs <= length) continue;
#pragma unroll 1
        for (int i = 0; i < outputs && at + i < length; i += v) {
            float window[Taps + v], out[v];
            uint32_t words[conv1d_words<S, Taps + v>];
            conv1d_gather_words<S, Taps + v>(x, at + i - Taps, length, words);
            conv1d_widen_words<S, Taps + v>(words, window);
            conv1d_compute<S, Taps, Taps, v>(a, taps[0], bias[0], window, out);
            conv1d_store_tokens<S, v>(y, at + i, length, out);
        }
    }
}

} // namespace plait::impl::cuda
