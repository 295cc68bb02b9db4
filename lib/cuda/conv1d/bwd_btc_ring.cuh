// conv1d.bwd_btc's ring: tiles of x and dy on their way from global to shared memory. A thread
// reads only what it copied itself, so that no barrier is needed.
//
// Loose threads have channels whose elements lie anywhere: of 16-bit rows they copy the words of 4
// bytes that hold them, and shift when they read.
#pragma once

#include "lib/cuda/common/convert.cuh"
#include "lib/cuda/conv1d/bwd_btc_layout.h"

#ifndef __CUDACC__
#    include <cstring>
#endif

namespace plait::impl::cuda {

/// Has a value in a register here, as it is: the compiler does not find it anew from others.
__device__ __forceinline__ void conv1d_btc_keep(uint32_t &v) {
#ifdef __CUDACC__
    asm volatile("" : "+r"(v));
#else
    static_cast<void>(v);
#endif
}
__device__ __forceinline__ void conv1d_btc_keep(char *&v) {
#ifdef __CUDACC__
    asm volatile("" : "+l"(v));
#else
    static_cast<void>(v);
#endif
}

/// A place in shared memory: a number of 32 bits, to which every access adds a constant.
#ifdef __CUDACC__
using conv1d_btc_spot = uint32_t;
__device__ __forceinline__ conv1d_btc_spot conv1d_btc_spot_of(const char *p) {
    uint32_t spot = static_cast<uint32_t>(__cvta_generic_to_shared(p));
    conv1d_btc_keep(spot); // not from the thread's number in loops
    return spot;
}
#else
using conv1d_btc_spot = char *;
inline conv1d_btc_spot conv1d_btc_spot_of(char *p) { return p; }
#endif

/// Bytes of a copy to `to` + Offset that begin with `used` bytes of the tensor; the others become 0
/// unread.
template <int Bytes, int Offset>
__device__ __forceinline__ void conv1d_btc_copy(conv1d_btc_spot to, const char *from, int used) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0 + %4], [%1], %2, %3;" ::"r"(to), "l"(from),
                 "n"(Bytes), "r"(used), "n"(Offset)
                 : "memory");
#else
    for (int i = 0; i < Bytes; i += 2) {
        const uint16_t v =
            i < used ? __ldg(reinterpret_cast<const uint16_t *>(from + i)) : uint16_t{0};
#    ifdef __CUDACC__
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to + Offset + i), "h"(v) : "memory");
#    else
        std::memcpy(to + Offset + i, &v, 2);
#    endif
    }
#endif
}

template <int Bytes, int Offset>
__device__ __forceinline__ void conv1d_btc_copy(conv1d_btc_spot to, const char *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0 + %3], [%1], %2;" ::"r"(to), "l"(from), "n"(Bytes),
                 "n"(Offset)
                 : "memory");
#elif defined(__CUDACC__)
    conv1d_btc_copy<Bytes, Offset>(to, from, Bytes);
#else
    using access = typename raw_access<Bytes>::type;
    *reinterpret_cast<access *>(to + Offset) = __ldg(reinterpret_cast<const access *>(from));
#endif
}

template <int Words, int Offset>
__device__ __forceinline__ void conv1d_btc_read(conv1d_btc_spot from, uint32_t (&w)[Words]) {
#ifdef __CUDACC__
    if constexpr (Words == 1) {
        asm volatile("ld.shared.u32 %0, [%1 + %2];"
                     : "=r"(w[0])
                     : "r"(from), "n"(Offset)
                     : "memory");
    } else if constexpr (Words == 2) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2 + %3];"
                     : "=r"(w[0]), "=r"(w[1])
                     : "r"(from), "n"(Offset)
                     : "memory");
    } else {
        asm volatile("ld.shared.u32 %0, [%3 + %4];\n\t"
                     "ld.shared.u32 %1, [%3 + %5];\n\t"
                     "ld.shared.u32 %2, [%3 + %6];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2])
                     : "r"(from), "n"(Offset), "n"(Offset + 4), "n"(Offset + 8)
                     : "memory");
    }
#else
    for (int i = 0; i < Words; ++i) w[i] = reinterpret_cast<const uint32_t *>(from + Offset)[i];
#endif
}

template <int Offset>
__device__ __forceinline__ void conv1d_btc_put(conv1d_btc_spot to, float value) {
#ifdef __CUDACC__
    asm volatile("st.shared.f32 [%0 + %2], %1;" ::"r"(to), "f"(value), "n"(Offset) : "memory");
#else
    *reinterpret_cast<float *>(to + Offset) = value;
#endif
}

