#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/diagonal.cuh"
#include "lib/cuda/wht/fused_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    constexpr scalar t = scalar::f64;
    static const kernel_entry entries[] = {
        wht_fused_entry<t, N + 1, false>()...,       wht_fused_entry<t, N + 1, true>()...,
        wht_diagonal_entry<t, N + 1, 0, false>()..., wht_diagonal_entry<t, N + 1, 0, true>()...,
        wht_diagonal_entry<t, N + 1, 1, false>()..., wht_diagonal_entry<t, N + 1, 1, true>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_fused_f64() { return list(std::make_integer_sequence<int, 14>()); }

} // namespace plait::impl::cuda
