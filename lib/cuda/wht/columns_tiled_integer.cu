#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/columns_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... K> static kernel_list list(std::integer_sequence<int, K...>) {
    static const kernel_entry entries[] = {
        wht_columns_tiled_entry<scalar::i32, scalar::i32, K + 1>()...,
        wht_columns_tiled_entry<scalar::i64, scalar::i64, K + 1>()...,
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_columns_tiled_integer() { return list(std::make_integer_sequence<int, 12>()); }

} // namespace plait::impl::cuda
