// Address maps and launch data of wht.cluster64: y[row] = scale * H_n x[row] of f32 rows, a row for
// a cluster of C = 2^log_cluster blocks, 64 elements for a thread.
//
// Block q loads elements q n/C .. (q+1) n/C - 1, its part, p bits. Three times a thread transforms
// what it holds:
//   1  bits 0, 1, 8..11 of the part, as loaded, 16 bytes at a time;
//   2  bits 2..7, after an exchange within the block;
//   3  bits 12..p-1 and those of the block number, after the exchange within the cluster: units of
//      16 bytes, elements that differ in bits 2 and 3, go to the block whose number are their bits
//      5..7 (C = 16: 4..7). It has the same places of all parts.
// Both exchanges use the same words, one after the other.
#pragma once

#include "lib/cuda/wht/cluster_layout.h"

namespace plait::impl {

struct wht_cluster64_config {
    scalar x;
    int log_n;
    int log_cluster;
    int log_part;      ///< p
    int blocks_per_sm; ///< of 128 registers
    int ahead;         ///< of 16 accesses: loaded for the next row while this one is sent
    bool by_lanes;     ///< bit 12 by a shuffle: phase 3 would need 128 elements
};

constexpr int wht_cluster64_accesses = 16; ///< of four elements, of a thread
constexpr int wht_cluster64_units = 16;

PLAIT_HD constexpr bool wht_cluster64_exists(scalar x, int log_n) {
    return (x == scalar::f32 || wht_is_half(x)) && log_n >= 17 && log_n <= 19;
}

PLAIT_HD constexpr wht_cluster64_config wht_cluster64_config_of(scalar x, int log_n, int alt) {
    wht_cluster64_config c{};
    c.x = x;
    c.log_n = log_n;
    const bool half = wht_is_half(x);
    if (log_n == 17) {
        c.log_cluster = 3;
        c.ahead = alt == 0 ? 16 : 0;
    } else {
        c.log_cluster = alt >= 2 || log_n == 19 ? 4 : 3;
        c.ahead = alt % 2 == 0 ? (half ? 16 : 8) : 0;
    }
    c.log_part = log_n - c.log_cluster;
    c.by_lanes = c.log_part - 12 + c.log_cluster > 6;
    c.blocks_per_sm = 512 >> (c.log_part - 6);
    return c;
}

PLAIT_HD constexpr int wht_cluster64_threads(const wht_cluster64_config &c) {
    return 1 << (c.log_part - 6);
}

// ---- Within a part: elements, and their words in the first exchange ----------------------------

PLAIT_HD constexpr uint32_t wht_cluster64_load_thread(uint32_t thread) {
    return (thread & 63u) << 2 | thread >> 6 << 12;
}
PLAIT_HD constexpr uint32_t wht_cluster64_load_access(uint32_t access) { return access << 8; }

/// Bits 0, 1 and 8..: what a thread keeps in phase 2.
PLAIT_HD constexpr uint32_t wht_cluster64_middle_thread(uint32_t thread) {
    return (thread & 3u) | thread >> 2 << 8;
}
/// Item bits: two of a unit, those of the owner, for C = 8 bit 4.
PLAIT_HD constexpr uint32_t wht_cluster64_middle_item(const wht_cluster64_config &c,
                                                      uint32_t item) {
    if (c.log_cluster == 4) return item << 2;
    return (item & 3u) << 2 | (item >> 2 & 7u) << 5 | item >> 5 << 4;
}

/// A gap of 16 bytes behind every 256 elements: lanes on bits 0, 1, 8, 9, 10 reach all banks.
PLAIT_HD constexpr uint32_t wht_cluster64_word(uint32_t element) {
    return element + (element >> 8 << 2);
}

// ---- Within the cluster ------------------------------------------------------------------------

PLAIT_HD constexpr uint32_t wht_cluster64_owner(const wht_cluster64_config &c, uint32_t unit) {
    return unit & bit_range(0, c.log_cluster);
}

/// The words of part 0 where its owner keeps a unit of a thread of phase 2: that of unit `high` *
/// C + owner. Bit 4 of the element turns bank bit 4 around, or bit 12, so that lanes on bits 0..3
/// and that one reach all banks.
PLAIT_HD constexpr uint32_t wht_cluster64_kept(const wht_cluster64_config &c, uint32_t thread,
                                               uint32_t high) {
    const uint32_t turned = high ^ (c.by_lanes ? thread >> 6 & 1u : 0u);
    return ((thread ^ turned << 2) << 2) + (high << (c.log_part - 4));
}
PLAIT_HD constexpr uint32_t wht_cluster64_part(const wht_cluster64_config &c, uint32_t part) {
    return part << (c.log_part - c.log_cluster);
}

/// Phase 3.
PLAIT_HD constexpr int wht_cluster64_log_items(const wht_cluster64_config &c) {
    return c.log_part - 12 + c.log_cluster - (c.by_lanes ? 1 : 0);
}
PLAIT_HD constexpr int wht_cluster64_rounds(const wht_cluster64_config &c) {
    return 64 >> wht_cluster64_log_items(c);
}
/// The place within its part of what a thread takes: lanes have bits 0..4, or 0..3 and the lowest
/// from 8 on, or 0..3 and 12.
PLAIT_HD constexpr uint32_t wht_cluster64_take(const wht_cluster64_config &c, uint32_t owner,
                                               uint32_t thread, uint32_t round) {
    const uint32_t fixed = owner << (8 - c.log_cluster);
    if (c.by_lanes) return (thread & 15u) | fixed | thread >> 5 << 8 | (thread >> 4 & 1u) << 12;
    const int lanes = c.log_cluster == 3 ? 5 : 4;
    const uint32_t high = thread >> lanes | round << (c.log_part - 6 - lanes);
    return (thread & bit_range(0, lanes)) | fixed | high << 8;
}
PLAIT_HD constexpr uint32_t wht_cluster64_take_word(const wht_cluster64_config &c,
                                                    uint32_t element) {
    const uint32_t bit4 = c.log_cluster == 3 ? element >> 4 & 1u : 0;
    const uint32_t thread = (element & 3u) | (element >> 8 & 31u) << 2;
    return wht_cluster64_kept(c, thread, bit4) + (element >> 2 & 3u);
}
/// The lowest bit of the part that items have in phase 3.
PLAIT_HD constexpr int wht_cluster64_item_bit(const wht_cluster64_config &c) {
    return c.by_lanes ? 13 : 12;
}
PLAIT_HD constexpr uint32_t wht_cluster64_item_word(const wht_cluster64_config &c, uint32_t item) {
    const int bit = wht_cluster64_item_bit(c), in_part = c.log_part - bit;
    return (item & bit_range(0, in_part)) << (bit - 4) | wht_cluster64_part(c, item >> in_part);
}
PLAIT_HD constexpr uint32_t wht_cluster64_item_element(const wht_cluster64_config &c,
                                                       uint32_t item) {
    return item << wht_cluster64_item_bit(c);
}

PLAIT_HD constexpr int wht_cluster64_counter_at(const wht_cluster64_config &c) {
    return 4 * static_cast<int>(wht_cluster64_word(1u << c.log_part));
}
constexpr int wht_cluster64_smem_bytes(const wht_cluster64_config &c) {
    return wht_cluster64_counter_at(c) + 16;
}

constexpr variant_name wht_cluster64_variant(scalar x, int log_n, int alt) {
    return wht_variant(x, x,
                       alt == 0   ? ".n"
                       : alt == 1 ? ".p"
                       : alt == 2 ? ".q"
                                  : ".r",
                       log_n, true);
}

/// False when no such kernel is instantiated. Bases and row strides are multiples of 16 bytes.
inline bool wht_cluster64_launch(scalar x, int log_n, wht_launch *out, int alt) {
    if (!wht_cluster64_exists(x, log_n)) return false;
    const wht_cluster64_config c = wht_cluster64_config_of(x, log_n, alt);
    const variant_name name = wht_cluster64_variant(x, log_n, alt);
    *out = wht_launch{};
    for (int i = 0; i < 48; ++i) out->variant[i] = name.text[i];
    out->threads = wht_cluster64_threads(c);
    out->smem_bytes = wht_cluster64_smem_bytes(c);
    out->min_blocks_per_sm = c.blocks_per_sm;
    out->rows_per_tile = 1;
    out->cluster = 1 << c.log_cluster;
    out->persistent = c.ahead > 0;
    return true;
}

} // namespace plait::impl
