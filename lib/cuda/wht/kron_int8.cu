#include "lib/cuda/wht/kron_int8.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

#include <utility>

namespace plait::impl::cuda {

template <scalar X, int LogN> static kernel_entry entry() {
    static_assert(wht_kron_int8_exists(X, X, LogN),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_kron_int8_variant(X, LogN);
    return make_kernel_entry<&wht_kron_int8<wht_kron_int8_case<X, LogN>>>("wht.kron_int8",
                                                                          name.text);
}

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    static const kernel_entry entries[] = {entry<scalar::i32, N + 10>()...,
                                           entry<scalar::f32, N + 10>()...,
                                           entry<scalar::f64, N + 10>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_kron_int8() { return list(std::make_integer_sequence<int, 5>()); }

} // namespace plait::impl::cuda
