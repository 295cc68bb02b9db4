#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/bwd_bct_fix.cuh"
#include "lib/cuda/conv1d/bwd_state.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S, int Taps> kernel_entry conv1d_bwd_bct_fix_entry() {
    static const conv1d_name name = conv1d_bwd_fix_variant(S, Taps);
    return make_kernel_entry<&conv1d_bwd_bct_fix<S, Taps>>("conv1d.bwd_bct_fix", name.text);
}

template <scalar S> kernel_entry conv1d_bwd_state_entry() {
    static const conv1d_name name = conv1d_bwd_fix_variant(S, 4);
    return make_kernel_entry<&conv1d_bwd_state_near<S, 4>>("conv1d.bwd_state", name.text);
}

kernel_list list_conv1d_bwd_bct_fix() {
    static const kernel_entry entries[] = {
        conv1d_bwd_bct_fix_entry<scalar::bf16, 4>(),  conv1d_bwd_bct_fix_entry<scalar::bf16, 8>(),
        conv1d_bwd_bct_fix_entry<scalar::bf16, 32>(), conv1d_bwd_bct_fix_entry<scalar::f16, 4>(),
        conv1d_bwd_bct_fix_entry<scalar::f16, 8>(),   conv1d_bwd_bct_fix_entry<scalar::f16, 32>(),
        conv1d_bwd_bct_fix_entry<scalar::f32, 4>(),   conv1d_bwd_bct_fix_entry<scalar::f32, 8>(),
        conv1d_bwd_bct_fix_entry<scalar::f32, 32>(),  conv1d_bwd_state_entry<scalar::bf16>(),
        conv1d_bwd_state_entry<scalar::f16>(),        conv1d_bwd_state_entry<scalar::f32>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
