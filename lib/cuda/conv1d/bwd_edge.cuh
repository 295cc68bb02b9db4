// conv1d.bwd_marks: which taps of a token count, for the fast kernels; a thread for a token.
//
// Above it the slow path of the fast kernels, for few tokens: taps that read a state, gradients
// of the last state, g behind the end of a walk. Arrays in registers are reached by selection, so
// that the element may be a run-time number.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/bwd_access.cuh"
#include "lib/cuda/conv1d/bwd_marks_layout.h"
#include "lib/cuda/conv1d/bwd_math.cuh"

namespace plait::impl::cuda {

enum class conv1d_act { none, silu, asked }; ///< asked: conv1d_bwd_args::silu

template <int N> __device__ __forceinline__ float conv1d_pick(const float (&v)[N], int at) {
    float out = v[0];
#pragma unroll
    for (int i = 1; i < N; ++i) out = i == at ? v[i] : out;
    return out;
}

template <int N> __device__ __forceinline__ void conv1d_put(float (&v)[N], int at, float value) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = i == at ? value : v[i];
}

/// g of one token, with the bits that the fast path gives it.
template <bool Fast>
__device__ __forceinline__ float conv1d_edge_g(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                               int64_t t) {
    if (t >= a.length) return 0.0f;
    const conv1d_sequence s = conv1d_sequence_of(a, b, t);
    if (!conv1d_live(a, s, b, t)) return 0.0f;
    const float dy = conv1d_load<float>(a.dy, conv1d_at(a.vdy, b, c, t), a.vdy.type);
    return a.silu ? conv1d_silu_gradient<Fast>(dy, conv1d_pre<float>(a, s, b, c, t)) : dy;
}

/// pre of the elements in `edges`, whose first is token t.
template <int N>
__device__ __forceinline__ void conv1d_edge_pre(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                                int64_t t, uint32_t edges, float (&pre)[N]) {
    while (edges != 0) {
        const int e = __ffs(static_cast<int>(edges)) - 1;
        edges &= edges - 1;
        const conv1d_sequence s = conv1d_sequence_of(a, b, t + e);
        conv1d_put(pre, e, conv1d_pre<float>(a, s, b, c, t + e));
    }
}

/// What the elements in `edges` add to dw by taps that read a state; tap k is dw[k + first].
template <int N, int K>
__device__ __forceinline__ void conv1d_edge_dw(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                               int64_t t, uint32_t edges, const float (&g)[N],
                                               int first, float (&dw)[K]) {
    while (edges != 0) {
        const int e = __ffs(static_cast<int>(edges)) - 1;
        edges &= edges - 1;
        const conv1d_sequence s = conv1d_sequence_of(a, b, t + e);
        const float ge = conv1d_pick(g, e);
        for (int k = 0; k < a.width; ++k) {
            const int64_t p = t + e - (a.width - 1) + k;
            if (p >= s.begin || !conv1d_counts(a, s, b, t + e, p)) continue;
            const float x = conv1d_input<float>(a, s, b, c, p);
            conv1d_put(dw, k + first, conv1d_fma(ge, x, conv1d_pick(dw, k + first)));
        }
    }
}

template <int N>
__device__ __forceinline__ void conv1d_edge_dx(const conv1d_bwd_args &a, int64_t b, int64_t c,
                                               int64_t t, uint32_t edges, float (&dx)[N]) {
    while (edges != 0) {
        const int e = __ffs(static_cast<int>(edges)) - 1;
        edges &= edges - 1;
        const conv1d_sequence s = conv1d_sequence_of(a, b, t + e);
        conv1d_put(dx, e, conv1d_add(conv1d_pick(dx, e), conv1d_tail<float>(a, s, b, c, t + e)));
    }
}

