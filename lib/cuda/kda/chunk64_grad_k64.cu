// kda.chunk64_grad for up to 64 keys.
#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kda/chunk64_grad.cuh"
#include "lib/cuda/kernel_list.h"

namespace plait::impl::cuda {

kernel_list list_kda_chunk64_grad_k64() {
    static const kernel_entry entries[] = {
        make_kernel_entry<&kda_chunk64_grad<64, true>>("kda.chunk64_grad", "k64"),
        make_kernel_entry<&kda_chunk64_grad<64, false>>("kda.chunk64_grad", "k64.f16"),
    };
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
