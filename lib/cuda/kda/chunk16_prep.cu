// kda.bwd_c16_prep and the small steps behind the others.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk16_prep.cuh"
#include "lib/cuda/kda/chunk16_sums.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk16_prep() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_bwd_c16_prep<scalar::bf16>>("kda.bwd_c16_prep", "bf16"),
        make_kernel_entry<&kda_bwd_c16_prep<scalar::f32>>("kda.bwd_c16_prep", "f32"),
        make_kernel_entry<&kda_bwd_c16_heads>("kda.bwd_c16_heads", "all"),
        make_kernel_entry<&kda_bwd_c16_sums>("kda.bwd_c16_sums", "all"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
