// Layout of kda.chunk64_bwd_scan: that of the forward scan, with DO where V is.
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_layout.h"

namespace plait::impl {

struct kda_chunk64_bwd_scan_args {
    const char *records; ///< of kda.chunk64_prep
    const void *d_o;
    const void *dstate_out; ///< or null
    void *dstate_in;        ///< or null
    void *dv;               ///< or null
    char *gradients;        ///< [record][values][keys] bf16: of the state behind each chunk
    char *adjoints;         ///< [record][values][64] bf16: w = M^T du; dv = beta w
    const int32_t *slots;
    const kda_sequence *table;
    kda_problem p;
    int64_t blocks;
    int32_t slices;
    bool vector; ///< 8 values of DO are an aligned access of bf16
};

PLAIT_HD constexpr kda64_forward_shape kda64_bwd_scan_shape_of(int keys, int warps) {
    return kda64_forward_shape_of(keys, warps);
}

inline kda_launch kda_chunk64_bwd_scan_launch(kda_chunk64_bwd_scan_args &a, int warps) {
    const int keys = kda64_keys(a.p.dim_k);
    a.slices = kda64_scan_slices(a.p.dim_v, warps);
    a.blocks = a.p.sequences * a.p.value_heads * a.slices;
    kda_launch l{"", 32 * warps, kda_grid(a.blocks), kda64_bwd_scan_shape_of(keys, warps).bytes};
    kda64_scan_name(l.variant, keys, warps);
    return l;
}

} // namespace plait::impl
