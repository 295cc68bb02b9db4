#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/l2_table.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    static const kernel_entry entries[] = {
        wht_l2_entry<scalar::f64, N + 16>()...,
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_l2_f64() { return list(std::make_integer_sequence<int, 6>()); }

} // namespace plait::impl::cuda
