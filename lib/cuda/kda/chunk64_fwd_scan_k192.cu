// kda.chunk64_fwd_scan for up to 192 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_fwd_scan.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_fwd_scan_k192() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_fwd_scan<192, 4, kda64_leaves::outputs>>(
            "kda.chunk64_fwd_scan", "k192.w4"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
