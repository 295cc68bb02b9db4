// Layout of kda.chunk64_prep, variants `near`: four warps, each 16 rows, by 64 channels at a time.
#pragma once

#include "lib/cuda/kda/chunk64_prep_layout.h"

#include <algorithm>

namespace plait::impl {

constexpr int kda64_near_warps = 4;
constexpr int kda64_near_rows = 16;     ///< of a warp
constexpr int kda64_near_channels = 64; ///< of a pass

/// Elements between tokens, so that offsets within 16 rows have 32 bits.
constexpr int64_t kda64_near_stride = int64_t{1} << 24;

/// Blocks that an SM has room for, by registers or shared memory.
PLAIT_HD constexpr int kda64_near_blocks(int keys, bool near) {
    return keys == 128 ? 3 : keys == 64 && near ? 4 : 2;
}

/// Tiles of 16 rows of factors of off-diagonal squares: lower ones of blocks 0, 1, 2 up to their
/// end, those of block 0 up to the end of block 1; upper ones, k and q, of block 3 from block 2 on.
enum kda64_near_tile { kda64_own = 0, kda64_far_lower = 3, kda64_far_upper = 4, kda64_tiles = 6 };

/// A 16 x 16 square of L in f32, floats of a row, or in two parts of bf16, bytes of a row: eight of
/// ldmatrix lie in different banks, and of f32 four of 8 bytes.
constexpr int kda64_square_pitch = 24;
constexpr int kda64_part_pitch = 48;
constexpr int kda64_part_bytes = 16 * kda64_part_pitch;
constexpr int kda64_square_bytes = 4 * 16 * kda64_square_pitch;
static_assert(2 * kda64_part_bytes == kda64_square_bytes, "one replaces the other");
/// The square of block r and an earlier one c, of those below the diagonal.
PLAIT_HD constexpr int kda64_square_of(int r, int c) { return r * (r - 1) / 2 + c; }

/// Bytes between rows of what lies within 16 rows and 64 channels; a warp's square of the diagonal
/// lies there afterwards.
constexpr int kda64_lower_pitch = 2 * kda64_near_channels + 16;
static_assert(kda64_square_bytes <= kda64_near_rows * kda64_lower_pitch, "");

constexpr int kda64_task_bytes = 64; ///< room of a warp for what it works on
constexpr int kda64_sums_bytes = 16; ///< and of a lane for sums of a level

/// Dynamic shared memory. Rows of k and q as they were loaded become their upper factors. Squares
/// below the diagonal lie where tiles were.
struct kda64_near_shared {
    int k, q, lower, tiles, squares, totals, norms, beta, diagonal, tasks, sums, bytes;
};

PLAIT_HD constexpr kda64_near_shared kda64_near_shared_of(int keys) {
    kda64_near_shared s{};
    const int pitch = kda64_factor_pitch(keys);
    s.k = 0;
    s.q = s.k + kda64_rows * pitch;
    s.lower = s.q + kda64_rows * pitch;
    s.tiles = s.squares = s.lower + kda64_rows * kda64_lower_pitch;
    const int tiles = kda64_tiles * kda64_near_rows * pitch;
    s.totals = s.tiles + (tiles > 6 * kda64_square_bytes ? tiles : 6 * kda64_square_bytes);
    s.norms = s.totals + 4 * kda64_near_warps * keys;
    s.beta = s.norms + 8 * kda64_rows;
    s.diagonal = s.beta + 4 * kda64_rows;
    s.tasks = s.diagonal + 4 * kda64_rows;
    s.sums = s.tasks + kda64_near_warps * kda64_task_bytes;
    s.bytes = s.sums + 32 * kda64_near_warps * kda64_sums_bytes;
    return s;
}

/// Variants of this layout: rows of q and k come by copies of 16 bytes.
constexpr bool kda64_copies(const kda_problem &p) {
    const auto fits = [](int64_t extent, int64_t stride) { return extent <= 1 || stride % 8 == 0; };
    const auto copies = [&](const kda_view &v) {
        return kda_is_half(v.type) && v.c == 1 && v.align >= 16 && fits(p.batch, v.b) &&
               fits(p.length, v.t) && fits(p.heads, v.h) && v.t < kda64_near_stride;
    };
    return p.dim_k % 8 == 0 && p.q.type == p.k.type && copies(p.q) && copies(p.k) &&
           kda64_fours(p, p.g, p.value_heads) && p.g.t < kda64_near_stride;
}

/// Blocks for all SMs walk.
inline kda_launch kda_chunk64_prep_launch(kda_chunk64_prep_args &a, int sms) {
    const int keys = kda64_keys(a.p.dim_k);
    const bool copies = kda64_copies(a.p);
    a.blocks = kda_chunk_slots(a.p, kda64_rows) * a.p.value_heads;
    a.group = static_cast<int32_t>(a.p.group());
    a.wide_q = kda64_fours(a.p, a.p.q, a.p.heads);
    a.wide_k = kda64_fours(a.p, a.p.k, a.p.heads);
    a.wide_g = kda64_fours(a.p, a.p.g, a.p.value_heads);
    a.wide_bias = a.p.dt_bias.type == scalar::f32 && kda64_fours(a.p, a.p.dt_bias, a.p.value_heads);
    const int64_t each = copies ? kda64_near_blocks(keys, kda64_near(a.p)) : 2;
    kda_launch l{"", 32 * (copies ? kda64_near_warps : kda64_prep_warps),
                 kda_grid(std::min<int64_t>(a.blocks, each * sms)),
                 copies ? kda64_near_shared_of(keys).bytes : kda64_prep_shared_of(keys).bytes};
    int at = kda64_name(l.variant, keys);
    const char *kind = !copies ? "" : kda64_near(a.p) ? ".near" : ".levels";
    for (const char *c = kind; *c != 0; ++c) l.variant[at++] = *c;
    const char *type = a.p.q.type == scalar::f32 ? ".f32" : a.p.q.type == scalar::f16 ? ".f16" : "";
    for (const char *c = type; *c != 0; ++c) l.variant[at++] = *c;
    l.variant[at] = 0;
    return l;
}

} // namespace plait::impl
