// Layout of kda.chunk64_prep: 2 * keys threads, of which one has a channel of half of the rows.
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
    char *records;             ///< [chunk slots][value heads]
    kda_problem p;
    int64_t blocks;
    float least_beta; ///< what a smaller one is replaced by
};

/// Dynamic shared memory. F and M are f32 with rows of 64; A is a tile. Operands of a level: rows i
/// of k and of q, then rows j of k, 32 each; two of them in turn.
struct kda64_prep_shared {
    int f, m, products, a, operands, gates, first, sums, totals, parts, norms, beta, bytes;
};

PLAIT_HD constexpr int kda64_operand_bytes(int keys) { return kda64_tile_bytes(96, keys); }

PLAIT_HD constexpr kda64_prep_shared kda64_prep_shared_of(int keys) {
    kda64_prep_shared s{};
    s.operands = 0;
    s.f = 2 * kda64_operand_bytes(keys);
    s.a = s.f + 4 * 64 * 64;
    s.gates = s.a + kda64_tile_bytes(64, 64);
    s.totals = s.gates + 4 * 64 * keys;
    s.first = s.totals + 2 * 4 * keys;
    s.parts = s.first + 4 * keys;
    s.norms = s.parts + 2 * 4 * 64 * (keys / 32);
    s.beta = s.norms + 3 * 4 * 64;
    s.bytes = s.beta + 4 * 64;
    // When the levels are done.
    s.m = 0;
    s.products = 4 * 64 * 64;
    return s;
}

PLAIT_HD constexpr int kda64_prep_threads(int keys) { return 2 * keys; }

inline kda_launch kda_chunk64_prep_launch(kda_chunk64_prep_args &a) {
    const int keys = kda64_keys(a.p.dim_k);
    a.blocks = kda_chunk_slots(a.p, kda64_rows) * a.p.value_heads;
    kda_launch l{"", kda64_prep_threads(keys), kda_grid(a.blocks),
                 kda64_prep_shared_of(keys).bytes};
    kda64_name(l.variant, keys);
    return l;
}

} // namespace plait::impl
