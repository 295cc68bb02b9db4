// conv1d.state: state_layout.h. One thread takes all entries of a (sequence, channel), oldest
// first, four at a time: what it reads lies at or behind what it writes, so it works in place for
// every length. Elements keep their bits where the types agree.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/common.cuh"
#include "lib/cuda/conv1d/state_layout.h"

namespace plait::impl::cuda {

/// What entry i will hold: the bits in the type of STATE_OUT, or a double where the types differ.
struct conv1d_state_source {
    int64_t x, in;       ///< first elements: of the sequence in x, of the state
    int64_t first;       ///< position of entry 0, from the sequence's first token
    int64_t ids;         ///< of the row in seq_idx
    int32_t last;        ///< id of the last token
    bool any, ids_count; ///< else all is 0; ids decide
};

__device__ __forceinline__ uint64_t conv1d_state_entry(const conv1d_state_args &a,
                                                       const conv1d_state_source &s, int64_t i,
                                                       scalar *type) {
    const int64_t p = s.first + i;
    *type = a.out_type;
    if (!s.any || i >= a.entries || (p < 0 && a.state_in == nullptr)) return 0;
    if (s.ids_count && a.seq_idx[s.ids + (p < 0 ? 0 : p) * a.ids_t] != s.last) return 0;
    *type = p < 0 ? a.in_type : a.x_type;
    return p < 0 ? conv1d_load_bits(a.state_in, s.in + (p + a.entries) * a.in_stride.t, a.in_type)
                 : conv1d_load_bits(a.x, s.x + p * a.x_stride.t, a.x_type);
}

__device__ __forceinline__ void conv1d_state_row(const conv1d_state_args &a, int64_t sequence,
                                                 int64_t channel) {
    int64_t row = sequence;
    if (a.slots != nullptr) {
        const int32_t slot = a.slots[sequence];
        if (slot == a.pad || slot < 0 || slot >= a.slot_count) return;
        row = slot;
    }
    conv1d_state_source s{};
    const int64_t batch = a.spans != nullptr ? 0 : sequence;
    int64_t begin = 0, length = a.length;
    s.any = true;
    if (a.spans != nullptr) {
        begin = a.spans[sequence].begin;
        length = a.spans[sequence].end - begin;
        s.any = length >= 0;
    }
    s.x = batch * a.x_stride.b + channel * a.x_stride.c + begin * a.x_stride.t;
    s.in = row * a.in_stride.b + channel * a.in_stride.c;
    s.first = length - a.entries;
    if (a.seq_idx != nullptr && length > 0) {
        s.ids = batch * a.ids_b;
        s.last = a.seq_idx[s.ids + (length - 1) * a.ids_t];
        s.ids_count = true;
        s.any = s.last >= 0;
    }
    const int64_t out = row * a.out_stride.b + channel * a.out_stride.c;
    for (int64_t i = 0; i < a.entries; i += 4) {
        uint64_t bits[4];
        scalar type[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) bits[j] = conv1d_state_entry(a, s, i + j, &type[j]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (i + j >= a.entries) break;
            const int64_t to = out + (i + j) * a.out_stride.t;
            if (type[j] == a.out_type) {
                conv1d_store_bits(a.state_out, to, a.out_type, bits[j]);
            } else {
                conv1d_store(a.state_out, to, a.out_type, conv1d_widen_bits(bits[j], type[j]));
            }
        }
    }
}

__global__ void __launch_bounds__(conv1d_state_threads)
    conv1d_state(const __grid_constant__ conv1d_state_args a) {
    start_successor();
    const uint32_t first = wait_for_predecessor();
    const int64_t all = a.sequences * a.channels;
    const int64_t ahead = static_cast<int64_t>(gridDim.x) * conv1d_state_threads;
    for (int64_t i = static_cast<int64_t>(first) * conv1d_state_threads + threadIdx.x; i < all;
         i += ahead) {
        const conv1d_state_place at = conv1d_state_place_of(a, i);
        conv1d_state_row(a, at.sequence, at.channel);
    }
}

} // namespace plait::impl::cuda
