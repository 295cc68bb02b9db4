#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    constexpr scalar t = scalar::i32;
    static const kernel_entry entries[] = {wht_block_entry<t, t, N, true>()...,
                                           wht_block_entry<t, t, N, false>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_block_i32() { return list(std::make_integer_sequence<int, 17>()); }

} // namespace plait::impl::cuda
