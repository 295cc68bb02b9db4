#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/bwd_btc_fix.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_btc_fix() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_bwd_btc_marks>("conv1d.bwd_btc_marks", "all"),
        make_kernel_entry<&conv1d_bwd_btc_fix<false>>("conv1d.bwd_btc_fix", "f32"),
        make_kernel_entry<&conv1d_bwd_btc_fix<true>>("conv1d.bwd_btc_fix", "half"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
