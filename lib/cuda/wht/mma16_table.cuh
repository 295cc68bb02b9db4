// Entries of the kernel table for wht.mma16, one for each n of a list.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/mma16.cuh"

#include <utility>

namespace plait::impl::cuda {

template <scalar S, int LogN, bool Vector, bool Both = false> kernel_entry wht_mma16_entry() {
    static_assert(wht_mma16_exists(S, S, LogN), "the planner would not find this instantiation");
    static constexpr variant_name name = wht_mma16_variant(S, LogN, Vector, Both);
    return make_kernel_entry<&wht_mma16<wht_mma16_case<S, LogN, Vector, Both>>>("wht.mma16",
                                                                                name.text);
}

} // namespace plait::impl::cuda
