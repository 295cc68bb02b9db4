// Matrix products of a warp on tensor cores with 32-bit words of operands: TF32 (m16n8k8, f32 sums)
// and signed bytes (m16n8k32, 32-bit sums). From compute capability 8.0 on; on older devices a
// kernel that uses them must not be launched. mma_layout.h says which lane holds what. Without nvcc
// (tests/emulate) the lanes of the warp meet and compute the same; there the f32 sum of a product
// is rounded once, which the hardware does in another way.
#pragma once

#include "lib/cuda/common/mma_layout.h"

#include <cstdint>

namespace plait::impl::cuda {

#ifndef __CUDACC__
/// The operands of all lanes: words of A, then of B.
struct mma_gathered {
    uint32_t words[32][mma_words_a + mma_words_b];
    mma_gathered(const uint32_t (&a)[mma_words_a], const uint32_t (&b)[mma_words_b]) {
        for (int w = 0; w < mma_words_a + mma_words_b; ++w) {
            const emulation::met &all = emulation::meet(
                emulation::meeting::shuffle, ~0u, w < mma_words_a ? a[w] : b[w - mma_words_a]);
            for (int l = 0; l < 32; ++l) words[l][w] = static_cast<uint32_t>(all.value[l]);
        }
    }
};
#endif

/// d += a b for TF32 operands: f32 words whose 13 low bits do not count.
__device__ __forceinline__ void mma_add_tf32(float (&d)[mma_items_d],
                                             const uint32_t (&a)[mma_words_a],
                                             const uint32_t (&b)[mma_words_b]) {
#if defined(__CUDACC__)
#    if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#    endif
#else
    const mma_gathered all(a, b);
    double am[mma_rows][mma_inner_tf32], bm[mma_inner_tf32][mma_columns];
    const auto value = [](uint32_t word) { return __uint_as_float(word & 0xffffe000u); };
    for (int l = 0; l < 32; ++l) {
        for (int w = 0; w < mma_words_a; ++w) {
            const mma_place at = mma_tf32_place_a(l, w);
            am[at.row][at.column] = value(all.words[l][w]);
        }
        for (int w = 0; w < mma_words_b; ++w) {
            const mma_place at = mma_tf32_place_b(l, w);
            bm[at.row][at.column] = value(all.words[l][mma_words_a + w]);
        }
    }
    for (int i = 0; i < mma_items_d; ++i) {
        const mma_place at = mma_place_d(static_cast<int>(emulation::lane()), i);
        double sum = d[i];
        for (int k = 0; k < mma_inner_tf32; ++k) sum += am[at.row][k] * bm[k][at.column];
        d[i] = static_cast<float>(sum);
    }
#endif
}

/// d += a b for signed bytes, four in a word, the lowest first. Exact.
__device__ __forceinline__ void mma_add_s8(int32_t (&d)[mma_items_d],
                                           const uint32_t (&a)[mma_words_a],
                                           const uint32_t (&b)[mma_words_b]) {
#if defined(__CUDACC__)
#    if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#    endif
#else
    const mma_gathered all(a, b);
    int am[mma_rows][mma_inner_s8], bm[mma_inner_s8][mma_columns];
    const auto value = [](uint32_t word, int byte) {
        return static_cast<int>(static_cast<int8_t>(word >> (8 * byte)));
    };
    for (int l = 0; l < 32; ++l) {
        for (int byte = 0; byte < 4; ++byte) {
            for (int w = 0; w < mma_words_a; ++w) {
                const mma_place at = mma_s8_place_a(l, w, byte);
                am[at.row][at.column] = value(all.words[l][w], byte);
            }
            for (int w = 0; w < mma_words_b; ++w) {
                const mma_place at = mma_s8_place_b(l, w, byte);
                bm[at.row][at.column] = value(all.words[l][mma_words_a + w], byte);
            }
        }
    }
    for (int i = 0; i < mma_items_d; ++i) {
        const mma_place at = mma_place_d(static_cast<int>(emulation::lane()), i);
        for (int k = 0; k < mma_inner_s8; ++k) d[i] += am[at.row][k] * bm[k][at.column];
    }
#endif
}

/// A value to the nearest TF32, ties away from zero.
__device__ __forceinline__ uint32_t round_tf32(float value) {
#if defined(__CUDACC__)
    uint32_t word = 0;
#    if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
#    endif
    return word;
#else
    const uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bits | (bits & 0x7fffffu ? 0x400000u : 0u);
    return (bits + 0x1000u) & 0xffffe000u;
#endif
}

/// The 11 leading bits of a value as TF32; the rest stays in `value`, exactly. Nothing is left of
/// an infinity, so that the parts are the infinity and zeros.
__device__ __forceinline__ uint32_t take_tf32(float &value) {
    const uint32_t bits = __float_as_uint(value), lead = bits & 0xffffe000u;
    value = (bits & 0x7fffffffu) == 0x7f800000u ? 0.0f : value - __uint_as_float(lead);
    return lead;
}

} // namespace plait::impl::cuda
