// Who holds which element of a tile of 2^log_tile elements. In each phase some bits of the element
// index live in registers (the item), the others number the threads: lanes first, then warps.
// Between phases the tile goes through shared memory; a padded address map avoids bank conflicts.
// Plain C++17: planner, tests and kernels use the same functions.
#pragma once

#include "lib/common/hd.h"

#include <cstdint>

namespace plait::impl {

enum class tile_exchange : int32_t {
    none,  ///< the first phase
    warp,  ///< every warp keeps its elements: __syncwarp suffices
    block, ///< elements change warps
};

struct tile_phase {
    uint32_t regs;          ///< element bits held in registers
    uint32_t reg_stages;    ///< butterflies on register bits in this phase
    uint32_t lane_stages;   ///< butterflies by warp shuffles, on bits of the lane number
    tile_exchange exchange; ///< leads into this phase
    uint32_t lanes;         ///< five bits that number the lanes; 0: the lowest that threads have
};

struct tile_layout {
    int log_tile;
    int log_items;
    int phases;
    tile_phase phase[3];
    int log_vec_x;    ///< elements per access in phase 0
    int log_vec_y;    ///< elements per access in the last phase
    bool rounds_last; ///< the bit of two tiles in registers comes after those of a tile, not before
    int order_from;   ///< butterflies: from the top bit down to this one, then from bit 0 up
    int pad_shift[2]; ///< word(e) = e + sum of (e >> pad_shift) * pad_words
    int pad_words[2];
};

/// Bits lo..hi-1.
PLAIT_HD constexpr uint32_t bit_range(int lo, int hi) {
    return hi <= lo ? 0u : ((hi >= 32 ? 0u : (1u << hi)) - (1u << lo));
}

PLAIT_HD constexpr int bit_count(uint32_t mask) {
    int count = 0;
    for (int i = 0; i < 32; ++i) count += static_cast<int>((mask >> i) & 1u);
    return count;
}

/// Spreads the low bits of `value` over the set bits of `mask`, in ascending order. Works run by
/// run, so that a constant mask costs a shift and an AND for each run.
PLAIT_HD constexpr uint32_t bit_deposit(uint32_t value, uint32_t mask) {
    uint32_t out = 0;
    for (int i = 0; i < 5; ++i) {
        if (mask == 0) break;
        const uint32_t low = mask & (0u - mask);
        const uint32_t run = mask & ~(mask + low);
        out |= (value * low) & run;
        value /= run / low + 1u;
        mask &= ~run;
    }
    return out;
}

PLAIT_HD constexpr uint32_t tile_thread_bits(const tile_layout &t, int phase) {
    return bit_range(0, t.log_tile) & ~t.phase[phase].regs;
}

PLAIT_HD constexpr uint32_t tile_thread_part(const tile_layout &t, int phase, uint32_t thread) {
    const uint32_t bits = tile_thread_bits(t, phase), lanes = t.phase[phase].lanes;
    if (lanes == 0) return bit_deposit(thread, bits);
    return bit_deposit(thread & 31u, lanes) | bit_deposit(thread >> 5, bits & ~lanes);
}

PLAIT_HD constexpr uint32_t tile_item_part(const tile_layout &t, int phase, uint32_t item) {
    return bit_deposit(item, t.phase[phase].regs);
}

PLAIT_HD constexpr uint32_t tile_element(const tile_layout &t, int phase, uint32_t thread,
                                         uint32_t item) {
    return tile_thread_part(t, phase, thread) | tile_item_part(t, phase, item);
}

/// Additive over disjoint bits, so that an item adds a constant: word(a | b) = word(a) + word(b).
PLAIT_HD constexpr uint32_t tile_word(const tile_layout &t, uint32_t element) {
    return element + (element >> t.pad_shift[0]) * static_cast<uint32_t>(t.pad_words[0]) +
           (element >> t.pad_shift[1]) * static_cast<uint32_t>(t.pad_words[1]);
}

/// Position of an element bit within the item number or the thread number.
PLAIT_HD constexpr int bit_rank(uint32_t mask, int bit) {
    return bit_count(mask & bit_range(0, bit));
}

PLAIT_HD constexpr int tile_threads(const tile_layout &t) {
    return 1 << (t.log_tile - t.log_items);
}

/// The element bit whose butterfly is the `index`-th of a transform, among those that a phase does.
/// All variants of a kernel keep one order, so that alignment does not change the last bits.
PLAIT_HD constexpr int tile_stage_bit(const tile_layout &t, int index) {
    const int above = t.log_tile - t.order_from;
    return index < above ? t.log_tile - 1 - index : index - above;
}

/// Words of shared memory that the exchanges use.
PLAIT_HD constexpr int tile_words(const tile_layout &t) {
    return t.phases == 1 ? 0 : static_cast<int>(tile_word(t, (1u << t.log_tile) - 1u)) + 1;
}

} // namespace plait::impl
