// conv1d.fwd_bct_fix: what conv1d.fwd_bct_tiled leaves wrong where states, slots, or packed
// sequences or ids beside a state enter (packed sequences of more than four taps always): it takes
// each row for one live sequence without a state. y = act(bias + sum_k w[k] xe[t-(K-1)+k]) [+ x]
// again for the first K - 1 tokens of each sequence and behind each change of ids, 0 for tokens of
// none. A block takes 512 tokens of a row and 128 channels: each thread looks at four tokens, those
// to be written go to a list in shared memory, in order of time, each with its sequence and the
// taps that count; then a thread an output, time innermost. Bytes: ids once for 128 channels, and
// about 64 an output (sectors). Issue slots: 100 for four tokens of 128 channels, and 40 + 12 K an
// output; f32 accumulators, one rounding, the same bits as fwd_any. Limits: those of fwd_bct_tiled,
// sequences < 2^31. Bound: latency, 5 us, where few are wrong.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/common_taps.cuh"
#include "lib/cuda/conv1d/fwd_bct_layout.h"
#include "lib/cuda/conv1d/fwd_element.cuh"

namespace plait::impl::cuda {

/// An output to be written.
struct conv1d_fix_token {
    int32_t t, begin; ///< the token, and the first one of its sequence
    int32_t state;    ///< row of the states
    uint32_t taps;    ///< bit d: the sample d before counts; 0: y is 0
};

/// Of tokens t0 .. t0 + 3 of a row with ids, bit j: token t0 + j is to be written.
__device__ __forceinline__ unsigned
conv1d_fix_look_at_ids(const conv1d_fwd_args &a, uint32_t row, int t0,
                       conv1d_fix_token (&mine)[conv1d_fix_each]) {
    const int length = static_cast<int>(a.length), width = static_cast<int>(a.width);
    const int stop = min(t0 + conv1d_fix_each, length), reach = width - 1;
    if (t0 >= stop) return 0;
    const int32_t *ids = a.seq_idx + row * a.ids_b;
    const conv1d_sequence s = conv1d_sequence_of(a, row);
    const int32_t first = __ldg(ids + t0 * a.ids_t);
    bool right = s.live && first >= 0 && t0 >= reach;
    for (int p = max(t0 - reach, 0); p < stop; ++p)
        right = right && __ldg(ids + p * a.ids_t) == first;
    if (right) return 0;
    // Before the first token ids are that of the first token if there is a state, else none.
    const int32_t before = a.state_in != nullptr ? __ldg(ids) : -1;
    const uint32_t every = ~0u >> (32 - width);
    unsigned wanted = 0;
#pragma unroll
    for (int j = 0; j < conv1d_fix_each; ++j) {
        const int t = t0 + j;
        if (t >= stop) continue;
        const int32_t id = __ldg(ids + t * a.ids_t);
        uint32_t taps = 1;
        for (int d = 1; d < width; ++d)
            if ((t < d ? before : __ldg(ids + (t - d) * a.ids_t)) == id) taps |= 1u << d;
        if (!s.live || id < 0) taps = 0;
        if (taps != every || t < reach) wanted |= 1u << j;
        mine[j] = {t, 0, static_cast<int32_t>(s.state), taps};
    }
    return wanted;
}

/// The same for a row that is one sequence, and for packed sequences.
__device__ __forceinline__ unsigned
conv1d_fix_look_at_sequences(const conv1d_fwd_args &a, uint32_t row, int t0,
                             conv1d_fix_token (&mine)[conv1d_fix_each]) {
    const int length = static_cast<int>(a.length), width = static_cast<int>(a.width);
    if (t0 >= length) return 0;
    int64_t n = a.spans != nullptr ? conv1d_find_sequence(a, t0) : row;
    conv1d_sequence s{0, 0, 0, false};
    if (n >= 0) s = conv1d_sequence_of(a, n);
    unsigned wanted = 0;
#pragma unroll
    for (int j = 0; j < conv1d_fix_each; ++j) {
        const int t = t0 + j;
        if (t >= length) continue;
        if (a.spans != nullptr && n + 1 < a.sequences && a.spans[n + 1].begin <= t) {
            n = conv1d_find_sequence(a, t); // any number of empty ones may lie between
            s = conv1d_sequence_of(a, n);
        }
        const bool live = s.live && t < s.end;
        const int begin = static_cast<int>(s.begin);
        // Zeros are right in front of the row.
        const bool right = live && (t - begin >= width - 1 || (begin == 0 && !a.state_in));
        if (!right) wanted |= 1u << j;
        mine[j] = {t, begin, static_cast<int32_t>(s.state), live ? ~0u >> (32 - width) : 0};
    }
    return wanted;
}

/// The tokens of a block to `list`, in order; how many. Two barriers.
__device__ __forceinline__ uint32_t conv1d_fix_find(const conv1d_fwd_args &a, uint32_t row,
                                                    int first, conv1d_fix_token *list,
                                                    uint32_t *counts) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int t0 = first + static_cast<int>(threadIdx.x) * conv1d_fix_each;
    conv1d_fix_token mine[conv1d_fix_each];
    const unsigned wanted = a.seq_idx != nullptr ? conv1d_fix_look_at_ids(a, row, t0, mine)
                                                 : conv1d_fix_look_at_sequences(a, row, t0, mine);
    int at = 0, of_warp = 0;
#pragma unroll
    for (int j = 0; j < conv1d_fix_each; ++j) {
        const unsigned lanes = __ballot_sync(0xffffffffu, static_cast<int>(wanted >> j & 1u));
        at += __popc(lanes & ((1u << lane) - 1));
        of_warp += __popc(lanes);
    }
    if (lane == 0) counts[warp] = static_cast<uint32_t>(of_warp);
    __syncthreads(); // the counts are written
    uint32_t all = 0;
#pragma unroll
    for (uint32_t w = 0; w < conv1d_fix_threads / 32; ++w) {
        if (w < warp) at += static_cast<int>(counts[w]);
        all += counts[w];
    }
#pragma unroll
    for (int j = 0; j < conv1d_fix_each; ++j)
        if (wanted >> j & 1u) list[at++] = mine[j];
    __syncthreads(); // the list is written
    return all;
}

