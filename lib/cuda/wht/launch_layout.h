// How the planner launches an instantiated kernel of this folder.
#pragma once

#include "lib/common/scalar.h"
#include "lib/cuda/common/tile_layout.h"

#include <cstdint>

namespace plait::impl {

struct wht_launch {
    char variant[48];      ///< names the instantiation in the kernel table
    int threads;           ///< per block
    int smem_bytes;        ///< dynamic shared memory; above 48 KB it needs the opt-in attribute
    int min_blocks_per_sm; ///< what registers allow; shared memory may allow fewer
    int rows_per_tile;     ///< wht.block: transforms that one block holds at a time
    int log_columns;       ///< wht.columns_*: columns of a tile
    bool persistent;       ///< blocks walk over tiles and prefetch the next one
    int cluster;           ///< wht.cluster: blocks that work on one row
};

struct variant_name {
    char text[48];
};

constexpr void variant_append(variant_name &name, int &at, const char *text) {
    for (; *text != 0; ++text) name.text[at++] = *text;
    name.text[at] = 0;
}

constexpr void variant_append(variant_name &name, int &at, int number) {
    if (number >= 10) name.text[at++] = static_cast<char>('0' + number / 10);
    name.text[at++] = static_cast<char>('0' + number % 10);
    name.text[at] = 0;
}

/// "f32.f16.n15.v": stored types, size, accesses (v: 16 bytes where possible, e: one element).
constexpr variant_name wht_variant(scalar x, scalar y, const char *size, int number, bool vector) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, scalar_name(x));
    variant_append(name, at, ".");
    variant_append(name, at, scalar_name(y));
    variant_append(name, at, size);
    variant_append(name, at, number);
    variant_append(name, at, vector ? ".v" : ".e");
    return name;
}

/// Blocks for `tiles` tiles: all of them, or as many as run at a time.
constexpr int wht_grid(const wht_launch &launch, int64_t tiles, int sms) {
    const int64_t limit = launch.persistent ? static_cast<int64_t>(sms) * launch.min_blocks_per_sm
                                            : static_cast<int64_t>(INT32_MAX);
    return static_cast<int>(tiles < limit ? tiles : limit);
}

PLAIT_HD constexpr bool wht_is_half(scalar s) { return s == scalar::f16 || s == scalar::bf16; }
/// Sums of 8 bytes.
PLAIT_HD constexpr bool wht_is_wide(scalar s) { return s == scalar::f64 || s == scalar::i64; }

/// Bytes of a stored element.
PLAIT_HD constexpr int wht_bytes(scalar s) { return wht_is_wide(s) ? 8 : wht_is_half(s) ? 2 : 4; }

/// log2 of the elements in a 16-byte access.
PLAIT_HD constexpr int wht_log_vec(scalar s) { return wht_is_wide(s) ? 1 : wht_is_half(s) ? 3 : 2; }

constexpr int wht_accumulate_bytes(scalar x) { return wht_is_wide(x) ? 8 : 4; }

} // namespace plait::impl
