// Layout of conv1d.state: the last `entries` inputs of every sequence to STATE_OUT. It runs behind
// the kernel that reads STATE_IN, so STATE_OUT may be STATE_IN.
//
//   state_out[i] = xe[length - entries + i];    entries of another id than the last token's are 0
#pragma once

#include "lib/cuda/conv1d/offsets_layout.h"

namespace plait::impl {

struct conv1d_state_args {
    const void *x;
    const void *state_in;     ///< null: zeros before the sequence
    const int32_t *slots;     ///< SLOTS, or live_slots of conv1d.offsets with pad = -1; or null
    const conv1d_span *spans; ///< of conv1d.offsets; null: sequence r is row r
    const int32_t *seq_idx;   ///< or null
    void *state_out;
    conv1d_strides x_stride, in_stride, out_stride;
    int64_t ids_b, ids_t; ///< strides of seq_idx
    int64_t sequences, channels, length, entries;
    int64_t slot_count;
    int32_t pad;
    scalar x_type, in_type, out_type;
};

constexpr int conv1d_state_threads = 128;

constexpr conv1d_launch conv1d_state_launch(int64_t sequences, int64_t channels) {
    return {"all", conv1d_state_threads, conv1d_grid(sequences * channels, conv1d_state_threads),
            0};
}

/// The element of thread `index`: channels next to one another.
struct conv1d_state_place {
    int64_t sequence, channel;
};

PLAIT_HD constexpr conv1d_state_place conv1d_state_place_of(const conv1d_state_args &a,
                                                            int64_t index) {
    const int64_t sequence = index / a.channels;
    return {sequence, index - sequence * a.channels};
}

} // namespace plait::impl
