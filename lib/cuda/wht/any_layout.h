// A pass of wht.any as data: which elements a tile holds, which stages it does, where it reads and
// writes. The planner (wht_cuda_any_passes) fills it in; kernel and tests walk it.
//
// A tile is numbered by slots: [factor index][tile bits]. Every tile bit is one bit of the index of
// an axis, transformed or not, and adds a stride of its own to every offset. What is left of the
// axes are the digits of the tile's number, outermost first.
#pragma once

#include "lib/common/hd.h"
#include "lib/common/wht_problem.h"

#include <cstdint>

namespace plait::impl {

constexpr int wht_any_threads = 256;
constexpr int wht_any_most_bits = 14;   ///< of a tile
constexpr int wht_any_most_digits = 40; ///< of the number of a tile
constexpr int wht_any_most_axes = 8;    ///< with an order
constexpr int wht_any_most_chunks = 2;  ///< axes whose tile bits may pass their end
constexpr int wht_any_most_factor = 40;
constexpr int wht_any_low_bits = 6; ///< offsets of a tile: a table of its low bits, one of the rest

/// Where a pass reads and where it writes.
enum wht_any_side { wht_any_in = 0, wht_any_out = 1 };

/// What is applied to an element on one side.
enum class wht_any_extra : int32_t { none, signs, diag };

/// Elements (SIGNS: bits) that one step of an index adds.
struct wht_any_stride {
    int64_t data;
    int64_t extra;
};

/// A bit of an ordered axis adds no offset where the pass writes in that order: it changes bits of
/// the row of the axis, which are added to those of the others without a carry.
struct wht_any_bit {
    wht_any_stride stride[2];
    int64_t row;
    int32_t axis; ///< negative: not ordered
};

struct wht_any_digit {
    int64_t length;
    int64_t below; ///< product of the lengths of the digits inside
    wht_any_stride stride[2];
    int16_t axis; ///< as for a bit; then the digit is bits `low` and up of the natural row
    int16_t low;
    int16_t chunk; ///< not negative: it counts chunks of an axis whose length is no power of two
};

struct wht_any_axis {
    wht_any_stride stride; ///< on the side that is written
    int32_t bits;
};

/// Tile bits low..low + bits-1 number the elements of a chunk; the last chunk is shorter.
struct wht_any_chunk {
    int64_t length; ///< of the axis
    int16_t low, bits;
};

struct wht_any_args {
    const void *x;
    void *y; ///< may equal x where a tile is written to the elements that it was read from
    const void *signs;
    const void *diag;
    int32_t *overflow; ///< 1 where a result or an addition did not fit; null: not asked for
    int64_t tiles;
    double scale;
    scalar type[2]; ///< stored, in and out
    scalar diag_type;
    wht_any_extra extra[2];
    wht_order order; ///< of the rows on the side that is written
    int32_t bits, digits, axes, chunks;
    int32_t factor; ///< 1: none
    int32_t before; ///< stages before the factor
    int32_t stages;
    bool negate_diag;                   ///< conj(diag)
    bool factor_first[2];               ///< the factor index has the smallest stride of that side
    uint8_t stage[wht_any_most_bits];   ///< tile bits in the order of their butterflies
    uint8_t sorted[wht_any_most_bits];  ///< the same, those that one round does in ascending order
    uint8_t side[2][wht_any_most_bits]; ///< tile bits by ascending stride
    wht_any_stride factor_stride[2];
    wht_any_chunk chunk[wht_any_most_chunks];
    wht_any_bit bit[wht_any_most_bits];
    wht_any_axis axis[wht_any_most_axes];
    wht_any_digit digit[wht_any_most_digits];
    uint64_t minus[wht_any_most_factor]; ///< row k of the factor: bit j is set where entry j is -1
};
static_assert(sizeof(wht_any_args) <= 4096, "kernel parameters");

/// Stages in registers at a time: a round ends at the factor and at the last stage.
constexpr int wht_any_round = 4;

PLAIT_HD constexpr int wht_any_slots(const wht_any_args &a) { return a.factor << a.bits; }

/// Word of a slot: the top and middle bits are also added to the low ones, so that lanes that lie
/// on any bits meet few bank conflicts. Additive over disjoint bits.
PLAIT_HD constexpr uint32_t wht_any_word(uint32_t slot) {
    return slot + (slot >> 5) + (slot >> 10);
}

/// Words of a tile.
PLAIT_HD constexpr int wht_any_words(int slots) { return slots + (slots >> 5) + (slots >> 10) + 1; }

/// Entries of a table: one for each number of the low bits, one for each of the others.
PLAIT_HD constexpr int wht_any_split(int bits) {
    return bits < wht_any_low_bits ? bits : wht_any_low_bits;
}
PLAIT_HD constexpr int wht_any_entries(const wht_any_args &a) {
    return (1 << wht_any_split(a.bits)) + (a.factor << (a.bits - wht_any_split(a.bits)));
}

/// What the set bits of an index add up to on a side. The bits of two indices are disjoint where
/// their entries are added.
struct alignas(16) wht_any_entry {
    int64_t offset;
    uint32_t slot;
    uint32_t word;
};

/// Shared memory in the order of its parts, bytes.
struct wht_any_memory {
    int entries[2]; ///< wht_any_entry
    int extras[2];  ///< int64_t of the extra, where there is one
    int rows;       ///< int64_t of each ordered axis, on the side that is written
    int signs;      ///< bytes of the factor: entry [k / 8][j], bit k % 8
    int bytes;
};

/// The words of `number_bytes` come first.
PLAIT_HD constexpr wht_any_memory wht_any_memory_of(const wht_any_args &a, int number_bytes) {
    wht_any_memory m{};
    const int entries = wht_any_entries(a);
    int at = (number_bytes * wht_any_words(wht_any_slots(a)) + 15) / 16 * 16;
    for (int s = 0; s < 2; ++s) {
        m.entries[s] = at;
        at += static_cast<int>(sizeof(wht_any_entry)) * entries;
    }
    for (int s = 0; s < 2; ++s) {
        m.extras[s] = at;
        at += a.extra[s] != wht_any_extra::none ? 8 * entries : 0;
    }
    m.rows = at;
    at += 8 * entries * a.axes;
    m.signs = at;
    at += a.factor > 1 ? (a.factor + 7) / 8 * a.factor : 0;
    m.bytes = (at + 15) / 16 * 16;
    return m;
}

/// Classes of numbers that kernels are compiled for: their name is the variant.
enum class wht_any_number { f32, f64, c64, c128, i32, i64, checked32, checked64 };
constexpr int wht_any_numbers = 8;

constexpr const char *wht_any_number_name(wht_any_number n) {
    switch (n) {
    case wht_any_number::f32: return "f32";
    case wht_any_number::f64: return "f64";
    case wht_any_number::c64: return "c64";
    case wht_any_number::c128: return "c128";
    case wht_any_number::i32: return "i32";
    case wht_any_number::i64: return "i64";
    case wht_any_number::checked32: return "i32.checked";
    default: return "i64.checked";
    }
}

/// The type that keeps such numbers between passes.
constexpr scalar wht_any_number_type(wht_any_number n) {
    switch (n) {
    case wht_any_number::f32: return scalar::f32;
    case wht_any_number::f64: return scalar::f64;
    case wht_any_number::c64: return scalar::c64;
    case wht_any_number::c128: return scalar::c128;
    case wht_any_number::i32:
    case wht_any_number::checked32: return scalar::i32;
    default: return scalar::i64;
    }
}

PLAIT_HD constexpr bool wht_any_is_checked(wht_any_number n) {
    return n == wht_any_number::checked32 || n == wht_any_number::checked64;
}

/// F64 where a tensor has it, else F32; integers as Y. Results that are checked need the wider type
/// of the two: an addition that does not fit it means a result that does not.
constexpr wht_any_number wht_any_number_of(scalar x, scalar y, bool overflow) {
    const bool wide =
        x == scalar::f64 || y == scalar::f64 || x == scalar::c128 || y == scalar::c128;
    if (x == scalar::c64 || x == scalar::c128)
        return wide ? wht_any_number::c128 : wht_any_number::c64;
    if (x == scalar::i32 || x == scalar::i64) {
        if (overflow)
            return x == scalar::i32 && y == scalar::i32 ? wht_any_number::checked32
                                                        : wht_any_number::checked64;
        return y == scalar::i32 ? wht_any_number::i32 : wht_any_number::i64;
    }
    return wide ? wht_any_number::f64 : wht_any_number::f32;
}

/// SIGNS behind the transform may bring back an i32 sum of 2^31: checked in 64 bits. One of 2^63
/// counts as a result that does not fit.
constexpr wht_any_number wht_any_number_of(const wht_problem &p) {
    const wht_any_number number = wht_any_number_of(p.x, p.y, p.overflow);
    const bool behind = p.signs && p.adjoint;
    return behind && number == wht_any_number::checked32 ? wht_any_number::checked64 : number;
}

/// Row of the ordered matrix where natural row k of 2^bits stands.
PLAIT_HD constexpr int64_t wht_any_row(wht_order order, int64_t k, int bits) {
    int64_t row = 0;
    for (int b = 0; b < bits; ++b) row |= (k >> b & 1) << (bits - 1 - b);
    if (order == wht_order::sequency)
        for (int shift = 1; shift < bits; shift *= 2) row ^= row >> shift;
    return order == wht_order::natural ? k : row;
}

/// Offsets that all elements of a tile share, and where its chunks end.
struct wht_any_place {
    wht_any_stride base[2];
    int64_t row[wht_any_most_axes];
    int64_t limit[wht_any_most_chunks];
};

} // namespace plait::impl
