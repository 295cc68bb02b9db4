#include "lib/cuda/conv1d/fwd_btc_shift.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, int Residue> kernel_entry conv1d_fwd_btc_shift_entry() {
    static constexpr conv1d_name name = conv1d_btc_shift_variant(S, Residue);
    return make_kernel_entry<&conv1d_fwd_btc_shift<S, Residue>>("conv1d.fwd_btc", name.text);
}

kernel_list list_conv1d_fwd_btc_shift() {
    static const kernel_entry entries[] = {
        conv1d_fwd_btc_shift_entry<scalar::bf16, 1>(),
        conv1d_fwd_btc_shift_entry<scalar::bf16, 3>(),
        conv1d_fwd_btc_shift_entry<scalar::bf16, 5>(),
        conv1d_fwd_btc_shift_entry<scalar::bf16, 7>(),
        conv1d_fwd_btc_shift_entry<scalar::f16, 1>(),
        conv1d_fwd_btc_shift_entry<scalar::f16, 3>(),
        conv1d_fwd_btc_shift_entry<scalar::f16, 5>(),
        conv1d_fwd_btc_shift_entry<scalar::f16, 7>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
