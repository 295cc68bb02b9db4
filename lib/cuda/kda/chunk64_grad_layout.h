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
    int64_t blocks;                         ///< chunk slots times heads of q and k
    int32_t values;                         ///< of a tile: a multiple of 64
    float least_beta;                       ///< as for kda.chunk64_prep
    bool vector_q, vector_k, vector_o;      ///< 8 channels are an aligned access; DO as bf16
    bool wide_g, wide_dq, wide_dk, wide_dg; ///< the same of bf16 tensors
};

/// Dynamic shared memory. When products with states are done, what halves tell one another takes
/// the place of `states` and `gradients`; sums over channels are added up in `pairs`, before and
/// behind its use. `decays` and `sums` ([2][4], several value heads to a head of q) are [threads]
/// of 16 bytes. Rows are coefficients of q, of k, of w S, the squares of both norms; `totals`
/// holds what dbeta needs before its use.
struct kda64_grad_tiles {
    int states, gradients, written, adjoints, d_o, q, k, pairs;
};
struct kda64_grad_shared : kda64_grad_tiles {
    int decays, sums, rows, near, totals, place, counter, bytes;
};
/// Of variants `near`. `factors`: fragments of three operands. `slots`: 16 bytes of each thread.
/// `parts`: of sums over channels. `between`: decays between anchors, then sums over tokens.
struct kda64_grad_near_shared : kda64_grad_tiles {
    int factors, slots, parts, rows, bias, between, totals, places, counter, bytes;
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

/// With room for as many values as keys, so that places are constants.
PLAIT_HD constexpr kda64_grad_near_shared kda64_grad_near_shared_of(int keys) {
    kda64_grad_near_shared s{};
    const int state = kda64_tile_bytes(keys, keys), tokens = kda64_tile_bytes(kda64_rows, keys);
    s.q = 0;
    s.k = s.q + tokens;
    s.pairs = s.k + tokens;
    s.factors = s.pairs + 2 * kda64_tile_bytes(64, 64);
    s.slots = s.factors + 3 * tokens;
    s.parts = s.slots + 16 * kda64_grad_threads(keys);
    s.rows = s.parts + 2 * 4 * 64 * (keys / 16);
    s.bias = s.rows + 5 * 4 * 64;
    s.between = s.bias + 4 * keys;
    s.totals = s.between + 6 * 4 * keys;
    s.places = s.totals + 4 * 4 * keys;
    s.counter = s.places + 2 * 96;
    s.written = (s.counter + 16 + 127) / 128 * 128;
    s.adjoints = s.written + tokens;
    s.d_o = s.adjoints + tokens;
    s.states = s.d_o + tokens;
    s.gradients = s.states + state;
    s.bytes = s.gradients + state;
    return s;
}

/// Variants `near`: gates as in those of kda.chunk64_prep, bf16, no more values than keys, one
/// value head to a head of q: there is no room for the sums of several.
constexpr bool kda64_grad_near(const kda_problem &p) {
    return kda64_near(p) && p.group() == 1 && p.q.type == scalar::bf16 &&
           p.k.type == scalar::bf16 && p.dim_v <= kda64_keys(p.dim_k);
}

constexpr int kda64_grad_bytes(const kda_problem &p, int values) {
    const int keys = kda64_keys(p.dim_k);
    return kda64_grad_near(p) ? kda64_grad_near_shared_of(keys).bytes
                              : kda64_grad_shared_of(keys, values, p.group() > 1).bytes;
}

/// No more blocks than the SMs have room for: they walk, so that no SM waits for the next one.
inline kda_launch kda_chunk64_grad_launch(kda_chunk64_grad_args &a, int64_t sms) {
    const int keys = kda64_keys(a.p.dim_k);
    a.values = static_cast<int32_t>(kda_ceil_div(a.p.dim_v, 64) * 64);
    a.blocks = kda_chunk_slots(a.p, kda64_rows) * a.p.heads;
    const bool bf16 = a.p.q.type == scalar::bf16 && a.p.k.type == scalar::bf16;
    const int64_t most = sms * kda64_grad_blocks(keys, bf16);
    kda_launch l{"", kda64_grad_threads(keys), a.blocks < most ? a.blocks : most,
                 kda64_grad_bytes(a.p, a.values)};
    int at = kda64_name(l.variant, keys);
    if (kda64_grad_near(a.p))
        for (const char *c = ".near"; *c != 0; ++c) l.variant[at++] = *c;
    if (!bf16)
        for (const char *c = ".f16"; *c != 0; ++c) l.variant[at++] = *c;
    l.variant[at] = 0;
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
