#include "lib/cuda/conv1d/fwd_any.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_fwd_any() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_fwd_any<float>>("conv1d.fwd_any", "f32"),
        make_kernel_entry<&conv1d_fwd_any<double>>("conv1d.fwd_any", "f64"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
