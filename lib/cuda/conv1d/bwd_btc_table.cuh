// Entries of the kernel table for conv1d.bwd_btc, all of one type.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/bwd_btc.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, int Taps, bool Loose, conv1d_act Act> kernel_entry conv1d_bwd_btc_entry() {
    static const conv1d_name name = conv1d_bwd_btc_variant(S, Taps, Act == conv1d_act::silu, Loose);
    return make_kernel_entry<&conv1d_bwd_btc<conv1d_btc_case<S, Taps, Loose, Act>>>(
        "conv1d.bwd_btc", name.text);
}

template <scalar S, int Residue> kernel_entry conv1d_bwd_btc_odd_entry() {
    static const conv1d_name name = conv1d_bwd_btc_variant(S, 4, true, true, Residue);
    return make_kernel_entry<
        &conv1d_bwd_btc<conv1d_btc_case<S, 4, true, conv1d_act::silu, Residue>>>("conv1d.bwd_btc",
                                                                                 name.text);
}

template <scalar S> kernel_list conv1d_bwd_btc_list() {
    constexpr auto none = conv1d_act::none, silu = conv1d_act::silu;
    constexpr bool v = false, l = true;
    static const kernel_entry entries[] = {
        conv1d_bwd_btc_entry<S, 2, v, none>(), conv1d_bwd_btc_entry<S, 2, l, none>(),
        conv1d_bwd_btc_entry<S, 2, v, silu>(), conv1d_bwd_btc_entry<S, 2, l, silu>(),
        conv1d_bwd_btc_entry<S, 3, v, none>(), conv1d_bwd_btc_entry<S, 3, l, none>(),
        conv1d_bwd_btc_entry<S, 3, v, silu>(), conv1d_bwd_btc_entry<S, 3, l, silu>(),
        conv1d_bwd_btc_entry<S, 4, v, none>(), conv1d_bwd_btc_entry<S, 4, l, none>(),
        conv1d_bwd_btc_entry<S, 4, v, silu>(), conv1d_bwd_btc_entry<S, 4, l, silu>(),
        conv1d_bwd_btc_entry<S, 8, v, none>(), conv1d_bwd_btc_entry<S, 8, l, none>(),
        conv1d_bwd_btc_entry<S, 8, v, silu>(), conv1d_bwd_btc_entry<S, 8, l, silu>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
