// What the kernels kda.chunk64_* hand to one another: for each chunk of 64 tokens and value head a
// record of tiles, in the order in which they lie in shared memory, so that one bulk copy brings
// it. Tiles are bf16 and row-major; pieces of 16 bytes within a row are exchanged by row so that
// ldmatrix, transposed or not, meets no bank twice. Keys are padded to a multiple of 64.
//
//   k+ = k e^G, kR = k e^(sum of later gates), q+ = scale q e^G      [64][keys]
//   M = (I + beta F)^-1, A                                          [64][64]
//   gamma = e^(sum of all gates) [keys], beta [64]                  f32
#pragma once

#include "lib/common/hd.h"
#include "lib/common/kda_problem.h"

namespace plait::impl {

constexpr int kda64_rows = 64; ///< tokens of a chunk

/// Keys as the kernels see them.
PLAIT_HD constexpr int kda64_keys(int64_t dim_k) {
    return static_cast<int>((dim_k + 63) / 64 * 64);
}

/// Bytes from the head of a tile of `columns` = 16, 32 or a multiple of 64 to an element.
PLAIT_HD constexpr int kda64_at(int columns, int row, int column) {
    const int shift = columns >= 64 ? 0 : columns == 32 ? 1 : 2;
    const int mask = columns >= 64 ? 7 : columns / 8 - 1;
    return row * columns * 2 + ((column >> 3 ^ (row >> shift & mask)) << 4) + (column & 7) * 2;
}

/// The same element `rows` rows further down and `columns` columns to the right, for tiles of a
/// multiple of 64 columns: by one exclusive or where rows and columns are constants. Of the row
/// that `at` lies in the last three bits are 0 where rows has any, and so are, of its column, those
/// that `columns` has.
PLAIT_HD constexpr int kda64_from(int tile_columns, int at, int rows, int columns) {
    return (at ^ ((columns >> 3 ^ rows) & 7) << 4) + rows * tile_columns * 2 + (columns >> 6 << 7);
}

PLAIT_HD constexpr int kda64_tile_bytes(int rows, int columns) { return rows * columns * 2; }

/// Bytes from the head of a record.
struct kda64_record {
    int k, kr, m, gamma, beta, q, a;
    int states; ///< bytes of what the state needs
    int bytes;  ///< with q+ and A
};

PLAIT_HD constexpr kda64_record kda64_record_of(int keys) {
    kda64_record r{};
    const int rows = kda64_tile_bytes(kda64_rows, keys);
    const int square = kda64_tile_bytes(kda64_rows, kda64_rows);
    r.k = 0;
    r.kr = r.k + rows;
    r.m = r.kr + rows;
    r.gamma = r.m + square;
    r.beta = r.gamma + 4 * keys;
    r.q = r.states = r.beta + 4 * kda64_rows;
    r.a = r.q + rows;
    r.bytes = r.a + square;
    return r;
}

/// "k64", "k128", "k192": the head of the name of a variant. Returns its length.
constexpr int kda64_name(char *to, int keys) {
    int at = 0;
    to[at++] = 'k';
    if (keys >= 100) to[at++] = static_cast<char>('0' + keys / 100);
    to[at++] = static_cast<char>('0' + keys / 10 % 10);
    to[at++] = static_cast<char>('0' + keys % 10);
    to[at] = 0;
    return at;
}

// ---- Pairs of rows i > j by binary anchors ------------------------------------------------------
// Level b = the highest bit in which i and j differ: i has it, j has not, and the row i & -2^b lies
// between them, so that e^(G_i - G_j) is a product of two factors that are at most 1. Rows i, the
// upper ones, and rows j of a level, by numbers without bit b:

PLAIT_HD constexpr int kda64_lower(int number, int b) {
    return number >> b << (b + 1) | (number & ((1 << b) - 1));
}
PLAIT_HD constexpr int kda64_upper(int number, int b) { return kda64_lower(number, b) | 1 << b; }
/// Whether this is their level.
PLAIT_HD constexpr bool kda64_meet(int upper_number, int lower_number, int b) {
    return upper_number >> b == lower_number >> b;
}

/// Variants `near`: gates by which 16 tokens decay by at most e^-80, so that one product serves all
/// pairs within them.
constexpr bool kda64_near(const kda_problem &p) {
    return p.gate == kda_gate::bounded && p.lower_bound >= -5;
}

} // namespace plait::impl
