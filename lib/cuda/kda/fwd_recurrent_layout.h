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

// ---- Variants few.*: a few tokens ---------------------------------------------------------------

constexpr int kda_few_threads = 128, kda_few_columns = 32; ///< values of a block
constexpr int64_t kda_few_tokens = 16;                     ///< beyond them batches hide more
constexpr int kda_few_blocks_per_sm(int keys) { return keys == 64 ? 6 : 5; }
/// Variants one.*, of one token.
constexpr int kda_one_blocks_per_sm(bool by_keys, int size) {
    return by_keys ? 7 : size == 2 ? 6 : 5;
}

/// Shared memory: the block's part of the state, a token of each warp, and twice the sums of all
/// warps over their keys.
constexpr int kda_few_warps = kda_few_threads / 32;
constexpr int kda_few_parts = 2 * kda_few_warps * kda_few_columns;
PLAIT_HD constexpr kda_batch_layout kda_few_batch(int keys) {
    return {keys, kda_few_columns, kda_few_warps};
}
PLAIT_HD constexpr int kda_few_bytes(int keys, int size) {
    return keys * kda_few_columns * size + 4 * (kda_few_batch(keys).floats() + 2 * kda_few_parts);
}

/// The access that a state tensor has, 16 bytes at a time; elements where it has none.
constexpr kda_state_access kda_few_access_of(const kda_problem &p, const kda_state_view &v) {
    const kda_state_access how = kda_access_of(p, v);
    if (v.type == scalar::f32 || how != kda_state_access::keys || p.dim_k != 128) return how;
    const bool whole = v.align >= 16 && v.v % 8 == 0 && v.n % 8 == 0 && v.h % 8 == 0;
    return whole ? how : kda_state_access::elements;
}

/// How variants few have both states, or elements where they are not for the problem.
constexpr kda_state_access kda_few_access(const kda_problem &p) {
    constexpr int64_t most = INT32_MAX;
    const kda_state_view &in = p.state_in, &out = p.state_out, &any = in.used() ? in : out;
    if ((p.dim_k != 64 && p.dim_k != 128) || p.dim_v % kda_few_columns != 0 || p.dim_v == 0 ||
        p.value_heads < 1 || p.longest() > kda_few_tokens || !any.used() ||
        (any.type != scalar::f32 && any.type != scalar::bf16) ||
        (out.used() && out.type != any.type))
        return kda_state_access::elements;
    if (p.value_heads > 1 << 15 || p.dim_v > most / 8 || p.length > most || p.slots > most ||
        kda_places(p) > most / (p.value_heads * (p.dim_v / kda_few_columns)))
        return kda_state_access::elements; // 32 bits do not count them
    const kda_state_access how = kda_few_access_of(p, any);
    return !out.used() || kda_few_access_of(p, out) == how ? how : kda_state_access::elements;
}

/// "few.k128.vk.f32", "one.k128.vk.f32"
constexpr kda_launch kda_few_launch(kda_fwd_recurrent_args &a, kda_state_access how) {
    const kda_problem &p = a.problem;
    a.tiles = p.dim_v / kda_few_columns;
    a.blocks = kda_places(p) * p.value_heads * a.tiles;
    const scalar type = (p.state_in.used() ? p.state_in : p.state_out).type;
    kda_launch l{"few.", kda_few_threads, kda_grid(a.blocks),
                 kda_few_bytes(static_cast<int>(p.dim_k), static_cast<int>(scalar_bytes(type)))};
    if (p.longest() == 1) l.variant[0] = 'o', l.variant[1] = 'n', l.variant[2] = 'e';
    int at = 4;
    const auto add = [&](const char *c) {
        for (; *c != 0; ++c) l.variant[at++] = *c;
    };
    add(p.dim_k == 64 ? "k64" : "k128");
    add(how == kda_state_access::keys ? ".vk" : ".kv");
    add(type == scalar::f32 ? ".f32" : ".bf16");
    l.variant[at] = 0;
    return l;
}

/// Variant "k128" of up to 128 keys.
constexpr kda_launch kda_fwd_recurrent_launch(kda_fwd_recurrent_args &a, int64_t sms) {
    const kda_problem &p = a.problem;
    const kda_state_access few = kda_few_access(p);
    if (few != kda_state_access::elements) return kda_few_launch(a, few);
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
