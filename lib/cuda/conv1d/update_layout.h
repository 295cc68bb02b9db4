// conv1d.update: `length` new samples a row, the state changed in place. Linear: the state becomes
// the last `entries` of (state, x). Ring: sample s goes to entry (position + s) mod entries.
#pragma once

#include "lib/cuda/conv1d/common_layout.h"

namespace plait::impl {

struct conv1d_update_args {
    const void *x;
    void *y;
    const void *w;
    const void *bias; ///< or null: 0
    void *state;
    const int32_t *position; ///< of a ring; null: linear
    const int32_t *slots;    ///< SLOTS, or live_slots of conv1d.offsets with pad = -1; or null
    conv1d_strides x_stride, y_stride, state_stride;
    int64_t w_c, w_t, bias_c;
    int64_t batch, channels, length, width, entries;
    int64_t slot_count;
    int32_t pad;
    scalar x_type, y_type, w_type, bias_type, state_type;
    bool silu, residual;
    bool w_wide, bias_wide;        ///< f32 beside 16-bit x; vector variants only
    conv1d_divisor channel_groups; ///< of the vector variants
};

constexpr int conv1d_update_threads = 64; ///< small blocks: a single row fills more SMs

constexpr conv1d_launch conv1d_update_any_launch(scalar accumulator, int64_t rows,
                                                 int64_t channels) {
    conv1d_launch l{};
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, "any.");
    conv1d_append(name, at, scalar_name(accumulator));
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = conv1d_update_threads;
    l.grid = conv1d_grid(rows * channels, l.threads);
    return l;
}

/// Entry 0 of what precedes the sample at a position: negative positions count too.
PLAIT_HD constexpr int64_t conv1d_ring_start(int64_t position, int64_t entries) {
    const int64_t rest = position % entries;
    return rest < 0 ? rest + entries : rest;
}

/// Entry of position p from a start, -entries <= p < entries.
PLAIT_HD constexpr int64_t conv1d_ring_entry(int64_t start, int64_t p, int64_t entries) {
    const int64_t i = start + p;
    return i < 0 ? i + entries : i >= entries ? i - entries : i;
}

} // namespace plait::impl
