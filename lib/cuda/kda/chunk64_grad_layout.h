// Layout of kda.chunk64_grad: 2 * keys threads, of which one has a channel of half of the rows, and
// 16 channels to a warp in products. And of kda.chunk64_sums.
#pragma once

#include "lib/cuda/kda/chunk64_prep_layout.h"

namespace plait::impl {

constexpr int kda64_grad_values = 128; ///< at most
constexpr int kda64_grad_keys = 128;

struct kda_chunk64_grad_args {
    kda64_inputs in;
    const void *d_o;
    void *dq, *dk, *dg, *dbeta;
    const char *states;    ///< [record][values][keys]: at the head of each chunk
    const char *gradients; ///< the same behind each chunk
    const char *written;   ///< [record][2][values][64]: u, and what rounding has left of it
    const char *adjoints;  ///< [record][2][values][64]: w
    float *partials;       ///< [record][keys + 1]: sums of dx and of what A_LOG gets; or null
    const int32_t *slots;
    const kda_sequence *table;
    const kda_chunk *chunks;
    kda_problem p;
    int64_t blocks;   ///< chunk slots times heads of q and k
    int32_t values;   ///< of a tile: a multiple of 64
    float least_beta; ///< as for kda.chunk64_prep
};

/// Dynamic shared memory. When the products with states are done, factors of a level take the place
/// of `states`, dq that of `gradients`, dk that of `written` and `adjoints`. `product`: [64][pitch]
/// f32, or three of [32][pitch].
struct kda64_grad_shared {
    int states, gradients, written, adjoints, d_o, pairs_q, pairs_k, gates, product, sums, parts,
        norms, beta, diagonal, first, counter, bytes;
};

/// Floats of a row of `product`: rows of eight lie in different banks.
PLAIT_HD constexpr int kda64_pitch(int keys) { return keys + 8; }

PLAIT_HD constexpr kda64_grad_shared kda64_grad_shared_of(int keys) {
    kda64_grad_shared s{};
    const int state = kda64_tile_bytes(kda64_grad_values, keys);
    const int rows = kda64_tile_bytes(kda64_grad_values, kda64_rows);
    s.states = 0;
    s.gradients = s.states + state;
    s.written = s.gradients + state;
    s.adjoints = s.written + rows;
    s.d_o = s.adjoints + rows;
    s.pairs_q = s.d_o + rows;
    s.pairs_k = s.pairs_q + kda64_tile_bytes(64, 64);
    s.gates = s.pairs_k + kda64_tile_bytes(64, 64);
    s.product = s.gates + 4 * 64 * keys;
    s.sums = s.product + 3 * 4 * 32 * kda64_pitch(keys); // [4][2][keys]
    s.parts = s.sums + 4 * 2 * 4 * keys;
    s.norms = s.parts + 2 * 4 * 64 * (keys / 32);
    s.beta = s.norms + 3 * 4 * 64;
    s.diagonal = s.beta + 4 * 64;
    s.first = s.diagonal + 4 * 64;
    s.counter = s.first + 4 * keys;
    s.bytes = s.counter + 16;
    return s;
}

inline kda_launch kda_chunk64_grad_launch(kda_chunk64_grad_args &a) {
    const int keys = kda64_keys(a.p.dim_k);
    a.values = static_cast<int32_t>(kda_ceil_div(a.p.dim_v, 64) * 64);
    a.blocks = kda_chunk_slots(a.p, kda64_rows) * a.p.heads;
    kda_launch l{"", kda64_prep_threads(keys), kda_grid(a.blocks),
                 kda64_grad_shared_of(keys).bytes};
    kda64_name(l.variant, keys);
    return l;
}

/// A block has 32 columns of a value head's partial sums, a warp every eighth chunk slot.
struct kda_chunk64_sums_args {
    const float *partials;
    void *da_log, *ddt_bias;
    const int32_t *slots;
    const kda_sequence *table;
    const kda_chunk *chunks;
    kda_problem p;
    int64_t blocks;
    int32_t columns; ///< of a partial sum; the last is A_LOG's
};

constexpr int kda64_sums_threads = 256;

constexpr kda_launch kda_chunk64_sums_launch(kda_chunk64_sums_args &a) {
    a.columns = kda64_keys(a.p.dim_k) + 1;
    a.blocks = a.p.value_heads * kda_ceil_div(a.columns, 32);
    return {"all", kda64_sums_threads, kda_grid(a.blocks), 8 * kda64_sums_threads};
}

} // namespace plait::impl
