// wht.kron_int8: y[row] = scale * (H_a (x) H_b) x[row] for whole numbers, n = a b, 2^10..2^14, by
// residues on tensor cores: modulo each of 127, 113, 109, 107 (f64: also 103, 101, 97, 89, 83), as
// many as the sums need, x becomes bytes, both products have 32-bit sums of at most 128 * 127, and
// the residue of the result gives its next digit in mixed radix (kron_int8_layout.h). Signs are
// parities of lane numbers and constants. x waits in shared memory, the result in registers.
// Memory is read once and written once; a row goes through shared memory once for each modulus.
// Limits: 16-byte bases and row strides, row strides >= n, compute capability 8.0. In place works:
// a tile is in shared memory before any of it is written.
// Precision: exact for |sum| < half of the product of the moduli, 2^26.3 with four, 2^59 with nine;
// one rounding at the end, to f32 or f64, of scale times the sum. x that is not whole, or larger
// than promised, gives wrong values in its own row and nowhere else.
// Bound: integer arithmetic beside the products, by estimate; not measured.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/common/mma_kron.cuh"
#include "lib/cuda/common/tile.cuh"
#include "lib/cuda/wht/kron_int8_layout.h"

namespace plait::impl::cuda {

static __constant__ const wht_kron_moduli wht_kron_constants = wht_kron_moduli_table();

template <scalar X> struct wht_kron_int8_type {
    using element = int32_t;
    using sum = uint32_t;
};
template <> struct wht_kron_int8_type<scalar::f32> {
    using element = float;
    using sum = uint32_t;
};
template <> struct wht_kron_int8_type<scalar::f64> {
    using element = double;
    using sum = uint64_t;
};

template <scalar X, int LogN> struct wht_kron_int8_case {
    PLAIT_HD static constexpr wht_kron_config config() { return wht_kron_config_of(LogN); }
    static constexpr scalar type = X;
    static constexpr bool wide = X == scalar::f64;
    using element = typename wht_kron_int8_type<X>::element;
    using sum = typename wht_kron_int8_type<X>::sum;
};

/// In 0 .. p, for |x| < 2^24.
__device__ __forceinline__ int residue_of(int x, const wht_kron_modulus &m) {
    return x - __mulhi(x, static_cast<int>(m.magic)) * m.p;
}
__device__ __forceinline__ int residue_of(float x, const wht_kron_modulus &m) {
    return residue_of(__float2int_rn(x), m);
}
/// In -p/2 - 1 .. p/2 + 1, for |x| < 2^53.
__device__ __forceinline__ int residue_of(double x, const wht_kron_modulus &m) {
    const double p = m.p;
    return __double2int_rn(__fma_rn(-rint(x * m.reciprocal), p, x));
}

/// Adds the digit of a modulus to a sum that is right modulo all moduli before. d: |d| <= 2^14.
__device__ __forceinline__ void add_digit(uint32_t &sum, int d, const wht_kron_modulus &m) {
    const uint32_t p = static_cast<uint32_t>(m.p);
    const uint32_t left = sum - __umulhi(sum, m.magic) * p;                    // -p < left < p
    const uint32_t t = (static_cast<uint32_t>(d + m.lift) - left) * m.inverse; // below 2^25
    sum += (t - __umulhi(t, m.magic) * p) * static_cast<uint32_t>(m.weight);
}
__device__ __forceinline__ void add_digit(uint64_t &sum, int d, const wht_kron_modulus &m) {
    const uint32_t p = static_cast<uint32_t>(m.p);
    const uint32_t left =
        static_cast<uint32_t>(sum) - static_cast<uint32_t>(__umul64hi(sum, m.wide_magic)) * p;
    const uint32_t t = (static_cast<uint32_t>(d + m.lift) - left) * m.inverse; // left < 2 p
    sum += static_cast<uint64_t>(t - __umulhi(t, m.magic) * p) * m.weight;
}

/// Starts to bring a tile to shared memory.
template <class Case>
__device__ __forceinline__ void wht_kron_int8_fill(const wht_kron_int8_args &args, int64_t tile,
                                                   typename Case::element *elements) {
    constexpr wht_kron_config c = Case::config();
    constexpr int each = 16 / sizeof(typename Case::element);
    const int64_t first = tile * wht_kron_rows_per_tile(c);
    const auto *x = static_cast<const typename Case::element *>(args.x) + first * args.x_row_stride;
#pragma unroll
    for (int i = 0; i < 1 << c.log_tile; i += each * wht_kron_threads(c)) {
        const int at = i + each * static_cast<int>(threadIdx.x);
        const int row = at >> c.log_n;
        if (c.log_n < c.log_tile && first + row >= args.rows) break;
        async_copy<16>(shared_at_of(elements + wht_kron_int8_word(c, Case::wide, at >> c.log_b,
                                                                  at & ((1 << c.log_b) - 1))),
                       x + row * args.x_row_stride + (at & ((1 << c.log_n) - 1)));
    }
}

/// One tile of D: H's tiles (m, all s) times B.
template <int Steps>
__device__ __forceinline__ void wht_kron_int8_multiply(const uint32_t (&lane_sign)[2], int m,
                                                       const uint32_t (&b)[Steps][mma_words_b],
                                                       int32_t (&d)[mma_items_d]) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
        uint32_t a[mma_words_a];
#pragma unroll
        for (int w = 0; w < mma_words_a; ++w) {
            a[w] = wht_kron_int8_step(m, w % 2, s) ^ lane_sign[w / 2];
        }
        mma_add_s8(d, a, b[s]);
    }
}

