// Layout of conv1d.update: `length` new samples a row, the state changed in place. Linear: the
// state becomes the last `entries` of (state, x). Ring: sample s goes to entry
// (position + s) mod entries.
#pragma once

#include "lib/cuda/conv1d/common_layout.h"

namespace plait::impl {

struct conv1d_update_args {
    const void *x;
    void *y;
    const void *w;
    const void *bias; ///< or null: 0
    void *state;
    const int32_t *position; ///< of a ring; null: linear
    const int32_t *slots;    ///< SLOTS, or live_slots of conv1d.offsets with pad = -1; or null
    conv1d_strides x_stride, y_stride, state_stride;
    int64_t w_c, w_t, bias_c;
    int64_t batch, channels, length, width, entries;
    int64_t slot_count;
    int32_t pad;
    scalar x_type, y_type, w_type, bias_type, state_type;
    bool silu, residual;
    // Of the vector variants:
    bool w_wide, bias_wide; ///< f32 beside 16-bit x
    bool w_packed;          ///< taps of a channel are aligned accesses of four
    conv1d_divisor groups;  ///< threads of a row
    int64_t row_sets;       ///< a thread takes every row_sets-th row
    conv1d_divisor entries_by;
    conv1d_divisor samples_by; ///< samples of a row
    uint32_t blocks;
};

constexpr int conv1d_update_threads = 64; ///< small blocks: a single row fills more SMs

constexpr conv1d_launch conv1d_update_any_launch(scalar accumulator, int64_t rows,
                                                 int64_t channels) {
    conv1d_launch l{};
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, "any.");
    conv1d_append(name, at, scalar_name(accumulator));
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = conv1d_update_threads;
    l.grid = conv1d_grid(rows * channels, l.threads);
    return l;
}

/// Entry 0 of what precedes the sample at a position: negative positions count too.
PLAIT_HD constexpr int64_t conv1d_ring_start(int64_t position, int64_t entries) {
    const int64_t rest = position % entries;
    return rest < 0 ? rest + entries : rest;
}

/// Entry of position p from a start, -entries <= p < entries.
PLAIT_HD constexpr int64_t conv1d_ring_entry(int64_t start, int64_t p, int64_t entries) {
    const int64_t i = start + p;
    return i < 0 ? i + entries : i >= entries ? i - entries : i;
}

// ---- Vector variants: 2 <= width <= 4, x, y and state of one type ----------

/// How a thread finds the history of its channels.
enum class conv1d_update_state {
    rows,    ///< [slot][entry][channel], linear with entries = width - 1, or a ring
    lines,   ///< [slot][channel][entry], packed, linear with entries = width - 1
    ring,    ///< of variants *.single, whose `rows` are linear
    samples, ///< the same of some samples a row, a thread each: none takes an entry that one reads
};

/// Channels of a thread: one access of 16 bytes (8 for 16 bits, whose f32 taps take the registers),
/// or few, so that a small batch fills more SMs.
PLAIT_HD constexpr int conv1d_update_vector(scalar s, bool few) {
    return few ? (s == scalar::f32 ? 1 : 2) : 4;
}

/// The variants with few channels a thread take one sample of one row: short code, for latency.
PLAIT_HD constexpr bool conv1d_update_single(int vector) { return vector < 4; }

/// Rows whose loads are issued together.
PLAIT_HD constexpr int conv1d_update_together(int vector) {
    return conv1d_update_single(vector) ? 1 : 2;
}

/// Samples of a row whose loads are issued together.
PLAIT_HD constexpr int conv1d_update_samples(int vector) {
    return conv1d_update_single(vector) ? 1 : 4;
}

/// Blocks that registers leave room for on an SM.
PLAIT_HD constexpr int conv1d_update_blocks_per_sm(int vector) { return vector < 4 ? 16 : 8; }

/// Element of what a thread loads of the state: sample d before the current one of its channel i.
/// Access j holds elements j * vector ...
PLAIT_HD constexpr int conv1d_update_element(conv1d_update_state how, int vector, int width,
                                             int channel, int d) {
    const int entry = width - 1 - d;
    return how == conv1d_update_state::lines ? channel * (width - 1) + entry
                                             : entry * vector + channel;
}

/// "bf16.k4.v8.rows".
constexpr conv1d_name conv1d_update_variant(scalar s, int width, int vector,
                                            conv1d_update_state how) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".k");
    conv1d_append(name, at, width);
    conv1d_append(name, at, ".v");
    conv1d_append(name, at, vector);
    conv1d_append(name, at, how == conv1d_update_state::rows ? ".rows" : ".lines");
    return name;
}

// ---- Variants *.single: one sample a thread, width 4; taps and biases packed, of one type -------

