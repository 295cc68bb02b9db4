// Entries of the kernel table for wht.fused, natural and ordered, one for each n of a list.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/fused.cuh"

namespace plait::impl::cuda {

template <scalar S, int LogN, bool Ordered> kernel_entry wht_fused_entry() {
    static_assert(wht_fused_exists(S, LogN), "the planner would not find this instantiation");
    static constexpr variant_name name = wht_fused_variant(S, LogN, Ordered);
    return make_kernel_entry<&wht_fused<wht_fused_case<S, LogN, Ordered>>>("wht.fused", name.text);
}

} // namespace plait::impl::cuda