/// Product 1 modulo m.p: residues of the lines of this warp to its bytes.
template <class Case>
__device__ __forceinline__ void
wht_kron_int8_lines(const wht_kron_modulus &modulus, int warp, int lane,
                    const typename Case::element *elements, char *bytes) {
    constexpr wht_kron_config c = Case::config();
    constexpr int tiles = 1 << (c.log_a - 4), steps = 1 << (c.log_a - 5);
    const uint32_t lane_sign[2] = {wht_kron_int8_lane1(lane, 0) ? wht_kron_int8_negate : 0,
                                   wht_kron_int8_lane1(lane, 1) ? wht_kron_int8_negate : 0};
#pragma unroll 1
    for (int group = 0; group < wht_kron_line_groups(c); ++group) {
        const wht_kron_place at = wht_kron_lines(c, warp, group);
        const auto *from =
            elements + wht_kron_int8_word(c, Case::wide, at.row + wht_kron_int8_in1(lane, 0, 0, 0),
                                          at.column + lane / 4);
        uint32_t b[steps][mma_words_b];
#pragma unroll
        for (int s = 0; s < steps; ++s) {
#pragma unroll
            for (int half = 0; half < mma_words_b; ++half) {
                b[s][half] = 0;
#pragma unroll
                for (int byte = 0; byte < 4; ++byte) {
                    const int r =
                        residue_of(from[wht_kron_int8_word(c, Case::wide,
                                                           wht_kron_int8_in1(0, s, half, byte), 0)],
                                   modulus);
                    b[s][half] |= (static_cast<uint32_t>(r) & 0xffu) << (8 * byte);
                }
            }
        }
        char *to = bytes + wht_kron_int8_byte(c, at.row + wht_kron_int8_out1(lane, 0, 0),
                                              at.column + lane % 4 * 2);
#pragma unroll
        for (int m = 0; m < tiles; ++m) {
            int32_t d[mma_items_d] = {};
            wht_kron_int8_multiply(lane_sign, m, b, d);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int low = residue_of(d[2 * half], modulus);
                const int high = residue_of(d[2 * half + 1], modulus);
                *reinterpret_cast<uint16_t *>(
                    to + wht_kron_int8_byte(c, wht_kron_int8_out1(0, m, half), 0)) =
                    static_cast<uint16_t>(low | high << 8);
            }
        }
    }
}

/// Product 2 modulo m.p, and its digit of every sum.
template <class Case, int Groups, int Tiles>
__device__ __forceinline__ void
wht_kron_int8_digits(const wht_kron_modulus &modulus, int warp, int lane, const char *bytes,
                     typename Case::sum (&sums)[Groups][Tiles][mma_items_d]) {
    constexpr wht_kron_config c = Case::config();
    constexpr int steps = 1 << (c.log_b - 5);
    const uint32_t lane_sign[2] = {wht_kron_int8_lane2(lane, 0) ? wht_kron_int8_negate : 0,
                                   wht_kron_int8_lane2(lane, 1) ? wht_kron_int8_negate : 0};
#pragma unroll
    for (int group = 0; group < Groups; ++group) {
        const char *from =
            bytes + wht_kron_int8_byte(c, wht_kron_rows(c, warp, group).row + lane / 4,
                                       wht_kron_int8_in2(lane, 0, 0));
        uint32_t b[steps][mma_words_b];
#pragma unroll
        for (int s = 0; s < steps; ++s) {
#pragma unroll
            for (int half = 0; half < mma_words_b; ++half) {
                b[s][half] =
                    *reinterpret_cast<const uint32_t *>(from + wht_kron_int8_in2(0, s, half));
            }
        }
#pragma unroll
        for (int m = 0; m < Tiles; ++m) {
            int32_t d[mma_items_d] = {};
            wht_kron_int8_multiply(lane_sign, m, b, d);
#pragma unroll
            for (int i = 0; i < mma_items_d; ++i) add_digit(sums[group][m][i], d[i], modulus);
        }
    }
}

