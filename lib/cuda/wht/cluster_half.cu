#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/cluster_table.cuh"

namespace plait::impl::cuda {

kernel_list list_wht_cluster_half() {
    static const kernel_entry entries[] = {
        wht_cluster_entry<scalar::f16, 16>(),  wht_cluster_entry<scalar::f16, 17>(),
        wht_cluster_entry<scalar::f16, 18>(),  wht_cluster_entry<scalar::f16, 19>(),
        wht_cluster_entry<scalar::bf16, 16>(), wht_cluster_entry<scalar::bf16, 17>(),
        wht_cluster_entry<scalar::bf16, 18>(), wht_cluster_entry<scalar::bf16, 19>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
