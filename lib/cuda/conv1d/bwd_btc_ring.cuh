// conv1d.bwd_btc's ring: tiles of x and dy on their way from global to shared memory, and dx of
// loose channels on its way out. A warp reads only what its own lanes copied.
#pragma once

#include "lib/cuda/common/async_copy.cuh"
#include "lib/cuda/conv1d/bwd_btc_layout.h"

namespace plait::impl::cuda {

template <class T> __device__ __forceinline__ T *conv1d_btc_on(T *p, int64_t bytes) {
    return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(bytes));
}

/// The 32 bits of two words from bit `shift`, modulo 32, on.
__device__ __forceinline__ uint32_t conv1d_btc_shift(uint32_t low, uint32_t high, uint32_t shift) {
#ifdef __CUDACC__
    return __funnelshift_r(low, high, shift);
#else
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31u));
#endif
}

/// The upper 32 bits of two words shifted up by `shift`, modulo 32.
__device__ __forceinline__ uint32_t conv1d_btc_shift_up(uint32_t low, uint32_t high,
                                                        uint32_t shift) {
#ifdef __CUDACC__
    return __funnelshift_l(low, high, shift);
#else
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31u) >> 32);
#endif
}

/// Is computed here, by all lanes, not where some of them use it.
__device__ __forceinline__ void conv1d_btc_keep([[maybe_unused]] uint32_t &v) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(v));
#endif
}
__device__ __forceinline__ void conv1d_btc_keep([[maybe_unused]] int64_t &v) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(v));
#endif
}
__device__ __forceinline__ void conv1d_btc_keep(uint2 &v) {
    conv1d_btc_keep(v.x);
    conv1d_btc_keep(v.y);
}

/// Where the lanes of a walk find its rows.
template <class Case> struct conv1d_btc_lane {
    const conv1d_btc_args &a;
    int lane;                      ///< of the walk
    int last;                      ///< lane of the walk
    int ahead;                     ///< lanes of the walk in warps before
    unsigned mask;                 ///< lanes of the walk, in the warp
    int left;                      ///< channels of the warp
    bool active;                   ///< some are the lane's
    const conv1d_btc_range *range; ///< of the thread
    shared_at put;                 ///< in the first slot, of the lane's first chunk
    shared_at get;                 ///< in the first slot, of the lane's cell

    static constexpr int row = 32 * Case::cell;

    __device__ __forceinline__ conv1d_btc_lane(const conv1d_btc_args &args, char *ring, int64_t c0)
        : a(args), range(nullptr) {
        const int thread = static_cast<int>(threadIdx.x);
        const conv1d_btc_spot spot =
            conv1d_btc_spot_of(thread, a.log_lanes, Case::taps, Case::cell, Case::chunk);
        last = spot.last, lane = spot.lane, ahead = spot.ahead;
        put = shared_at_of(ring + spot.put), get = shared_at_of(ring + spot.get);
        mask = ~0u >> (31 - last) << (thread & 31 & ~last);
        const int64_t rest = a.channels - c0 - spot.ahead * Case::vec;
        const int most = min(a.group, 32 * Case::vec);
        left = rest < 0 ? 0 : rest < most ? static_cast<int>(rest) : most;
        active = lane * Case::vec < left;
        if (Case::loose && lane == last) get = get - Case::cell; // no channels; reads two cells
    }
    /// The lanes' copies are there for all of them, and all have read what they read before.
    __device__ __forceinline__ void meet() const {
        if (Case::loose || mask == ~0u) {
            __syncwarp();
        } else {
            __syncwarp(mask);
        }
    }
    /// What the lane copies. Few ask, so that it has no registers.
    __device__ __forceinline__ conv1d_btc_spot spot() const {
        uint32_t thread = threadIdx.x;
        conv1d_btc_keep(thread);
        conv1d_btc_spot s = conv1d_btc_spot_of(static_cast<int>(thread), a.log_lanes, Case::taps,
                                               Case::cell, Case::chunk);
        // chunks without channels of the warp are filled with its first ones, and not used
        if (s.chunk >= left * Case::size + (Case::loose ? Case::cell - Case::size : 0)) s.chunk = 0;
        return s;
    }
};

