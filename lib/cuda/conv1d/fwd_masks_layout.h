// Layout of conv1d.fwd_masks: which taps of a token count, where a row is not one live sequence.
// A row of masks holds a field of `taps` bits for each token, token 0 first, with words of ones in
// front of it and behind it for vectors that reach over the edges of the row. Bit d of a field: the
// sample d before the token counts; bit 0 is clear where y is 0. Bits from the width on are set.
#pragma once

#include "lib/cuda/conv1d/fwd_layout.h"

namespace plait::impl {

constexpr int conv1d_masks_threads = 128;

/// Words in front of a row, and behind it: eight tokens of 32 taps.
constexpr int conv1d_masks_margin = 8;

PLAIT_HD constexpr int64_t conv1d_masks_words(int64_t length, int taps) {
    return (length * taps + 31) / 32 + 2 * conv1d_masks_margin;
}

constexpr int64_t conv1d_masks_bytes(int64_t batch, int64_t length, int taps) {
    return batch * conv1d_masks_words(length, taps) * 4;
}

/// Where the field of token t begins: a word of the row, and a bit of it.
struct conv1d_mask_place {
    int32_t word, bit;
};

PLAIT_HD constexpr conv1d_mask_place conv1d_mask_place_of(int32_t t, int taps) {
    const int per_word = 32 / taps; // a power of two
    const int32_t from = t + conv1d_masks_margin * per_word;
    return {from / per_word, from % per_word * taps};
}

constexpr conv1d_launch conv1d_fwd_masks_launch(conv1d_fwd_args &a, int taps) {
    a.mask_taps = taps;
    conv1d_launch l{};
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, "all");
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = conv1d_masks_threads;
    l.grid = conv1d_grid(a.batch * conv1d_masks_words(a.length, taps) * (32 / taps), l.threads);
    return l;
}

} // namespace plait::impl
