// kda.bwd_recurrent of more than 128 keys.
#include "lib/cuda/kda/bwd_recurrent.cuh"

#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/bwd_recurrent_any.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_bwd_recurrent_wide() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_bwd_recurrent<3>>("kda.bwd_recurrent", "k192"),
        make_kernel_entry<&kda_bwd_recurrent<4>>("kda.bwd_recurrent", "k256"),
        make_kernel_entry<&kda_bwd_recurrent_any>("kda.bwd_recurrent", "any"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
