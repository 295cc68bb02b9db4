#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/mma16_narrow.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    static const kernel_entry entries[] = {wht_mma16_narrow_entry<scalar::b1, N + 7>()...,
                                           wht_mma16_narrow_entry<scalar::i8, N + 7>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_mma16_narrow() { return list(std::make_integer_sequence<int, 9>()); }

} // namespace plait::impl::cuda
