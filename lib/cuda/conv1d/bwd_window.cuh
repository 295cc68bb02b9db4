// What a token near the border of a sequence needs, for the kernels that mend what the fast ones
// leave out: x and ids around it, in registers, once. Tensors have the type S, states and weights
// any; at most Taps taps. Sums in the order of the fast kernels: their bits.
#pragma once

#include "lib/cuda/conv1d/bwd_access.cuh"
#include "lib/cuda/conv1d/bwd_math.cuh"

namespace plait::impl::cuda {

/// Element of a tensor of type S.
template <scalar S>
__device__ __forceinline__ float conv1d_element(const void *base, int64_t index) {
    return widen<S>(__ldg(static_cast<const typename stored<S>::bits *>(base) + index));
}

template <scalar S>
__device__ __forceinline__ void conv1d_put_element(void *base, int64_t index, float value) {
    if constexpr (S == scalar::f32) {
        static_cast<float *>(base)[index] = value;
    } else {
        static_cast<uint16_t *>(base)[index] = round_half<S>(value);
    }
}

/// The sequence of a row of states.
__device__ __forceinline__ conv1d_sequence conv1d_sequence_at(const conv1d_bwd_args &a, int64_t n) {
    if (!a.packed) return {n, 0, a.length};
    return {n, a.spans[n].begin, a.spans[n].end};
}

/// g of a token of the sequence, for any width.
template <bool Fast>
__device__ __forceinline__ float conv1d_fix_g(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                              int64_t b, int64_t c, int64_t t) {
    if (!conv1d_live(a, s, b, t)) return 0.0f;
    const float dy = conv1d_load<float>(a.dy, conv1d_at(a.vdy, b, c, t), a.vdy.type);
    return a.silu ? conv1d_silu_gradient<Fast>(dy, conv1d_pre<float>(a, s, b, c, t)) : dy;
}

/// Taps of a channel: w[d] meets the token d before. All loads before the first use.
template <int Taps> struct conv1d_fix_taps {
    float w[Taps], bias;
    __device__ __forceinline__ void load(const conv1d_bwd_args &a, int64_t c) {
        bias = a.bias ? conv1d_load<float>(a.bias, c * a.vbias.c, a.vbias.type) : 0.0f;
        const int64_t at = c * a.vw.c + (a.width - 1) * a.vw.t;
        if (a.vw.type == scalar::f32) {
            const float *const p = static_cast<const float *>(a.w) + at;
#pragma unroll
            for (int d = 0; d < Taps; ++d) w[d] = d < a.width ? __ldg(p - d * a.vw.t) : 0.0f;
            return;
        }
        const uint16_t *const p = static_cast<const uint16_t *>(a.w) + at;
        uint16_t bits[Taps];
#pragma unroll
        for (int d = 0; d < Taps; ++d) bits[d] = d < a.width ? __ldg(p - d * a.vw.t) : uint16_t{0};
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            w[d] = a.vw.type == scalar::bf16 ? widen<scalar::bf16>(bits[d])
                                             : widen<scalar::f16>(bits[d]);
    }
};

/// Positions p - (Taps - 1) .. p + Ahead - 1 of a sequence, p first in `at`; those before the
/// sequence are entries of its first state.
template <scalar S, int Taps, int Ahead> struct conv1d_fix_window {
    static constexpr int count = Taps - 1 + Ahead, self = Taps - 1;
    float x[count], dy[Ahead];
    int32_t id[count];
    uint32_t there, live; ///< bits of positions: read, and tokens that have an output

    __device__ __forceinline__ void load(const conv1d_bwd_args &a, const conv1d_sequence &s,
                                         int64_t b, int64_t c, int64_t p) {
        using bits = typename stored<S>::bits;
        const int64_t from = p - self;
        // none beyond what taps of the sequence's tokens reach
        const int64_t lowest = a.state_in ? s.begin - (a.width - 1) : s.begin;
        const bits *const x_at = static_cast<const bits *>(a.x) + conv1d_at(a.vx, b, c, from);
        const bits *const dy_at = static_cast<const bits *>(a.dy) + conv1d_at(a.vdy, b, c, p);
        // all loads before the first use
        uint32_t own = 0;
        there = 0;
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int64_t q = from + i;
            if (i >= self - (a.width - 1) && q >= lowest && q < s.end) there |= 1u << i;
            if ((there >> i & 1u) && q >= s.begin) own |= 1u << i;
        }
        bits raw[count], ahead[Ahead];
#pragma unroll
        for (int i = 0; i < count; ++i) raw[i] = own >> i & 1u ? __ldg(x_at + i * a.vx.t) : bits{0};
#pragma unroll
        for (int j = 0; j < Ahead; ++j)
            ahead[j] =
                j < a.width && (own >> (self + j) & 1u) ? __ldg(dy_at + j * a.vdy.t) : bits{0};
#pragma unroll
        for (int i = 0; i < count; ++i) id[i] = 0;
        if (a.seq_idx) {
#pragma unroll
            for (int i = 0; i < count; ++i)
                if (there >> i & 1u) id[i] = conv1d_id(a, b, from + i < 0 ? 0 : from + i);
        }
        live = 0;
#pragma unroll
        for (int i = 0; i < count; ++i) {
            if ((own >> i & 1u) && id[i] >= 0) live |= 1u << i;
            x[i] = widen<S>(raw[i]);
        }
#pragma unroll
        for (int j = 0; j < Ahead; ++j) dy[j] = live >> (self + j) & 1u ? widen<S>(ahead[j]) : 0.0f;
        if (!a.state_in || from >= s.begin) return;
#pragma unroll
        for (int i = 0; i < count; ++i) {
            if ((there & ~own) >> i & 1u)
                x[i] = conv1d_load<float>(
                    a.state_in, conv1d_at(a.vstate_in, s.row, c, from + i - s.begin + a.entries),
                    a.vstate_in.type);
        }
    }

