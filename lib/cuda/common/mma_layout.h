// Which lane holds which element of the operands of one matrix product of a warp,
// D[16][8] += A[16][16] B[16][8] (mma.m16n8k16), and of what ldmatrix reads transposed. Words hold
// two 16-bit elements, the lower half first. Plain C++17: kernels, emulation and proofs share it.
#pragma once

#include "lib/common/hd.h"

namespace plait::impl {

constexpr int mma_rows = 16;  ///< of A and D
constexpr int mma_inner = 16; ///< columns of A, rows of B
constexpr int mma_columns = 8;
constexpr int mma_words_a = 4, mma_words_b = 2, mma_items_d = 4; ///< of a lane

struct mma_place {
    int row, column;
};

PLAIT_HD constexpr mma_place mma_place_a(int lane, int word, int half) {
    return {lane / 4 + word % 2 * 8, lane % 4 * 2 + half + word / 2 * 8};
}

PLAIT_HD constexpr mma_place mma_place_b(int lane, int word, int half) {
    return {lane % 4 * 2 + half + word * 8, lane / 4};
}

PLAIT_HD constexpr mma_place mma_place_d(int lane, int item) {
    return {lane / 4 + item / 2 * 8, lane % 4 * 2 + item % 2};
}

/// ldmatrix reads four 8 x 8 matrices; lane 8 i + r gives the address of row r of matrix i, 16
/// bytes. Word i of a lane then has two elements of matrix i: its transpose is a half of B.
PLAIT_HD constexpr mma_place matrix_place_transposed(int lane, int half) {
    return {lane % 4 * 2 + half, lane / 4};
}

// ---- mma.m16n8k8 of TF32: a word is an element; mma.m16n8k32 of bytes: four in a row. D as above.

constexpr int mma_inner_tf32 = 8, mma_inner_s8 = 32;

PLAIT_HD constexpr mma_place mma_tf32_place_a(int lane, int word) {
    return {lane / 4 + word % 2 * 8, lane % 4 + word / 2 * 4};
}

PLAIT_HD constexpr mma_place mma_tf32_place_b(int lane, int word) {
    return {lane % 4 + word * 4, lane / 4};
}

PLAIT_HD constexpr mma_place mma_s8_place_a(int lane, int word, int byte) {
    return {lane / 4 + word % 2 * 8, lane % 4 * 4 + byte + word / 2 * 16};
}

PLAIT_HD constexpr mma_place mma_s8_place_b(int lane, int word, int byte) {
    return {lane % 4 * 4 + byte + word * 16, lane / 4};
}

} // namespace plait::impl
