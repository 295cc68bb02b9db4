// Entries of the kernel table for the fast backward kernels, all of one type.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/bwd_bct.cuh"
#include "lib/cuda/conv1d/bwd_btc.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, int Taps, bool Marked, conv1d_act Act> kernel_entry conv1d_bwd_bct_entry() {
    static const conv1d_name name = conv1d_bwd_variant(S, Taps, Marked, Act == conv1d_act::silu);
    return make_kernel_entry<&conv1d_bwd_bct<conv1d_bwd_case<S, Taps, Marked, Act>>>(
        "conv1d.bwd_bct", name.text);
}

template <scalar S> kernel_list conv1d_bwd_bct_list() {
    constexpr auto none = conv1d_act::none, silu = conv1d_act::silu, asked = conv1d_act::asked;
    static const kernel_entry entries[] = {
        conv1d_bwd_bct_entry<S, 2, false, none>(),  conv1d_bwd_bct_entry<S, 2, false, silu>(),
        conv1d_bwd_bct_entry<S, 3, false, none>(),  conv1d_bwd_bct_entry<S, 3, false, silu>(),
        conv1d_bwd_bct_entry<S, 4, false, none>(),  conv1d_bwd_bct_entry<S, 4, false, silu>(),
        conv1d_bwd_bct_entry<S, 2, true, asked>(),  conv1d_bwd_bct_entry<S, 3, true, asked>(),
        conv1d_bwd_bct_entry<S, 4, true, asked>(),  conv1d_bwd_bct_entry<S, 8, false, asked>(),
        conv1d_bwd_bct_entry<S, 8, true, asked>(),  conv1d_bwd_bct_entry<S, 32, false, asked>(),
        conv1d_bwd_bct_entry<S, 32, true, asked>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

template <scalar S, int Taps, bool Vector, bool Marked, conv1d_act Act>
kernel_entry conv1d_bwd_btc_entry() {
    constexpr int log_vec = conv1d_bwd_btc_log_vec(S, Marked, Vector);
    static const conv1d_name name =
        conv1d_bwd_btc_variant(S, Taps, Marked, Act == conv1d_act::silu, log_vec);
    return make_kernel_entry<&conv1d_bwd_btc<conv1d_btc_case<S, Taps, log_vec, Marked, Act>>>(
        "conv1d.bwd_btc", name.text);
}

template <scalar S> kernel_list conv1d_bwd_btc_list() {
    constexpr auto none = conv1d_act::none, silu = conv1d_act::silu, asked = conv1d_act::asked;
    constexpr bool v = true, e = false;
    static const kernel_entry entries[] = {
        conv1d_bwd_btc_entry<S, 2, v, false, none>(), conv1d_bwd_btc_entry<S, 2, e, false, none>(),
        conv1d_bwd_btc_entry<S, 2, v, false, silu>(), conv1d_bwd_btc_entry<S, 2, e, false, silu>(),
        conv1d_bwd_btc_entry<S, 3, v, false, none>(), conv1d_bwd_btc_entry<S, 3, e, false, none>(),
        conv1d_bwd_btc_entry<S, 3, v, false, silu>(), conv1d_bwd_btc_entry<S, 3, e, false, silu>(),
        conv1d_bwd_btc_entry<S, 4, v, false, none>(), conv1d_bwd_btc_entry<S, 4, e, false, none>(),
        conv1d_bwd_btc_entry<S, 4, v, false, silu>(), conv1d_bwd_btc_entry<S, 4, e, false, silu>(),
        conv1d_bwd_btc_entry<S, 2, v, true, asked>(), conv1d_bwd_btc_entry<S, 2, e, true, asked>(),
        conv1d_bwd_btc_entry<S, 3, v, true, asked>(), conv1d_bwd_btc_entry<S, 3, e, true, asked>(),
        conv1d_bwd_btc_entry<S, 4, v, true, asked>(), conv1d_bwd_btc_entry<S, 4, e, true, asked>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
