#include "lib/cuda/common/kernel_entry.cuh"
#include "lib/cuda/kernel_list.h"
#include "lib/cuda/wht/cluster64.cuh"

namespace plait::impl::cuda {

template <scalar X, int LogN, int Alt> static kernel_entry entry() {
    static constexpr variant_name name = wht_cluster64_variant(X, LogN, Alt);
    return make_kernel_entry<&wht_cluster64<wht_cluster64_case<X, LogN, Alt>>>("wht.cluster64",
                                                                               name.text);
}

kernel_list list_wht_cluster64_f32() {
    constexpr scalar f = scalar::f32, h = scalar::f16;
    static const kernel_entry entries[] = {entry<f, 17, 0>(), entry<f, 17, 1>(), entry<f, 18, 0>(),
                                           entry<f, 18, 1>(), entry<f, 18, 2>(), entry<f, 18, 3>(),
                                           entry<f, 19, 0>(), entry<h, 17, 0>(), entry<h, 18, 0>(),
                                           entry<h, 18, 2>(), entry<h, 19, 0>()};
    return {entries, static_cast<int>(sizeof(entries) / sizeof(entries[0]))};
}

} // namespace plait::impl::cuda
