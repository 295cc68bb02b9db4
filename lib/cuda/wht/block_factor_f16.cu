#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_factor.cuh"

namespace plait::impl::cuda {

template <wht_factor F, bool Adjoint = false> static kernel_entry entry() {
    constexpr scalar t = scalar::f16;
    static constexpr variant_name name = wht_block_factor_variant(t, F, Adjoint);
    return make_kernel_entry<&wht_block_factor<wht_block_factor_case<t, F, Adjoint>>>(
        "wht.block_factor", name.text);
}

kernel_list list_wht_block_factor_f16() {
    static const kernel_entry entries[] = {entry<wht_factor::h12_paley2>(),
                                           entry<wht_factor::h12_sloane>(),
                                           entry<wht_factor::h12_sloane, true>(),
                                           entry<wht_factor::h20_williamson>(),
                                           entry<wht_factor::h20_williamson, true>(),
                                           entry<wht_factor::h28_williamson>(),
                                           entry<wht_factor::h28_williamson, true>(),
                                           entry<wht_factor::h40>(),
                                           entry<wht_factor::h40, true>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
