#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/conv1d/bwd_any.cuh"
#include "lib/cuda/conv1d/bwd_finish.cuh"
#include "lib/cuda/conv1d/bwd_marks.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_conv1d_bwd_any() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&conv1d_bwd_any<float>>("conv1d.bwd_any", "f32"),
        make_kernel_entry<&conv1d_bwd_any<double>>("conv1d.bwd_any", "f64"),
        make_kernel_entry<&conv1d_bwd_marks>("conv1d.bwd_marks", "all"),
        make_kernel_entry<&conv1d_bwd_state<float>>("conv1d.bwd_state", "f32"),
        make_kernel_entry<&conv1d_bwd_state<double>>("conv1d.bwd_state", "f64"),
        make_kernel_entry<&conv1d_bwd_reduce<float>>("conv1d.bwd_reduce", "f32"),
        make_kernel_entry<&conv1d_bwd_reduce<double>>("conv1d.bwd_reduce", "f64"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
