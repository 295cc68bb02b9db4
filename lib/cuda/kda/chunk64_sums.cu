// kda.chunk64_sums.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_sums.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_sums() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_sums>("kda.chunk64_sums", "all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
