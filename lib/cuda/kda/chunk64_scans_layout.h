// Layout of kda.chunk64_scans: four warps have 16 values, a quarter of the keys and of the tokens
// each, and tell one another what products need as words of operands. A block is one direction of a
// slice of the values of a value head of a sequence.
#pragma once

#include "lib/cuda/kda/chunk64_fwd_scan_layout.h"

namespace plait::impl {

struct kda_chunk64_scans_args {
    const char *records; ///< of kda.chunk64_prep
    const void *v, *state_in;
    const void *d_o, *dstate_out;
    void *dstate_in, *dv;
    char *states;    ///< [record][values][keys] bf16: at the head of each chunk
    char *written;   ///< [record][values][64] bf16: u
    char *gradients; ///< as states: of the state behind each chunk
    char *adjoints;  ///< as written: w = M^T du; dv = beta w
    const int32_t *slots;
    const kda_sequence *table;
    kda_problem p;
    int64_t blocks; ///< even numbers walk from the last chunk to the first, odd ones forward
    int32_t slices;
    bool vector_v, vector_o; ///< 8 values are an aligned access; of DO of bf16
};

constexpr int kda64_scans_warps = 4; ///< of 16 values

/// One direction: where the ring of records and rows begins, what warps tell one another.
struct kda64_scans_ring {
    int record, stage, stages, begin, share, each, bytes;
};

/// Counters come first, for both directions.
PLAIT_HD constexpr kda64_scans_ring kda64_scans_ring_of(int keys, int tiles, bool reverse) {
    kda64_scans_ring s{};
    const kda64_record r = kda64_record_of(keys);
    s.record = reverse ? r.bytes : r.states;
    s.stage = s.record + kda64_tile_bytes(kda64_rows, 16 * tiles);
    // dS, du and its rest, dv; or S, beta (V - k+ S) and u, each with its rest.
    const int state = kda64_tile_bytes(16, keys), rows = kda64_tile_bytes(16, kda64_rows);
    s.each = reverse ? state + 3 * rows : 2 * state + 4 * rows;
    s.begin = 128; // what is in it stays a constant away
    s.stages = s.begin + 3 * s.stage + tiles * s.each <= kda64_scan_shared_most ? 3 : 2;
    s.share = s.begin + s.stages * s.stage;
    s.bytes = s.share + tiles * s.each;
    return s;
}

/// "k128.v32"; tiles of 16 values: 1 or 2.
inline kda_launch kda_chunk64_scans_launch(kda_chunk64_scans_args &a, int tiles) {
    const int keys = kda64_keys(a.p.dim_k), values = 16 * tiles;
    const int reverse = kda64_scans_ring_of(keys, tiles, true).bytes;
    const int forward = kda64_scans_ring_of(keys, tiles, false).bytes;
    a.slices = static_cast<int32_t>(kda_ceil_div(a.p.dim_v, 64) * 64 / values);
    a.blocks = 2 * a.p.sequences * a.p.value_heads * a.slices;
    kda_launch l{"", 32 * kda64_scans_warps * tiles, kda_grid(a.blocks),
                 reverse > forward ? reverse : forward};
    const int at = kda64_name(l.variant, keys);
    l.variant[at] = '.';
    l.variant[at + 1] = 'v';
    l.variant[at + 2] = static_cast<char>('0' + values / 10);
    l.variant[at + 3] = static_cast<char>('0' + values % 10);
    l.variant[at + 4] = 0;
    return l;
}

} // namespace plait::impl
