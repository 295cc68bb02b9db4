// Workspace, arguments and launches of kda.bwd_c16_*: the backward in chunks of 16 tokens.
// Everything that a matrix product reads lies in tiles of 16 x 16 elements, in the order in which
// the lanes of a warp hold an operand of mma.m16n8k16 (mma_layout.h): lane * 8 + word * 2 + half.
// A tile serves as the left operand (its rows are rows of the product) and as the right one (its
// rows are columns of the product); the sum runs over its columns. Elements are bf16, or f32 in the
// plan that keeps f32. Keys and values are padded with zeros to whole tiles.
#pragma once

#include "lib/cuda/common/mma_layout.h"
#include "lib/cuda/kda/common_layout.h"

namespace plait::impl {

constexpr int kda_c16 = 16;          ///< tokens of a chunk; rows and columns of a tile
constexpr int kda_c16_tile = 256;    ///< elements of a tile
constexpr int kda_c16_threads = 128; ///< of a block
constexpr int kda_c16_warps = kda_c16_threads / 32;
constexpr int64_t kda_c16_most = 256; ///< of keys, of values

/// Where an element of a tile lies in it.
PLAIT_HD constexpr int kda_c16_place(int row, int column) {
    return ((row % 8) * 4 + (column % 8) / 2) * 8 + (row / 8 + column / 8 * 2) * 2 + column % 2;
}

/// What chunk-heads keep, in elements from the start of the record of one chunk and value head. The
/// reverse scan copies [0, forward), the forward scan [floats, vectors): both without a gap.
struct kda_c16_record {
    int kt, vt;    ///< tiles of keys, of values
    int bytes;     ///< of an element
    int turned_a;  ///< Aqk transposed; rows i, columns j of A_ji (from here on bytes)
    int turned_m;  ///< M transposed, without its ones
    int floats;    ///< f32: e^G of the chunk by channel, then beta by token
    int kp;        ///< k+: rows tokens
    int turned_kr; ///< kR: rows channels
    int n;         ///< N = (I + F diag beta)^-1 without its ones: rows i
    int turned_do; ///< dO by tiles of values: rows values
    int d_o;       ///< dO: rows tokens
    int size;      ///< of a record; a multiple of 16
    PLAIT_HD constexpr int tile_bytes() const { return kda_c16_tile * bytes; }
    PLAIT_HD constexpr int kr() const { return 0; }                        ///< rows tokens
    PLAIT_HD constexpr int turned_qp() const { return kt * tile_bytes(); } ///< rows channels
    PLAIT_HD constexpr int turned_kp() const { return 2 * kt * tile_bytes(); }
    PLAIT_HD constexpr int reverse_bytes() const { return kp; }
    PLAIT_HD constexpr int forward_bytes() const { return turned_do - floats; }
};

PLAIT_HD constexpr kda_c16_record kda_c16_record_of(int kt, int vt, bool wide) {
    kda_c16_record r{};
    r.kt = kt;
    r.vt = vt;
    r.bytes = wide ? 4 : 2;
    const int tile = r.tile_bytes();
    r.turned_a = 3 * kt * tile;
    r.turned_m = r.turned_a + tile;
    r.floats = r.turned_m + tile;
    r.kp = r.floats + (kt + 1) * kda_c16 * 4;
    r.turned_kr = r.kp + kt * tile;
    r.n = r.turned_kr + kt * tile;
    r.turned_do = r.n + tile;
    r.d_o = r.turned_do + vt * tile;
    r.size = r.d_o + vt * tile;
    return r;
}

/// Strides and types are those of the problem.
struct kda_c16_args {
    const void *q, *k, *v, *g, *beta, *a_log, *dt_bias, *state_in, *d_o, *dstate_out;
    const kda_sequence *table; ///< null: sequence n is row n
    const kda_chunk *chunks;   ///< null with it
    char *records;             ///< [slot][value head] of kda_c16_record
    char *states;   ///< [slot][value head][kt][vt] tiles, rows channels: before the chunk
    char *dstates;  ///< the same: gradients behind the chunk
    char *errors;   ///< [slot][value head][vt] tiles, rows tokens: E
    char *dvalues;  ///< the same: dVc
    float *through; ///< [slot][value head]: kda_c16_through
    float *heads;   ///< [slot][value head][2][16][16 kt]: dq, dk of value heads
    float *partial; ///< [slot][value head][16 kt + 1]: of dt_bias, then of a_log
    void *dq, *dk, *dv, *dg, *dbeta, *da_log, *ddt_bias, *dstate_in;
    kda_problem problem;
    int64_t slots; ///< chunks, at most
    int kt, vt;    ///< tiles of keys, of values
};

/// Floats of `through`: products of rows with states by tiles of channels, rows channels and
/// columns tokens: dO S, dVc S, E dS; then <dS, S> by channel.
PLAIT_HD constexpr int64_t kda_c16_through(int kt) { return int64_t{kt} * (3 * kda_c16_tile + 16); }

PLAIT_HD constexpr int64_t kda_c16_chunk_heads(const kda_c16_args &a) {
    return a.slots * a.problem.value_heads;
}

// ---- Shared memory ---------------------------------------------------------------------------

/// Floats between rows of tokens: lanes of a warp that hold four tokens and eight channels, and
/// those that hold eight tokens and four pairs, meet few conflicts.
PLAIT_HD constexpr int kda_c16_pitch(int kt) { return 16 * kt + 4; }

/// Rows of q, k and g, then `spare` floats.
constexpr int kda_c16_rows_bytes(int kt, int spare) {
    return (3 * kda_c16 * kda_c16_pitch(kt) + spare) * 4;
}
/// kda.bwd_c16_prep: sums of F and A of four warps, then F, A, M and N, beta and what norms divide
/// by.
constexpr int kda_c16_prep_spare = (2 * kda_c16_warps + 4) * 256 + 64;
/// kda.bwd_c16_b3: sums of P and D of four warps, their sums with a pitch of 17, dbeta, norms,
/// sums.
constexpr int kda_c16_b3_spare = 2 * kda_c16_warps * 256 + 2 * 16 * 17 + 64;

/// Stages of the ring of a scan: what the memory of an SM holds for three blocks, else two.
PLAIT_HD constexpr int kda_c16_stages(int stage_bytes) {
    return stage_bytes * 3 <= 72 * 1024 ? 3 : 2;
}

constexpr kda_launch kda_c16_chunk_launch(const kda_c16_args &a, bool wide, int smem_bytes) {
    kda_launch l{};
    const char *const name = wide ? "f32" : "bf16";
    for (int i = 0; name[i] != 0; ++i) l.variant[i] = name[i];
    l.threads = kda_c16_threads;
    l.grid = kda_grid(kda_c16_chunk_heads(a));
    l.smem_bytes = smem_bytes;
    return l;
}

/// Tiles of keys that a warp of a scan holds in registers: 4, 8 or 16.
constexpr int kda_c16_held(int kt) { return kt <= 4 ? 4 : kt <= 8 ? 8 : 16; }

/// Blocks of a scan: four tiles of values of one value head of one sequence each.
PLAIT_HD constexpr int64_t kda_c16_scans(const kda_c16_args &a) {
    return a.problem.sequences * a.problem.value_heads * kda_ceil_div(a.vt, kda_c16_warps);
}

constexpr kda_launch kda_c16_scan_launch(const kda_c16_args &a, bool wide, bool reverse) {
    const kda_c16_record r = kda_c16_record_of(a.kt, a.vt, wide);
    const int stage = reverse ? r.reverse_bytes() : r.forward_bytes();
    kda_launch l = kda_c16_chunk_launch(a, wide, kda_c16_stages(stage) * stage);
    int at = wide ? 3 : 4;
    l.variant[at++] = '.';
    l.variant[at++] = 'k';
    const int held = kda_c16_held(a.kt);
    if (held >= 10) l.variant[at++] = '1';
    l.variant[at++] = static_cast<char>('0' + held % 10);
    l.grid = kda_grid(kda_c16_scans(a));
    return l;
}

} // namespace plait::impl
