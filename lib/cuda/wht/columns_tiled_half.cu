#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/columns_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... K> static kernel_list list(std::integer_sequence<int, K...>) {
    static const kernel_entry entries[] = {
        wht_columns_tiled_entry<scalar::f16, scalar::f16, K + 1>()...,
        wht_columns_tiled_entry<scalar::bf16, scalar::bf16, K + 1>()...,
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

template <int... K> static kernel_list pairs(std::integer_sequence<int, K...>) {
    static const kernel_entry entries[] = {
        wht_columns_tiled_entry<scalar::f16, scalar::f16, K + 5, true>()...,
        wht_columns_tiled_entry<scalar::bf16, scalar::bf16, K + 5, true>()...,
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_columns_tiled_half() { return list(std::make_integer_sequence<int, 12>()); }

kernel_list list_wht_columns_tiled_pairs() { return pairs(std::make_integer_sequence<int, 6>()); }

} // namespace plait::impl::cuda
