#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    constexpr scalar t = scalar::f64;
    static const kernel_entry entries[] = {wht_block_entry<t, t, N + 1, true, 1>()...,
                                           wht_block_entry<t, t, N + 1, false, 1>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_block_c128() { return list(std::make_integer_sequence<int, 15>()); }

} // namespace plait::impl::cuda
