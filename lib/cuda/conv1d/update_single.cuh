// Part of conv1d.update, which begins in update_vector.cuh:
// variants *.single: y = act(bias + sum_k w xe) [+ x] of one sample a row, the state
// takes x; bf16, f16, f32, w and bias of that type or f32, K = 4. A thread takes the channels of
// one access (8 bytes of 16 bits, 16 of f32; 4 where the batch is small) of every row_sets-th row,
// two rows at a time: x and history first, then, once, the taps; all loads before the first store.
// No shared memory. Bytes a channel: x, y, 3 entries read, 3 written (1 in a ring); w and bias once
// for a set of rows. f32 accumulators. Where the batch is small the length of the code counts,
// which comes from memory in every launch: a row of 8192 channels takes 1.46 us of 220 instructions
// (2.0 of 700, 1.24 of 160 without slots and choices), a copy 1.03. At 256 rows 1.20 of a copy
// that stays in L2. Variants *.samples: some samples a row into a ring, a thread each, which reads
// those before its own from x (L1) or from entries that no thread of the row writes: 4 samples of a
// row of 8192 channels take 1.73 us, where a thread that walks along them took 3.69.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/common_taps.cuh"
#include "lib/cuda/conv1d/update_bits.cuh"

namespace plait::impl::cuda {

/// One row.
template <scalar S, int V, conv1d_update_state How> struct conv1d_update_one {
    using io = conv1d_update_bits<S, V>;
    using element = typename io::element;
    using access = typename io::access;
    static constexpr int entries = 3;
    static constexpr bool samples = How == conv1d_update_state::samples;
    static constexpr bool ring = How == conv1d_update_state::ring || samples;
    static constexpr bool lines = How == conv1d_update_state::lines;

    element *state; ///< of the row and the thread's channels
    access now, history[entries];
    int32_t entry; ///< of a ring: that of the row's first new sample
    bool live;

    __device__ __forceinline__ element *place(const conv1d_update_args &a, int j) const {
        if constexpr (lines) return state + j * V;
        int32_t e = j;
        if constexpr (ring) {
            e = entry + j - entries;
            if (e < 0) e += static_cast<int32_t>(a.entries);
        }
        return state + static_cast<int64_t>(e) * static_cast<int32_t>(a.state_stride.t);
    }

    /// Offsets of a row's sample are of 32 bits, but for the row.
    __device__ __forceinline__ static int64_t at(const conv1d_strides &by, int32_t row, int32_t t) {
        const int64_t first = static_cast<int64_t>(row) * static_cast<int32_t>(by.b);
        return samples ? first + t * static_cast<int32_t>(by.t) : first;
    }

    __device__ __forceinline__ void load(const conv1d_update_args &a, int32_t row, int32_t channel,
                                         int32_t t) {
        const auto *x = static_cast<const element *>(a.x) + channel + at(a.x_stride, row, t);
        now = __ldg(reinterpret_cast<const access *>(x));
        int32_t slot = row;
        live = true;
        if (a.slots != nullptr) {
            slot = __ldg(a.slots + row);
            live = slot != a.pad && slot >= 0 && slot < a.slot_count;
        }
        if constexpr (ring) {
            const int32_t position = __ldg(a.position + row);
            // Modulo the entries, also of negative ones: of -1 - n it is the rest of n from the
            // end.
            const uint32_t n = static_cast<uint32_t>(position < 0 ? ~position : position);
            const int32_t all = static_cast<int32_t>(a.entries);
            entry = static_cast<int32_t>(n) -
                    static_cast<int32_t>(conv1d_quotient(n, a.entries_by)) * all;
            if (position < 0) entry = all - 1 - entry;
        }
        state = static_cast<element *>(a.state) + (lines ? channel * entries : channel) +
                static_cast<int64_t>(slot) * static_cast<int32_t>(a.state_stride.b);
#pragma unroll
        for (int j = 0; j < entries; ++j) {
            history[j] = access{};
            if (samples && t + j >= entries) {
                history[j] = __ldg(reinterpret_cast<const access *>(
                    x + (j - entries) * static_cast<int32_t>(a.x_stride.t)));
            } else if (live) {
                history[j] = *reinterpret_cast<const access *>(place(a, j + (samples ? t : 0)));
            }
        }
    }

    __device__ __forceinline__ void finish(const conv1d_update_args &a, int32_t row,
                                           int32_t channel, int32_t t, const float (&taps)[V][4],
                                           const float (&bias)[V]) const {
        uint32_t words[entries * io::words];
        float x[V], out[V];
#pragma unroll
        for (int j = 0; j < entries; ++j) io::to_words(history[j], words + j * io::words);
        widen_raw<S, io::log_v>(now, x);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            float sum = bias[i];
#pragma unroll
            for (int d = entries; d > 0; --d)
                sum = __fmaf_rn(taps[i][d],
                                widen<S>(static_cast<element>(
                                    io::get(words, conv1d_update_element(How, V, 4, i, d)))),
                                sum);
            sum = __fmaf_rn(taps[i][0], x[i], sum);
            out[i] = conv1d_finish<S != scalar::f32>(sum, a.silu, a.residual, x[i]);
            if (!live) out[i] = 0.0f;
        }
        auto *y = static_cast<element *>(a.y) + channel + at(a.y_stride, row, t);
        // Not streaming: what follows a decode step reads y at once.
        __stwb(reinterpret_cast<access *>(y), io::round(out));
        if (!live) return;
        if constexpr (ring) {
            int32_t e = entry + (samples ? t : 0);
            if (samples && e >= static_cast<int32_t>(a.entries))
                e -= static_cast<int32_t>(a.entries);
            __stwb(reinterpret_cast<access *>(state + static_cast<int64_t>(e) *
                                                          static_cast<int32_t>(a.state_stride.t)),
                   now);
            return;
        }
        if constexpr (lines) {
            uint32_t next[entries * io::words];
            io::template advance<entries, How>(now, words, next);
#pragma unroll
            for (int j = 0; j < entries; ++j)
                __stwb(reinterpret_cast<access *>(place(a, j)),
                       io::from_words(next + j * io::words));
        } else {
            __stwb(reinterpret_cast<access *>(place(a, 0)), history[1]);
            __stwb(reinterpret_cast<access *>(place(a, 1)), history[2]);
            __stwb(reinterpret_cast<access *>(place(a, 2)), now);
        }
    }
};