constexpr int conv1d_update_single_threads = 128;
PLAIT_HD constexpr int conv1d_update_single_together(int vector) { return vector < 4 ? 1 : 2; }
PLAIT_HD constexpr int conv1d_update_single_blocks_per_sm(scalar s, int vector,
                                                          conv1d_update_state how) {
    if (vector < 4) return 12;
    const bool linear = how == conv1d_update_state::rows || how == conv1d_update_state::lines;
    return s == scalar::f32 ? 5 : linear ? 8 : 7;
}

/// Of `samples`: warps take the samples of 32 threads' channels one after the other.
struct conv1d_update_sample {
    uint32_t row, group, sample;
};

PLAIT_HD constexpr conv1d_update_sample conv1d_update_sample_of(const conv1d_update_args &a,
                                                                uint32_t thread) {
    const uint32_t warp = thread / 32, set = conv1d_quotient(warp, a.samples_by);
    const uint32_t row = conv1d_quotient(set, a.groups);
    return {row, (set - row * a.groups.d) * 32 + thread % 32, warp - set * a.samples_by.d};
}

/// "bf16.v4.rows.single".
constexpr conv1d_name conv1d_update_single_variant(scalar s, int vector, conv1d_update_state how) {
    conv1d_name name{};
    int at = 0;
    conv1d_append(name, at, scalar_name(s));
    conv1d_append(name, at, ".v");
    conv1d_append(name, at, vector);
    conv1d_append(name, at,
                  how == conv1d_update_state::rows    ? ".rows"
                  : how == conv1d_update_state::lines ? ".lines"
                  : how == conv1d_update_state::ring  ? ".ring"
                                                      : ".samples");
    conv1d_append(name, at, ".single");
    return name;
}

constexpr int64_t conv1d_update_most_groups = INT64_C(1) << 24; ///< of a row

/// Sets of rows for about one wave of `resident` threads, where there is so much work.
constexpr int64_t conv1d_update_sets(int64_t batch, int64_t groups, int64_t resident) {
    const int64_t sets = resident / groups;
    const int64_t most = sets >= batch ? batch : sets < 1 ? 1 : sets;
    // As many rows for each set, or the last round would be for few.
    return conv1d_ceil_div(batch, conv1d_ceil_div(batch, most));
}

constexpr conv1d_launch conv1d_update_shared(conv1d_update_args &a, const conv1d_name &name,
                                             int vector, int threads) {
    const int64_t groups = a.channels / vector;
    const int64_t blocks = conv1d_ceil_div(a.row_sets * groups, threads);
    a.groups = conv1d_divisor_of(groups);
    a.blocks = static_cast<uint32_t>(blocks);
    conv1d_launch l{};
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = threads;
    l.grid = blocks;
    return l;
}

/// batch * length * channels / vector < 2^31 - 128; channels are whole vectors of 32 threads.
constexpr conv1d_launch conv1d_update_samples_launch(conv1d_update_args &a, int vector) {
    const int threads = conv1d_update_single_threads;
    const int64_t sets = a.channels / (32 * int64_t{vector});
    const int64_t blocks = conv1d_ceil_div(a.batch * a.length * sets * 32, threads);
    a.groups = conv1d_divisor_of(sets);
    a.samples_by = conv1d_divisor_of(a.length);
    a.entries_by = conv1d_divisor_of(a.entries);
    a.row_sets = a.batch;
    a.blocks = static_cast<uint32_t>(blocks);
    const conv1d_name name =
        conv1d_update_single_variant(a.x_type, vector, conv1d_update_state::samples);
    conv1d_launch l{};
    for (int i = 0; i < 32; ++i) l.variant[i] = name.text[i];
    l.threads = threads;
    l.grid = blocks;
    return l;
}

/// batch * channels / vector < 2^31.
constexpr conv1d_launch conv1d_update_single_launch(conv1d_update_args &a, int vector,
                                                    conv1d_update_state how, int64_t sms) {
    const int threads = conv1d_update_single_threads;
    a.row_sets =
        conv1d_update_single_together(vector) == 1
            ? a.batch
            : conv1d_update_sets(a.batch, a.channels / vector,
                                 sms * threads *
                                     conv1d_update_single_blocks_per_sm(a.x_type, vector, how));
    if (how == conv1d_update_state::ring) a.entries_by = conv1d_divisor_of(a.entries);
    return conv1d_update_shared(a, conv1d_update_single_variant(a.x_type, vector, how), vector,
                                threads);
}

/// The same of the variants for any number of samples.
constexpr conv1d_launch conv1d_update_launch(conv1d_update_args &a, int vector,
                                             conv1d_update_state how, int64_t sms) {
    const int64_t resident = sms * conv1d_update_threads * conv1d_update_blocks_per_sm(vector);
    a.row_sets = conv1d_update_single(vector)
                     ? a.batch
                     : conv1d_update_sets(a.batch, a.channels / vector, resident);
    return conv1d_update_shared(
        a, conv1d_update_variant(a.x_type, static_cast<int>(a.width), vector, how), vector,
        conv1d_update_threads);
}

} // namespace plait::impl
