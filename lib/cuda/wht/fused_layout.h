// Address maps and launch data of wht.fused: rows of wht.block with SIGNS or DIAG on either side,
// and rows stored in sequency or dyadic order. n elements have at least 16 bytes.
//
// Natural order: the tiles of wht.block. Ordered: natural row k stands at an index whose bits are
// linear in those of k, reversed. So the last phase holds the top bits of k, which are the low ones
// of its place: those of an access in registers, the next in the lanes. Sequency: the parity of the
// other bits says in which of two orders the registers of an access are stored. The order costs one
// selection for each element and a barrier instead of a warp's.
#pragma once

#include "lib/cuda/wht/any_layout.h"
#include "lib/cuda/wht/block_layout.h"

namespace plait::impl {

struct wht_fused_args {
    const void *x;
    void *y;           ///< may equal x; then the row strides are equal
    const void *signs; ///< bit i: element i of every row
    const void *diag;
    int64_t rows;
    int64_t x_row_stride; ///< elements, >= n
    int64_t y_row_stride;
    double scale;
    wht_any_extra extra[2]; ///< in, out
    wht_order order;
    bool vector[2]; ///< 16-byte bases and strides of x, of y; else single elements
};

/// Three phases for rows that are stored in another order: 2^log_tile elements of a row, all of it
/// or one of 2^rounds parts. `log_vec`: elements of a store that a tile holds.
PLAIT_HD constexpr tile_layout wht_fused_tile(int log_tile, int log_items, int log_vec_x,
                                              int log_vec, bool wide) {
    const int b = log_tile, r = log_items;
    const int vx = wht_block_vec_x(b, r, log_vec_x);
    tile_layout t{};
    t.log_tile = b;
    t.log_items = r;
    t.phases = 3;
    t.order_from = b;
    t.log_vec_x = vx;
    t.phase[0].regs = bit_range(0, vx) | bit_range(b - r + vx, b);
    t.phase[0].reg_stages = t.phase[0].regs;
    t.phase[1].exchange = t.phase[2].exchange = tile_exchange::block;
    // the longest access whose other bits phases 1 and 2 can hold
    for (int w = log_vec; w >= 0; --w) {
        const int others = r - w;              // of phase 2, below the lanes
        const int lo = wht_min(vx, b - 5 - r); // the lanes begin at b - w - 5
        if (b - r + vx - lo - others > r) continue;
        t.log_vec_y = w;
        t.phase[2].regs = bit_range(lo, lo + others) | bit_range(b - w, b);
        t.phase[2].lanes = bit_range(b - w - 5, b - w);
        t.phase[1].regs = bit_range(lo + others, lo + others + r);
        // four bits below them: bit 9 has the bank that those leave
        if (!wide && lo + others == 4 && b > 9) t.phase[1].lanes = bit_range(0, 4) | 1u << 9;
        break;
    }
    const uint32_t left = bit_range(0, b) & ~t.phase[0].regs;
    t.phase[1].reg_stages = left & t.phase[1].regs;
    t.phase[2].reg_stages = left & ~t.phase[1].regs;
    t.pad_shift[0] = wide ? 4 : 5; // 8-byte words: 16 lanes at a time
    t.pad_shift[1] = wide ? 8 : 10;
    t.pad_words[0] = t.pad_words[1] = 1;
    return t;
}

/// Without the sizes of wht.block that keep half a row in shared memory.
constexpr bool wht_fused_exists(scalar x, int log_n) {
    if (x != scalar::f64 && x != scalar::f32 && !wht_is_half(x)) return false;
    return log_n >= wht_log_vec(x) && log_n >= 1 && log_n <= (x == scalar::f64 ? 14 : 15);
}

PLAIT_HD constexpr wht_block_config wht_fused_config_of(scalar x, int log_n, bool ordered) {
    wht_block_choice choice = wht_block_choose(x, log_n, true);
    const bool wide = wht_is_wide(x), half = wht_is_half(x);
    // A warp that holds the row has no lanes on the bits next to those of a store: half sectors.
    if (ordered && !half && (log_n == 10 || log_n == 9)) {
        choice.log_items = log_n == 9 && wide ? 3 : 4;
        choice.log_tile = log_n == 9 && !wide ? 11 : log_n;
        choice.blocks_per_sm = 65536 / (wide ? 96 : 64) >> (choice.log_tile - choice.log_items);
    }
    if (ordered && log_n > 5 + choice.log_items) { // a tile of a single row
        choice.blocks_per_sm <<= choice.log_tile - (log_n - choice.log_rounds);
        choice.log_tile = log_n - choice.log_rounds;
    }
    choice.pipelined = false;
    wht_block_config c = wht_block_make(x, x, log_n, true, choice);
    if (ordered && c.tile.phases == 3) {
        c.tile = wht_fused_tile(c.tile.log_tile, choice.log_items, wht_log_vec(x),
                                wht_log_vec(x) - choice.log_rounds, wide);
        c.tile.rounds_last = true; // the last bit of a row is the first of its place
    }
    return c;
}

/// Long rows in natural order: few blocks, which would all wait for the bits of SIGNS. They have
/// them in registers, a bit for an element.
PLAIT_HD constexpr bool wht_fused_masks(const wht_block_config &c) {
    const bool ordered = c.tile.phase[2].lanes != 0;
    return !ordered && (c.x == scalar::f32 ? c.log_n == 14 : wht_is_half(c.x) && c.log_n == 15);
}
/// Blocks walk over rows and keep those bits; others ask for them before the elements.
PLAIT_HD constexpr bool wht_fused_walks(const wht_block_config &c) {
    return wht_fused_masks(c) && wht_is_half(c.x);
}

/// log2 of the elements of a store in another order: top bits of a row that the registers hold.
PLAIT_HD constexpr int wht_fused_store_bits(const wht_block_config &c) {
    if (c.tile.phases == 3) return c.tile.log_vec_y + c.log_rounds;
    int bits = 0;
    const uint32_t regs = c.tile.phase[0].regs;
    while (bits < wht_log_vec(c.y) && bits < c.log_n && (regs >> (c.log_n - 1 - bits) & 1u) != 0)
        ++bits;
    return bits;
}

/// The number of the register whose element bits are those of `element`: the round, then the item.
PLAIT_HD constexpr int wht_fused_register(const wht_block_config &c, uint32_t element) {
    const uint32_t regs = c.tile.phase[c.tile.phases - 1].regs;
    int number = static_cast<int>(element >> c.tile.log_tile) << c.tile.log_items;
    for (int b = 0; b < c.tile.log_tile; ++b)
        if (((regs & element) >> b & 1u) != 0) number |= 1 << bit_rank(regs, b);
    return number;
}

/// Registers that one store in another order takes: the top `W` bits of the row are the place in
/// the access, the others are the group.
template <int W> struct wht_fused_group {
    uint32_t element; ///< that the group adds to the thread's
    uint32_t place;   ///< in the row, to be added by xor
    bool odd;         ///< parity of its bits of the row
    int straight[1 << W], turned[1 << W];
};

template <int W>
PLAIT_HD constexpr wht_fused_group<W> wht_fused_group_of(const wht_block_config &c, wht_order order,
                                                         int number) {
    wht_fused_group<W> g{};
    uint32_t regs = c.tile.phase[c.tile.phases - 1].regs;
    // with two rounds the bit between them is the top one
    regs |= bit_range(c.tile.log_tile, c.tile.log_tile + c.log_rounds);
    g.element = bit_deposit(static_cast<uint32_t>(number), regs & ~bit_range(c.log_n - W, c.log_n));
    const uint32_t in_row = g.element & bit_range(0, c.log_n);
    g.place = static_cast<uint32_t>(wht_any_row(order, in_row, c.log_n));
    g.odd = bit_count(in_row) % 2 != 0;
    for (int t = 0; t < 1 << W; ++t) {
        // sequency: places count in Gray code, from either end
        const int straight = order == wht_order::sequency ? t ^ t >> 1 : t;
        const int turned = order == wht_order::sequency ? straight ^ (1 << W >> 1) : t;
        uint32_t s = 0, u = 0;
        for (int b = 0; b < W; ++b) {
            s |= static_cast<uint32_t>(straight >> b & 1) << (c.log_n - 1 - b);
            u |= static_cast<uint32_t>(turned >> b & 1) << (c.log_n - 1 - b);
        }
        g.straight[t] = wht_fused_register(c, g.element | s);
        g.turned[t] = wht_fused_register(c, g.element | u);
    }
    return g;
}

/// "f32.n12.ordered".
constexpr variant_name wht_fused_variant(scalar x, int log_n, bool ordered) {
    variant_name name{};
    int at = 0;
    variant_append(name, at, scalar_name(x));
    variant_append(name, at, ".n");
    variant_append(name, at, log_n);
    if (ordered) variant_append(name, at, ".ordered");
    return name;
}

inline bool wht_fused_launch(scalar x, int log_n, bool ordered, wht_launch *out) {
    if (!wht_fused_exists(x, log_n)) return false;
    const wht_block_config c = wht_fused_config_of(x, log_n, ordered);
    *out = wht_block_launch_of(c, wht_fused_variant(x, log_n, ordered));
    out->persistent = wht_fused_walks(c);
    return true;
}

} // namespace plait::impl
