#include "lib/cuda/kda/fwd_recurrent.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/fwd_recurrent_any.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_fwd_recurrent() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_fwd_recurrent<1>>("kda.fwd_recurrent", "k64"),
        make_kernel_entry<&kda_fwd_recurrent<2>>("kda.fwd_recurrent", "k128"),
        make_kernel_entry<&kda_fwd_recurrent<3>>("kda.fwd_recurrent", "k192"),
        make_kernel_entry<&kda_fwd_recurrent<4>>("kda.fwd_recurrent", "k256"),
        make_kernel_entry<&kda_fwd_recurrent_any>("kda.fwd_recurrent", "any"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
