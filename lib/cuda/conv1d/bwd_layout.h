// What all kernels of the backward of conv1d get: the problem with its pointers, and where partial
// sums of dw and dbias go.
#pragma once

#include "lib/cuda/conv1d/offsets_layout.h"

namespace plait::impl {

/// Pointers of tensors that are not in use are null.
struct conv1d_bwd_args {
    const void *x, *w, *bias, *state_in;
    const int32_t *seq_idx;
    const conv1d_span *spans; ///< varlen: of conv1d.offsets
    const void *dy, *dstate_out;
    const void *marks; ///< conv1d.bwd_marks: which taps of a token count
    void *dx;
    void *partial;    ///< [slot][width + 1][channels], accumulators; row `width` is dbias
    void *dstate_in;  ///< conv1d.bwd_state
    void *marks_out;  ///< conv1d.bwd_marks
    void *dw, *dbias; ///< written by the main kernel where `partial` is null
    conv1d_view vx, vw, vbias, vstate_in, vseq_idx, vdy, vdstate_out, vdx, vdstate_in, vdw, vdbias;
    int64_t batch, channels, length, entries, sequences;
    int32_t width;
    int32_t silu, residual, packed;
    int32_t log_lanes;   ///< see the kernel: lanes, or threads, that share a row
    int32_t log_group;   ///< conv1d.bwd_any: threads that share the taps of a channel
    int32_t g_shared;    ///< conv1d.bwd_any: g of a tile is in shared memory
    int32_t fields;      ///< conv1d.bwd_bct: tokens of a word of marks; 0: marks are borders
    int32_t field_pairs; ///< of a row
    int64_t field_rows;
    int64_t borders_at;     ///< conv1d.bwd_bct: bytes from marks to the words of borders; -1: none
    int64_t flags_at;       ///< the same to the flags of tiles, where there are fields
    int64_t tile;           ///< tokens of a tile
    int64_t tiles;          ///< of a row
    int64_t tiles_per_walk; ///< of conv1d.bwd_bct: bwd_bct_layout.h
    int64_t rows_per_walk;
    int64_t walks; ///< of a channel
    int64_t slots; ///< of a channel: partial sums
    int64_t items; ///< of the launch: blocks or warps with work
    int64_t parts; ///< conv1d.bwd_bct: groups of rows of a channel that share a warp
    int64_t large; ///< conv1d.bwd_bct: passes of rows_per_walk items; the others share the rest
    int64_t x_begin, x_end, dy_begin,
        dy_end; ///< elements that lie inside the tensors, from the base
};

/// The problem's part of the arguments.
inline conv1d_bwd_args conv1d_bwd_args_of(const conv1d_problem &p) {
    conv1d_bwd_args a{};
    a.vx = p.x;
    a.vw = p.w;
    a.vbias = p.bias;
    a.vstate_in = p.state_in;
    a.vseq_idx = p.seq_idx;
    a.vdy = p.dy;
    a.vdstate_out = p.dstate_out;
    a.vdx = p.dx;
    a.vdstate_in = p.dstate_in;
    a.vdw = p.dw;
    a.vdbias = p.dbias;
    a.batch = p.batch;
    a.channels = p.channels;
    a.length = p.length;
    a.entries = p.entries;
    a.sequences = p.sequences;
    a.width = static_cast<int32_t>(p.width);
    a.silu = p.silu;
    a.residual = p.residual;
    a.packed = p.varlen;
    return a;
}

/// conv1d.bwd_reduce: dw and dbias from partial sums.
struct conv1d_bwd_reduce_args {
    const void *partial;
    void *dw, *dbias; ///< null: not wanted
    conv1d_view vdw, vdbias;
    int64_t channels, slots;
    int64_t width;
    int32_t log_slices; ///< log2 of the threads that share the slots of one sum
};

inline constexpr int conv1d_bwd_threads = 256;

/// More threads for a sum where there are more slots: at least about 4 loads for each.
constexpr int conv1d_bwd_reduce_log_slices(int64_t slots) {
    int log = 0;
    while (log < 5 && (int64_t{8} << log) <= slots) ++log;
    return log;
}

/// Blocks of conv1d.bwd_reduce.
constexpr int64_t conv1d_bwd_reduce_grid(int64_t channels, int64_t width, int log_slices) {
    return conv1d_grid((width + 1) * channels, conv1d_bwd_threads >> log_slices);
}

} // namespace plait::impl
