// conv1d.offsets and conv1d.state.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/offsets.cuh"
#include "lib/cuda/conv1d/state.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_common() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_offsets>("conv1d.offsets", "all"),
        make_kernel_entry<&conv1d_state>("conv1d.state", "all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
