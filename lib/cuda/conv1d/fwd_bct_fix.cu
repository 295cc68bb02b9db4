#include "lib/cuda/conv1d/fwd_bct_fix.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_bct_fix() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_fwd_bct_fix<scalar::f32>>("conv1d.fwd_bct_fix", "f32"),
        make_kernel_entry<&conv1d_fwd_bct_fix<scalar::f16>>("conv1d.fwd_bct_fix", "f16"),
        make_kernel_entry<&conv1d_fwd_bct_fix<scalar::bf16>>("conv1d.fwd_bct_fix", "bf16"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
