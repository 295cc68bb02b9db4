#include "lib/cuda/conv1d/fwd_masks.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_masks() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_fwd_masks>("conv1d.fwd_masks", "all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
