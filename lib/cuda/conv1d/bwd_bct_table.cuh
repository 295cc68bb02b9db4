// Entries of the kernel table for conv1d.bwd_bct, all of one type.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/bwd_bct.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, int Taps, bool Marked, conv1d_act Act> kernel_entry conv1d_bwd_bct_entry() {
    static const conv1d_name name =
        conv1d_bwd_bct_variant(S, Taps, Marked, Act != conv1d_act::asked, Act == conv1d_act::silu);
    return make_kernel_entry<&conv1d_bwd_bct<conv1d_bwd_case<S, Taps, Marked, Act>>>(
        "conv1d.bwd_bct", name.text);
}

template <scalar S> kernel_list conv1d_bwd_bct_list() {
    constexpr auto none = conv1d_act::none, silu = conv1d_act::silu, asked = conv1d_act::asked;
    static const kernel_entry entries[] = {
        conv1d_bwd_bct_entry<S, 2, false, none>(),  conv1d_bwd_bct_entry<S, 2, false, silu>(),
        conv1d_bwd_bct_entry<S, 3, false, none>(),  conv1d_bwd_bct_entry<S, 3, false, silu>(),
        conv1d_bwd_bct_entry<S, 4, false, none>(),  conv1d_bwd_bct_entry<S, 4, false, silu>(),
        conv1d_bwd_bct_entry<S, 2, true, none>(),   conv1d_bwd_bct_entry<S, 2, true, silu>(),
        conv1d_bwd_bct_entry<S, 3, true, none>(),   conv1d_bwd_bct_entry<S, 3, true, silu>(),
        conv1d_bwd_bct_entry<S, 4, true, none>(),   conv1d_bwd_bct_entry<S, 4, true, silu>(),
        conv1d_bwd_bct_entry<S, 8, false, silu>(),  conv1d_bwd_bct_entry<S, 8, false, asked>(),
        conv1d_bwd_bct_entry<S, 8, true, asked>(),  conv1d_bwd_bct_entry<S, 32, false, asked>(),
        conv1d_bwd_bct_entry<S, 32, true, asked>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
