#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/columns_product.cuh"

namespace plait::impl::cuda {

kernel_list list_wht_columns_product() {
    static const kernel_entry entries[] = {wht_columns_product_entry<scalar::f16, 11>(),
                                           wht_columns_product_entry<scalar::f16, 12>(),
                                           wht_columns_product_entry<scalar::bf16, 11>(),
                                           wht_columns_product_entry<scalar::bf16, 12>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
