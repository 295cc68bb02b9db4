// Layout of kda.fwd_recurrent.
#pragma once

#include "lib/cuda/kda/recurrent_layout.h"

namespace plait::impl {

struct kda_fwd_recurrent_args {
    const void *q, *k, *v, *g, *beta;
    void *o;
    const void *a_log, *dt_bias, *state_in;
    void *state_out;           ///< may be state_in
    const int32_t *slots;      ///< SLOTS, read without a table
    const kda_sequence *table; ///< of kda.offsets, or null
    float *scratch;            ///< of variant any: a state tile for each block of the grid
    kda_problem problem;
    int64_t blocks; ///< items: (sequence, value head, tile of columns)
    int64_t tiles;
    kda_state_access in, out;
};

/// Most warps of a block; twice as many tokens are a batch.
constexpr int kda_fwd_recurrent_warps = 4;

/// Blocks that registers leave room for on an SM: what they load at a time keeps the memory busy.
PLAIT_HD constexpr int kda_fwd_recurrent_blocks_per_sm(int quads) {
    return quads == 1 ? 6 : quads == 2 ? 4 : 2;
}

constexpr kda_batch_layout kda_fwd_recurrent_batch(int quads, int warps) {
    return {64 * quads, warps * kda_warp_columns, 2 * warps};
}

/// Warps so that there are enough blocks for the device, or as many as columns need.
constexpr int kda_fwd_recurrent_warps_for(const kda_problem &p, int64_t sms) {
    int warps = kda_fwd_recurrent_warps;
    const int64_t heads = kda_places(p) * p.value_heads;
    while (warps > 1 && ((warps / 2) * kda_warp_columns >= p.dim_v ||
                         heads * kda_ceil_div(p.dim_v, warps * kda_warp_columns) < 4 * sms))
        warps /= 2;
    return warps;
}

/// Variant "k128" of up to 128 keys.
constexpr kda_launch kda_fwd_recurrent_launch(kda_fwd_recurrent_args &a, int64_t sms) {
    const kda_problem &p = a.problem;
    const int quads = static_cast<int>(p.dim_k <= 64 ? 1 : kda_ceil_div(p.dim_k, 64));
    const int warps = kda_fwd_recurrent_warps_for(p, sms);
    a.tiles = kda_ceil_div(p.dim_v, warps * kda_warp_columns);
    a.blocks = kda_places(p) * p.value_heads * a.tiles;
    a.in = kda_access_of(p, p.state_in);
    a.out = kda_access_of(p, p.state_out);
    kda_launch l{"k64", 32 * warps, kda_grid(a.blocks),
                 4 * kda_fwd_recurrent_batch(quads, warps).floats()};
    if (quads == 2) l.variant[1] = '1', l.variant[2] = '2', l.variant[3] = '8';
    if (quads == 3) l.variant[1] = '1', l.variant[2] = '9', l.variant[3] = '2';
    if (quads == 4) l.variant[1] = '2', l.variant[2] = '5', l.variant[3] = '6';
    return l;
}

/// Variant "any": more keys than tiles have.
constexpr bool kda_fwd_recurrent_any(const kda_problem &p) { return p.dim_k > 64 * kda_tile_quads; }
constexpr kda_launch kda_fwd_recurrent_any_launch(kda_fwd_recurrent_args &a, int64_t sms) {
    const kda_problem &p = a.problem;
    a.tiles = kda_ceil_div(p.dim_v, kda_any_columns);
    a.blocks = kda_places(p) * p.value_heads * a.tiles;
    const int64_t most = 2 * sms; // blocks walk: each has its own scratch
    return {"any", kda_any_columns, kda_grid(a.blocks < most ? a.blocks : most),
            4 * (3 * kda_any_strip + 4)};
}
constexpr int64_t kda_fwd_recurrent_scratch(const kda_problem &p, int64_t grid) {
    return grid * p.dim_k * kda_any_columns * 4;
}

} // namespace plait::impl
