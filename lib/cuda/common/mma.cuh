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
    // Every lane shows its words and reads what its four sums need, then all leave together.
    uint32_t mine[mma_words_a + mma_words_b];
    for (int w = 0; w < mma_words_a; ++w) mine[w] = a[w];
    for (int w = 0; w < mma_words_b; ++w) mine[mma_words_a + w] = b[w];
    const emulation::met &all =
        emulation::meet(emulation::meeting::shuffle, ~0u, reinterpret_cast<uint64_t>(mine));
    const auto words = [&](int lane) {
        return reinterpret_cast<const uint32_t *>(all.value[lane]);
    };
    const int lane = static_cast<int>(emulation::lane());
    float am[2][mma_inner], bm[2][mma_inner];
    for (int l = 0; l < 4; ++l) {
        for (int half = 0; half < 2; ++half) {
            for (int w = 0; w < mma_words_a; ++w) {
                const int from = lane / 4 * 4 + l;
                const mma_place at = mma_place_a(from, w, half);
                am[at.row / 8][at.column] =
                    widen<S>(static_cast<uint16_t>(words(from)[w] >> (16 * half)));
            }
            for (int w = 0; w < mma_words_b; ++w) {
                for (int c = 0; c < 2; ++c) {
                    const int from = (lane % 4 * 2 + c) * 4 + l;
                    const mma_place at = mma_place_b(from, w, half);
                    bm[c][at.row] = widen<S>(
                        static_cast<uint16_t>(words(from)[mma_words_a + w] >> (16 * half)));
                }
            }
        }
    }
    for (int i = 0; i < mma_items_d; ++i) {
        double sum = d[i];
        for (int k = 0; k < mma_inner; ++k) sum += double{am[i / 2][k]} * double{bm[i % 2][k]};
        d[i] = static_cast<float>(sum);
    }
    emulation::meet(emulation::meeting::sync, ~0u, 0);
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

/// The same, not transposed: word i of a lane has elements lane % 4 * 2 and the next of row lane /
/// 4 of matrix i.
__device__ __forceinline__ void load_matrices(uint32_t (&words)[4], const void *row) {
#ifdef __CUDACC__
    const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared)
                 : "memory");
#else
    const emulation::met &all =
        emulation::meet(emulation::meeting::shuffle, ~0u, reinterpret_cast<uint64_t>(row));
    const int lane = static_cast<int>(emulation::lane());
    for (int i = 0; i < 4; ++i) {
        const auto *elements = reinterpret_cast<const uint16_t *>(all.value[8 * i + lane / 4]);
        emulation::check_aligned(reinterpret_cast<const uint4 *>(elements));
        words[i] = elements[lane % 4 * 2] | static_cast<uint32_t>(elements[lane % 4 * 2 + 1]) << 16;
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
