// Entries of the kernel table for wht.cluster.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/cluster.cuh"

namespace plait::impl::cuda {

template <scalar X, int LogN> kernel_entry wht_cluster_entry() {
    static_assert(wht_cluster_exists(X, LogN), "the planner would not find this instantiation");
    static constexpr variant_name name = wht_variant(X, X, ".n", LogN, true);
    return make_kernel_entry<&wht_cluster<wht_cluster_case<X, LogN>>>("wht.cluster", name.text);
}

} // namespace plait::impl::cuda