/// Where the next copies of a walk are read.
template <class Case> struct conv1d_btc_source {
    using bits = typename Case::bits;
    static constexpr int each = Case::chunk / Case::cell;
    const char *x, *dy; ///< of the lane's chunk, of the last tokens of the next tile

    __device__ __forceinline__ void start(const conv1d_btc_lane<Case> &l, int64_t c0, int64_t b,
                                          int tile) {
        const conv1d_btc_args &a = l.a;
        const conv1d_btc_spot s = l.spot();
        const int64_t top = int64_t{tile} * Case::taps + s.token - each + 1; // x
        x = static_cast<const char *>(a.x) +
            (b * a.vx.b + c0) * static_cast<int64_t>(sizeof(bits)) + top * a.x_step + s.chunk;
        dy = static_cast<const char *>(a.dy) +
             (b * a.vdy.b + c0) * static_cast<int64_t>(sizeof(bits)) +
             (top + Case::history) * a.dy_step + s.chunk;
    }
    __device__ __forceinline__ static const char *aligned(const char *p) {
        if constexpr (!Case::loose) return p;
        return reinterpret_cast<const char *>(reinterpret_cast<uintptr_t>(p) &
                                              ~static_cast<uintptr_t>(Case::cell - 1));
    }
    /// A tile whose copies lie in the tensors.
    __device__ __forceinline__ void fetch(const conv1d_btc_lane<Case> &l, int slot) {
        constexpr int row = conv1d_btc_lane<Case>::row;
        const shared_at to = l.put + slot;
#pragma unroll
        for (int r = Case::taps - each; r >= 0; r -= each) {
            async_copy<Case::chunk>(to + r * row, aligned(x));
            async_copy<Case::chunk>(to + (Case::taps + r) * row, aligned(dy));
            x = conv1d_btc_on(x, l.a.x_hop);
            dy = conv1d_btc_on(dy, l.a.dy_hop);
        }
    }
    /// Loose chunks at an end of the tensor: element by element.
    __device__ __forceinline__ static void pick(shared_at to, const char *from, const void *base,
                                                int64_t begin, int64_t end) {
        conv1d_btc_keep(begin); // rare: no registers in the loop
        conv1d_btc_keep(end);
        const bits *const p = reinterpret_cast<const bits *>(aligned(from));
        const bits *const low = static_cast<const bits *>(base) + begin;
        const bits *const high = static_cast<const bits *>(base) + end;
        if (p >= low && p + Case::vec <= high) {
            async_copy<Case::chunk>(to, p);
            return;
        }
#pragma unroll
        for (int e = 0; e < Case::vec; ++e)
            store_shared<bits>(to + e * static_cast<int>(sizeof(bits)),
                               p + e >= low && p + e < high ? __ldg(p + e) : bits{0});
    }
    /// Any tile; tokens outside of the row become zeros.
    __device__ __forceinline__ void fetch_checked(const conv1d_btc_lane<Case> &l, int slot,
                                                  int tile) {
        constexpr int row = conv1d_btc_lane<Case>::row;
        const conv1d_btc_args &a = l.a;
        const int end = static_cast<int>(a.length), token = l.spot().token;
#pragma unroll
        for (int r = Case::taps - each; r >= 0; r -= each) {
            const int t = tile * Case::taps + r + token, of_x = t - Case::history;
            const shared_at to = l.put + (slot + r * row), to_dy = to + Case::taps * row;
            const bool there = of_x >= 0 && of_x < end, there_dy = t < end;
            if constexpr (Case::loose) {
                if (there) {
                    pick(to, x, a.x, a.x_begin, a.x_end);
                } else {
                    async_copy<Case::chunk>(to, a.x, false);
                }
                if (there_dy) {
                    pick(to_dy, dy, a.dy, a.dy_begin, a.dy_end);
                } else {
                    async_copy<Case::chunk>(to_dy, a.dy, false);
                }
            } else {
                async_copy<Case::chunk>(to, there ? x : a.x, there);
                async_copy<Case::chunk>(to_dy, there_dy ? dy : a.dy, there_dy);
            }
            x = conv1d_btc_on(x, a.x_hop);
            dy = conv1d_btc_on(dy, a.dy_hop);
        }
    }
};

