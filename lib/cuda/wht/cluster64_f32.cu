#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/cluster64.cuh"

namespace plait::impl::cuda {

template <int LogN, int Alt> static kernel_entry entry() {
    static constexpr variant_name name = wht_cluster64_variant(LogN, Alt);
    return make_kernel_entry<&wht_cluster64<wht_cluster64_case<LogN, Alt>>>("wht.cluster64",
                                                                            name.text);
}

kernel_list list_wht_cluster64_f32() {
    static const kernel_entry entries[] = {entry<17, 0>(), entry<17, 1>(), entry<18, 0>(),
                                           entry<18, 1>(), entry<18, 2>(), entry<18, 3>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