/// Packed taps and biases next to one another, of type T.
template <scalar T, int V>
__device__ __forceinline__ void conv1d_update_taps(const conv1d_update_args &a, int32_t channel,
                                                   float (&taps)[V][4], float (&bias)[V]) {
    using io = conv1d_update_bits<T, V>;
    typename io::access raw{};
    if (a.bias != nullptr)
        raw = __ldg(reinterpret_cast<const typename io::access *>(
            static_cast<const typename io::element *>(a.bias) + channel));
    conv1d_load_packed<T>(a.w, channel, static_cast<int32_t>(a.w_c), taps);
    widen_raw<T, io::log_v>(raw, bias);
}

template <scalar S, int V, conv1d_update_state How>
__global__ void __launch_bounds__(conv1d_update_single_threads,
                                  conv1d_update_single_blocks_per_sm(S, V, How))
    conv1d_update_single_kernel(const __grid_constant__ conv1d_update_args a) {
    using one = conv1d_update_one<S, V, How>;
    constexpr int threads = conv1d_update_single_threads;
    constexpr int together = one::samples ? 1 : conv1d_update_single_together(V);
    const int32_t batch = static_cast<int32_t>(a.batch), sets = static_cast<int32_t>(a.row_sets);
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const uint32_t n = block * threads + threadIdx.x;
        int32_t row, channel, t = 0;
        if constexpr (one::samples) {
            const conv1d_update_sample at = conv1d_update_sample_of(a, n);
            row = static_cast<int32_t>(at.row), t = static_cast<int32_t>(at.sample);
            channel = static_cast<int32_t>(at.group) * V;
        } else {
            const uint32_t set = conv1d_quotient(n, a.groups);
            row = static_cast<int32_t>(set);
            channel = static_cast<int32_t>(n - set * a.groups.d) * V;
        }
        if (row >= sets) continue;
        float taps[V][4], bias[V];
        bool first = true;
        do {
            one rows[together];
#pragma unroll
            for (int u = 0; u < together; ++u)
                if (u == 0 || row + u * sets < batch) rows[u].load(a, row + u * sets, channel, t);
            if (first) {
                if (S == scalar::f32 || a.w_wide) {
                    conv1d_update_taps<scalar::f32>(a, channel, taps, bias);
                } else {
                    conv1d_update_taps<S>(a, channel, taps, bias);
                }
            }
            first = false;
#pragma unroll
            for (int u = 0; u < together; ++u)
                if (u == 0 || row + u * sets < batch)
                    rows[u].finish(a, row + u * sets, channel, t, taps, bias);
            row += together * sets;
        } while (together > 1 && row < batch);
    }
}

} // namespace plait::impl::cuda
