// conv1d.bwd_btc's ring: tiles of x and dy on their way from global to shared memory. A thread
// reads only what it copied itself, so that no barrier is needed.
//
// Loose threads have channels whose elements lie anywhere: of 16-bit rows they copy the words of 4
// bytes that hold them, and shift when they read.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/conv1d/bwd_btc_layout.h"

namespace plait::impl::cuda {

/// Bytes of a copy that begin with `used` bytes of the tensor; the others become 0 unread. Half a
/// word is read at once: as an asynchronous copy it counts as a whole one, beyond the tensor.
template <int Bytes>
__device__ __forceinline__ void conv1d_btc_copy(char *to, const void *from, int used) {
    if constexpr (Bytes == 4) {
        if (used == 2) {
            *reinterpret_cast<uint32_t *>(to) = __ldg(static_cast<const uint16_t *>(from));
            return;
        }
    }
    async_copy<Bytes>(shared_at_of(to), from, used > 0);
}

template <int Bytes> __device__ __forceinline__ void conv1d_btc_copy(char *to, const void *from) {
    async_copy<Bytes>(shared_at_of(to), from);
}

/// Bytes of a few tokens fit 32 bits, so that an address is one sum away from the tile's.
template <class T>
__device__ __forceinline__ T *conv1d_btc_off(T *p, int tokens, const conv1d_view &v) {
    const int bytes = tokens * (static_cast<int>(v.t) * static_cast<int>(sizeof(T)));
    return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) +
                                 static_cast<uintptr_t>(static_cast<intptr_t>(bytes)));
}

/// The 32 bits of two words from bit `shift`, modulo 32, on.
__device__ __forceinline__ uint32_t conv1d_btc_shift(uint32_t low, uint32_t high, uint32_t shift) {
#ifdef __CUDACC__
    return __funnelshift_r(low, high, shift);
#else
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31u));
#endif
}

