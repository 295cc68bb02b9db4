// kda.chunk64_scans for up to 128 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_scans.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_scans_k128() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_scans<128, 1>>("kda.chunk64_scans", "k128.v16"),
        make_kernel_entry<&kda_chunk64_scans<128, 2>>("kda.chunk64_scans", "k128.v32"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
