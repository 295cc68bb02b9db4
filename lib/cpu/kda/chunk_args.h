// How kda.fwd_chunk and kda.bwd_chunk cut their work, and their scratch.
#pragma once

#include "lib/common/kda_reserve.h"
#include "lib/cpu/kda/sequences_layout.h"

#include <cmath>

namespace plait::impl::cpu {

/// Tokens of a chunk. Chunks never straddle sequences.
constexpr int64_t kda_chunk = 16;
/// Rows of keys and values are padded with zeros to whole vectors of every instruction level.
constexpr int64_t kda_chunk_lanes = 16;

struct kda_chunk_layout {
    int64_t dim_k, dim_v; ///< padded
    int64_t state;        ///< floats of one
    int64_t group;        ///< backward: chunks between two kept states
    int64_t marks;        ///< backward: kept states
    int64_t rows;         ///< backward: tokens of the sums over value heads
    int64_t sums;         ///< backward: doubles of dt_bias and a_log of a head's value heads
    int64_t slice;        ///< bytes of one thread; INT64_MAX if they are beyond 64 bits

    explicit kda_chunk_layout(const kda_problem &p) {
        constexpr int64_t most = int64_t{1} << 28; // of an extent: products stay within 64 bits
        const bool backward = p.direction == kda_direction::backward;
        const int64_t longest = p.longest();
        *this = kda_chunk_layout{};
        slice = INT64_MAX;
        if (p.dim_k > most || p.dim_v > most || longest > (int64_t{1} << 40) || p.group() > most)
            return;
        const auto padded = [](int64_t n) {
            return (n + kda_chunk_lanes - 1) / kda_chunk_lanes * kda_chunk_lanes;
        };
        dim_k = padded(p.dim_k);
        dim_v = padded(p.dim_v);
        state = dim_k * dim_v;
        const int64_t chunks = (longest + kda_chunk - 1) / kda_chunk;
        // The square root: as many states between two kept ones as are kept.
        group = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(chunks))));
        if (group < 1) group = 1;
        if (p.reserve) group = kda_reserve_rows / kda_chunk;
        marks = p.reserve ? 0 : chunks / group + 1; // else the reserve has them
        rows = backward ? longest : 0;
        sums = backward ? p.group() * (p.dim_k + 1) : 0;
        const int64_t states = backward ? marks + group + 2 : 1;
        const double all = static_cast<double>(states) * static_cast<double>(state) +
                           2.0 * static_cast<double>(rows) * static_cast<double>(dim_k);
        if (all > 1e17) return;
        const int64_t token_rows = backward ? 16 * dim_k + 8 * dim_v : 9 * dim_k + 4 * dim_v;
        const int64_t floats = states * state + 2 * rows * dim_k + kda_chunk * token_rows +
                               3 * dim_k + kda_chunk * (4 * kda_chunk + 1);
        slice = (4 * floats + 8 * sums + 127) / 64 * 64; // and 64 bytes between threads
    }

private:
    kda_chunk_layout() = default;
};

inline int64_t kda_chunk_scratch_bytes(const kda_problem &p, int threads) {
    const int64_t table = kda_table_bytes(p), team = threads < 1 ? 1 : threads;
    const int64_t slice = kda_chunk_layout(p).slice;
    if (table == INT64_MAX || slice > (int64_t{1} << 59) / team) return INT64_MAX;
    return table + slice * team;
}

} // namespace plait::impl::cpu