__device__ __forceinline__ void conv1d_btc_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// All but the last `Left` groups have arrived.
template <int Left> __device__ __forceinline__ void conv1d_btc_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
#endif
}

/// `step` bytes on.
template <class T> __device__ __forceinline__ T *conv1d_btc_on(T *p, int64_t step) {
    return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(step));
}

/// The 32 bits of two words from bit `shift`, modulo 32, on.
__device__ __forceinline__ uint32_t conv1d_btc_shift(uint32_t low, uint32_t high, uint32_t shift) {
#ifdef __CUDACC__
    return __funnelshift_r(low, high, shift);
#else
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31u));
#endif
}

/// The high word of both, shifted up by `shift`, modulo 32.
__device__ __forceinline__ uint32_t conv1d_btc_shift_up(uint32_t low, uint32_t high,
                                                        uint32_t shift) {
#ifdef __CUDACC__
    return __funnelshift_l(low, high, shift);
#else
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31u) >> 32);
#endif
}

/// Where the tiles of a row come from.
template <class Case> struct conv1d_btc_source {
    using bits = typename Case::bits;
    static constexpr int taps = Case::taps, history = Case::history, vec = Case::vec;
    static constexpr bool words = Case::loose && sizeof(bits) == 2;
    static constexpr int read_words = Case::cell / 4;

    const conv1d_btc_args &a;
    const char *x, *dy;               ///< of the token that is copied next
    const char *x_lowest, *dy_lowest; ///< of the tensors
    uint32_t x_bit, dy_bit;           ///< words: 8 times the addresses of the token that is read
    int left;                         ///< loose: channels of the row from the thread's on, to 8
    bool careful;

    __device__ __forceinline__ static int64_t down(int64_t n) { return n < 0 ? n : 0; }
    __device__ __forceinline__ static const char *lowest(const void *p, const conv1d_view &v,
                                                         const conv1d_bwd_args &a) {
        return reinterpret_cast<const char *>(
            static_cast<const bits *>(p) + down((a.batch - 1) * v.b) + down((a.length - 1) * v.t));
    }
    __device__ __forceinline__ conv1d_btc_source(const conv1d_btc_args &args, int64_t b, int64_t c)
        : a(args),
          x(reinterpret_cast<const char *>(static_cast<const bits *>(a.x) + b * a.vx.b + c)),
          dy(reinterpret_cast<const char *>(static_cast<const bits *>(a.dy) + b * a.vdy.b + c)),
          x_lowest(lowest(a.x, a.vx, a)), dy_lowest(lowest(a.dy, a.vdy, a)), x_bit(0), dy_bit(0),
          left(a.channels - c >= 8 ? 8
               : a.channels > c    ? static_cast<int>(a.channels - c)
                                   : 0),
          careful(words ? left < vec + 2 || a.vx.t < 0 || a.vx.b < 0 || a.vdy.t < 0 || a.vdy.b < 0
                        : Case::loose && left == 0) {}

    /// From tile t0 on.
    __device__ __forceinline__ void start(int t0) {
        x = conv1d_btc_on(x, -a.x_step * t0);
        dy = conv1d_btc_on(dy, -a.dy_step * (t0 + history));
        x_bit = 8u * static_cast<uint32_t>(reinterpret_cast<uintptr_t>(x));
        dy_bit = 8u * static_cast<uint32_t>(reinterpret_cast<uintptr_t>(dy));
    }
    /// A tile that is not copied.
    __device__ __forceinline__ void pass() {
        x = conv1d_btc_on(x, taps * a.x_step);
        dy = conv1d_btc_on(dy, taps * a.dy_step);
    }

    template <bool Dy> PLAIT_HD static constexpr int place(int r) {
        return ((Dy ? taps : 0) + r) * Case::threads * Case::cell;
    }
    __device__ __forceinline__ static const char *word_of(const char *p) {
        return reinterpret_cast<const char *>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t{3});
    }
    template <bool Dy, int R> __device__ __forceinline__ void one(conv1d_btc_spot slot) const {
        const char *const p = Dy ? dy : x;
        constexpr int at = place<Dy>(R);
        if constexpr (words) {
            const char *const w = word_of(p);
            conv1d_btc_copy<4, at>(slot, w);
            conv1d_btc_copy<4, at + 4>(slot, w + 4);
            if constexpr (vec == 4) conv1d_btc_copy<4, at + 8>(slot, w + 8);
        } else if constexpr (Case::loose) {
            conv1d_btc_copy<4, at>(slot, p);
            conv1d_btc_copy<4, at + 4>(slot, p + 4, left > 1 ? 4 : 0);
        } else {
            conv1d_btc_copy<Case::cell, at>(slot, p);
        }
    }
    template <bool Dy, int R>
    __device__ __forceinline__ void one_checked(conv1d_btc_spot slot, bool there) const {
        const char *const p = Dy ? dy : x;
        constexpr int at = place<Dy>(R);
        if constexpr (words) {
            const int half = static_cast<int>(reinterpret_cast<uintptr_t>(p) & 2u);
            const char *const w = word_of(p);
            const int used = there ? 2 * left + half : 0;
            if (there && half && p == (Dy ? dy_lowest : x_lowest)) {
                // what is before the first element of a tensor is not read
                const uint32_t word = static_cast<uint32_t>(*reinterpret_cast<const uint16_t *>(p))
                                      << 16;
#ifdef __CUDACC__
                asm volatile("st.shared.u32 [%0 + %2], %1;" ::"r"(slot), "r"(word), "n"(at)
                             : "memory");
#else
                std::memcpy(slot + at, &word, 4);
#endif
            } else {
                conv1d_btc_copy<4, at>(slot, w, used < 4 ? used : 4);
            }
            more<at + 4>(slot, w, 4, used - 4);
            if constexpr (vec == 4) more<at + 8>(slot, w, 8, used - 8);
        } else if constexpr (Case::loose) {
            conv1d_btc_copy<4, at>(slot, p, there ? 4 : 0);
            conv1d_btc_copy<4, at + 4>(slot, p + 4, there && left > 1 ? 4 : 0);
        } else {
            conv1d_btc_copy<Case::cell, at>(slot, p, there ? Case::cell : 0);
        }
    }
    template <int At>
    __device__ __forceinline__ static void more(conv1d_btc_spot slot, const char *w, int by,
                                                int used) {
        conv1d_btc_copy<4, At>(slot, used > 0 ? w + by : w, used < 0 ? 0 : used < 4 ? used : 4);
    }

    /// The next tile, from its token R down: all its tokens, and those before it, are in the row.
    template <int R = taps - 1> __device__ __forceinline__ void fetch(conv1d_btc_spot slot) {
        one<false, R>(slot);
        one<true, R>(slot);
        x = conv1d_btc_on(x, a.x_step);
        dy = conv1d_btc_on(dy, a.dy_step);
        if constexpr (R > 0) fetch<R - 1>(slot);
    }
    template <int R = taps - 1>
    __device__ __forceinline__ void fetch_checked(conv1d_btc_spot slot, int t0, int end) {
        const int t = t0 + R - history;
        const bool some = !Case::loose || left > 0;
        one_checked<false, R>(slot, some && t >= 0 && t < end);
        one_checked<true, R>(slot, some && t0 + R < end);
        x = conv1d_btc_on(x, a.x_step);
        dy = conv1d_btc_on(dy, a.dy_step);
        if constexpr (R > 0) fetch_checked<R - 1>(slot, t0, end);
    }

    template <bool Dy, int R>
    __device__ __forceinline__ void read(conv1d_btc_spot slot, float (&out)[vec]) {
        uint32_t w[read_words];
        conv1d_btc_read<read_words, place<Dy>(R)>(slot, w);
        if constexpr (words) {
            uint32_t &bit = Dy ? dy_bit : x_bit;
#pragma unroll
            for (int i = 0; i < vec / 2; ++i)
                widen_pair<Case::type>(conv1d_btc_shift(w[i], w[i + 1], bit), out[2 * i],
                                       out[2 * i + 1]);
            bit += Dy ? a.dy_turn : a.x_turn;
        } else if constexpr (sizeof(bits) == 4) {
#pragma unroll
            for (int i = 0; i < vec; ++i) out[i] = __uint_as_float(w[i]);
        } else {
#pragma unroll
            for (int i = 0; i < vec / 2; ++i)
                widen_pair<Case::type>(w[i], out[2 * i], out[2 * i + 1]);
        }
    }

    /// x of token t0 + r, r > 0, of the tile that `start` named.
    __device__ __forceinline__ void direct(int r, int t0, int end, float (&out)[vec]) const {
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            out[e] = 0;
            if (r > 0 && t0 + r < end && (!Case::loose || e < left))
                out[e] = widen<Case::type>(
                    __ldg(reinterpret_cast<const bits *>(conv1d_btc_on(x, -a.x_step * r)) + e));
        }
    }
};

} // namespace plait::impl::cuda
