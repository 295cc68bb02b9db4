#include "lib/cuda/conv1d/bwd_btc_table.cuh"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_btc_odd() {
    static const kernel_entry entries[] = {
        conv1d_bwd_btc_odd_entry<scalar::bf16, 1>(),
        conv1d_bwd_btc_odd_entry<scalar::bf16, 3>(),
        conv1d_bwd_btc_odd_entry<scalar::f16, 1>(),
        conv1d_bwd_btc_odd_entry<scalar::f16, 3>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
