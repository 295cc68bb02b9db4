// wht.any: one pass of any transform, of any type and layout. A tile of up to 2^14 elements goes to
// shared memory (converted; SIGNS or conj(DIAG) of the first pass), through up to 14 stages and one
// factor matrix there, four stages in registers at a time, and from there to its place (order,
// DIAG or SIGNS, scale and rounding of the last pass). any_layout.h says what a tile is.
//   Traffic    each element once in, once out. Lanes follow the smallest strides of either side;
//              the planner puts 32 of them into every tile where there are as many.
//   Offsets    sums of the entries of two small tables, made once for a block, and of what one warp
//              finds for each tile: 64 bits everywhere. Blocks walk over tiles.
//   Numbers    the accumulate type in memory too between passes; one rounding at the last store.
//   Overflow   additions and stores that do not fit raise the flag, sums of a factor on their end.
//   In place   works where a tile is written to the elements that it was read from.
#pragma once

#include "lib/cuda/wht/any_number.cuh"

namespace plait::impl::cuda {

/// What the tile bits that are set in `i` add on a side, the lowest by stride first; `first` is the
/// one that bit 0 of `i` stands for. Bits beyond the last are the factor index.
template <int Side>
__device__ __forceinline__ wht_any_entry wht_any_entry_of(const wht_any_args &a, int first,
                                                          uint32_t i, int64_t &extra) {
    wht_any_entry e{0, 0, 0};
    extra = 0;
    for (int b = first; b < a.bits; ++b, i >>= 1) {
        const int bit = a.side[Side][b];
        if ((i & 1u) == 0) continue;
        e.slot |= 1u << bit;
        if (Side == wht_any_out && a.bit[bit].axis >= 0) continue;
        e.offset += a.bit[bit].stride[Side].data;
        extra += a.bit[bit].stride[Side].extra;
    }
    e.slot |= i << a.bits;
    e.word = wht_any_word(e.slot);
    e.offset += i * a.factor_stride[Side].data;
    extra += i * a.factor_stride[Side].extra;
    return e;
}

/// Bits of the row of an ordered axis for the same index.
__device__ __forceinline__ int64_t wht_any_rows_of(const wht_any_args &a, int axis, int first,
                                                   uint32_t i) {
    int64_t row = 0;
    for (int b = first; b < a.bits; ++b, i >>= 1) {
        const int bit = a.side[wht_any_out][b];
        if ((i & 1u) != 0 && a.bit[bit].axis == axis) row ^= a.bit[bit].row;
    }
    return row;
}

struct wht_any_tables {
    char *base;
    wht_any_memory at;
    int low_bits, low, entries;

    __device__ __forceinline__ wht_any_tables(const wht_any_args &a, char *shared, int number_bytes)
        : base(shared), at(wht_any_memory_of(a, number_bytes)), low_bits(wht_any_split(a.bits)),
          low(1 << low_bits), entries(wht_any_entries(a)) {}

    template <class E> __device__ __forceinline__ E *part(int offset) const {
        return reinterpret_cast<E *>(base + offset);
    }
    /// The high part of a table stands behind the low one.
    template <class E> __device__ __forceinline__ E low_part(int offset, uint32_t i) const {
        return part<E>(offset)[i & static_cast<uint32_t>(low - 1)];
    }
    template <class E> __device__ __forceinline__ E high_part(int offset, uint32_t i) const {
        return part<E>(offset)[low + (i >> low_bits)];
    }

    template <int Side> __device__ __forceinline__ void fill_side(const wht_any_args &a) const {
        for (int n = static_cast<int>(threadIdx.x); n < entries; n += wht_any_threads) {
            const bool high = n >= low;
            int64_t extra;
            const wht_any_entry e = wht_any_entry_of<Side>(
                a, high ? low_bits : 0, static_cast<uint32_t>(high ? n - low : n), extra);
            part<wht_any_entry>(at.entries[Side])[n] = e;
            if (a.extra[Side] != wht_any_extra::none) part<int64_t>(at.extras[Side])[n] = extra;
        }
    }

