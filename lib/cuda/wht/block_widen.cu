#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_table.cuh"

#include <utility>

namespace plait::impl::cuda {

// First passes of 16-bit transforms that keep f32 between passes; n = 2^10..2^15.
template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    static const kernel_entry entries[] = {
        wht_block_entry<scalar::f16, scalar::f32, N + 10, true>()...,
        wht_block_entry<scalar::f16, scalar::f32, N + 10, false>()...,
        wht_block_entry<scalar::bf16, scalar::f32, N + 10, true>()...,
        wht_block_entry<scalar::bf16, scalar::f32, N + 10, false>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_block_widen() { return list(std::make_integer_sequence<int, 6>()); }

} // namespace plait::impl::cuda
