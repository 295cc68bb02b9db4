// Tiles of the recurrent kernels: which thread holds which entry of a state, and the shared memory
// of a batch of tokens.
//   A warp has 8 columns (values) and all keys: lane = 16 * half + l has columns 4 half .. 4 half +
//   3 and the keys 64 j + 4 l .. + 3. Both orientations of a state are then accesses of 16 bytes,
//   and sums over keys stay inside the warp. A block has `warps` of them next to one another.
#pragma once

#include "lib/cuda/kda/common_layout.h"

namespace plait::impl {

constexpr int kda_warp_columns = 8;
constexpr int kda_tile_quads = 4;    ///< instantiated: keys in units of 64, so 256 at most
constexpr int kda_any_columns = 128; ///< of variants any, a thread each
constexpr int kda_any_strip = 128;   ///< keys that they hold in shared memory at a time

PLAIT_HD constexpr int kda_tile_key(int lane, int i) { return i / 4 * 64 + lane % 16 * 4 + i % 4; }
PLAIT_HD constexpr int kda_tile_column(int warp, int lane) {
    return warp * kda_warp_columns + lane / 16 * 4;
}

/// How a tile is read from and written to a state tensor.
enum class kda_state_access : int32_t {
    elements, ///< one by one: any strides
    columns,  ///< four values at once
    keys,     ///< four keys at once
};

/// Base and strides make accesses of four possible; extents are then multiples of four too.
constexpr kda_state_access kda_access_of(const kda_problem &p, const kda_state_view &v) {
    const int64_t rows = p.pooled ? p.slots : p.sequences;
    const auto fits = [&](int64_t inner, int64_t n, int64_t outer, int64_t m) {
        return v.used() && v.align >= 4 * scalar_bytes(v.type) && inner == 1 && n % 4 == 0 &&
               (m <= 1 || outer % 4 == 0) && (rows <= 1 || v.n % 4 == 0) &&
               (p.value_heads <= 1 || v.h % 4 == 0);
    };
    if (fits(v.v, p.dim_v, v.k, p.dim_k)) return kda_state_access::columns;
    if (fits(v.k, p.dim_k, v.v, p.dim_v)) return kda_state_access::keys;
    return kda_state_access::elements;
}

/// Floats of shared memory for a batch of tokens: q, k and decays of each, its values, and its
/// outputs or their gradients, beta and <k, q>.
struct kda_batch_layout {
    int keys, columns, tokens; ///< keys padded to units of 64
    PLAIT_HD constexpr int q(int t) const { return t * 3 * keys; }
    PLAIT_HD constexpr int k(int t) const { return q(t) + keys; }
    PLAIT_HD constexpr int decay(int t) const { return q(t) + 2 * keys; }
    PLAIT_HD constexpr int v(int t) const { return q(tokens) + t * columns; }
    PLAIT_HD constexpr int o(int t) const { return v(tokens) + t * columns; }
    PLAIT_HD constexpr int beta(int t) const { return o(tokens) + t; }
    PLAIT_HD constexpr int kq(int t) const { return beta(tokens) + t; }
    PLAIT_HD constexpr int floats() const { return (kq(tokens) + 3) / 4 * 4; }
};

} // namespace plait::impl
