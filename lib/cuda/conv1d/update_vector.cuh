// conv1d.update: variants *.rows and *.lines, y = act(bias + sum_k w xe) [+ x], the state takes x;
// bf16, f16, f32, w and bias of that type or f32, K = 2, 3, 4; any number of samples a row. A
// thread takes the channels of one access (16 bytes of f32, 8 of 16 bits; 4 where the batch is
// small) of every row_sets-th row: up to four samples and the history of `together` rows at a time,
// and, once, taps; all loads before the first store. No shared memory. Bytes a channel: x, y, K - 1
// entries read, K - 1 written (1 in a ring); w and bias once for a set of rows. Bound at B = 1 by
// latency: a launch and two trips to memory (slot or position, then state); at B >= 256 by the L2
// or the memory. f32 accumulators.
// Parts: update_single.cuh (*.single, *.samples), update_any.cuh (any.*).
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/common_taps.cuh"
#include "lib/cuda/conv1d/update_bits.cuh"
#include "lib/cuda/conv1d/update_single.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

/// What one row has before its first sample, and where it lies.
template <scalar S, int V, int K, conv1d_update_state How> struct conv1d_update_row {
    using io = conv1d_update_bits<S, V>;
    using element = typename io::element;
    using access = typename io::access;
    static constexpr int entries = K - 1;
    static constexpr bool rows = How == conv1d_update_state::rows;
    static constexpr int samples = conv1d_update_samples(V);

    element *state;          ///< of the row, channel 0
    access history[entries]; ///< of an entry each, or side by side over the channels of the thread
    int64_t start;           ///< of a ring: the entry of the first sample
    bool live;

    __device__ __forceinline__ element *place(const conv1d_update_args &a, int64_t channel,
                                              int j) const {
        if constexpr (!rows) return state + channel * entries + j * V;
        const int64_t entry =
            a.position == nullptr ? j : conv1d_ring_entry(start, j - entries, a.entries);
        return state + entry * a.state_stride.t + channel;
    }

    __device__ __forceinline__ void load(const conv1d_update_args &a, int64_t row, int64_t channel,
                                         bool exists) {
        int64_t slot = row;
        if (a.slots != nullptr) slot = exists ? __ldg(a.slots + row) : a.pad;
        start = 0;
        if (a.position != nullptr && exists) {
            // In 32 bits, which entries of these variants fit.
            const int32_t rest = __ldg(a.position + row) % static_cast<int32_t>(a.entries);
            start = conv1d_ring_entry(0, rest, a.entries);
        }
        live =
            exists && (a.slots == nullptr || (slot != a.pad && slot >= 0 && slot < a.slot_count));
        state = static_cast<element *>(a.state) + slot * a.state_stride.b;
#pragma unroll
        for (int j = 0; j < entries; ++j) {
            history[j] = access{};
            if (live) history[j] = *reinterpret_cast<const access *>(place(a, channel, j));
        }
    }

    /// y of a sample whose history is `words`.
    __device__ __forceinline__ void put(const conv1d_update_args &a, int64_t at, const access &now,
                                        const uint32_t *words, const float (&taps)[V][4],
                                        const float (&bias)[V]) const {
        float x[V], out[V];
        widen_raw<S, io::log_v>(now, x);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            float sum = bias[i];
#pragma unroll
            for (int d = entries; d > 0; --d)
                sum = __fmaf_rn(taps[i][d],
                                widen<S>(static_cast<element>(
                                    io::get(words, conv1d_update_element(How, V, K, i, d)))),
                                sum);
            sum = __fmaf_rn(taps[i][0], x[i], sum);
            out[i] = live ? conv1d_finish<S != scalar::f32>(sum, a.silu, a.residual, x[i]) : 0.0f;
        }
        store_elements<S, io::log_v>(a.y, at, out, 1.0f);
    }

    /// The history behind one more sample.
    __device__ __forceinline__ static void advance(const access &now, uint32_t *words) {
        uint32_t next[entries * io::words];
        io::template advance<entries, How>(now, words, next);
#pragma unroll
        for (int i = 0; i < entries * io::words; ++i) words[i] = next[i];
    }

    /// Samples t .. of the row, as many as the row has.
    __device__ __forceinline__ static void load_samples(const conv1d_update_args &a, int64_t row,
                                                        int64_t channel, int64_t t,
                                                        access (&now)[samples]) {
        const element *x = static_cast<const element *>(a.x) + row * a.x_stride.b + channel;
#pragma unroll
        for (int i = 0; i < samples; ++i) {
            now[i] = access{};
            if (i == 0 || t + i < a.length)
                now[i] = __ldg(reinterpret_cast<const access *>(x + (t + i) * a.x_stride.t));
        }
    }

    /// All samples of the row, of which `now` are the first.
    __device__ __forceinline__ void run(const conv1d_update_args &a, int64_t row, int64_t channel,
                                        access (&now)[samples], const float (&taps)[V][4],
                                        const float (&bias)[V]) {
        uint32_t words[entries * io::words];
#pragma unroll
        for (int j = 0; j < entries; ++j) io::to_words(history[j], words + j * io::words);
        int64_t entry = start;
        const int64_t length = conv1d_update_single(V) ? 1 : a.length;
        for (int64_t t = 0; t < length; t += samples) {
            if (t > 0) load_samples(a, row, channel, t, now);
#pragma unroll
            for (int i = 0; i < samples; ++i) {
                if (t + i >= length) continue;
                put(a, row * a.y_stride.b + (t + i) * a.y_stride.t + channel, now[i], words, taps,
                    bias);
                if (live && a.position != nullptr) {
                    __stwb(reinterpret_cast<access *>(state + entry * a.state_stride.t + channel),
                           now[i]);
                    entry = entry + 1 == a.entries ? 0 : entry + 1;
                }
                advance(now[i], words);
            }
        }
        if (!live || a.position != nullptr) return;
#pragma unroll
        for (int j = 0; j < entries; ++j)
            __stwb(reinterpret_cast<access *>(place(a, channel, j)),
                   io::from_words(words + j * io::words));
    }
};

