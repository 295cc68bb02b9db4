#include "lib/cuda/conv1d/fwd_table.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_btc_f32() {
    constexpr scalar s = scalar::f32;
    constexpr int v4 = conv1d_btc_vector(s, 4), v8 = conv1d_btc_vector(s, 8),
                  v16 = conv1d_btc_vector(s, 16);
    static const kernel_entry entries[] = {
        conv1d_fwd_btc_entry<s, v4, 4, false>(),   conv1d_fwd_btc_entry<s, v4, 4, true>(),
        conv1d_fwd_btc_entry<s, v8, 8, false>(),   conv1d_fwd_btc_entry<s, v8, 8, true>(),
        conv1d_fwd_btc_entry<s, v16, 16, false>(), conv1d_fwd_btc_entry<s, v16, 16, true>(),
        conv1d_fwd_btc_entry<s, 1, 4, false>(),    conv1d_fwd_btc_entry<s, 1, 4, true>(),
        conv1d_fwd_btc_entry<s, 1, 8, false>(),    conv1d_fwd_btc_entry<s, 1, 8, true>(),
        conv1d_fwd_btc_entry<s, 1, 16, false>(),   conv1d_fwd_btc_entry<s, 1, 16, true>(),
        conv1d_fwd_btc_entry<s, 1, 32, false>(),   conv1d_fwd_btc_entry<s, 1, 32, true>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