    __device__ __forceinline__ void fill(const wht_any_args &a) const {
        fill_side<wht_any_in>(a);
        fill_side<wht_any_out>(a);
        for (int n = static_cast<int>(threadIdx.x); n < a.axes * entries; n += wht_any_threads) {
            const int axis = n / entries, k = n % entries;
            const bool high = k >= low;
            part<int64_t>(at.rows)[n] = wht_any_rows_of(a, axis, high ? low_bits : 0,
                                                        static_cast<uint32_t>(high ? k - low : k));
        }
        if (a.factor == 1) return;
        const int count = (a.factor + 7) / 8 * a.factor;
        for (int n = static_cast<int>(threadIdx.x); n < count; n += wht_any_threads) {
            const int block = n / a.factor, j = n % a.factor;
            uint32_t bits = 0;
            for (int q = 0; q < 8 && 8 * block + q < a.factor; ++q)
                bits |= static_cast<uint32_t>(a.minus[8 * block + q] >> j & 1u) << q;
            part<uint8_t>(at.signs)[n] = static_cast<uint8_t>(bits);
        }
    }
};

/// By one warp: a lane has a digit, or two.
__device__ __forceinline__ void wht_any_find(const wht_any_args &a, int64_t tile,
                                             wht_any_place &place) {
    const int lane = static_cast<int>(threadIdx.x);
    int64_t sum[4] = {0, 0, 0, 0};
    for (int d = lane; d < a.digits; d += 32) {
        const wht_any_digit &digit = a.digit[d];
        const int64_t i = tile / digit.below % digit.length;
        if (digit.chunk >= 0) {
            const wht_any_chunk &c = a.chunk[digit.chunk];
            place.limit[digit.chunk] = c.length - (i << c.bits);
        }
        sum[0] += i * digit.stride[wht_any_in].data;
        sum[1] += i * digit.stride[wht_any_in].extra;
        if (digit.axis >= 0) continue; // place.row has it
        sum[2] += i * digit.stride[wht_any_out].data;
        sum[3] += i * digit.stride[wht_any_out].extra;
    }
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        for (int step = 16; step > 0; step /= 2)
            sum[s] += __shfl_xor_sync(0xffffffffu, sum[s], step);
    }
    if (lane == 0) {
        place.base[wht_any_in] = {sum[0], sum[1]};
        place.base[wht_any_out] = {sum[2], sum[3]};
    }
    if (lane < a.axes) {
        int64_t natural = 0;
        for (int d = 0; d < a.digits; ++d) {
            const wht_any_digit &digit = a.digit[d];
            if (digit.axis == lane) natural |= tile / digit.below % digit.length << digit.low;
        }
        place.row[lane] = wht_any_row(a.order, natural, a.axis[lane].bits);
    }
}

/// The n-th access of a tile on a side, for the thread of n modulo the threads: the low part of its
/// index stays, but where the factor comes first.
template <int Side> struct wht_any_walk {
    const wht_any_args &a;
    const wht_any_tables &t;
    wht_any_entry fixed;

    __device__ __forceinline__ wht_any_walk(const wht_any_args &args, const wht_any_tables &tables)
        : a(args), t(tables),
          fixed(tables.low_part<wht_any_entry>(tables.at.entries[Side], threadIdx.x)) {}

    __device__ __forceinline__ uint32_t index(int n) const {
        const auto i = static_cast<uint32_t>(n);
        if (!a.factor_first[Side]) return i;
        const auto m = static_cast<uint32_t>(a.factor);
        return (i % m) << a.bits | i / m;
    }
    __device__ __forceinline__ wht_any_entry entry(uint32_t index) const {
        wht_any_entry e = t.high_part<wht_any_entry>(t.at.entries[Side], index);
        wht_any_entry low = fixed;
        if (a.factor_first[Side]) low = t.low_part<wht_any_entry>(t.at.entries[Side], index);
        e.offset += low.offset;
        e.slot += low.slot;
        e.word += low.word;
        return e;
    }
    __device__ __forceinline__ int64_t extra(uint32_t index) const {
        return t.low_part<int64_t>(t.at.extras[Side], index) +
               t.high_part<int64_t>(t.at.extras[Side], index);
    }
};

/// The chunk number in a slot is below its end.
__device__ __forceinline__ bool wht_any_before_end(const wht_any_chunk &c, uint32_t slot,
                                                   int64_t limit) {
    return (slot >> c.low & ((1u << c.bits) - 1u)) < limit;
}
__device__ __forceinline__ bool wht_any_inside(const wht_any_args &a, const wht_any_place &place,
                                               uint32_t slot) {
    bool inside = true;
    if (a.chunks > 0) inside = wht_any_before_end(a.chunk[0], slot, place.limit[0]);
    if (a.chunks > 1) inside = inside && wht_any_before_end(a.chunk[1], slot, place.limit[1]);
    return inside;
}

/// Accesses of a thread on their way at a time.
constexpr int wht_any_batch = 4;

