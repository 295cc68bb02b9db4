// kda.bwd_c16_b1, kda.bwd_c16_b2 and kda.bwd_c16_b3.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk16_b3.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk16_grad() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_bwd_c16_b1<scalar::bf16>>("kda.bwd_c16_b1", "bf16"),
        make_kernel_entry<&kda_bwd_c16_b1<scalar::f32>>("kda.bwd_c16_b1", "f32"),
        make_kernel_entry<&kda_bwd_c16_b2<scalar::bf16>>("kda.bwd_c16_b2", "bf16"),
        make_kernel_entry<&kda_bwd_c16_b2<scalar::f32>>("kda.bwd_c16_b2", "f32"),
        make_kernel_entry<&kda_bwd_c16_b3<scalar::bf16>>("kda.bwd_c16_b3", "bf16"),
        make_kernel_entry<&kda_bwd_c16_b3<scalar::f32>>("kda.bwd_c16_b3", "f32"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
