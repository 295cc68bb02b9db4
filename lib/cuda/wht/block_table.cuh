// Entries of the kernel table for wht.block, one for each n of a list.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/block.cuh"

namespace plait::impl::cuda {

template <scalar X, scalar Y, int LogN, bool Vector, int Parts = 0> kernel_entry wht_block_entry() {
    static_assert(wht_block_exists(X, Y, LogN, Parts),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_block_variant(X, Y, LogN, Vector, Parts);
    return make_kernel_entry<&wht_block<wht_block_case<X, Y, LogN, Vector, Parts>>>("wht.block",
                                                                                    name.text);
}

} // namespace plait::impl::cuda
