#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/any.cuh"

namespace plait::impl::cuda {

template <wht_any_number N> static kernel_entry entry() {
    return make_kernel_entry<&wht_any<N>>("wht.any", wht_any_number_name(N));
}

kernel_list list_wht_any_integer() {
    static const kernel_entry entries[] = {
        entry<wht_any_number::i32>(), entry<wht_any_number::i64>(),
        entry<wht_any_number::checked32>(), entry<wht_any_number::checked64>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
