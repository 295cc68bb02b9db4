// kda.bwd_recurrent up to 128 keys, kda.bwd_finish and kda.bwd_params.
#include "lib/cuda/kda/bwd_recurrent.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/bwd_finish.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_bwd_recurrent() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_bwd_recurrent<1>>("kda.bwd_recurrent", "k64"),
        make_kernel_entry<&kda_bwd_recurrent<2>>("kda.bwd_recurrent", "k128"),
        make_kernel_entry<&kda_bwd_finish>("kda.bwd_finish", "all"),
        make_kernel_entry<&kda_bwd_params>("kda.bwd_params", "all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
