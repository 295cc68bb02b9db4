#include "lib/cuda/conv1d/fwd_bct_flat.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

template <scalar S> kernel_entry conv1d_fwd_bct_flat_entry() {
    static constexpr conv1d_name name = conv1d_fwd_flat_variant(S);
    return make_kernel_entry<&conv1d_fwd_bct_flat<S>>("conv1d.fwd_bct_tiled", name.text);
}

kernel_list list_conv1d_fwd_bct_flat() {
    static const kernel_entry entries[] = {
        conv1d_fwd_bct_flat_entry<scalar::bf16>(),
        conv1d_fwd_bct_flat_entry<scalar::f16>(),
        conv1d_fwd_bct_flat_entry<scalar::f32>(),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
