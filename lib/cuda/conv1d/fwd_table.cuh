// Entries of the kernel table for the vector kernels of the forward pass.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/fwd_bct.cuh"
#include "lib/cuda/conv1d/fwd_bct_tiled.cuh"
#include "lib/cuda/conv1d/fwd_btc.cuh"

namespace plait::impl::cuda {

template <scalar S, int Taps, conv1d_bct_rows Rows> kernel_entry conv1d_fwd_bct_tiled_entry() {
    static constexpr conv1d_name name = conv1d_fwd_variant(S, Taps, Rows);
    using rows = conv1d_bct_rows;
    constexpr bool odd = Rows == rows::odd || Rows == rows::masked;
    constexpr bool masked = Rows == rows::masked || Rows == rows::masked_aligned;
    return make_kernel_entry<&conv1d_fwd_bct_tiled<S, Taps, odd, masked, Rows == rows::state>>(
        "conv1d.fwd_bct_tiled", name.text);
}

template <scalar S> kernel_entry conv1d_fwd_bct_entry() {
    static constexpr conv1d_name name = conv1d_fwd_variant(S, 4, conv1d_bct_rows::aligned);
    return make_kernel_entry<&conv1d_fwd_bct<S>>("conv1d.fwd_bct", name.text);
}

/// V = 1: single elements.
template <scalar S, int V, int Taps, bool Full> kernel_entry conv1d_fwd_btc_entry() {
    constexpr bool strided = V == 1;
    constexpr int channels = strided ? conv1d_btc_strided(Taps) : V;
    static constexpr conv1d_name name = conv1d_btc_variant(S, Taps, V, Full);
    return make_kernel_entry<&conv1d_fwd_btc<S, channels, Taps, strided, Full>>("conv1d.fwd_btc",
                                                                                name.text);
}

} // namespace plait::impl::cuda
