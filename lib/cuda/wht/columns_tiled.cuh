// wht.columns_tiled: columns.cuh with the layout of columns_tiled_layout.h.
#pragma once

#include "lib/cuda/wht/columns.cuh"
#include "lib/cuda/wht/columns_tiled_layout.h"

namespace plait::impl::cuda {

template <scalar X, scalar Y, int LogM, bool Vector> struct wht_columns_tiled_case {
    PLAIT_HD static constexpr wht_columns_config config() {
        return wht_columns_tiled_config(X, Y, LogM, Vector);
    }
};

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_columns_tiled(const __grid_constant__ wht_columns_args args) {
    wht_columns_body<Case>(args);
}

} // namespace plait::impl::cuda
