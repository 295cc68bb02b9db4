// Layout of kda.chunk64_fwd_scan: a block has 16 values of a value head of a sequence for each of
// its warps, and walks over the chunks. A stage of the ring in shared memory is a record and the
// block's values of V.
#pragma once

#include "lib/cuda/kda/chunk64_layout.h"
#include "lib/cuda/kda/common_layout.h"

namespace plait::impl {

struct kda_chunk64_fwd_scan_args {
    const char *records; ///< of kda.chunk64_prep
    const void *v;
    const void *state_in;
    void *state_out;
    void *o;                   ///< forward
    char *states;              ///< backward: [record][values][keys] bf16 at the head of each chunk
    char *written;             ///< backward: u as [record][2][values][64] bf16, the second its rest
    const int32_t *slots;      ///< without offsets: those of a pool, or null
    const kda_sequence *table; ///< of kda.offsets, or null: sequence n is row n
    kda_problem p;
    int64_t blocks;
    int32_t slices; ///< of the values, one for each block
    bool vector;    ///< 8 values of V are an aligned access
};

struct kda64_scan_shape {
    int values, stages, record, stage, counters, bytes;
};

constexpr int kda64_scan_shared_most = 227 * 1024;

PLAIT_HD constexpr kda64_scan_shape kda64_fwd_scan_shape_of(int keys, int warps) {
    kda64_scan_shape s{};
    s.values = 16 * warps;
    s.record = kda64_record_of(keys).bytes;
    s.stage = s.record + kda64_tile_bytes(kda64_rows, s.values);
    s.stages = 3 * s.stage + 64 <= kda64_scan_shared_most   ? 3
               : 2 * s.stage + 64 <= kda64_scan_shared_most ? 2
                                                            : 1;
    s.counters = s.stages * s.stage;
    s.bytes = s.counters + 64;
    return s;
}

/// Blocks of 32 or 64 values: fewer values are more blocks, which read every record again.
PLAIT_HD constexpr int kda64_scan_slices(int64_t dim_v, int warps) {
    return static_cast<int>(kda_ceil_div(dim_v, 16 * warps));
}

/// "k128.w4"
constexpr int kda64_scan_name(char *to, int keys, int warps) {
    const int at = kda64_name(to, keys);
    to[at] = '.';
    to[at + 1] = 'w';
    to[at + 2] = static_cast<char>('0' + warps);
    to[at + 3] = 0;
    return at + 3;
}

inline kda_launch kda_chunk64_fwd_scan_launch(kda_chunk64_fwd_scan_args &a, int warps) {
    const kda_problem &p = a.p;
    const int keys = kda64_keys(p.dim_k);
    a.slices = kda64_scan_slices(p.dim_v, warps);
    a.blocks = kda_places(p) * p.value_heads * a.slices;
    kda_launch l{"", 32 * warps, kda_grid(a.blocks), kda64_fwd_scan_shape_of(keys, warps).bytes};
    int at = kda64_scan_name(l.variant, keys, warps);
    if (a.p.direction == kda_direction::backward) // keeps states and u, and makes no O
        for (const char *c = ".keep"; *c != 0; ++c) l.variant[at++] = *c;
    l.variant[at] = 0;
    return l;
}

} // namespace plait::impl
