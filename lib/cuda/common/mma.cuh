// Matrix products of a warp on tensor cores, 16-bit operands and f32 sums, and what feeds them.
// From compute capability 8.0 on; on older devices a kernel that uses them must not be launched.
// Without nvcc (tests/emulate) the lanes of the warp meet and compute the same by mma_layout.h;
// there the sum of 16 products is rounded once, which the hardware does in another way.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/common/mma_layout.h"

namespace plait::impl::cuda {

/// d += a b, all lanes of a warp together. S: f16 or bf16.
template <scalar S>
__device__ __forceinline__ void mma_add(float (&d)[mma_items_d], const uint32_t (&a)[mma_words_a],
                                        const uint32_t (&b)[mma_words_b]) {
    static_assert(S == scalar::f16 || S == scalar::bf16, "other types have other shapes");
#if defined(__CUDACC__)
#    if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (S == scalar::f16) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
#    endif
#else
    uint32_t words[32][mma_words_a + mma_words_b];
    for (int w = 0; w < mma_words_a + mma_words_b; ++w) {
        const uint32_t mine = w < mma_words_a ? a[w] : b[w - mma_words_a];
        const emulation::met &all = emulation::meet(emulation::meeting::shuffle, ~0u, mine);
        for (int l = 0; l < 32; ++l) words[l][w] = static_cast<uint32_t>(all.value[l]);
    }
    double am[mma_rows][mma_inner], bm[mma_inner][mma_columns];
    for (int l = 0; l < 32; ++l) {
        for (int w = 0; w < mma_words_a + mma_words_b; ++w) {
            for (int half = 0; half < 2; ++half) {
                const double value = widen<S>(static_cast<uint16_t>(words[l][w] >> (16 * half)));
                if (w < mma_words_a) {
                    const mma_place at = mma_place_a(l, w, half);
                    am[at.row][at.column] = value;
                } else {
                    const mma_place at = mma_place_b(l, w - mma_words_a, half);
                    bm[at.row][at.column] = value;
                }
            }
        }
    }
    for (int i = 0; i < mma_items_d; ++i) {
        const mma_place at = mma_place_d(static_cast<int>(emulation::lane()), i);
        double sum = d[i];
        for (int k = 0; k < mma_inner; ++k) sum += am[at.row][k] * bm[k][at.column];
        d[i] = static_cast<float>(sum);
    }
#endif
}

/// Four 8 x 8 matrices of 16-bit elements, transposed. `row`: what this lane gives (mma_layout.h).
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&words)[4], const void *row) {
#ifdef __CUDACC__
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
#else
    const emulation::met &all =
        emulation::meet(emulation::meeting::shuffle, ~0u, reinterpret_cast<uint64_t>(row));
    const int lane = static_cast<int>(emulation::lane());
    for (int i = 0; i < 4; ++i) {
        words[i] = 0;
        for (int half = 0; half < 2; ++half) {
            const mma_place at = matrix_place_transposed(lane, half);
            const auto *elements = reinterpret_cast<const uint16_t *>(all.value[8 * i + at.row]);
            emulation::check_aligned(reinterpret_cast<const uint4 *>(elements));
            words[i] |= static_cast<uint32_t>(elements[at.column]) << (16 * half);
        }
    }
#endif
}

/// The two halves of a word, of this sign bit each, around the same magnitude: +-1 exactly.
template <scalar S> __device__ __forceinline__ uint32_t pair_of_ones(bool low, bool high) {
    constexpr uint32_t one = S == scalar::f16 ? 0x3c00u : 0x3f80u;
    return (one | (low ? 0x8000u : 0u)) | (one | (high ? 0x8000u : 0u)) << 16;
}

/// Both halves with the other sign.
__device__ __forceinline__ uint32_t negate_pair(uint32_t word) { return word ^ 0x80008000u; }

} // namespace plait::impl::cuda
