// The list of wht.block_factor of a type: every matrix, or every order where the matrix is an
// argument.
#pragma once

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/block_factor.cuh"

namespace plait::impl::cuda {

template <scalar S, wht_factor F, bool Adjoint = false> kernel_entry wht_block_factor_entry() {
    static constexpr variant_name name = wht_block_factor_variant(S, F, Adjoint);
    if constexpr (wht_is_half(S)) {
        using product = wht_block_factor_product_case<S, wht_factor_order(F)>;
        return make_kernel_entry<&wht_block_factor<product>>("wht.block_factor", name.text);
    } else {
        return make_kernel_entry<&wht_block_factor<wht_block_factor_case<S, F, Adjoint>>>(
            "wht.block_factor", name.text);
    }
}

template <scalar S> kernel_list wht_block_factor_list() {
    if constexpr (wht_is_half(S)) {
        static const kernel_entry entries[] = {
            wht_block_factor_entry<S, wht_factor::h12_sloane>(),
            wht_block_factor_entry<S, wht_factor::h20_williamson>(),
            wht_block_factor_entry<S, wht_factor::h28_williamson>(),
            wht_block_factor_entry<S, wht_factor::h40>()};
        return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
    } else {
        static const kernel_entry entries[] = {
            wht_block_factor_entry<S, wht_factor::h12_paley2>(),
            wht_block_factor_entry<S, wht_factor::h12_sloane>(),
            wht_block_factor_entry<S, wht_factor::h12_sloane, true>(),
            wht_block_factor_entry<S, wht_factor::h20_williamson>(),
            wht_block_factor_entry<S, wht_factor::h20_williamson, true>(),
            wht_block_factor_entry<S, wht_factor::h28_williamson>(),
            wht_block_factor_entry<S, wht_factor::h28_williamson, true>(),
            wht_block_factor_entry<S, wht_factor::h40>(),
            wht_block_factor_entry<S, wht_factor::h40, true>()};
        return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
    }
}

} // namespace plait::impl::cuda
