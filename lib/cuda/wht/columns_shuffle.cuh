// wht.columns_shuffle: columns.cuh with the layout of columns_shuffle_layout.h.
#pragma once

#include "lib/cuda/wht/columns.cuh"
#include "lib/cuda/wht/columns_shuffle_layout.h"

namespace plait::impl::cuda {

template <scalar X, scalar Y, int LogM> struct wht_columns_shuffle_case {
    PLAIT_HD static constexpr wht_columns_config config() {
        return wht_columns_shuffle_config(X, Y, LogM);
    }
};

template <class Case>
__global__ void __launch_bounds__(tile_threads(Case::config().tile), Case::config().blocks_per_sm)
    wht_columns_shuffle(const __grid_constant__ wht_columns_args args) {
    wht_columns_body<Case>(args);
}

} // namespace plait::impl::cuda