/// The lane's channels of token r of a tile; loose: the row's group begins `from` bytes behind the
/// first chunk.
template <class Case, bool Dy>
__device__ __forceinline__ void conv1d_btc_read(const conv1d_btc_lane<Case> &l, int slot, int r,
                                                uint32_t from, float (&out)[Case::vec]) {
    constexpr int words = Case::cell / 4, row = conv1d_btc_lane<Case>::row;
    const shared_at at = l.get + (slot + ((Dy ? Case::taps : 0) + r) * row);
    uint32_t v[words];
    if constexpr (Case::loose) {
        uint32_t w[words + 1];
        const shared_at first = at + static_cast<int>(from & 4u);
#pragma unroll
        for (int i = 0; i <= words; ++i)
            if (Case::residue == 0 || i < words || (from & 3u) != 0)
                load_words<1>(first + 4 * i, w + i);
#pragma unroll
        for (int i = 0; i < words; ++i) v[i] = conv1d_btc_shift(w[i], w[i + 1], 8 * from);
    } else {
        load_words<words>(at, v);
    }
    if constexpr (Case::size == 4) {
#pragma unroll
        for (int e = 0; e < Case::vec; ++e) out[e] = __uint_as_float(v[e]);
    } else {
#pragma unroll
        for (int e = 0; e < Case::vec; e += 2) widen_pair<Case::type>(v[e / 2], out[e], out[e + 1]);
    }
}

/// conv1d_btc_store of loose cells whose place is a constant: of token R of a tile.
template <class Case, int R>
__device__ __forceinline__ void conv1d_btc_store_shifted(const conv1d_btc_lane<Case> &l, char *at,
                                                         uint32_t (&v)[2]) {
    using bits = typename Case::bits;
    constexpr uint32_t from = conv1d_btc_from_of(Case::residue, R);
    // of a group whose channels are all there: parts that its first and last lane may have
    constexpr int most = 31 * Case::vec;
    constexpr uint32_t parts = (conv1d_bwd_btc_alone(0, most, Case::vec, 2) |
                                conv1d_bwd_btc_alone(31, most, Case::vec, 2)) >>
                               (4 * from);
    uint32_t low = 0, middle = 0;
    if constexpr (from > 0) middle = __shfl_up_sync(~0u, v[1], 1);
    if constexpr (from > 4) low = __shfl_up_sync(~0u, v[0], 1);
    if constexpr (from == 2 || from == 6) {
        const uint32_t high = from == 2 ? v[1] : v[0], next = from == 2 ? v[0] : middle;
        v[0] = conv1d_btc_shift_up(from == 2 ? middle : low, next, 16);
        v[1] = conv1d_btc_shift_up(next, high, 16);
    } else if constexpr (from == 4) {
        v[1] = v[0], v[0] = middle;
    }
    char *const chunk = at - from;
    const uint32_t alone = l.range->alone >> (4 * from);
    if (alone & 1u) __stcs(reinterpret_cast<uint2 *>(chunk), make_uint2(v[0], v[1]));
    const auto store = [&](uint32_t which) {
#pragma unroll
        for (int w = 0; w < 2; ++w) {
            bits *const to = reinterpret_cast<bits *>(chunk + 4 * w);
            if ((which & 2u << 3 * w) && (alone & 2u << 3 * w))
                __stcs(reinterpret_cast<uint32_t *>(to), v[w]);
            if ((which & 4u << 3 * w) && (alone & 4u << 3 * w)) __stcs(to, static_cast<bits>(v[w]));
            if ((which & 8u << 3 * w) && (alone & 8u << 3 * w))
                __stcs(to + 1, static_cast<bits>(v[w] >> 16));
        }
    };
    store(parts);
    if (l.left < most) store(~parts); // of the last group of a row
}