/// Where the tiles of a row come from.
template <class Case> struct conv1d_btc_source {
    using bits = typename Case::bits;
    static constexpr int taps = Case::taps, history = Case::history, vec = Case::vec;
    static constexpr bool words = Case::loose && sizeof(bits) == 2;

    const conv1d_bwd_args &a;
    const bits *x, *dy;               ///< of token `history` before the next tile; of its first
    const bits *x_lowest, *dy_lowest; ///< of the tensors
    uint32_t x_bit, dy_bit;           ///< words: 8 times the addresses of the tile that is read
    int left;                         ///< loose: channels of the row from the thread's on
    bool careful;

    __device__ __forceinline__ static int64_t down(int64_t n) { return n < 0 ? n : 0; }
    __device__ __forceinline__ static const bits *lowest(const void *p, const conv1d_view &v,
                                                         const conv1d_bwd_args &a) {
        return static_cast<const bits *>(p) + down((a.batch - 1) * v.b) +
               down((a.length - 1) * v.t);
    }
    __device__ __forceinline__ conv1d_btc_source(const conv1d_bwd_args &args, int64_t b, int64_t c)
        : a(args), x(static_cast<const bits *>(a.x) + b * a.vx.b + c),
          dy(static_cast<const bits *>(a.dy) + b * a.vdy.b + c), x_lowest(lowest(a.x, a.vx, a)),
          dy_lowest(lowest(a.dy, a.vdy, a)), x_bit(0), dy_bit(0),
          left(a.channels - c < 8 ? static_cast<int>(a.channels - c) : 8),
          careful(words &&
                  (left < vec + 2 || a.vx.t < 0 || a.vx.b < 0 || a.vdy.t < 0 || a.vdy.b < 0)) {}

    /// From tile t0 on.
    __device__ __forceinline__ void start(int t0) {
        x += (t0 - history) * a.vx.t;
        dy += t0 * a.vdy.t;
        x_bit = 8u * static_cast<uint32_t>(reinterpret_cast<uintptr_t>(x));
        dy_bit = 8u * static_cast<uint32_t>(reinterpret_cast<uintptr_t>(dy));
    }
    __device__ __forceinline__ void step() {
        x = conv1d_btc_off(x, -taps, a.vx);
        dy = conv1d_btc_off(dy, -taps, a.vdy);
    }
    /// The tile that is read moves on.
    __device__ __forceinline__ void passed() {
        if constexpr (words) {
            x_bit -= 16u * taps * static_cast<uint32_t>(a.vx.t);
            dy_bit -= 16u * taps * static_cast<uint32_t>(a.vdy.t);
        }
    }

    template <bool Dy> __device__ __forceinline__ static int place(int r) {
        return ((Dy ? taps : 0) + r) * Case::threads * Case::cell;
    }
    template <bool Dy> __device__ __forceinline__ void one(char *slot, int r) const {
        const bits *const p = Dy ? conv1d_btc_off(dy, r, a.vdy) : conv1d_btc_off(x, r, a.vx);
        char *const to = slot + place<Dy>(r);
        if constexpr (words) {
            const uint32_t *const w =
                reinterpret_cast<const uint32_t *>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t{3});
#pragma unroll
            for (int i = 0; i <= vec / 2; ++i) conv1d_btc_copy<4>(to + 4 * i, w + i);
        } else if constexpr (Case::loose) {
            conv1d_btc_copy<4>(to, p);
            conv1d_btc_copy<4>(to + 4, p + 1, left > 1 ? 4 : 0);
        } else {
            conv1d_btc_copy<Case::cell>(to, p);
        }
    }
    template <bool Dy>
    __device__ __forceinline__ void one_checked(char *slot, int r, bool there) const {
        const bits *const p = Dy ? conv1d_btc_off(dy, r, a.vdy) : conv1d_btc_off(x, r, a.vx);
        char *const to = slot + place<Dy>(r);
        if constexpr (words) {
            const int half = static_cast<int>(reinterpret_cast<uintptr_t>(p) & 2u);
            const uint32_t *const w =
                reinterpret_cast<const uint32_t *>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t{3});
            const int used = there ? 2 * left + half : 0;
            if (there && half && p == (Dy ? dy_lowest : x_lowest)) {
                // what is before the first element of a tensor is not read
                reinterpret_cast<uint16_t *>(to)[0] = 0;
                reinterpret_cast<uint16_t *>(to)[1] = *p;
            } else {
                conv1d_btc_copy<4>(to, w, used < 4 ? used : 4);
            }
#pragma unroll
            for (int i = 1; i <= vec / 2; ++i) {
                const int more = used - 4 * i;
                conv1d_btc_copy<4>(to + 4 * i, more > 0 ? w + i : w,
                                   more < 0   ? 0
                                   : more < 4 ? more
                                              : 4);
            }
        } else if constexpr (Case::loose) {
            conv1d_btc_copy<4>(to, p, there ? 4 : 0);
            conv1d_btc_copy<4>(to + 4, p + 1, there && left > 1 ? 4 : 0);
        } else {
            conv1d_btc_copy<Case::cell>(to, p, there ? Case::cell : 0);
        }
    }

    /// The next tile: all its tokens, and those before it, are in the row.
    __device__ __forceinline__ void fetch(char *slot) const {
#pragma unroll
        for (int r = taps - 1; r >= 0; --r) {
            one<false>(slot, r);
            one<true>(slot, r);
        }
    }
    __device__ __forceinline__ void fetch_checked(char *slot, int t0, int end) const {
#pragma unroll
        for (int r = taps - 1; r >= 0; --r) {
            const int t = t0 + r - history;
            one_checked<false>(slot, r, t >= 0 && t < end);
            one_checked<true>(slot, r, t0 + r < end);
        }
    }

    template <bool Dy>
    __device__ __forceinline__ void read(const char *slot, int r, float (&out)[vec]) const {
        const char *const cell = slot + place<Dy>(r);
        if constexpr (words) {
            uint32_t w[vec / 2 + 1];
            if constexpr (vec == 2) {
                const uint2 both = *reinterpret_cast<const uint2 *>(cell);
                w[0] = both.x, w[1] = both.y;
            } else {
#pragma unroll
                for (int i = 0; i <= vec / 2; ++i)
                    w[i] = reinterpret_cast<const uint32_t *>(cell)[i];
            }
            const uint32_t stride = 16u * static_cast<uint32_t>(Dy ? a.vdy.t : a.vx.t);
            const uint32_t bit = (Dy ? dy_bit : x_bit) + static_cast<uint32_t>(r) * stride;
#pragma unroll
            for (int i = 0; i < vec / 2; ++i)
                widen_pair<Case::type>(conv1d_btc_shift(w[i], w[i + 1], bit), out[2 * i],
                                       out[2 * i + 1]);
        } else {
            widen_raw<Case::type, Case::log_vec>(
                *reinterpret_cast<const raw_elements<Case::type, Case::log_vec> *>(cell), out);
        }
    }

    /// x of token t0 + r, r > 0, of the tile that `start` named.
    __device__ __forceinline__ void direct(int r, int t0, int end, float (&out)[vec]) const {
#pragma unroll
        for (int e = 0; e < vec; ++e) {
            out[e] = 0;
            if (r > 0 && t0 + r < end && (!Case::loose || e < left))
                out[e] = widen<Case::type>(__ldg(conv1d_btc_off(x, history + r, a.vx) + e));
        }
    }
};

} // namespace plait::impl::cuda