/// The sum of bias and taps for widths up to 4: all loads before the first use. `x`: token 0 of the
/// row; `state`, `w`: where the entry of token 0 and the tap of distance 0 are.
template <scalar S>
__device__ __forceinline__ float
conv1d_fix_short(const conv1d_fwd_args &a, const typename stored<S>::bits *x, int64_t state,
                 int64_t w, const conv1d_fix_token &token, float bias) {
    uint32_t samples[4], taps[4];
    const bool wide_state = S == scalar::f32 || a.state_wide, wide = S == scalar::f32 || a.w_wide;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
        const int p = token.t - d;
        samples[d] = taps[d] = 0;
        if ((token.taps >> d & 1u) == 0) continue;
        const int64_t entry = state + p * a.state_stride.t;
        if (p >= token.begin) {
            samples[d] = __ldg(x + p);
        } else if (a.state_in != nullptr && wide_state) {
            samples[d] = __ldg(static_cast<const uint32_t *>(a.state_in) + entry);
        } else if (a.state_in != nullptr) {
            samples[d] = __ldg(static_cast<const uint16_t *>(a.state_in) + entry);
        }
        taps[d] = wide ? __ldg(static_cast<const uint32_t *>(a.w) + (w - d * a.w_t))
                       : __ldg(static_cast<const uint16_t *>(a.w) + (w - d * a.w_t));
    }
    const auto value_of = [](uint32_t bits, bool is_wide) {
        return is_wide ? __uint_as_float(bits)
                       : widen<S>(static_cast<typename stored<S>::bits>(bits));
    };
#pragma unroll
    for (int d = 3; d >= 0; --d) {
        if ((token.taps >> d & 1u) == 0) continue;
        const bool from_state = token.t - d < token.begin;
        bias =
            __fmaf_rn(value_of(taps[d], wide),
                      value_of(samples[d], S == scalar::f32 || (from_state && wide_state)), bias);
    }
    return bias;
}

template <scalar S>
__device__ __forceinline__ void conv1d_fix_write(const conv1d_fwd_args &a, uint32_t row, uint32_t c,
                                                 const conv1d_fix_token &token) {
    using bits = typename stored<S>::bits;
    const bits *x = static_cast<const bits *>(a.x) + row * a.x_stride.b + c * a.x_stride.c;
    bits *y = static_cast<bits *>(a.y) + row * a.y_stride.b + c * a.y_stride.c;
    float value = 0.0f;
    if (token.taps != 0) {
        const int width = static_cast<int>(a.width);
        const int64_t w = c * a.w_c + (width - 1) * a.w_t;
        const int64_t state = token.state * a.state_stride.b + c * a.state_stride.c +
                              (a.entries - token.begin) * a.state_stride.t;
        if (a.bias != nullptr) value = conv1d_load_as<S>(a.bias, c * a.bias_c, a.bias_wide);
        if (width <= 4) value = conv1d_fix_short<S>(a, x, state, w, token, value);
#pragma unroll 4
        for (int d = width > 4 ? width - 1 : -1; d >= 0; --d) {
            const int p = token.t - d;
            float sample = 0.0f;
            if (p >= token.begin) {
                sample = widen<S>(__ldg(x + p));
            } else if (a.state_in != nullptr) {
                sample = conv1d_load_as<S>(a.state_in, state + p * a.state_stride.t, a.state_wide);
            }
            const float tap = conv1d_load_as<S>(a.w, w - d * a.w_t, a.w_wide);
            const float next = __fmaf_rn(tap, sample, value);
            value = token.taps >> d & 1u ? next : value;
        }
        const float now = a.residual ? widen<S>(__ldg(x + token.t)) : 0.0f;
        value = conv1d_finish<S != scalar::f32>(value, a.silu, a.residual, now);
    }
    if constexpr (S == scalar::f32) {
        y[token.t] = __float_as_uint(value);
    } else {
        y[token.t] = round_half<S>(value);
    }
}

template <scalar S>
__global__ void __launch_bounds__(conv1d_fix_threads, 8)
    conv1d_fwd_bct_fix(const __grid_constant__ conv1d_fwd_args a) {
    __shared__ conv1d_fix_token list[conv1d_fix_tokens];
    __shared__ uint32_t counts[conv1d_fix_threads / 32];
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const conv1d_fix_place at = conv1d_fix_place_of(a, block);
        const uint32_t found = conv1d_fix_find(a, at.row, static_cast<int>(at.token), list, counts);
        const uint32_t all = found * at.channels;
        for (uint32_t i = threadIdx.x; i < all; i += conv1d_fix_threads) {
            const uint32_t c = i / found;
            conv1d_fix_write<S>(a, at.row, at.channel + c, list[i - c * found]);
        }
        __syncthreads(); // list and counts are read before the next block's replace them
    }
}

} // namespace plait::impl::cuda
