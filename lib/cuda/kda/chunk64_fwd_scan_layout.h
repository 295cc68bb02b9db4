// Layout of kda.chunk64_fwd_scan: a block has 16 values of a value head of a sequence for each of
// its warps, and walks over the chunks. Records have a ring in shared memory that all warps read;
// every warp has two tiles of its own values of V. kda.chunk64_bwd_scan has DO there.
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
    char *states;              ///< kept: [record][values][keys] bf16 at the head of each chunk
    char *written;             ///< kept: u as [record][values][64] bf16
    const int32_t *slots;      ///< without offsets: those of a pool, or null
    const kda_sequence *table; ///< of kda.offsets, or null: sequence n is row n
    kda_problem p;
    int64_t blocks;
    int32_t slices; ///< of the values, one for each block
    bool vector;    ///< 8 values of V are an aligned access
    bool whole;     ///< 16 values of O are there or not, four of them an aligned access of 16 bits
};

constexpr int kda64_scan_shared_most = 227 * 1024;

struct kda64_forward_shape {
    int values, stages, record, v, counters, bytes;
};

/// Bytes of a warp's values of V of a chunk.
constexpr int kda64_warp_values = kda64_tile_bytes(kda64_rows, 16);

PLAIT_HD constexpr kda64_forward_shape kda64_forward_shape_of(int keys, int warps) {
    kda64_forward_shape s{};
    s.values = 16 * warps;
    s.record = kda64_record_of(keys).bytes;
    const int all_v = 2 * warps * kda64_warp_values;
    s.stages = 3 * s.record + all_v + 64 <= kda64_scan_shared_most ? 3 : 2;
    s.v = s.stages * s.record;
    s.counters = s.v + all_v;
    s.bytes = s.counters + 64;
    return s;
}

/// The split kernels, of one or two tiles of 16 values: four warps share the chain from state to
/// state, by tokens and by keys; others make O, a chunk behind them. What those need of a record
/// has a ring of its own. In a pair they are another block of the cluster, with memory of its own.
constexpr int kda64_split_most = 2; ///< tiles of a block
constexpr int kda64_chain_warps = 4;
constexpr int kda64_split_v = 4; ///< chunks of V
PLAIT_HD constexpr int kda64_split_threads(int tiles, bool pair) {
    return 32 * (kda64_chain_warps + (pair ? 1 : 2 * tiles));
}

/// Stages of the two rings; chunks whose words are kept for O.
struct kda64_split_rings {
    int first, second, words;
};
PLAIT_HD constexpr kda64_split_rings kda64_split_rings_of(int tiles, bool pair) {
    return pair         ? kda64_split_rings{4, 4, 4}
           : tiles == 1 ? kda64_split_rings{3, 3, 2}
                        : kda64_split_rings{3, 2, 2};
}

struct kda64_split_shape {
    int values, first, second, rest, v, state, written, residual, words, counters, bytes;
};

/// Words of operands that warps hand over: 16 values and 16 keys or tokens are 512 bytes, of which
/// every lane has 16. `state` and `written` (u) are there twice. In a pair `rest` and `words`,
/// where S and u arrive, belong to the other block.
constexpr int kda64_words = 512;
PLAIT_HD constexpr int kda64_chunk_words(int keys, int tiles) {
    return tiles * (keys / 16 + 4) * kda64_words;
}
PLAIT_HD constexpr kda64_split_shape kda64_split_shape_of(int keys, int tiles, bool pair) {
    kda64_split_shape s{};
    const kda64_record r = kda64_record_of(keys);
    const kda64_split_rings rings = kda64_split_rings_of(tiles, pair);
    s.values = 16 * tiles;
    s.first = r.states; // bytes of each part of a record
    s.second = r.bytes - r.states;
    s.rest = pair ? 0 : rings.first * s.first; // where the second ring begins
    s.words = s.rest + rings.second * s.second;
    s.v = pair ? rings.first * s.first : s.words;
    s.state = s.v + kda64_split_v * tiles * kda64_warp_values;
    s.written = s.state + 2 * tiles * (keys / 16) * kda64_words;
    s.residual = s.written + 2 * tiles * 4 * kda64_words;
    s.counters = s.residual + tiles * 4 * kda64_words;
    s.bytes = s.counters + 8 * (2 * rings.first + rings.second + 3 * rings.words);
    return s;
}

/// Shared memory of a block of 16 values for each of `warps`.
PLAIT_HD constexpr int kda64_forward_bytes(int keys, int warps, bool pair) {
    return warps <= kda64_split_most ? kda64_split_shape_of(keys, warps, pair).bytes
                                     : kda64_forward_shape_of(keys, warps).bytes;
}

/// Blocks of 16, 32, 64 or 128 values: fewer values are more blocks, which read every record again.
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

/// `pair`, "k128.p1": O is the work of a second block.
inline kda_launch kda_chunk64_fwd_scan_launch(kda_chunk64_fwd_scan_args &a, int warps, bool pair) {
    const kda_problem &p = a.p;
    const int keys = kda64_keys(p.dim_k);
    a.slices = kda64_scan_slices(p.dim_v, warps);
    a.blocks = kda_places(p) * p.value_heads * a.slices;
    const bool split = warps <= kda64_split_most;
    kda_launch l{"", split ? kda64_split_threads(warps, pair) : 32 * warps, kda_grid(a.blocks),
                 kda64_forward_bytes(keys, warps, pair)};
    int at = kda64_scan_name(l.variant, keys, warps);
    if (pair) {
        l.variant[at - 2] = 'p';
        l.cluster = 2;
        l.grid = 2 * (a.blocks < kda_most_blocks / 2 ? a.blocks : kda_most_blocks / 2);
    }
    // Backward keeps states and u, and makes no O; forward does both where the reserve has them.
    const char *leaves = p.direction == kda_direction::backward ? ".keep"
                         : kda_keeps_states(p)                  ? ".all"
                                                                : "";
    for (const char *c = leaves; *c != 0; ++c) l.variant[at++] = *c;
    l.variant[at] = 0;
    return l;
}

} // namespace plait::impl
