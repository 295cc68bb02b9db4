// Stored elements and their accumulators: 16-bit floats widen to f32 on the way in and are rounded
// once, to nearest even, on the way out. By instruction, so that no half header is needed. Without
// nvcc (tests/emulate) the same values by lib/common/half.h.
#pragma once

#include "lib/common/scalar.h"

#ifndef __CUDACC__
#    include "lib/common/half.h"
#endif

#include <cstdint>

namespace plait::impl::cuda {

template <scalar S> struct stored { using bits = uint16_t; };
template <> struct stored<scalar::f32> { using bits = uint32_t; };
template <> struct stored<scalar::f64> { using bits = uint64_t; };
template <> struct stored<scalar::i32> { using bits = uint32_t; };
template <> struct stored<scalar::i64> { using bits = uint64_t; };

template <scalar S> struct accumulator_of { using type = float; };
template <> struct accumulator_of<scalar::f64> { using type = double; };
template <> struct accumulator_of<scalar::i32> { using type = uint32_t; }; // modulo 2^32
template <> struct accumulator_of<scalar::i64> { using type = uint64_t; };

template <scalar S> using accumulator = typename accumulator_of<S>::type;

/// Registers of one access of 2, 4, 8 or 16 bytes.
template <int Bytes> struct raw_access;
template <> struct raw_access<2> { using type = unsigned short; };
template <> struct raw_access<4> { using type = unsigned int; };
template <> struct raw_access<8> { using type = uint2; };
template <> struct raw_access<16> { using type = uint4; };

template <scalar S> __device__ __forceinline__ accumulator<S> widen(typename stored<S>::bits bits) {
    if constexpr (S == scalar::i32 || S == scalar::i64) {
        return bits;
    } else if constexpr (S == scalar::f64) {
        return __longlong_as_double(static_cast<long long>(bits));
    } else if constexpr (S == scalar::f32) {
        return __uint_as_float(bits);
    } else if constexpr (S == scalar::bf16) {
        return __uint_as_float(static_cast<uint32_t>(bits) << 16);
    } else {
#ifdef __CUDACC__
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
#else
        return f16_to_f32(bits);
#endif
    }
}

/// Two 16-bit elements of one word, the lower half first.
template <scalar S> __device__ __forceinline__ void widen_pair(uint32_t word, float &a, float &b) {
    if constexpr (S == scalar::bf16) {
        a = __uint_as_float(word << 16);
        b = __uint_as_float(word & 0xffff0000u);
    } else {
#ifdef __CUDACC__
        asm("{.reg .f16 lo, hi;\n\tmov.b32 {lo, hi}, %2;\n\t"
            "cvt.f32.f16 %0, lo;\n\tcvt.f32.f16 %1, hi;}"
            : "=f"(a), "=f"(b)
            : "r"(word));
#else
        a = widen<S>(static_cast<uint16_t>(word));
        b = widen<S>(static_cast<uint16_t>(word >> 16));
#endif
    }
}

__device__ __forceinline__ uint32_t round_bf16_bits(float value) {
    const uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

template <scalar S> __device__ __forceinline__ uint16_t round_half(float value) {
#ifdef __CUDACC__
    uint16_t bits;
    if constexpr (S == scalar::f16) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    } else {
#    if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#    else
        bits = static_cast<uint16_t>(round_bf16_bits(value));
#    endif
    }
    return bits;
#else
    return S == scalar::f16 ? f32_to_f16(value) : static_cast<uint16_t>(round_bf16_bits(value));
#endif
}

template <scalar S> __device__ __forceinline__ uint32_t round_pair(float a, float b) {
    uint32_t word;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    if constexpr (S == scalar::f16) {
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(a), "f"(b));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(a), "f"(b));
    }
#else
    word = round_half<S>(a) | static_cast<uint32_t>(round_half<S>(b)) << 16;
#endif
    return word;
}