/// dx of a token, of the lane's channels, at `at`. Loose: lanes exchange what lies in aligned
/// chunks; elements of a chunk that is not the group's alone are stored one by one.
template <class Case, int R>
__device__ __forceinline__ void conv1d_btc_store(const conv1d_btc_lane<Case> &l, char *at,
                                                 const float (&dx)[Case::vec]) {
    using bits = typename Case::bits;
    constexpr int words = Case::cell / 4;
    if constexpr (!Case::loose) {
        raw_elements<Case::type, Case::log_vec> v;
        if constexpr (Case::size == 4) {
            v.x = __float_as_uint(dx[0]), v.y = __float_as_uint(dx[1]);
        } else if constexpr (words == 2) {
            v.x = round_pair<Case::type>(dx[0], dx[1]), v.y = round_pair<Case::type>(dx[2], dx[3]);
        } else {
            v = round_pair<Case::type>(dx[0], dx[1]);
        }
        conv1d_btc_keep(v);
        if (l.active) __stcs(reinterpret_cast<decltype(v) *>(at), v);
    } else {
        uint32_t v[words];
        if constexpr (Case::size == 4) {
#pragma unroll
            for (int e = 0; e < Case::vec; ++e) v[e] = __float_as_uint(dx[e]);
        } else {
#pragma unroll
            for (int e = 0; e < Case::vec; e += 2)
                v[e / 2] = round_pair<Case::type>(dx[e], dx[e + 1]);
        }
        if constexpr (Case::residue != 0) {
            conv1d_btc_store_shifted<Case, R>(l, at, v);
            return;
        }
        const uint32_t from = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at)) &
                              static_cast<uint32_t>(Case::cell - 1);
        const uint32_t before = __shfl_up_sync(~0u, v[words - 1], 1);
        if constexpr (words == 2) {
            const uint32_t first = __shfl_up_sync(~0u, v[0], 1);
            const bool half = from & 4u;
            const uint32_t low = half ? first : before, middle = half ? before : v[0];
            const uint32_t high = half ? v[0] : v[1];
            v[0] = conv1d_btc_shift_up(low, middle, 8 * from);
            v[1] = conv1d_btc_shift_up(middle, high, 8 * from);
        } else {
            v[0] = conv1d_btc_shift_up(before, v[0], 8 * from);
        }
        char *const chunk = at - from;
        const uint32_t alone = l.range->alone >> (8 / Case::size * from);
        if (alone & 1u) {
            if constexpr (words == 2) {
                __stcs(reinterpret_cast<uint2 *>(chunk), make_uint2(v[0], v[1]));
            } else {
                __stcs(reinterpret_cast<uint32_t *>(chunk), v[0]);
            }
        }
        // Of a chunk in part, without a branch: at both ends of a group every token has some.
#pragma unroll
        for (int w = 0; w < words; ++w) {
            char *const to = chunk + 4 * w;
            if (alone & 2u << 3 * w) __stcs(reinterpret_cast<uint32_t *>(to), v[w]);
            if constexpr (Case::size == 2) {
                bits *const of = reinterpret_cast<bits *>(to);
                if (alone & 4u << 3 * w) __stcs(of, static_cast<bits>(v[w]));
                if (alone & 8u << 3 * w) __stcs(of + 1, static_cast<bits>(v[w] >> 16));
            }
        }
    }
}

} // namespace plait::impl::cuda
