// The registers of the channels of a thread of conv1d.update.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/conv1d/update_layout.h"

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
        } else if constexpr (words == 2) {
            w[0] = r.x, w[1] = r.y;
        } else {
            w[0] = r.x, w[1] = r.y, w[2] = r.z, w[3] = r.w;
        }
    }
    __device__ __forceinline__ static access from_words(const uint32_t *w) {
        if constexpr (words == 1) {
            return w[0];
        } else if constexpr (words == 2) {
            return access{w[0], w[1]};
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

    /// Rounded once.
    __device__ __forceinline__ static access round(const float (&out)[V]) {
        uint32_t w[words];
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if constexpr (in_word == 1) {
                w[i] = __float_as_uint(out[i]);
            } else if (i % 2 == 0) {
                w[i / 2] = round_pair<S>(out[i], out[i + 1]);
            }
        }
        return from_words(w);
    }
    /// The history behind one more sample: element e holds a sample of a channel and gets the next
    /// newer one.
    template <int Entries, conv1d_update_state How>
    __device__ __forceinline__ static void advance(const access &now, const uint32_t *old,
                                                   uint32_t *next) {
        constexpr bool lines = How == conv1d_update_state::lines;
        uint32_t new_words[words];
        to_words(now, new_words);
#pragma unroll
        for (int e = 0; e < Entries * V; ++e) {
            const int i = lines ? e / Entries : e % V;
            const int d = Entries - (lines ? e % Entries : e / V);
            set(next, e,
                d == 1 ? get(new_words, i)
                       : get(old, conv1d_update_element(How, V, Entries + 1, i, d - 1)));
        }
    }
};

} // namespace plait::impl::cuda
