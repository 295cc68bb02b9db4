// Entries of the kernel table for the column kernels, one for each log_m of a list.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/wht/columns_shuffle.cuh"
#include "lib/cuda/wht/columns_tiled.cuh"

namespace plait::impl::cuda {

template <scalar X, scalar Y, int LogM, bool Vector = false>
kernel_entry wht_columns_tiled_entry() {
    static_assert(wht_columns_tiled_exists(X, Y, LogM, Vector),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_variant(X, Y, ".k", LogM, Vector);
    return make_kernel_entry<&wht_columns_tiled<wht_columns_tiled_case<X, Y, LogM, Vector>>>(
        "wht.columns_tiled", name.text);
}

template <scalar X, scalar Y, int LogM> kernel_entry wht_columns_shuffle_entry() {
    static_assert(wht_columns_shuffle_exists(X, Y, LogM),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_variant(X, Y, ".k", LogM, true);
    return make_kernel_entry<&wht_columns_shuffle<wht_columns_shuffle_case<X, Y, LogM>>>(
        "wht.columns_shuffle", name.text);
}

} // namespace plait::impl::cuda
