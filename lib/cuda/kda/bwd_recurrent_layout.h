// Layout of kda.bwd_recurrent, kda.bwd_finish and kda.bwd_params.
//   Marks: a block of the grid keeps the tile of its item every `group` chunks, of this segment
//   hand every `chunk` tokens, and of the chunk at hand before every token in shared memory. A
//   thread reads back what it wrote itself: [mark][key of the thread][thread] x 4 columns. Rows of
//   sums: [tile][token of the call][value head] x (dq, dk, dg: `pitch` keys each, dbeta).
#pragma once

#include "lib/cuda/kda/recurrent_layout.h"

namespace plait::impl {

struct kda_bwd_recurrent_args {
    const void *q, *k, *v, *g, *beta, *a_log, *dt_bias, *state_in, *d_o, *dstate_out;
    void *dv, *dstate_in;
    const kda_sequence *table; ///< of kda.offsets, or null
    float *marks;              ///< of every block of the grid
    float *rows;               ///< of sums
    const int32_t *slots;      ///< null: backward has no pool
    kda_problem problem;
    int64_t blocks; ///< items: (sequence, value head, tile of columns)
    int64_t tiles;
    int64_t group;        ///< chunks of a segment
    int64_t segments;     ///< of the longest sequence
    int64_t block_floats; ///< of `marks`
    int64_t pitch;
    kda_state_access in, out, din; ///< STATE_IN, DSTATE_OUT, DSTATE_IN
    int32_t chunk;                 ///< tokens
};

struct kda_bwd_finish_args {
    const void *q, *k, *g, *beta, *a_log, *dt_bias;
    void *dq, *dk, *dg, *dbeta;
    const kda_sequence *table;
    const float *rows;
    float *sums; ///< [block of tokens][value head][dim_k + 1] of DT_BIAS, then A_LOG; or null
    kda_problem problem;
    int64_t blocks; ///< items: (row, block of tokens, value head)
    int64_t tiles, pitch;
};

struct kda_bwd_params_args {
    const float *sums;
    void *da_log, *ddt_bias;
    kda_problem problem;
    int64_t blocks; ///< items: (value head, keys)
    int64_t token_blocks;
};

constexpr int kda_bwd_recurrent_warps = 8; ///< most of a block
constexpr int kda_bwd_most_chunk = 8;
constexpr int kda_bwd_any_threads = 128;
constexpr int kda_bwd_finish_threads = 128, kda_bwd_finish_tokens = 32;
constexpr int kda_bwd_params_keys = 32, kda_bwd_params_strands = 8;

PLAIT_HD constexpr int64_t kda_bwd_row(int64_t pitch) { return 3 * pitch + 1; }

/// Floats of shared memory: states of a chunk, the batch, sums of the warps for two tokens.
struct kda_bwd_smem {
    int states, batch, sums, floats;
    PLAIT_HD constexpr kda_bwd_smem(int quads, int warps, int chunk)
        : states(0), batch(chunk * quads * 16 * 32 * warps),
          sums(batch + kda_batch_layout{64 * quads, warps * kda_warp_columns, chunk}.floats()),
          floats(sums + 2 * warps * (3 * 64 * quads + 4)) {}
};

struct kda_bwd_shape {
    bool any;
    int quads, warps, chunk;
    int64_t grid;
};

constexpr int64_t kda_bwd_sqrt(int64_t n) {
    int64_t r = 1;
    while (r * r < n) ++r;
    return r;
}

/// Wide blocks, but at least four tokens of a chunk where shared memory has them.
constexpr kda_bwd_shape kda_bwd_recurrent_shape(const kda_problem &p, int64_t smem_bytes) {
    kda_bwd_shape s{p.dim_k > 64 * kda_tile_quads, 0, 0, 1, 0};
    if (s.any) return s;
    s.quads = static_cast<int>(p.dim_k <= 64 ? 1 : kda_ceil_div(p.dim_k, 64));
    s.warps = kda_bwd_recurrent_warps;
    while (s.warps > 1 && (s.warps / 2 * kda_warp_columns >= p.dim_v ||
                           4 * kda_bwd_smem(s.quads, s.warps, 4).floats > smem_bytes))
        s.warps /= 2;
    s.chunk = kda_bwd_most_chunk;
    while (s.chunk > 1 && 4 * kda_bwd_smem(s.quads, s.warps, s.chunk).floats > smem_bytes)
        --s.chunk;
    return s;
}

/// Fills what depends on the shape.
constexpr kda_launch kda_bwd_recurrent_launch(kda_bwd_recurrent_args &a, int64_t sms,
                                              int64_t smem_bytes) {
    const kda_problem &p = a.problem;
    const kda_bwd_shape s = kda_bwd_recurrent_shape(p, smem_bytes);
    const int64_t longest = p.longest(), heads = kda_places(p) * p.value_heads;
    a.in = kda_access_of(p, p.state_in);
    a.out = kda_access_of(p, p.dstate_out);
    a.din = kda_access_of(p, p.dstate_in);
    a.chunk = s.chunk;
    const int64_t chunks = kda_ceil_div(longest, s.chunk);
    a.group = kda_bwd_sqrt(chunks);
    a.segments = kda_ceil_div(chunks, a.group);
    if (s.any) {
        // Marks, the states of a segment and one more, the gradient; q, k, decays; u, du, v, do.
        a.tiles = 1;
        a.pitch = p.dim_k;
        a.block_floats = (a.segments + a.group + 2) * p.dim_k * p.dim_v + 3 * p.dim_k + 4 * p.dim_v;
        a.blocks = heads;
        return {"any", kda_bwd_any_threads, kda_grid(a.blocks < sms ? a.blocks : sms), 16 * 4};
    }
    const int floats = kda_bwd_smem(s.quads, s.warps, s.chunk).floats, threads = 32 * s.warps;
    a.tiles = kda_ceil_div(p.dim_v, s.warps * kda_warp_columns);
    a.pitch = 64 * s.quads;
    a.block_floats = (a.segments + a.group) * s.quads * 16 * threads;
    a.blocks = heads * a.tiles;
    const int64_t fit = smem_bytes / (4 * floats), most = sms * (fit < 1 ? 1 : fit > 4 ? 4 : fit);
    kda_launch l{"k64", threads, kda_grid(a.blocks < most ? a.blocks : most), 4 * floats};
    if (s.quads == 2) l.variant[1] = '1', l.variant[2] = '2', l.variant[3] = '8';
    if (s.quads == 3) l.variant[1] = '1', l.variant[2] = '9', l.variant[3] = '2';
    if (s.quads == 4) l.variant[1] = '2', l.variant[2] = '5', l.variant[3] = '6';
    return l;
}

constexpr int64_t kda_bwd_token_blocks(const kda_problem &p) {
    return p.batch * kda_ceil_div(p.length, kda_bwd_finish_tokens);
}

constexpr kda_launch kda_bwd_finish_launch(kda_bwd_finish_args &a) {
    a.blocks = kda_bwd_token_blocks(a.problem) * a.problem.value_heads;
    return {"all", kda_bwd_finish_threads, kda_grid(a.blocks), 4 * (kda_bwd_finish_tokens + 4)};
}

constexpr kda_launch kda_bwd_params_launch(kda_bwd_params_args &a) {
    const kda_problem &p = a.problem;
    a.token_blocks = kda_bwd_token_blocks(p);
    a.blocks = p.value_heads * kda_ceil_div(p.dim_k + 1, kda_bwd_params_keys);
    return {"all", kda_bwd_params_keys * kda_bwd_params_strands, kda_grid(a.blocks),
            4 * kda_bwd_params_keys * kda_bwd_params_strands};
}

} // namespace plait::impl
