// conv1d.update: variants *.rows and *.lines, one sample a row, y = act(bias + sum_k w xe) [+ x],
// then the state takes x; bf16, f16, f32, w and bias of that type or f32, K = 2, 3, 4. A thread
// takes the channels of one access (16 bytes, or 4 where the batch is small), loads x, taps and
// history, then computes, then stores: no load behind a store, no shared memory. Bytes a channel:
// x, y, K - 1 entries read, K - 1 written (1 in a ring), w and bias once for a batch. Bound at
// B = 1: latency, a launch and two trips to memory (slot or position, then state).
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/common_taps.cuh"
#include "lib/cuda/conv1d/update_layout.h"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, int V> struct conv1d_update_bits {
    using element = typename stored<S>::bits;
    static constexpr int log_v = V == 8 ? 3 : V == 4 ? 2 : V == 2 ? 1 : 0;
    using access = raw_elements<S, log_v>;
    static constexpr int words = static_cast<int>(sizeof(access)) / 4;
    static constexpr int in_word = 4 / static_cast<int>(sizeof(element));

    __device__ __forceinline__ static void to_words(const access &r, uint32_t *w) {
        if constexpr (words == 1) {
            w[0] = r;
        } else {
            w[0] = r.x, w[1] = r.y, w[2] = r.z, w[3] = r.w;
        }
    }
    __device__ __forceinline__ static access from_words(const uint32_t *w) {
        if constexpr (words == 1) {
            return w[0];
        } else {
            return access{w[0], w[1], w[2], w[3]};
        }
    }
    __device__ __forceinline__ static uint32_t get(const uint32_t *w, int i) {
        return in_word == 1 ? w[i] : w[i / 2] >> (i % 2 * 16) & 0xffffu;
    }
    /// Sets element i of words that are filled in ascending order.
    __device__ __forceinline__ static void set(uint32_t *w, int i, uint32_t bits) {
        if (i % in_word == 0) {
            w[i / in_word] = bits;
        } else {
            w[i / in_word] |= bits << 16;
        }
    }
};

template <scalar S, int V, int K, conv1d_update_state How>
__device__ __forceinline__ void conv1d_update_body(const conv1d_update_args &a, int64_t row,
                                                   int64_t channel) {
    using io = conv1d_update_bits<S, V>;
    using element = typename io::element;
    using access = typename io::access;
    constexpr int entries = K - 1;
    const access *from = reinterpret_cast<const access *>(static_cast<const element *>(a.x) +
                                                          row * a.x_stride.b + channel);
    const access now = __ldg(from);
    const int64_t slot = a.slots == nullptr ? row : __ldg(a.slots + row);
    int64_t start = 0;
    if (a.position != nullptr) {
        // In 32 bits, which entries of these variants fit.
        const int32_t rest = __ldg(a.position + row) % static_cast<int32_t>(a.entries);
        start = conv1d_ring_entry(0, rest, a.entries);
    }
    const bool live = a.slots == nullptr || (slot != a.pad && slot >= 0 && slot < a.slot_count);
    element *state = static_cast<element *>(a.state) + slot * a.state_stride.b;
    // Places of the accesses: of an entry, or side by side over the channels of the thread.
    access *at[entries];
    access history[entries];
#pragma unroll
    for (int j = 0; j < entries; ++j) {
        int64_t place = channel * entries + j * V;
        if constexpr (How == conv1d_update_state::rows) {
            const int64_t entry =
                a.position == nullptr ? j : conv1d_ring_entry(start, j - entries, a.entries);
            place = entry * a.state_stride.t + channel;
        }
        at[j] = reinterpret_cast<access *>(state + place);
        history[j] = access{};
        if (live) history[j] = *at[j];
    }
    float taps[V][4], bias[V];
    conv1d_load_taps<S>(a, channel, taps, bias);

    uint32_t new_words[io::words], words[entries * io::words];
    io::to_words(now, new_words);
#pragma unroll
    for (int j = 0; j < entries; ++j) io::to_words(history[j], words + j * io::words);
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
    store_elements<S, io::log_v>(a.y, row * a.y_stride.b + channel, out, 1.0f);
    if (!live) return;
    if (a.position != nullptr) {
        __stwb(reinterpret_cast<access *>(state + start * a.state_stride.t + channel), now);
        return;
    }
    uint32_t next[entries * io::words];
#pragma unroll
    for (int e = 0; e < entries * V; ++e) {
        // Element e holds a sample of a channel; it gets the next newer one.
        const int i = How == conv1d_update_state::rows ? e % V : e / entries;
        const int d = entries - (How == conv1d_update_state::rows ? e / V : e % entries);
        io::set(next, e,
                d == 1 ? io::get(new_words, i)
                       : io::get(words, conv1d_update_element(How, V, K, i, d - 1)));
    }
#pragma unroll
    for (int j = 0; j < entries; ++j) __stwb(at[j], io::from_words(next + j * io::words));
}

template <scalar S, int V, int K, conv1d_update_state How>
__global__ void __launch_bounds__(conv1d_update_threads, 4)
    conv1d_update_vector_kernel(const __grid_constant__ conv1d_update_args a) {
    for (uint32_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
        const conv1d_place at =
            conv1d_place_of(a.groups, block, threadIdx.x, conv1d_update_threads);
        if (at.line < a.batch)
            conv1d_update_body<S, V, K, How>(a, at.line, static_cast<int64_t>(at.item) * V);
    }
}

template <scalar S, int V, int K, conv1d_update_state How> kernel_entry conv1d_update_entry() {
    static constexpr conv1d_name name = conv1d_update_variant(S, K, V, How);
    return make_kernel_entry<&conv1d_update_vector_kernel<S, V, K, How>>("conv1d.update",
                                                                         name.text);
}

template <scalar S, conv1d_update_state How> kernel_list conv1d_update_list() {
    constexpr int few = conv1d_update_vector(S, true), many = conv1d_update_vector(S, false);
    static const kernel_entry entries[] = {
        conv1d_update_entry<S, few, 2, How>(),  conv1d_update_entry<S, few, 3, How>(),
        conv1d_update_entry<S, few, 4, How>(),  conv1d_update_entry<S, many, 2, How>(),
        conv1d_update_entry<S, many, 3, How>(), conv1d_update_entry<S, many, 4, How>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
