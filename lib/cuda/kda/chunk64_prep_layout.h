// Layout of kda.chunk64_prep: eight warps, of which one has eight rows of all channels.
#pragma once

#include "lib/cuda/kda/chunk64_layout.h"
#include "lib/cuda/kda/common_layout.h"

namespace plait::impl {

/// What every kernel that recomputes gates and norms reads; the head of its arguments.
struct kda64_inputs {
    const void *q, *k, *g, *beta, *a_log, *dt_bias;
};

struct kda_chunk64_prep_args {
    kda64_inputs in;
    const int32_t *slots;      ///< without offsets: those of a pool, or null
    const kda_sequence *table; ///< of kda.offsets, or null: sequence n is row n
    const kda_chunk *chunks;   ///< of packed sequences, or null
    char *records;             ///< [chunk slots][value heads]; those of a reserve, or workspace
    kda_reserve_header *to;    ///< head of the reserve, or null
    kda_reserve_header header;
    kda_problem p;
    int64_t blocks;
    int32_t group;               ///< value heads that share one head of q and k
    float least_beta;            ///< what a smaller one is replaced by
    bool wide_q, wide_k, wide_g; ///< four channels from each multiple of four on: one access
    bool wide_bias;              ///< the same of DT_BIAS, f32
};

constexpr int kda64_prep_warps = 8;

static_assert(kda_reserve_rows == kda64_rows &&
                  kda_reserve_record(64) == kda64_record_of(64).bytes &&
                  kda_reserve_record(128) == kda64_record_of(128).bytes,
              "a reserve has room for records");

/// Channels of a lane that follow one another, and the first of its group of that many.
PLAIT_HD constexpr int kda64_width(int keys) { return keys == 128 ? 4 : 2; }
PLAIT_HD constexpr int kda64_channel(int keys, int lane, int group) {
    return (32 * group + lane) * kda64_width(keys);
}

/// Rows of factors in shared memory. Within its eight rows a warp multiplies on its own: 16 rows of
/// k and of q, eight of lower k, in a region that is its own, where its factors of levels 4 and 5
/// lie afterwards. Level 3 has its own, for each pair of warps. An upper warp of a level has eight
/// rows of k and eight of q, a lower one eight of k.
PLAIT_HD constexpr int kda64_region_row(int warp) { return 24 * warp + (warp == 7 ? 8 : 0); }
constexpr int kda64_region_rows = 24 * 8 + 2 * 8;
PLAIT_HD constexpr int kda64_factor_row(int level, int warp) {
    return level == 3   ? kda64_region_rows + 24 * (warp >> 1) + (warp & 1 ? 0 : 16)
           : level == 4 ? kda64_region_row(warp) + (warp & 4 ? 16 : 8)
                        : kda64_region_row(warp);
}
constexpr int kda64_factor_rows = kda64_region_rows + 4 * 24;

/// Bytes from one to the next: eight of ldmatrix lie in different banks, and by constants from one
/// another.
PLAIT_HD constexpr int kda64_factor_pitch(int keys) { return 2 * keys + 16; }
PLAIT_HD constexpr int kda64_factor_at(int keys, int row, int column) {
    return row * kda64_factor_pitch(keys) + 2 * column;
}

/// Floats of a row of F: rows of four, of 8 bytes, lie in different banks.
constexpr int kda64_f_pitch = 72;

/// Dynamic shared memory. F is f32, A and M are tiles; M lies where factors were. `scales`: what a
/// row of q is multiplied by.
struct kda64_prep_shared {
    int factors, m, f, a, totals, beta, scales, bytes;
};

PLAIT_HD constexpr kda64_prep_shared kda64_prep_shared_of(int keys) {
    kda64_prep_shared s{};
    s.factors = s.m = 0;
    s.f = s.factors + kda64_factor_rows * kda64_factor_pitch(keys);
    s.a = s.f + 4 * kda64_rows * kda64_f_pitch;
    s.totals = s.a + kda64_tile_bytes(kda64_rows, kda64_rows);
    s.beta = s.totals + 4 * kda64_prep_warps * keys;
    s.scales = s.beta + 4 * kda64_rows;
    s.bytes = s.scales + 4 * kda64_rows;
    return s;
}

/// Four channels from each multiple of four on are an aligned access.
constexpr bool kda64_fours(const kda_problem &p, const kda_view &v, int64_t heads) {
    const auto fits = [](int64_t extent, int64_t stride) { return extent <= 1 || stride % 4 == 0; };
    return v.c == 1 && v.align >= (kda_is_half(v.type) ? 8 : 16) && p.dim_k % 4 == 0 &&
           fits(p.batch, v.b) && fits(p.length, v.t) && fits(heads, v.h);
}

} // namespace plait::impl