/// The sum with its sign; 16 bytes of results at a time.
__device__ __forceinline__ void wht_kron_int8_store(int32_t *to, const uint32_t (&sum)[4],
                                                    const wht_kron_int8_args &args) {
    const uint32_t whole = static_cast<uint32_t>(args.whole), half = whole / 2;
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = sum[i] > half ? sum[i] - whole : sum[i];
    __stcs(reinterpret_cast<uint4 *>(to), make_uint4(w[0], w[1], w[2], w[3]));
}
__device__ __forceinline__ void wht_kron_int8_store(float *to, const uint32_t (&sum)[4],
                                                    const wht_kron_int8_args &args) {
    const uint32_t whole = static_cast<uint32_t>(args.whole), half = whole / 2;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int value = static_cast<int>(sum[i] > half ? sum[i] - whole : sum[i]);
        v[i] = static_cast<float>(static_cast<double>(value) * args.scale);
    }
    __stcs(reinterpret_cast<float4 *>(to), make_float4(v[0], v[1], v[2], v[3]));
}
__device__ __forceinline__ void wht_kron_int8_store(double *to, const uint64_t (&sum)[4],
                                                    const wht_kron_int8_args &args) {
    const uint64_t half = args.whole / 2;
    double v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const auto value = static_cast<long long>(sum[i] > half ? sum[i] - args.whole : sum[i]);
        v[i] = static_cast<double>(value) * args.scale;
    }
    __stcs(reinterpret_cast<double2 *>(to), make_double2(v[0], v[1]));
    __stcs(reinterpret_cast<double2 *>(to) + 1, make_double2(v[2], v[3]));
}

template <class Case>
__global__ void __launch_bounds__(wht_kron_threads(Case::config()),
                                  wht_kron_int8_blocks_per_sm(Case::config()))
    wht_kron_int8(const __grid_constant__ wht_kron_int8_args args) {
    constexpr wht_kron_config c = Case::config();
    constexpr int groups = wht_kron_row_groups(c), parts = 1 << (c.log_b - 4);
    extern __shared__ __align__(16) char shared[];
    auto *elements = reinterpret_cast<typename Case::element *>(shared);
    char *bytes = shared + wht_kron_int8_bytes_at(c, Case::wide);
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int64_t tiles = (args.rows - 1) / wht_kron_rows_per_tile(c) + 1;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        wht_kron_int8_fill<Case>(args, tile, elements);
        async_commit();
        async_wait<0>();
        __syncthreads(); // the tile is here
        typename Case::sum sums[groups][parts][mma_items_d] = {};
#pragma unroll 1
        for (int i = 0; i < args.moduli; ++i) {
            const wht_kron_modulus &modulus = wht_kron_constants.list[i];
            wht_kron_int8_lines<Case>(modulus, warp, lane, elements, bytes);
            __syncthreads(); // all residues are here
            wht_kron_int8_digits<Case>(modulus, warp, lane, bytes, sums);
            __syncthreads(); // they are read, behind the last modulus the elements too
        }
        const int64_t first = tile * wht_kron_rows_per_tile(c);
#pragma unroll
        for (int group = 0; group < groups; ++group) {
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                const uint32_t at =
                    wht_kron_element(c, wht_kron_rows(c, warp, group).row + lane % 4 * 2 + odd,
                                     wht_kron_out(lane, 0, 0));
                const int64_t row = first + (at >> c.log_n);
                if (c.log_n < c.log_tile && row >= args.rows) break;
                auto *to = static_cast<typename Case::element *>(args.y) + row * args.y_row_stride +
                           (at & ((1u << c.log_n) - 1u));
#pragma unroll
                for (int m = 0; m < parts; m += 2) {
                    const auto &d = sums[group];
                    const typename Case::sum four[4] = {d[m][odd], d[m][2 + odd], d[m + 1][odd],
                                                        d[m + 1][2 + odd]};
                    wht_kron_int8_store(to + wht_kron_out(0, m, 0), four, args);
                }
            }
        }
    }
}

} // namespace plait::impl::cuda
