#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_e4m3.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    static const kernel_entry entries[] = {wht_block_e4m3_entry<scalar::f16, 7 + N>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_block_e4m3_f16() { return list(std::make_integer_sequence<int, 9>()); }

} // namespace plait::impl::cuda
