#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/kron_tf32.cuh"

#include <utility>

namespace plait::impl::cuda {

template <int LogN, int Terms> static kernel_entry entry() {
    static_assert(wht_kron_tf32_exists(scalar::f32, scalar::f32, LogN, Terms),
                  "the planner would not find this instantiation");
    static constexpr variant_name name = wht_kron_tf32_variant(LogN, Terms);
    return make_kernel_entry<&wht_kron_tf32<wht_kron_tf32_case<LogN, Terms>>>("wht.kron_tf32",
                                                                              name.text);
}

template <int... N> static kernel_list list(std::integer_sequence<int, N...>) {
    static const kernel_entry entries[] = {entry<N + 9, 1>()..., entry<N + 9, 3>()...};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

kernel_list list_wht_kron_tf32() { return list(std::make_integer_sequence<int, 6>()); }

} // namespace plait::impl::cuda
