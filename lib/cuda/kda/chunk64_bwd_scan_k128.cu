// kda.chunk64_bwd_scan for up to 128 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_bwd_scan.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_bwd_scan_k128() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_bwd_scan<128, 4>>("kda.chunk64_bwd_scan", "k128.w4"),
        make_kernel_entry<&kda_chunk64_bwd_scan<128, 8>>("kda.chunk64_bwd_scan", "k128.w8"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
