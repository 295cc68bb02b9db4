#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/diagonal.cuh"
#include "lib/cuda/wht/fused_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    constexpr scalar t = scalar::f16;
    static const kernel_entry entries[] = {
        wht_fused_entry<t, N + 3, false>()..., wht_fused_entry<t, N + 3, true>()...,
        wht_diagonal_entry<t, N + 3, 0, false>()..., wht_diagonal_entry<t, N + 3, 0, true>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_fused_f16() { return list(std::make_integer_sequence<int, 13>()); }

} // namespace plait::impl::cuda
