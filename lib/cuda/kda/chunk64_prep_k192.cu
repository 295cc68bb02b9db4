// kda.chunk64_prep for up to 192 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_near.cuh"
#include "lib/cuda/kda/chunk64_prep.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_prep_k192() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_near<192, scalar::bf16, true>>("kda.chunk64_prep",
                                                                      "k192.near"),
        make_kernel_entry<&kda_chunk64_near<192, scalar::bf16, false>>("kda.chunk64_prep",
                                                                       "k192.levels"),
        make_kernel_entry<&kda_chunk64_prep<192, scalar::bf16>>("kda.chunk64_prep", "k192"),
        make_kernel_entry<&kda_chunk64_near<192, scalar::f16, true>>("kda.chunk64_prep",
                                                                     "k192.near.f16"),
        make_kernel_entry<&kda_chunk64_near<192, scalar::f16, false>>("kda.chunk64_prep",
                                                                      "k192.levels.f16"),
        make_kernel_entry<&kda_chunk64_prep<192, scalar::f16>>("kda.chunk64_prep", "k192.f16"),
        make_kernel_entry<&kda_chunk64_prep<192, scalar::f32>>("kda.chunk64_prep", "k192.f32"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
