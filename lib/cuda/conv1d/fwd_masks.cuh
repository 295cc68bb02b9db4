// conv1d.fwd_masks: masks[row][token] (fwd_masks_layout.h) of rows with ids and without a state; a
// thread makes a word, the fields of 32 / taps tokens. Bytes: 4 a token of ids, taps / 8 of masks.
// Latency, 8 us: fwd_bct_tiled then reads its masks from L1, once for each channel.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_element.cuh"
#include "lib/cuda/conv1d/fwd_masks_layout.h"

namespace plait::impl::cuda {

/// Bits that are clear in the field of a token.
__device__ __forceinline__ uint32_t conv1d_masked_taps(const conv1d_fwd_args &a, int64_t row,
                                                       int64_t t) {
    const int width = static_cast<int>(a.width);
    const int32_t *ids = a.seq_idx + row * a.ids_b;
    const int32_t id = __ldg(ids + t * a.ids_t);
    if (id < 0 || !conv1d_sequence_of(a, row).live) return ~0u;
    uint32_t masked = 0;
    for (int d = 1; d < width; ++d)
        if (t < d || __ldg(ids + (t - d) * a.ids_t) != id) masked |= 1u << d;
    return masked;
}

__global__ void __launch_bounds__(conv1d_masks_threads)
    conv1d_fwd_masks(const __grid_constant__ conv1d_fwd_args a) {
    start_successor();
    const uint32_t first = wait_for_predecessor();
    const int taps = a.mask_taps, per_word = 32 / taps;
    const uint32_t field = ~0u >> (32 - taps);
    const int64_t words = conv1d_masks_words(a.length, taps), all = a.batch * words;
    const int64_t ahead = static_cast<int64_t>(gridDim.x) * conv1d_masks_threads;
    for (int64_t i = static_cast<int64_t>(first) * conv1d_masks_threads + threadIdx.x; i < all;
         i += ahead) {
        const int64_t row = i / words;
        const int64_t t0 = (i - row * words - conv1d_masks_margin) * per_word;
        uint32_t masked = 0;
        for (int j = 0; j < per_word; ++j)
            if (t0 + j >= 0 && t0 + j < a.length)
                masked |= (conv1d_masked_taps(a, row, t0 + j) & field) << (j * taps);
        static_cast<uint32_t *>(a.y)[i] = ~masked;
    }
}

} // namespace plait::impl::cuda
