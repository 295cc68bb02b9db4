// kda.chunk64_grad for up to 128 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_grad.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_grad_k128() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_grad<128, true>>("kda.chunk64_grad", "k128"),
        make_kernel_entry<&kda_chunk64_grad<128, false>>("kda.chunk64_grad", "k128.f16"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
