// conv1d.fwd_masks: masks[row][token] (fwd_masks_layout.h) of rows with ids or packed sequences and
// without a state; a lane looks at a token, those of a word give their fields to its first one.
// Bytes: 4 a token of ids, taps / 8 of masks. Latency: fwd_bct_tiled then reads its masks from L1,
// once for each channel.
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/conv1d/fwd_element.cuh"
#include "lib/cuda/conv1d/fwd_masks_layout.h"

namespace plait::impl::cuda {

/// Bits that are clear in the field of a token.
__device__ __forceinline__ uint32_t conv1d_masked_taps(const conv1d_fwd_args &a, int64_t row,
                                                       int64_t t) {
    const int width = static_cast<int>(a.width);
    const conv1d_sequence s = conv1d_locate(a, row, t);
    const int32_t *ids = a.seq_idx == nullptr ? nullptr : a.seq_idx + row * a.ids_b;
    const int32_t id = ids == nullptr ? 0 : __ldg(ids + t * a.ids_t);
    if (id < 0 || !s.live) return ~0u;
    uint32_t masked = 0;
#pragma unroll 4
    for (int d = 1; d < width; ++d)
        if (t - d < s.begin || (ids != nullptr && __ldg(ids + (t - d) * a.ids_t) != id))
            masked |= 1u << d;
    return masked;
}

__global__ void __launch_bounds__(conv1d_masks_threads)
    conv1d_fwd_masks(const __grid_constant__ conv1d_fwd_args a) {
    start_successor();
    const uint32_t first = wait_for_predecessor();
    const int taps = a.mask_taps, per_word = 32 / taps;
    const uint32_t field = ~0u >> (32 - taps);
    const int64_t fields = conv1d_masks_words(a.length, taps) * per_word; // of a row
    const int64_t all = a.batch * fields;
    const int64_t ahead = static_cast<int64_t>(gridDim.x) * conv1d_masks_threads;
    // whole warps, for the exchange
    for (int64_t i = static_cast<int64_t>(first) * conv1d_masks_threads + threadIdx.x;
         i - threadIdx.x % 32 < all; i += ahead) {
        const int64_t row = i / fields;
        const int64_t t = i - row * fields - int64_t{conv1d_masks_margin} * per_word;
        const int in_word = static_cast<int>(i & (per_word - 1));
        uint32_t masked = 0;
        if (i < all && t >= 0 && t < a.length)
            masked = (conv1d_masked_taps(a, row, t) & field) << (in_word * taps);
        for (int by = 1; by < per_word; by *= 2) masked |= __shfl_xor_sync(0xffffffffu, masked, by);
        if (i < all && in_word == 0) static_cast<uint32_t *>(a.y)[i / per_word] = ~masked;
    }
}

} // namespace plait::impl::cuda