/// The registers of 2^LogVec elements.
template <scalar S, int LogVec>
using raw_elements =
    typename raw_access<static_cast<int>(sizeof(typename stored<S>::bits)) << LogVec>::type;

/// 2^LogVec elements at an index that is aligned to the access. Streaming: nothing is read twice.
template <scalar S, int LogVec>
__device__ __forceinline__ raw_elements<S, LogVec> load_raw(const void *base, int64_t index) {
    const auto *p = static_cast<const typename stored<S>::bits *>(base) + index;
    return __ldcs(reinterpret_cast<const raw_elements<S, LogVec> *>(p));
}

template <scalar S, int LogVec, class T>
__device__ __forceinline__ void widen_raw(raw_elements<S, LogVec> r, T *out) {
    if constexpr (sizeof(r) == 2) {
        out[0] = widen<S>(r);
    } else {
        uint32_t w[sizeof(r) / 4];
        if constexpr (sizeof(r) == 4) {
            w[0] = r;
        } else if constexpr (sizeof(r) == 8) {
            w[0] = r.x, w[1] = r.y;
        } else {
            w[0] = r.x, w[1] = r.y, w[2] = r.z, w[3] = r.w;
        }
#pragma unroll
        for (int i = 0; i < (1 << LogVec); ++i) {
            if constexpr (S == scalar::f64) {
                out[i] =
                    __hiloint2double(static_cast<int>(w[2 * i + 1]), static_cast<int>(w[2 * i]));
            } else if constexpr (S == scalar::i64) {
                out[i] = static_cast<uint64_t>(w[2 * i + 1]) << 32 | w[2 * i];
            } else if constexpr (S == scalar::i32) {
                out[i] = w[i];
            } else if constexpr (S == scalar::f32) {
                out[i] = __uint_as_float(w[i]);
            } else if (i % 2 == 0) {
                widen_pair<S>(w[i / 2], out[i], out[i + 1]);
            }
        }
    }
}

template <scalar S, int LogVec, class T>
__device__ __forceinline__ void load_elements(const void *base, int64_t index, T *out) {
    widen_raw<S, LogVec>(load_raw<S, LogVec>(base, index), out);
}

/// scale * in, rounded once to S, to 2^LogVec elements; integers as they are.
template <scalar S, int LogVec, class T>
__device__ __forceinline__ void store_elements(void *base, int64_t index, const T *in, T scale) {
    using bits = typename stored<S>::bits;
    auto *p = static_cast<bits *>(base) + index;
    using raw = raw_elements<S, LogVec>;
    raw r;
    if constexpr (sizeof(raw) == 2) {
        r = round_half<S>(in[0] * scale);
    } else {
        uint32_t w[sizeof(raw) / 4];
#pragma unroll
        for (int i = 0; i < (1 << LogVec); ++i) {
            if constexpr (S == scalar::i64) {
                w[2 * i] = static_cast<uint32_t>(in[i]);
                w[2 * i + 1] = static_cast<uint32_t>(in[i] >> 32);
            } else if constexpr (S == scalar::i32) {
                w[i] = in[i];
            } else if constexpr (sizeof(bits) == 8) {
                const double v = in[i] * scale;
                w[2 * i] = static_cast<uint32_t>(__double2loint(v));
                w[2 * i + 1] = static_cast<uint32_t>(__double2hiint(v));
            } else if constexpr (sizeof(bits) == 4) {
                w[i] = __float_as_uint(in[i] * scale);
            } else if (i % 2 == 0) {
                w[i / 2] = round_pair<S>(in[i] * scale, in[i + 1] * scale);
            }
        }
        if constexpr (sizeof(raw) == 4) {
            r = w[0];
        } else if constexpr (sizeof(raw) == 8) {
            r.x = w[0], r.y = w[1];
        } else {
            r.x = w[0], r.y = w[1], r.z = w[2], r.w = w[3];
        }
    }
    __stcs(reinterpret_cast<raw *>(p), r);
}

} // namespace plait::impl::cuda
