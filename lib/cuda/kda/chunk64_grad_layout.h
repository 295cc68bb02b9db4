// Layout of kda.chunk64_grad: a warp has 16 channels of 32 rows as tensor cores have results, so
// that a thread has two channels of 8 rows. And of kda.chunk64_sums.
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
    const char *written;   ///< [record][values][64]: u
    const char *adjoints;  ///< [record][values][64]: w
    float *partials;       ///< [record][keys + 1]: sums of dx and of what A_LOG gets; or null
    const int32_t *slots;
    const kda_sequence *table;
    const kda_chunk *chunks;
    kda_problem p;
    int64_t blocks;                    ///< chunk slots times heads of q and k
    int32_t values;                    ///< of a tile: a multiple of 64
    float least_beta;                  ///< as for kda.chunk64_prep
    bool vector_q, vector_k, vector_o; ///< 8 channels are an aligned access; DO as bf16
};

/// Dynamic shared memory. When products with states are done, what halves tell one another takes
/// the place of `states` and `gradients`; sums over channels are added up in `pairs`, before and
/// behind its use. `decays` and `sums` ([2][4], several value heads to a head of q) are [threads]
/// of 16 bytes. Rows are coefficients of q, of k, of w S, the squares of both norms; `totals`
/// holds what dbeta needs before its use.
struct kda64_grad_shared {
    int states, gradients, written, adjoints, d_o, q, k, pairs, decays, sums, rows, near, totals,
        place, counter, bytes;
};

PLAIT_HD constexpr int kda64_grad_threads(int keys) { return 4 * keys; }
/// Of an SM, so that 16 warps have its registers; conversions of f16 take a few more.
constexpr int kda64_grad_blocks(int keys, bool bf16) {
    return bf16 ? 512 / kda64_grad_threads(keys) : 1;
}
/// What two halves of 16 channels tell one another: fragments of q, of k, of k, and sums.
PLAIT_HD constexpr int kda64_grad_words(int keys) { return keys / 16 * 8 * 32 * 16; }

PLAIT_HD constexpr kda64_grad_shared kda64_grad_shared_of(int keys, int values, bool shared_heads) {
    kda64_grad_shared s{};
    const int state = kda64_tile_bytes(values, keys), rows = kda64_tile_bytes(values, kda64_rows);
    const int tokens = kda64_tile_bytes(kda64_rows, keys);
    s.states = 0;
    s.gradients = s.states + state;
    s.written = s.gradients + state;
    s.adjoints = s.written + rows;
    s.d_o = s.adjoints + rows;
    s.q = s.d_o + rows;
    s.k = s.q + tokens;
    s.pairs = s.k + tokens;
    s.sums = s.pairs + 2 * kda64_tile_bytes(64, 64);
    s.rows = s.sums;
    s.decays = s.written; // where both do not fit
    if (shared_heads) s.rows += 2 * 4 * 64 * keys;
    if (!shared_heads || values < keys) {
        s.decays = s.rows;
        s.rows += 4 * 64 * keys;
    }
    s.near = s.rows + 5 * 4 * 64;
    s.totals = s.near + 16 * 32;
    s.place = s.totals + 2 * 4 * keys;
    s.counter = s.place + 80;
    s.bytes = s.counter + 16;
    return s;
}

/// No more blocks than the SMs have room for: they walk, so that no SM waits for the next one.
inline kda_launch kda_chunk64_grad_launch(kda_chunk64_grad_args &a, int64_t sms) {
    const int keys = kda64_keys(a.p.dim_k);
    a.values = static_cast<int32_t>(kda_ceil_div(a.p.dim_v, 64) * 64);
    a.blocks = kda_chunk_slots(a.p, kda64_rows) * a.p.heads;
    const bool bf16 = a.p.q.type == scalar::bf16 && a.p.k.type == scalar::bf16;
    const int64_t most = sms * kda64_grad_blocks(keys, bf16);
    kda_launch l{"", kda64_grad_threads(keys), a.blocks < most ? a.blocks : most,
                 kda64_grad_shared_of(keys, a.values, a.p.group() > 1).bytes};
    const int at = kda64_name(l.variant, keys);
    if (!bf16) {
        l.variant[at] = '.';
        l.variant[at + 1] = 'f';
        l.variant[at + 2] = '1';
        l.variant[at + 3] = '6';
        l.variant[at + 4] = 0;
    }
    return l;
}

/// A block has 32 columns of a value head's partial sums, a warp every 32nd chunk slot.
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

constexpr int kda64_sums_threads = 1024;

constexpr kda_launch kda_chunk64_sums_launch(kda_chunk64_sums_args &a) {
    a.columns = kda64_keys(a.p.dim_k) + 1;
    a.blocks = a.p.value_heads * kda_ceil_div(a.columns, 32);
    return {"all", kda64_sums_threads, kda_grid(a.blocks), 8 * kda64_sums_threads};
}

} // namespace plait::impl
