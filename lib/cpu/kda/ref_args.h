// Scratch of the kernel kda.ref.
#pragma once

#include "lib/common/kda_reserve.h"
#include "lib/cpu/kda/sequences_layout.h"

#include <cmath>

namespace plait::impl::cpu {

/// Where the doubles of one thread lie, behind the table of sequences. Backward needs the states in
/// reverse: it keeps one every `chunk` tokens, and those of one chunk.
struct kda_ref_layout {
    int64_t chunk; ///< tokens
    int64_t marks; ///< kept states of the longest sequence
    int64_t state; ///< doubles of one
    int64_t slice; ///< doubles of one thread; INT64_MAX if they are beyond 64 bits

    explicit kda_ref_layout(const kda_problem &p) {
        const bool backward = p.direction == kda_direction::backward;
        const int64_t longest = p.longest();
        // The square root of the length: as many states between two kept ones as are kept.
        chunk = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(longest))));
        if (chunk < 1) chunk = 1;
        if (p.reserve) chunk = kda_reserve_rows; // which has what is kept
        marks = backward && !p.reserve ? longest / chunk + 1 : 0;
        slice = INT64_MAX;
        constexpr int64_t most = int64_t{1} << 28; // of an extent: products stay within 64 bits
        if (p.dim_k > most || p.dim_v > most || longest > (int64_t{1} << 40) || p.group() > most)
            return;
        state = p.dim_k * p.dim_v;
        const int64_t states = backward ? marks + chunk + 2 : 1;
        const int64_t vectors = 5 * p.dim_k + 6 * p.dim_v;
        const int64_t rows = backward ? 2 * longest : 0; // of dq and dk
        const int64_t sums = backward ? p.group() * (p.dim_k + 1) : 0;
        const double all = static_cast<double>(states) * static_cast<double>(state) +
                           static_cast<double>(rows) * static_cast<double>(p.dim_k);
        if (all > 1e17) return;
        slice = states * state + rows * p.dim_k + vectors + sums + 8; // 64 bytes between threads
    }
};

inline int64_t kda_ref_scratch_bytes(const kda_problem &p, int threads) {
    const int64_t table = kda_table_bytes(p), team = threads < 1 ? 1 : threads;
    const int64_t slice = kda_ref_layout(p).slice;
    if (table == INT64_MAX || slice > (int64_t{1} << 59) / team) return INT64_MAX;
    return table + (8 * slice * team + 63) / 64 * 64;
}

} // namespace plait::impl::cpu