    /// Whether the tap of the live token self + j that meets the position d before it counts.
    __device__ __forceinline__ bool counts(int j, int d) const {
        const int i = self + j - d;
        return (there >> i & 1u) && id[i] == id[self + j];
    }

    /// g of the token self + j.
    template <bool Fast>
    __device__ __forceinline__ float g(const conv1d_bwd_args &a, const conv1d_fix_taps<Taps> &taps,
                                       int j) const {
        if (!(live >> (self + j) & 1u)) return 0.0f;
        if (!a.silu) return dy[j];
        float pre = taps.bias;
#pragma unroll
        for (int d = Taps - 1; d >= 0; --d)
            if (d < a.width && counts(j, d)) pre = conv1d_fma(taps.w[d], x[self + j - d], pre);
        return conv1d_silu_gradient<Fast>(dy[j], pre);
    }

    /// What tokens from self + first on add to the position self.
    template <bool Fast>
    __device__ __forceinline__ float sum(const conv1d_bwd_args &a,
                                         const conv1d_fix_taps<Taps> &taps, int first) const {
        static_assert(Ahead == Taps);
        float out = 0;
#pragma unroll
        for (int j = 0; j < Ahead; ++j)
            if (j >= first && j < a.width && (live >> (self + j) & 1u) && counts(j, j))
                out = conv1d_fma(taps.w[j], g<Fast>(a, taps, j), out);
        return out;
    }

    /// The terms of the token self: dw by distance.
    template <bool Fast>
    __device__ __forceinline__ void add_sums(const conv1d_bwd_args &a,
                                             const conv1d_fix_taps<Taps> &taps, float (&dw)[Taps],
                                             float &dbias) const {
        if (!(live >> self & 1u)) return;
        const float own = g<Fast>(a, taps, 0);
        dbias = conv1d_add(dbias, own);
#pragma unroll
        for (int d = 0; d < Taps; ++d)
            if (d < a.width && counts(0, d)) dw[d] = conv1d_fma(own, x[self - d], dw[d]);
    }
};

/// Entry i of the gradient of the first state of sequence n.
template <scalar S, int Taps>
__device__ __forceinline__ void conv1d_put_state(const conv1d_bwd_args &a, int64_t n, int64_t i,
                                                 int64_t c) {
    const conv1d_sequence s = conv1d_sequence_at(a, n);
    const int64_t b = a.packed ? 0 : n, p = s.begin + i - a.entries;
    float sum = 0;
    if (s.end > s.begin) {
        conv1d_fix_taps<Taps> taps;
        conv1d_fix_window<S, Taps, Taps> near;
        taps.load(a, c);
        near.load(a, s, b, c, p);
        sum = conv1d_add(near.template sum<S != scalar::f32>(a, taps, 1),
                         conv1d_tail<float>(a, s, b, c, p));
    } else if (s.end == s.begin && a.dstate_out) {
        sum =
            conv1d_load<float>(a.dstate_out, conv1d_at(a.vdstate_out, n, c, i), a.vdstate_out.type);
    }
    conv1d_store(a.dstate_in, conv1d_at(a.vdstate_in, n, c, i), a.vdstate_in.type, sum);
}

} // namespace plait::impl::cuda
