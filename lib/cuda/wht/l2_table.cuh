// Entries of the kernel table for wht.l2, one for each n of a list.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/l2.cuh"

namespace plait::impl::cuda {

template <scalar X, int LogN> kernel_entry wht_l2_entry() {
    static_assert(wht_l2_exists(X, LogN), "the planner would not find this instantiation");
    static constexpr variant_name name = wht_variant(X, X, ".n", LogN, true);
    return make_kernel_entry<&wht_l2<wht_l2_case<X, LogN>>>("wht.l2", name.text);
}

} // namespace plait::impl::cuda
