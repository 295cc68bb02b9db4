// kda.chunk64_prep: the record of a chunk and value head (chunk64_layout.h) from q, k, g, beta:
// norm, gate, beta, decays, F and A by binary anchors, M = (I + beta F)^-1.
//   layout   a block is a chunk of a value head; a warp has eight rows of all channels in registers
//   decays   e^g once for each element; all factors are products of these over tokens that follow
//            one another, so that none is above 1: within eight rows of the warp's own, beyond them
//            of the totals that warps leave in shared memory
//   pairs    levels of 1, 2, 4 rows by each warp alone, those of 8, 16, 32 across: factors as bf16
//            to shared memory, products on tensor cores, F as f32 and A as bf16 from there
//   near     variants for gates bounded by -5: chunk64_near.cuh
//   inverse  f32: 16 rows by substitution, the rest by products of operands in two parts
//   reserve  records are what backward reads of one: forward then puts them there, and its header
//   traffic  keys = 128, 16-bit: reads 48 KiB (GVA: q and k again for each value head), writes 65
//            KiB; at 4.2 TB/s 27 ns for a chunk and head on a whole device
//   bound    instructions and what they wait for: 25 000 of warps for a chunk and head with keys =
//            128, of which an H200 issued 2.2 a cycle and SM; two blocks of an SM hide each other's
//            barriers
#pragma once

#include "lib/cuda/common/predecessor.cuh"
#include "lib/cuda/kda/chunk64_prep_elements.cuh"
#include "lib/cuda/kda/chunk64_prep_invert.cuh"

namespace plait::impl::cuda {

/// Levels across warps, and the triangles of 16 rows inverted.
template <int Keys> __device__ __forceinline__ void kda64_across(char *shared, int warp, int lane) {
    const kda64_squares to = kda64_squares_of<Keys>(shared);
    const auto step = [](int level, int from) {
        return (kda64_factor_row(level, from + 1) - kda64_factor_row(level, from)) *
               kda64_row_bytes<Keys>;
    };
    if (warp < 4) {
        float d[1][4][mma_items_d] = {};
        kda64_meet_all<Keys, 1, 4>(kda64_factors_of<Keys>(shared, 5, 4 + warp), 0,
                                   kda64_factors_of<Keys>(shared, 5, 0), step(5, 0), lane, d);
#pragma unroll
        for (int l = 0; l < 4; ++l) kda64_put_pairs(d[0][l], 4 + warp, l, lane, to);
    } else if (warp < 6) {
        const int first = 4 * (warp - 4);
        float d[2][2][mma_items_d] = {};
        kda64_meet_all<Keys, 2, 2>(kda64_factors_of<Keys>(shared, 4, first + 2), step(4, first + 2),
                                   kda64_factors_of<Keys>(shared, 4, first), step(4, first), lane,
                                   d);
#pragma unroll
        for (int t = 0; t < 4; ++t)
            kda64_put_pairs(d[t / 2][t % 2], first + 2 + t / 2, first + t % 2, lane, to);
    } else {
        const int first = 4 * (warp - 6);
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            float d[mma_items_d] = {};
            kda64_meet_tiles<Keys>(kda64_factors_of<Keys>(shared, 3, first + n + 1),
                                   kda64_factors_of<Keys>(shared, 3, first + n), lane, d);
            kda64_put_pairs(d, first + n + 1, first + n, lane, to);
        }
        __syncwarp(); // the triangles are there
        const int row = 8 * first + lane / 16 * 16;
        kda64_invert_triangle(to.f + row * kda64_f_pitch + row, lane % 16);
    }
}

/// M and A to the record: three warps invert and copy what they have, the others all else.
template <int Keys>
__device__ __forceinline__ void kda64_put_squares(char *shared, char *record, int warp, int lane) {
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    constexpr kda64_record r = kda64_record_of(Keys);
    const auto *f = reinterpret_cast<const float *>(shared + s.f);
    if (warp < 3) {
        kda64_invert_columns(f, shared + s.m, warp, lane);
        __syncwarp(); // the columns are written
        for (int e = 32 * (warp + 1) + lane; e < 2 * 64; e += 32) {
            const int at = kda64_at(64, e / 2, 16 * warp + e % 2 * 8);
            *reinterpret_cast<uint4 *>(record + r.m + at) =
                *reinterpret_cast<const uint4 *>(shared + s.m + at);
        }
        return;
    }
    const int self = 32 * (warp - 3) + lane;
    for (int e = self; e < 64 * 64 / 8; e += 32 * 5)
        reinterpret_cast<uint4 *>(record + r.a)[e] =
            reinterpret_cast<const uint4 *>(shared + s.a)[e];
    for (int e = self; e < 64 * 64 / 8; e += 32 * 5) {
        const int row = e / 8, column = e % 8 * 8;
        if (column / 16 < row / 16) continue;
        uint4 words = make_uint4(0, 0, 0, 0);
        if (column / 16 == row / 16) {
            const auto *from = reinterpret_cast<const float4 *>(f + row * kda64_f_pitch + column);
            const float4 x = from[0], y = from[1];
            words.x = round_pair<scalar::bf16>(x.x, x.y);
            words.y = round_pair<scalar::bf16>(x.z, x.w);
            words.z = round_pair<scalar::bf16>(y.x, y.y);
            words.w = round_pair<scalar::bf16>(y.z, y.w);
        }
        *reinterpret_cast<uint4 *>(record + r.m + kda64_at(64, row, column)) = words;
    }
}

/// Q: the type of q. More than 128 keys and f32 take more
/// registers than two blocks of an SM leave each other.
template <int Keys, scalar Q>
__global__ void __launch_bounds__(32 * kda64_prep_warps, Keys <= 128 && Q != scalar::f32 ? 2 : 1)
    kda_chunk64_prep(const __grid_constant__ kda_chunk64_prep_args a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    constexpr kda64_prep_shared s = kda64_prep_shared_of(Keys);
    start_successor(); // a scan takes places that this one leaves
    if (blockIdx.x == 0 && threadIdx.x == 0 && a.to != nullptr) *a.to = a.header;
    // Levels write below the diagonal only.
    for (int e = static_cast<int>(threadIdx.x); e < 64 * 64 / 8; e += 32 * kda64_prep_warps)
        reinterpret_cast<uint4 *>(shared + s.a)[e] = make_uint4(0, 0, 0, 0);
    // Records of 2^31 blocks are more than any memory, so that 32 bits number them.
    for (uint32_t block = blockIdx.x; block < static_cast<uint32_t>(a.blocks); block += gridDim.x) {
        const auto heads = static_cast<uint32_t>(kda64_anew(static_cast<int>(a.p.value_heads)));
        const int64_t hv = block % heads;
        const kda_chunk_place at =
            kda_chunk_of(a.p, a.table, a.chunks, a.slots, block / heads, kda64_rows);
        if (at.rows <= 0) continue; // all threads
        char *record = a.records + int64_t{block} * kda64_record_of(Keys).bytes;
        __syncwarp(); // as for the others: a barrier among elements
        kda64_elements<Keys, Q>(a, at, hv, shared, record);
        __syncthreads(); // factors and pairs of single warps are written
        const int self = kda64_anew(static_cast<int>(threadIdx.x));
        const int warp = self >> 5, lane = kda64_lane_anew();
        kda64_across<Keys>(shared, warp, lane);
        __syncthreads(); // F and A are written, triangles inverted, factors read: M takes their
                         // place
        kda64_put_squares<Keys>(shared, record, warp, lane);
    }
#endif
}

} // namespace plait::impl::cuda