/// conv1d.bwd_marks: one thread for a token.
template <class Mark>
__global__ void __launch_bounds__(conv1d_bwd_threads)
    conv1d_bwd_marks(const __grid_constant__ conv1d_bwd_args a) {
    const int64_t tokens = a.batch * a.length;
    const int64_t step = static_cast<int64_t>(gridDim.x) * conv1d_bwd_threads;
    uint8_t *const groups =
        static_cast<uint8_t *>(a.marks_out) + conv1d_marks_groups_at(a.width, tokens);
    start_successor();
    const uint32_t block = wait_for_predecessor();
    if (block == 0 && threadIdx.x < conv1d_marks_slack) { // read with their neighbours
        groups[static_cast<int64_t>(threadIdx.x) - conv1d_marks_slack] = 0;
        groups[conv1d_marks_groups(tokens) + threadIdx.x] = 0;
    }
    // a warp's lanes are a group: all take part as long as one has a token
    for (int64_t n = static_cast<int64_t>(block) * conv1d_bwd_threads + threadIdx.x;
         n - threadIdx.x % 32 < tokens; n += step) {
        const bool own = n < tokens;
        const int64_t at = own ? n : tokens - 1, b = at / a.length, t = at % a.length;
        const conv1d_sequence s = conv1d_sequence_of(a, b, t);
        conv1d_mark m = {0, 0};
        if (conv1d_live(a, s, b, t)) {
            m.back = 1;
            for (int j = 1; j < a.width; ++j) {
                if (t - j < 0 && !a.state_in) {
                    m.back |= 1u << j;
                } else if (conv1d_counts(a, s, b, t, t - j)) {
                    if (t - j >= s.begin) {
                        m.back |= 1u << j;
                    } else {
                        m.ahead |= 1u;
                    }
                }
                if (t + j >= a.length ||
                    (t + j < s.end && (!a.seq_idx || conv1d_id(a, b, t + j) == conv1d_id(a, b, t))))
                    m.ahead |= 1u << j;
            }
            if (a.dstate_out && t + a.entries >= s.end) m.ahead |= 1u;
        }
        const conv1d_mark all = conv1d_full_mark(a.width);
        const bool full = m.back == all.back && m.ahead == all.ahead;
        const bool some = __any_sync(0xffffffffu, static_cast<int>(!full)) != 0;
        if (threadIdx.x % 32 == 0) groups[n >> conv1d_marks_log_group] = some;
        if (!own) continue;
        if constexpr (sizeof(Mark) == 1) {
            static_cast<uint8_t *>(a.marks_out)[n] = static_cast<uint8_t>(m.back | m.ahead << 4);
        } else {
            static_cast<uint64_t *>(a.marks_out)[n] = m.back | static_cast<uint64_t>(m.ahead) << 32;
            static_cast<uint8_t *>(a.marks_out)[8 * tokens + n] = full;
        }
    }
}

/// Marks of N tokens from t on; of tokens outside the row: 0. Short ones lie in a register, long
/// ones are read when they are asked for.
template <int N, bool Short> struct conv1d_marks {
    uint64_t bytes;
    const uint64_t *words;
    int t, limit;

    __device__ __forceinline__ void set(const conv1d_bwd_args &a, int64_t b, int from, int end,
                                        uint64_t short_ones) {
        t = from;
        limit = end;
        bytes = short_ones;
        words = static_cast<const uint64_t *>(a.marks) + b * a.length + t;
    }
    __device__ __forceinline__ uint64_t word(int e) const {
        return t + e >= 0 && t + e < limit ? __ldg(words + e) : 0;
    }
    __device__ __forceinline__ uint32_t back(int e) const {
        if constexpr (Short) return static_cast<uint32_t>(bytes >> (8 * e)) & 15u;
        return static_cast<uint32_t>(word(e));
    }
    __device__ __forceinline__ uint32_t ahead(int e) const {
        if constexpr (Short) return static_cast<uint32_t>(bytes >> (8 * e + 4)) & 15u;
        return static_cast<uint32_t>(word(e) >> 32);
    }
    __device__ __forceinline__ uint32_t edges() const {
        uint32_t out = 0;
#pragma unroll
        for (int e = 0; e < N; ++e) out |= (ahead(e) & 1u) << e;
        return out;
    }
};

} // namespace plait::impl::cuda
