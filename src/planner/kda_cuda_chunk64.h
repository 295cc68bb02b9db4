// Sizes of what the steps of kda.{fwd,bwd}.cuda.chunk64 read, keep and compute.
#pragma once

#include "lib/cuda/kda/chunk64_layout.h"
#include "src/planner/kda_cuda.h"

namespace plait::impl {

inline int64_t chunk_heads(const kda_problem &p) {
    return kda_chunk_slots(p, kda64_rows) * p.value_heads;
}
inline int64_t values_of(const kda_problem &p) { return kda_ceil_div(p.dim_v, 64) * 64; }
inline int64_t record_bytes(const kda_problem &p) {
    return kda64_record_of(kda64_keys(p.dim_k)).bytes;
}

/// Pieces of 8 channels are 16 aligned bytes.
inline bool channels_aligned(const kda_problem &p, const kda_view &v, int64_t heads,
                             int64_t channels) {
    const auto fits = [](int64_t extent, int64_t stride) { return extent <= 1 || stride % 8 == 0; };
    return v.c == 1 && v.align >= 16 && channels % 8 == 0 && fits(p.batch, v.b) &&
           fits(p.length, v.t) && fits(heads, v.h);
}
inline bool values_aligned(const kda_problem &p, const kda_view &v) {
    return channels_aligned(p, v, p.value_heads, p.dim_v);
}

inline int64_t state_tile_bytes(const kda_problem &p) {
    return values_of(p) * kda64_keys(p.dim_k) * 2;
}
inline int64_t row_tile_bytes(const kda_problem &p) { return values_of(p) * kda64_rows * 2; }
inline bool has_sums(const kda_problem &p) { return p.da_log.used() || p.ddt_bias.used(); }
inline int64_t partial_bytes(const kda_problem &p) {
    return has_sums(p) ? chunk_heads(p) * (kda64_keys(p.dim_k) + 1) * 4 : 0;
}

/// What a reserve has of a chunk and head.
inline int64_t reserve_bytes(const kda_problem &p) {
    if (!p.reserve) return 0;
    return record_bytes(p) + (kda_keeps_states(p) ? state_tile_bytes(p) + row_tile_bytes(p) : 0);
}

/// Workspace of a chunk and head, without what pieces lose to their alignment. What a reserve has
/// is not part of it.
inline int64_t work_bytes(const kda_problem &p) {
    if (p.direction == kda_direction::forward) return p.reserve ? 0 : record_bytes(p);
    return record_bytes(p) + 2 * (state_tile_bytes(p) + row_tile_bytes(p)) - reserve_bytes(p) +
           (has_sums(p) ? (kda64_keys(p.dim_k) + 1) * 4 : 0);
}

/// Flops of a chunk and head: of pairs, and of what meets the state.
inline int64_t prep_flops(const kda_problem &p) {
    return 40 * 2 * 16 * 8 * kda64_keys(p.dim_k) + 2 * 64 * 64 * 64 / 3;
}
inline int64_t scan_flops(const kda_problem &p) {
    return 2 * 64 * p.dim_v * (3 * kda64_keys(p.dim_k) + 2 * 40);
}

inline int64_t grad_flops(const kda_problem &p) {
    return 2 * 64 * values_of(p) * (3 * kda64_keys(p.dim_k) + 2 * 64) +
           2 * 16 * 16 * 4 * (5 * 2 + 4) * kda64_keys(p.dim_k);
}

inline int64_t token_bytes(const kda_view &v, const kda_problem &p, int64_t heads,
                           int64_t channels) {
    return v.used() ? p.batch * p.length * heads * channels * scalar_bytes(v.type) : 0;
}
inline int64_t state_bytes(const kda_state_view &v, const kda_problem &p) {
    return v.used() ? p.sequences * p.value_heads * p.dim_k * p.dim_v * scalar_bytes(v.type) : 0;
}

inline int64_t input_bytes(const kda_problem &p) {
    return token_bytes(p.q, p, p.heads, p.dim_k) + token_bytes(p.k, p, p.heads, p.dim_k) +
           token_bytes(p.g, p, p.value_heads, p.dim_k) + token_bytes(p.beta, p, p.value_heads, 1);
}

} // namespace plait::impl
