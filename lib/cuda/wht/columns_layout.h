// What the two column kernels share: y = scale * (H_m (x) I) x on data seen as
// [batch][outer][m = 2^log_m][inner = 2^log_inner]; each batch entry is contiguous.
// A block takes 2^c columns of all m rows; element = [more columns][row: log_m bits][column: c
// bits].
#pragma once

#include "lib/cuda/wht/launch_layout.h"

namespace plait::impl {

struct wht_columns_args {
    const void *x;
    void *y; ///< may equal x; then the batch strides are equal
    int64_t batch;
    int64_t x_batch_stride; ///< elements
    int64_t y_batch_stride;
    int64_t outer;
    int log_m;
    int log_inner;
    double scale;
};

struct wht_columns_config {
    scalar x, y;
    int log_m;
    int log_run;     ///< c: columns in a row of a tile
    int log_columns; ///< all columns of a tile
    tile_layout tile;
    int log_rounds; ///< registers hold 2^log_rounds tiles
    bool own_words; ///< each has its own words; else they use the same, one after the other
    bool parked;    ///< they are half of the rows; the first half waits in shared memory
    bool word_wise; ///< f64 goes through shared memory as two 4-byte words, one after the other
    bool vector;    ///< bases and strides are promised to be multiples of 16 bytes
    int blocks_per_sm;
    bool prefetch; ///< asks L2 for the tile that runs after this one
};

/// Row of an element of a tile.
PLAIT_HD constexpr uint32_t wht_columns_row(const wht_columns_config &c, uint32_t element) {
    return (element >> c.log_run) & bit_range(0, c.log_m);
}

/// Column of an element, counted from the tile's first.
PLAIT_HD constexpr uint32_t wht_columns_column(const wht_columns_config &c, uint32_t element) {
    return (element & bit_range(0, c.log_run)) | (element >> (c.log_run + c.log_m)) << c.log_run;
}

/// Place of an element, counted from the first of its block; additive over disjoint bits.
PLAIT_HD constexpr int64_t wht_columns_offset(const wht_columns_config &c, uint32_t element,
                                              int log_inner) {
    return (static_cast<int64_t>(wht_columns_row(c, element)) << log_inner) +
           wht_columns_column(c, element);
}

/// First elements of what a block takes at a time.
struct wht_columns_place {
    int64_t x;
    int64_t y;
};

PLAIT_HD constexpr wht_columns_place
wht_columns_tile_place(const wht_columns_config &c, const wht_columns_args &args, int64_t tile) {
    const int log_across = args.log_inner - c.log_columns;
    const int64_t slice = tile >> log_across;
    const int64_t column = (tile & ((int64_t(1) << log_across) - 1)) << c.log_columns;
    const int64_t entry = args.batch == 1 ? 0 : slice / args.outer;
    const int64_t inside = ((slice - entry * args.outer) << (c.log_m + args.log_inner)) + column;
    return {entry * args.x_batch_stride + inside, entry * args.y_batch_stride + inside};
}

/// Bytes of the first half of the rows, in front of the words of the exchange.
PLAIT_HD constexpr int wht_columns_parked_bytes(const wht_columns_config &c) {
    return c.parked ? (wht_is_wide(c.x) ? 8 : 4) << (c.tile.log_tile + c.log_rounds) : 0;
}

/// log2 of the columns of a row that a thread holds: they lie beside one another.
PLAIT_HD constexpr int wht_columns_across(const wht_columns_config &c) {
    return bit_count(c.tile.phase[0].regs & bit_range(0, c.log_run));
}

constexpr int wht_columns_smem_bytes(const wht_columns_config &c) {
    const int word = wht_is_wide(c.x) && !c.word_wise ? 8 : 4;
    return wht_columns_parked_bytes(c) +
           word * (tile_words(c.tile) << (c.own_words ? c.log_rounds : 0));
}

/// Stored types that are instantiated; f32 intermediates of 16-bit transforms come back rounded
/// once.
constexpr bool wht_columns_types(scalar x, scalar y) {
    const bool words = x == scalar::f32 || x == scalar::i32;
    if (x == y) return words || wht_is_wide(x) || wht_is_half(x);
    return x == scalar::f32 && wht_is_half(y);
}

inline void wht_columns_fill(const wht_columns_config &c, wht_launch *out) {
    const variant_name name = wht_variant(c.x, c.y, ".k", c.log_m, c.vector);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = tile_threads(c.tile);
    out->smem_bytes = wht_columns_smem_bytes(c);
    out->min_blocks_per_sm = c.blocks_per_sm;
    out->log_columns = c.log_columns;
}

/// Blocks to launch for batch * outer = slices >= 1.
inline int wht_columns_grid(const wht_launch &launch, int64_t slices, int log_inner, int sms) {
    return wht_grid(launch, slices << (log_inner - launch.log_columns), sms);
}

} // namespace plait::impl
