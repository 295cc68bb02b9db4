// kda.chunk64_fwd_scan for up to 128 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_fwd_scan_pair.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_fwd_scan_k128() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_fwd_scan_pair<128, 1>>("kda.chunk64_fwd_scan", "k128.p1"),
        make_kernel_entry<&kda_chunk64_fwd_scan_pair<128, 2>>("kda.chunk64_fwd_scan", "k128.p2"),
        make_kernel_entry<&kda_chunk64_fwd_scan_split<128, 2>>("kda.chunk64_fwd_scan", "k128.w2"),
        make_kernel_entry<&kda_chunk64_fwd_scan<128, 4, kda64_leaves::outputs>>(
            "kda.chunk64_fwd_scan", "k128.w4"),
        make_kernel_entry<&kda_chunk64_fwd_scan<128, 8, kda64_leaves::outputs>>(
            "kda.chunk64_fwd_scan", "k128.w8"),
        make_kernel_entry<&kda_chunk64_fwd_scan<128, 4, kda64_leaves::states>>(
            "kda.chunk64_fwd_scan", "k128.w4.keep"),
        make_kernel_entry<&kda_chunk64_fwd_scan<128, 8, kda64_leaves::states>>(
            "kda.chunk64_fwd_scan", "k128.w8.keep"),
        make_kernel_entry<&kda_chunk64_fwd_scan<128, 4, kda64_leaves::all>>("kda.chunk64_fwd_scan",
                                                                            "k128.w4.all"),
        make_kernel_entry<&kda_chunk64_fwd_scan<128, 8, kda64_leaves::all>>("kda.chunk64_fwd_scan",
                                                                            "k128.w8.all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