template <class Stored, class T>
__device__ __forceinline__ void wht_any_load(const wht_any_args &a, const wht_any_tables &t,
                                             const wht_any_place &place, T *words, bool &lost) {
    const int slots = wht_any_slots(a);
    constexpr int side = wht_any_in;
    const bool paired = reinterpret_cast<uintptr_t>(a.x) % sizeof(T) == 0;
    const int64_t base = place.base[side].data;
    const wht_any_walk<side> walk(a, t);
    for (int from = static_cast<int>(threadIdx.x); from < slots;
         from += wht_any_batch * wht_any_threads) {
        T v[wht_any_batch];
        uint32_t word[wht_any_batch];
        bool inside[wht_any_batch];
#pragma unroll
        for (int q = 0; q < wht_any_batch; ++q) {
            const int n = from + q * wht_any_threads;
            v[q] = T{};
            word[q] = 0;
            inside[q] = false;
            if (n >= slots) continue;
            const wht_any_entry e = walk.entry(walk.index(n));
            word[q] = e.word;
            inside[q] = wht_any_inside(a, place, e.slot);
            if (inside[q]) v[q] = Stored::load(a.x, base + e.offset, paired);
        }
#pragma unroll
        for (int q = 0; q < wht_any_batch; ++q) {
            const int n = from + q * wht_any_threads;
            if (n >= slots) continue;
            if (a.extra[side] != wht_any_extra::none && inside[q]) {
                const int64_t i = place.base[side].extra + walk.extra(walk.index(n));
                if (a.extra[side] == wht_any_extra::diag) {
                    v[q] = wht_times_diag(v[q], a.diag_type, a.diag, i, a.negate_diag);
                } else if (wht_sign_at(a.signs, i)) {
                    v[q] = wht_negative(v[q], lost);
                }
            }
            words[word[q]] = v[q];
        }
    }
}

template <class Stored, class T>
__device__ __forceinline__ void wht_any_store(const wht_any_args &a, const wht_any_tables &t,
                                              const wht_any_place &place, const T *words,
                                              bool &lost) {
    const int slots = wht_any_slots(a);
    constexpr int side = wht_any_out;
    const bool paired = reinterpret_cast<uintptr_t>(a.y) % sizeof(T) == 0;
    const wht_any_walk<side> walk(a, t);
    for (int n = static_cast<int>(threadIdx.x); n < slots; n += wht_any_threads) {
        const uint32_t index = walk.index(n);
        const wht_any_entry e = walk.entry(index);
        if (!wht_any_inside(a, place, e.slot)) continue;
        const bool extra = a.extra[side] != wht_any_extra::none;
        int64_t offset = place.base[side].data + e.offset;
        int64_t at = extra ? place.base[side].extra + walk.extra(index) : 0;
        for (int x = 0; x < a.axes; ++x) {
            const int rows = t.at.rows + x * t.entries * static_cast<int>(sizeof(int64_t));
            const int64_t row =
                place.row[x] ^ t.low_part<int64_t>(rows, index) ^ t.high_part<int64_t>(rows, index);
            offset += row * a.axis[x].stride.data;
            at += row * a.axis[x].stride.extra;
        }
        T v = words[e.word];
        if (a.extra[side] == wht_any_extra::diag) {
            v = wht_times_diag(v, a.diag_type, a.diag, at, a.negate_diag);
        } else if (extra && wht_sign_at(a.signs, at)) {
            v = wht_negative(v, lost);
        }
        Stored::store(a.y, offset, wht_times(v, a.scale), paired, lost);
    }
}

/// Stages on the bits p[0], p[1], ... of the slots; `sorted` has the same bits in ascending order.
template <int R, class T>
__device__ __forceinline__ void wht_any_stages(int slots, const uint8_t *p, const uint8_t *sorted,
                                               T *words, bool &lost) {
    uint32_t step[R];
#pragma unroll
    for (int b = 0; b < R; ++b) step[b] = wht_any_word(1u << p[b]);
    for (int g = static_cast<int>(threadIdx.x); g < slots >> R; g += wht_any_threads) {
        auto slot = static_cast<uint32_t>(g);
#pragma unroll
        for (int b = 0; b < R; ++b) {
            const uint32_t below = (1u << sorted[b]) - 1u;
            slot = (slot & ~below) << 1 | (slot & below);
        }
        T *base = words + wht_any_word(slot);
        T v[1 << R];
#pragma unroll
        for (int j = 0; j < (1 << R); ++j) {
            uint32_t at = 0;
#pragma unroll
            for (int b = 0; b < R; ++b) at += j >> b & 1 ? step[b] : 0u;
            v[j] = base[at];
        }
#pragma unroll
        for (int b = 0; b < R; ++b) {
#pragma unroll
            for (int j = 0; j < (1 << R); ++j)
                if (!(j >> b & 1)) wht_butterfly(v[j], v[j | 1 << b], lost);
        }
#pragma unroll
        for (int j = 0; j < (1 << R); ++j) {
            uint32_t at = 0;
#pragma unroll
            for (int b = 0; b < R; ++b) at += j >> b & 1 ? step[b] : 0u;
            base[at] = v[j];
        }
    }
    __syncthreads(); // the words of this round are written
}

