// kda.offsets and kda.gaps.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/gaps.cuh"
#include "lib/cuda/kda/offsets.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_common() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_offsets>("kda.offsets", "all"),
        make_kernel_entry<&kda_gaps>("kda.gaps", "all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
