#include "lib/cuda/conv1d/fwd_btc_pairs.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, bool Odd> kernel_entry conv1d_fwd_btc_pairs_entry() {
    static constexpr conv1d_name name = conv1d_btc_pairs_variant(S, Odd);
    return make_kernel_entry<&conv1d_fwd_btc_pairs<S, Odd>>("conv1d.fwd_btc", name.text);
}

kernel_list list_conv1d_fwd_btc_pairs() {
    static const kernel_entry entries[] = {
        conv1d_fwd_btc_pairs_entry<scalar::bf16, false>(),
        conv1d_fwd_btc_pairs_entry<scalar::bf16, true>(),
        conv1d_fwd_btc_pairs_entry<scalar::f16, false>(),
        conv1d_fwd_btc_pairs_entry<scalar::f16, true>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