template <class T>
__device__ __forceinline__ void wht_any_rounds(const wht_any_args &a, int first, int last, T *words,
                                               bool &lost) {
    const int slots = wht_any_slots(a);
    for (; last - first >= wht_any_round; first += wht_any_round)
        wht_any_stages<4>(slots, a.stage + first, a.sorted + first, words, lost);
    if (last - first == 3) wht_any_stages<3>(slots, a.stage + first, a.sorted + first, words, lost);
    if (last - first == 2) wht_any_stages<2>(slots, a.stage + first, a.sorted + first, words, lost);
    if (last - first == 1) wht_any_stages<1>(slots, a.stage + first, a.sorted + first, words, lost);
}

/// The factor matrix: a thread has eight rows of one column, so that it reads each word of the
/// column once for eight results. Columns in turn, as many as the block has threads for.
template <class T>
__device__ __forceinline__ void wht_any_factor(int m, int bits, const uint8_t *signs, T *words,
                                               bool &lost) {
    const int columns = 1 << bits;
    const int blocks = (m + 7) / 8;
    int at_a_time = wht_any_threads;
    while (at_a_time * blocks > wht_any_threads) at_a_time /= 2;
    const int block = static_cast<int>(threadIdx.x) / at_a_time;
    for (int first = 0; first < columns; first += at_a_time) {
        const int column = first + static_cast<int>(threadIdx.x) % at_a_time;
        const bool active = block < blocks && column < columns;
        wht_sum<T> sum[8];
        if (active) {
            for (int j = 0; j < m; ++j) {
                const T v = words[wht_any_word(static_cast<uint32_t>(j << bits | column))];
                const uint32_t minus = signs[block * m + j];
#pragma unroll
                for (int q = 0; q < 8; ++q) sum[q].add(v, minus >> q & 1u);
            }
        }
        __syncthreads(); // these columns are read
        if (active) {
#pragma unroll
            for (int q = 0; q < 8; ++q) {
                const int k = 8 * block + q;
                if (k < m)
                    words[wht_any_word(static_cast<uint32_t>(k << bits | column))] =
                        sum[q].result(lost);
            }
        }
    }
    __syncthreads(); // all columns are written
}

/// Registers: 80 a thread, 128 for pairs.
constexpr int wht_any_blocks(wht_any_number n) {
    return n == wht_any_number::c64 || n == wht_any_number::c128 ? 2 : 3;
}

template <wht_any_number N>
__global__ void __launch_bounds__(wht_any_threads, wht_any_blocks(N))
    wht_any(const __grid_constant__ wht_any_args a) {
    using T = typename wht_any_type<N>::type;
    extern __shared__ __align__(16) char shared[];
    __shared__ wht_any_place place;
    T *words = reinterpret_cast<T *>(shared);
    const wht_any_tables tables(a, shared, sizeof(T));
    bool lost = false;
    tables.fill(a);
    for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        if (threadIdx.x < 32) wht_any_find(a, tile, place);
        __syncthreads(); // place and tables are written
        wht_any_types<T>::pick(a.type[wht_any_in], [&](auto stored_as) {
            wht_any_load<decltype(stored_as)>(a, tables, place, words, lost);
        });
        __syncthreads(); // the tile is loaded
        wht_any_rounds(a, 0, a.before, words, lost);
        if (a.factor > 1)
            wht_any_factor(a.factor, a.bits, tables.part<uint8_t>(tables.at.signs), words, lost);
        wht_any_rounds(a, a.before, a.stages, words, lost);
        wht_any_types<T>::pick(a.type[wht_any_out], [&](auto stored_as) {
            wht_any_store<decltype(stored_as)>(a, tables, place, words, lost);
        });
        __syncthreads(); // place and words are read
    }
    if constexpr (wht_any_is_checked(N)) {
        if (lost) atomicOr(a.overflow, 1);
    }
}

} // namespace plait::impl::cuda
