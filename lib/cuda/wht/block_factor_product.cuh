// The factor of wht.block_factor on tensor cores: a warp multiplies 64 columns by it.
//
// Lane 4 c + l loads rows l m / 4 .. of 8 columns from 8 c on, 16 bytes each. Product number e of
// the eight takes the e-th of them, its column c; the sums of lane 4 i + l are rows i, i + 8, ..
// of columns 16 l + e and 16 l + 8 + e: 16 in a row, whose low 4 bits registers transform.
#pragma once

#include "lib/cuda/common/mma.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/block_factor_layout.h"

namespace plait::impl::cuda {

template <scalar S, int M> struct wht_block_factor_product_case {
    static constexpr scalar type = S;
    static constexpr int order = M;
};

/// The rows of a tile.
struct wht_block_factor_rows {
    const void *x;
    int64_t first, stride; ///< in elements
    int log_k, columns;
    bool vector; ///< 16-byte accesses
};

/// Bytes of b:a that the low four digits name.
__device__ __forceinline__ uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t digits) {
#ifdef __CUDACC__
    return __byte_perm(a, b, digits);
#else
    const uint64_t all = static_cast<uint64_t>(b) << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; ++i)
        out |= static_cast<uint32_t>(all >> 8 * (digits >> 4 * i & 7u) & 255u) << 8 * i;
    return out;
#endif
}

/// Element `i` of the two rows, next to each other: an operand of product i.
__device__ __forceinline__ uint32_t wht_block_factor_pair(const uint4 &a, const uint4 &b, int i) {
    const uint32_t u[4] = {a.x, a.y, a.z, a.w}, w[4] = {b.x, b.y, b.z, b.w};
    return pick_bytes(u[i / 2], w[i / 2], i % 2 == 0 ? 0x5410u : 0x7632u);
}

/// Columns `q`.. of one row of x of each; 0 where there are none.
template <scalar S, int M>
__device__ __forceinline__ void wht_block_factor_fetch(const wht_block_factor_rows &rows, int q,
                                                       int first, uint4 (&raw)[M / 4]) {
    const int log_k = rows.log_k, columns = rows.columns;
    const auto place = [&](int at) {
        return (rows.first + (at >> log_k)) * rows.stride + (at & ((1 << log_k) - 1)) +
               (static_cast<int64_t>(first) << log_k);
    };
    if (rows.vector) {
        const int64_t from = place(q);
#pragma unroll
        for (int s = 0; s < M / 4; ++s) {
            raw[s] = make_uint4(0, 0, 0, 0);
            if (q < columns)
                raw[s] = load_raw<S, 3>(rows.x, from + (static_cast<int64_t>(s) << log_k));
        }
        return;
    }
#pragma unroll
    for (int s = 0; s < M / 4; ++s) {
        uint32_t word[4] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            if (q + e < columns) {
                const int64_t from = place(q + e) + (static_cast<int64_t>(s) << log_k);
                word[e / 2] |= static_cast<uint32_t>(load_raw<S, 0>(rows.x, from)) << 16 * (e % 2);
            }
        }
        raw[s] = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/// Sums of one row of the factor, `v` for columns q and on, to shared memory.
template <scalar S, int M>
__device__ __forceinline__ void wht_block_factor_keep(float (&v)[16], float *words, int log_k,
                                                      int columns, int q, int i) {
    if (log_k > 0) butterfly_items<0>(v);
    if (log_k > 1) butterfly_items<1>(v);
    if (log_k > 2) butterfly_items<2>(v);
    if (log_k > 3) butterfly_items<3>(v);
    if (i >= M) return;
    const auto element = [&](int at) {
        return static_cast<uint32_t>((((at >> log_k) * M + i) << log_k) +
                                     (at & ((1 << log_k) - 1)));
    };
    if (log_k >= wht_block_factor_log_fused) {
        if (q >= columns) return;
        const uint32_t first = wht_block_factor_word(S, element(q));
#pragma unroll
        for (int j = 0; j < 16; j += 4)
            *reinterpret_cast<float4 *>(words + (first ^ static_cast<uint32_t>(j))) =
                make_float4(v[j], v[j + 1], v[j + 2], v[j + 3]);
    } else {
#pragma unroll
        for (int j = 0; j < 16; ++j)
            if (q + j < columns) words[wht_block_factor_word(S, element(q + j))] = v[j];
    }
}

/// `signs(i, l)`: row i of the matrix for lane l of four, bits 0..7 and 16..23: the signs of its
/// elements, even and odd ones. Other bits may be anything.
template <scalar S, int M, class Signs>
__device__ __forceinline__ void wht_block_factor_products(const wht_block_factor_rows &rows,
                                                          float *words, Signs signs_of) {
    constexpr int each = M / 4, pairs = (each + 1) / 2, steps = (pairs + 1) / 2;
    constexpr int groups = (M + 7) / 8; // rows of the factor, eight each
    constexpr uint32_t ones = (S == scalar::f16 ? 0x3c00u : 0x3f80u) * 0x10001u;
    const int log_k = rows.log_k, columns = rows.columns;
    const int warps = static_cast<int>(blockDim.x) >> 5;
    int lane = static_cast<int>(threadIdx.x) & 31;
    make_opaque(lane); // or what follows from it would stay in registers from tile to tile
    const int l = lane & 3, c = lane >> 2;
    for (int first = static_cast<int>(threadIdx.x) >> 5 << wht_block_factor_log_columns;
         first < columns; first += warps << wht_block_factor_log_columns) {
        uint4 raw[each];
        wht_block_factor_fetch<S, M>(rows, first + 8 * c, l * each, raw);
        uint32_t b[8][2 * steps] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e)
#pragma unroll
            for (int p = 0; p < pairs; ++p)
                b[e][p] = wht_block_factor_pair(
                    raw[2 * p], 2 * p + 1 < each ? raw[2 * p + 1] : make_uint4(0, 0, 0, 0), e);
#pragma unroll
        for (int g = 0; g < groups; g += 2) {
            const uint32_t signs[2] = {signs_of(8 * g + c, l), signs_of(8 * (g + 1) + c, l)};
            float sums[8][4] = {};
#pragma unroll
            for (int k = 0; k < steps; ++k) {
                uint32_t a[4] = {};
#pragma unroll
                for (int w = 0; w < 4; ++w) // rows of the lower and the upper half, places 0 and 8
                    if (g + w % 2 < groups && 2 * k + w / 2 < pairs)
                        a[w] = ones ^ (signs[w % 2] << (15 - 2 * k - w / 2) & 0x80008000u);
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    const uint32_t operand[2] = {b[e][2 * k], b[e][2 * k + 1]};
                    mma_add<S>(sums[e], a, operand);
                }
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (g + half >= groups) break;
                float v[16];
#pragma unroll
                for (int j = 0; j < 16; ++j) v[j] = sums[j % 8][2 * half + j / 8];
                wht_block_factor_keep<S, M>(v, words, log_k, columns, first + 16 * l,
                                            8 * (g + half) + c);
            }
        }
    }
}

} // namespace plait::impl::cuda
