// kda.bwd_c16_states.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk16_scan.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk16_states() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_bwd_c16_states<scalar::bf16, 4>>("kda.bwd_c16_states", "bf16.k4"),
        make_kernel_entry<&kda_bwd_c16_states<scalar::bf16, 8>>("kda.bwd_c16_states", "bf16.k8"),
        make_kernel_entry<&kda_bwd_c16_states<scalar::bf16, 16>>("kda.bwd_c16_states", "bf16.k16"),
        make_kernel_entry<&kda_bwd_c16_states<scalar::f32, 4>>("kda.bwd_c16_states", "f32.k4"),
        make_kernel_entry<&kda_bwd_c16_states<scalar::f32, 8>>("kda.bwd_c16_states", "f32.k8"),
        make_kernel_entry<&kda_bwd_c16_states<scalar::f32, 16>>("kda.bwd_c16_states", "f32.k16"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