/// Every row_sets-th row from `first` on.
template <scalar S, int V, int K, conv1d_update_state How>
__device__ __forceinline__ void conv1d_update_rows(const conv1d_update_args &a, int64_t first,
                                                   int64_t channel) {
    using row_type = conv1d_update_row<S, V, K, How>;
    using access = typename row_type::access;
    constexpr int together = conv1d_update_together(V);
    const int64_t rows_end = conv1d_update_single(V) ? first + 1 : a.batch;
    float taps[V][4], bias[V];
    bool asked = false;
    for (int64_t row = first; row < rows_end; row += together * a.row_sets) {
        row_type rows[together];
        access now[together][row_type::samples];
#pragma unroll
        for (int u = 0; u < together; ++u) {
            const int64_t r = row + u * a.row_sets;
            if (r < rows_end) row_type::load_samples(a, r, channel, 0, now[u]);
            rows[u].load(a, r, channel, r < rows_end);
        }
        // Behind the first samples and slots, on which other loads wait.
        if (!asked) conv1d_load_taps<S>(a, channel, taps, bias);
        asked = true;
#pragma unroll
        for (int u = 0; u < together; ++u) {
            const int64_t r = row + u * a.row_sets;
            if (r < rows_end) rows[u].run(a, r, channel, now[u], taps, bias);
        }
    }
}

template <scalar S, int V, int K, conv1d_update_state How>
__global__ void __launch_bounds__(conv1d_update_threads, conv1d_update_blocks_per_sm(V))
    conv1d_update_vector_kernel(const __grid_constant__ conv1d_update_args a) {
    start_successor();
    for (uint32_t block = wait_for_predecessor(); block < a.blocks; block += gridDim.x) {
        const conv1d_place at =
            conv1d_place_of(a.groups, block, threadIdx.x, conv1d_update_threads);
        if (at.line < a.row_sets)
            conv1d_update_rows<S, V, K, How>(a, at.line, static_cast<int64_t>(at.item) * V);
    }
}

template <scalar S, int V, int K, conv1d_update_state How> kernel_entry conv1d_update_entry() {
    static constexpr conv1d_name name = conv1d_update_variant(S, K, V, How);
    return make_kernel_entry<&conv1d_update_vector_kernel<S, V, K, How>>("conv1d.update",
                                                                         name.text);
}

template <scalar S, int V, conv1d_update_state How> kernel_entry conv1d_update_single_entry() {
    static constexpr conv1d_name name = conv1d_update_single_variant(S, V, How);
    return make_kernel_entry<&conv1d_update_single_kernel<S, V, How>>("conv1d.update", name.text);
}

/// Single samples of width 4 have variants of their own.
template <scalar S, conv1d_update_state How> kernel_list conv1d_update_list() {
    constexpr int few = conv1d_update_vector(S, true), many = conv1d_update_vector(S, false);
    constexpr bool rows = How == conv1d_update_state::rows;
    constexpr auto ring = rows ? conv1d_update_state::ring : How;
    constexpr auto samples = rows ? conv1d_update_state::samples : How;
    static const kernel_entry entries[] = {
        conv1d_update_entry<S, few, 2, How>(),
        conv1d_update_entry<S, few, 3, How>(),
        conv1d_update_entry<S, many, 2, How>(),
        conv1d_update_entry<S, many, 3, How>(),
        conv1d_update_entry<S, many, 4, How>(),
        conv1d_update_single_entry<S, few, How>(),
        conv1d_update_single_entry<S, many, How>(),
        conv1d_update_single_entry<S, few, ring>(),
        conv1d_update_single_entry<S, many, ring>(),
        conv1d_update_single_entry<S, few, samples>(),
        conv1d_update_single_entry<S, many, samples>(),
    };
    constexpr int all = static_cast<int>(sizeof(entries) / sizeof(entries[0]));
    return {entries, rows ? all : all - 4};
}

} // namespace plait::impl::cuda
