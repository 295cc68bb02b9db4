// What the forward kernels share: arguments, and conv1d.fwd_any. Seen as [row][channel][time]; BCT
// and BTC are strides.
#pragma once

#include "lib/cuda/conv1d/offsets_layout.h"

namespace plait::impl {

struct conv1d_fwd_args {
    const void *x;
    void *y;
    const void *w;
    const void *bias;         ///< or null: 0
    const void *state_in;     ///< or null: zeros before a sequence
    const int32_t *slots;     ///< SLOTS, or live_slots of conv1d.offsets with pad = -1; or null
    const conv1d_span *spans; ///< of conv1d.offsets; null: a sequence is a row
    const int32_t *seq_idx;   ///< or null
    const uint32_t *masks;    ///< of conv1d.fwd_masks, which has them as y; or null: all taps count
    conv1d_strides x_stride, y_stride, state_stride;
    int64_t w_c, w_t, bias_c, ids_b, ids_t; ///< strides of w, bias, seq_idx
    int64_t batch, channels, length, width, entries;
    int64_t sequences, slot_count;
    int32_t pad;
    scalar x_type, y_type, w_type, bias_type, state_type;
    bool silu, residual;
    // Of the kernels with tiles; their layout headers say what they mean.
    bool w_wide, bias_wide, state_wide; ///< f32 beside 16-bit x
    bool w_packed;                      ///< taps of a channel are aligned accesses of four
    bool rows_packed;                   ///< fwd_bct_tiled: rows of x lie behind one another
    bool channels_inner;                ///< fwd_any: threads side by side take channels
    uint32_t blocks;                    ///< that share all work
    conv1d_divisor across, channel_count;
    conv1d_divisor strips; ///< fwd_btc: of a row
    int32_t strip;         ///< fwd_btc: tokens of a thread
    int32_t vectors;       ///< fwd_bct_tiled: of a thread
    int32_t mask_taps;     ///< fwd_masks: bits of a token
    conv1d_divisor of_row; ///< fwd_bct_flat: the length
    uint64_t row_inverse;  ///< fwd_bct_flat: 2^64 / the length, rounded down
};

constexpr int conv1d_fwd_any_threads = 128;

constexpr conv1d_launch conv1d_fwd_any_launch(scalar accumulator, int64_t outputs) {
    conv1d_launch l{};
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(accumulator));
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = conv1d_fwd_any_threads;
    l.grid = conv1d_grid(outputs, l.threads);
    return l;
}

/// The output of thread `index` of fwd_any.
struct conv1d_fwd_output {
    int64_t row, channel, time;
};

PLAIT_HD constexpr conv1d_fwd_output conv1d_fwd_output_of(const conv1d_fwd_args &a, int64_t index) {
    const int64_t inner = a.channels_inner ? a.channels : a.length;
    const int64_t outer = a.channels_inner ? a.length : a.channels;
    const int64_t line = index / inner, i = index - line * inner;
    const int64_t row = line / outer, o = line - row * outer;
    return {row, a.channels_inner ? i : o, a.channels_inner ? o : i};
}

} // namespace plait::impl
