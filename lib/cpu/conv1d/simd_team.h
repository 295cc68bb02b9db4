// Runs a SIMD kernel of conv1d with a team of threads.
#pragma once

#include "lib/cpu/conv1d/sequences.h"
#include "lib/cpu/conv1d/simd_args.h"

#include <omp.h>

namespace plait::impl::cpu {

/// One thread's part of a kernel, as compiled for one instruction level.
using conv1d_part = void (*)(const conv1d_args &, const conv1d_sequences &,
                             const conv1d_simd_layout &, const conv1d_team &);

inline void conv1d_team_barrier() {
#pragma omp barrier
}

inline void conv1d_run_team(const void *arguments, int threads, conv1d_part part) {
    const conv1d_args &a = *static_cast<const conv1d_args *>(arguments);
    const conv1d_simd_layout lay = conv1d_simd_layout_of(a.problem);
    const conv1d_sequences all(a, a.scratch, lay.tokens);
    // OpenMP would allocate a team even for one thread.
    if (threads <= 1) return part(a, all, lay, conv1d_team{0, 1, nullptr});
#pragma omp parallel num_threads(threads)
    part(a, all, lay, {omp_get_thread_num(), omp_get_num_threads(), conv1d_team_barrier});
}

} // namespace plait::impl::cpu
