#include "lib/cuda/conv1d/update_any.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_update_any() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_update_any<float>>("conv1d.update", "any.f32"),
        make_kernel_entry<&conv1d_update_any<double>>("conv1d.update", "any.f64"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
