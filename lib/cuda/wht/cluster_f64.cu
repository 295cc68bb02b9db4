#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/cluster_table.cuh"

namespace plait::impl::cuda {

kernel_list list_wht_cluster_f64() {
    static const kernel_entry entries[] = {
        wht_cluster_entry<scalar::f64, 15>(), wht_cluster_entry<scalar::f64, 16>(),
        wht_cluster_entry<scalar::f64, 17>(), wht_cluster_entry<scalar::f64, 18>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
