// What the kda kernels share and the planner knows: launches, the table of sequences, chunk slots.
#pragma once

#include "lib/common/hd.h"
#include "lib/common/kda_problem.h"
#include "lib/common/kda_reserve.h"

namespace plait::impl {

/// How the planner launches an instantiated kernel of this folder.
struct kda_launch {
    char variant[32]; ///< names the instantiation in the kernel table
    int threads;      ///< per block
    int64_t grid;
    int smem_bytes;
    int cluster = 1; ///< blocks of a cluster; grid is a multiple of it
};

constexpr int64_t kda_most_blocks = INT32_MAX; ///< of a grid; beyond that blocks walk

PLAIT_HD constexpr int64_t kda_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

constexpr int64_t kda_grid(int64_t blocks) {
    return blocks < 1 ? 1 : blocks < kda_most_blocks ? blocks : kda_most_blocks;
}

PLAIT_HD constexpr bool kda_is_half(scalar s) { return s == scalar::f16 || s == scalar::bf16; }

/// A sequence as kda.offsets leaves it. What is not live owns no tokens and has begin where those
/// of the live ones before it end. Entry `sequences` stands behind the last: begin = tokens, not
/// live.
struct kda_sequence {
    int64_t begin, length;
    int64_t gap;         ///< tokens [gap, begin) belong to no live sequence
    int64_t first_chunk; ///< chunk slots of the sequences before
    int32_t slot;        ///< of a pool, -1 where none may be touched
    int32_t live;
};

/// A chunk slot of packed sequences: tokens first ... of a live sequence; sequence -1: surplus.
struct kda_chunk {
    int64_t sequence, first;
};

/// Whether all sequences depend on a header, without which none is live.
PLAIT_HD constexpr bool kda_reads_reserve(const kda_problem &p) {
    return p.reserve && p.direction == kda_direction::backward;
}

/// Whether a reserve has what kda.chunk64_fwd_scan leaves for backward.
constexpr bool kda_keeps_states(const kda_problem &p) {
    return p.reserve && kda_reserve_shape_of(p).state > 0;
}

/// Whether sequences are what kda.offsets says. Else sequence n is row n, all of it.
PLAIT_HD constexpr bool kda_needs_offsets(const kda_problem &p) {
    return p.varlen || (p.pooled && p.status) || kda_reads_reserve(p);
}

/// Chunk slots of a call: no more are needed, whatever the offsets are.
PLAIT_HD constexpr int64_t kda_chunk_slots(const kda_problem &p, int64_t chunk) {
    return p.varlen ? p.length / chunk + p.sequences : p.sequences * kda_ceil_div(p.length, chunk);
}

/// Sequences whose blocks are to be launched: of packed ones also the entry behind the last, whose
/// gap is the tokens behind all sequences.
PLAIT_HD constexpr int64_t kda_places(const kda_problem &p) {
    return p.sequences + (p.varlen ? 1 : 0);
}

} // namespace plait::impl
