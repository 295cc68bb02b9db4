// What the kernels kda.chunk64_* share: pairs of elements, numbers anew, operands.
#pragma once

#include "lib/cuda/common/mma.cuh"
#include "lib/cuda/kda/chunk64_layout.h"
#include "lib/cuda/kda/common.cuh"

#include <cstdint>

namespace plait::impl::cuda {

/// Two neighbours, of which `left` are inside the tensor; a word where they lie in one.
__device__ __forceinline__ void kda64_put_pair(const kda_view &v, void *base, int64_t at,
                                               int64_t left, float x, float y) {
    if (v.type != scalar::f32 && v.c == 1 && left > 1 && v.align % 4 == 0 && at % 2 == 0) {
        *reinterpret_cast<uint32_t *>(static_cast<uint16_t *>(base) + at) =
            v.type == scalar::bf16 ? round_pair<scalar::bf16>(x, y) : round_pair<scalar::f16>(x, y);
        return;
    }
    if (left > 0) kda_store(base, at, v.type, x);
    if (left > 1) kda_store(base, at + v.c, v.type, y);
}

/// The same number, from which the compiler computes addresses again instead of keeping them.
__device__ __forceinline__ int kda64_anew(int n) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(n));
#endif
    return n;
}
__device__ __forceinline__ int64_t kda64_anew(int64_t n) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(n));
#endif
    return n;
}

/// threadIdx.x % 32 of a block of one dimension, from which the compiler does not see that it is:
/// nothing that was computed from threadIdx.x stays in a register for it.
__device__ __forceinline__ int kda64_lane_anew() {
#ifdef __CUDA_ARCH__
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return static_cast<int>(lane);
#else
    return static_cast<int>(threadIdx.x % 32);
#endif
}

/// Where a lane points for ldmatrix: the operand A of rows and columns from (row, column) on, and B
/// of two tiles of 8 columns, from tiles that have B's columns as rows.
__device__ __forceinline__ int kda64_at_a(int columns, int row, int column, int lane) {
    return kda64_at(columns, row + (lane & 15), column + (lane >> 4) * 8);
}
__device__ __forceinline__ int kda64_at_b(int columns, int row, int column, int lane) {
    return kda64_at(columns, row + (lane & 7) + (lane >> 4) * 8, column + (lane >> 3 & 1) * 8);
}
/// The same from tiles that lie the other way round: load_matrices_transposed.
__device__ __forceinline__ int kda64_at_bt(int columns, int row, int column, int lane) {
    return kda64_at_a(columns, row, column, lane);
}
__device__ __forceinline__ int kda64_at_at(int columns, int row, int column, int lane) {
    return kda64_at_b(columns, row, column, lane);
}

} // namespace plait::impl::cuda
