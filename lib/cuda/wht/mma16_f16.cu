#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/mma16_e4m3.cuh"
#include "lib/cuda/wht/mma16_table.cuh"

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    constexpr scalar t = scalar::f16;
    static const kernel_entry entries[] = {
        wht_mma16_entry<t, N + 7, true>()..., wht_mma16_entry<t, N + 7, false>()...,
        wht_mma16_entry<t, 15, true, true>(), wht_mma16_e4m3_entry<t, N + 7>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_mma16_f16() { return list(std::make_integer_sequence<int, 9>()); }

} // namespace plait::impl::cuda
