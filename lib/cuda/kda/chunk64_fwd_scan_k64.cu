// kda.chunk64_fwd_scan for up to 64 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_fwd_scan.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_fwd_scan_k64() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_fwd_scan<64, 4, kda64_leaves::outputs>>(
            "kda.chunk64_fwd_scan", "k64.w4"),
        make_kernel_entry<&kda_chunk64_fwd_scan<64, 4, kda64_leaves::states>>(
            "kda.chunk64_fwd_scan", "k64.w4.keep"),
        make_kernel_entry<&kda_chunk64_fwd_scan<64, 4, kda64_leaves::all>>("kda.chunk64_fwd_scan",
                                                                           "k64.w4.all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
