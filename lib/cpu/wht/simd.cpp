// wht.simd: y = scale * H * x per row; rows of n = 2^b contiguous elements, natural order.
//   Blocking  blocks of wht_simd_l1_bytes in a few sweeps over L1 (3 stages and the lane stages,
//             then up to 4 stages a sweep), joined recursively by sweeps of up to 3 stages, so that
//             each sweep runs in the smallest cache that holds it. 8 rows at power-of-two distances
//             fill the ways of one L1 set: more stages at once would evict each other.
//   Threads   over rows; where there are fewer rows than threads, over blocks and then columns.
//   Numbers   f32 for f16, bf16 and f32, one rounding (nearest even) at the store; f64; complex as
//             pairs; integers modulo 2^w. Bits ascend: same result for every level and team.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/cpu/wht/simd.cpp"
#include "lib/cpu/simd_targets.h"
#include "lib/cpu/wht/simd_args.h"

#include <algorithm>
#include <cstring>
#include <hwy/foreach_target.h> // IWYU pragma: keep
#include <hwy/highway.h>

#include "lib/cpu/wht/simd_convert-inl.h"
#include "lib/cpu/wht/simd_registers-inl.h"

#ifndef PLAIT_LIB_CPU_WHT_SIMD_ONCE
#    define PLAIT_LIB_CPU_WHT_SIMD_ONCE
namespace plait::impl::cpu {

/// One thread's place in the team that shares the work.
struct simd_team {
    int tid, size;
    void (*barrier)();

    int64_t begin(int64_t count, int id) const {
        if (size == 1) return id * count; // no divisions for a short row of a single thread
        return count / size * id + std::min<int64_t>(count % size, id);
    }
    int64_t begin(int64_t count) const { return begin(count, tid); }
    int64_t end(int64_t count) const { return begin(count, tid + 1); }
    void wait() const {
        if (size > 1) barrier();
    }
};

inline int log2_floor(int64_t n) {
    return 63 - static_cast<int>(hwy::Num0BitsAboveMS1Bit_Nonzero64(static_cast<uint64_t>(n)));
}

/// Stages that the topmost of several sweeps does to join 2^c blocks.
inline int join_bits(int c) {
    const int sweeps = (c + wht_simd_join_bits - 1) / wht_simd_join_bits;
    return (c + sweeps - 1) / sweeps;
}

} // namespace plait::impl::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {

template <typename T> constexpr int l1_bits = log2_ct(wht_simd_l1_bytes / int64_t{sizeof(T)});

/// The scale, and whether this is the sweep that applies it. `pairs`: the lowest bit tells real
/// from imaginary parts and has no stage.
template <typename T> struct scaling {
    T factor;
    bool apply;
    bool pairs;
    scaling unless(bool later) const { return {factor, apply && !later, pairs}; }
};

/// A transform of a few elements without vectors: what is left of an incomplete one.
template <typename T, int bits, bool scaled>
HWY_INLINE void one_by_one(const T *src, T *dst, T factor, bool pairs) {
    using sum = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    using arithmetic = typename std::conditional_t<std::is_integral_v<T>, sum, T>; // no overflow
    constexpr int n = 1 << bits;
    arithmetic v[n];
    for (int j = 0; j < n; ++j) v[j] = static_cast<arithmetic>(src[j]);
    for (int h = pairs ? 2 : 1; h < n; h *= 2)
        for (int j = 0; j < n; ++j)
            if ((j & h) == 0) {
                const arithmetic a = v[j], b = v[j + h];
                v[j] = a + b;
                v[j + h] = a - b;
            }
    for (int j = 0; j < n; ++j)
        dst[j] = scaled ? static_cast<T>(v[j] * factor) : static_cast<T>(v[j]);
}

/// The lowest in_lanes + bits stages of `total` contiguous elements. Where a transform is shorter
/// than a vector, the last vector may be incomplete.
template <typename T, int in_lanes, int bits, bool scaled>
void first_sweep(const T *src, T *dst, int64_t total, T factor, bool pairs) {
    constexpr int64_t group = lanes<T> << bits;
    const lane_signs<T> signs;
    const vec<T> scale = hn::Set(tag<T>(), factor);
    int64_t i = 0;
    for (; i + group <= total; i += group) {
        registers<T, bits> r;
        r.read(src + i, lanes<T>);
        if constexpr (in_lanes > 0)
            if (!pairs) r.template lane_stage<0>(signs);
        r.template lane_stages<in_lanes, 1>(signs);
        if (lane_bits<T> == 0 && pairs) // the lowest bit is between vectors of one lane
            r.template stages<1>();
        else
            r.stages();
        r.template store<scaled>(dst + i, lanes<T>, scale);
    }
    if constexpr (bits == 0 && in_lanes < lane_bits<T>)
        for (; i < total; i += int64_t{1} << in_lanes)
            one_by_one<T, in_lanes, scaled>(src + i, dst + i, factor, pairs);
}

/// In place: `bits` stages between neighbours of `rows` rows that lie `stride` apart.
template <typename T, int bits, bool scaled>
void sweep(T *data, int64_t stride, int64_t rows, int64_t width, T factor) {
    const vec<T> scale = hn::Set(tag<T>(), factor);
    for (int64_t row = 0; row < rows; row += int64_t{1} << bits) {
        T *at = data + row * stride;
        for (int64_t j = 0; j < width; j += lanes<T>) {
            registers<T, bits> r;
            r.read(at + j, stride);
            r.stages();
            r.template store<scaled>(at + j, stride, scale);
        }
    }
}

// From run-time numbers of stages to the instances above.

template <typename T, int in_lanes, int bits>
void first_sweep(const T *src, T *dst, int64_t total, scaling<T> s) {
    if constexpr (!std::is_integral_v<T>)
        if (s.apply)
            return first_sweep<T, in_lanes, bits, true>(src, dst, total, s.factor, s.pairs);
    first_sweep<T, in_lanes, bits, false>(src, dst, total, s.factor, s.pairs);
}

template <typename T, int in_lanes = 0>
void lane_sweep(int b, const T *src, T *dst, int64_t total, scaling<T> s) {
    if (b == in_lanes) return first_sweep<T, in_lanes, 0>(src, dst, total, s);
    if constexpr (in_lanes < lane_bits<T>) lane_sweep<T, in_lanes + 1>(b, src, dst, total, s);
}

template <typename T, int bits = 1>
void block_sweep(int b, const T *src, T *dst, int64_t total, scaling<T> s) {
    if (b == bits) return first_sweep<T, lane_bits<T>, bits>(src, dst, total, s);
    if constexpr (bits < 3) block_sweep<T, bits + 1>(b, src, dst, total, s);
}

template <typename T, int bits = 1>
void sweep(int b, T *data, int64_t stride, int64_t rows, int64_t width, scaling<T> s) {
    if (b == bits) {
        if constexpr (!std::is_integral_v<T>)
            if (s.apply) return sweep<T, bits, true>(data, stride, rows, width, s.factor);
        return sweep<T, bits, false>(data, stride, rows, width, s.factor);
    }
    if constexpr (bits < 4) sweep<T, bits + 1>(b, data, stride, rows, width, s);
}

/// `total` contiguous elements, transforms of 2^b each; all of it fits L1.
template <typename T> void l1_block(const T *src, T *dst, int b, int64_t total, scaling<T> s) {
    int left = b - lane_bits<T>;
    if (left <= 0) return lane_sweep<T>(b, src, dst, total, s);
    int now = left == 4 ? 2 : std::min(left, 3); // 2 + 2 is faster than 3 + 1
    left -= now;
    block_sweep<T>(now, src, dst, total, s.unless(left > 0));
    for (int64_t h = lanes<T> << now; left > 0; h <<= now) {
        now = left / ((left + 3) / 4);
        left -= now;
        sweep<T>(now, dst, h, total / h, h, s.unless(left > 0));
    }
}

/// Rows whose type is that of the arithmetic: the first sweep reads X, all else happens in Y.
template <typename T> struct plain_row {
    using type = T;
    const T *x;
    T *data;

    static constexpr int64_t piece = int64_t{1} << 40; ///< columns that one sweep may take
    void block(int64_t at, int b, scaling<T> s) const {
        l1_block<T>(x + at, data + at, b, int64_t{1} << b, s);
    }
    void store(int64_t, int64_t) const {}
};

/// Rows that are converted on their way into and out of a buffer of f32.
struct converted_row {
    using type = float;
    const char *x;
    char *y;
    float *data;
    scalar x_type, y_type;

    static constexpr int64_t piece = 256; ///< 8 rows of it are stored while they are in L1

    void block(int64_t at, int b, scaling<float> s) const {
        convert::load_row(x_type, x + at * scalar_bytes(x_type), data + at, int64_t{1} << b);
        l1_block<float>(data + at, data + at, b, int64_t{1} << b, s);
    }
    void store(int64_t at, int64_t count) const {
        convert::store_row(y_type, data + at, y + at * scalar_bytes(y_type), count);
    }
};

/// `bits` stages between 2^bits rows `stride` apart, for `width` columns from `at` on.
template <typename Row>
void join(const Row &row, int64_t at, int64_t stride, int bits, int64_t width,
          scaling<typename Row::type> s, bool last) {
    using T = typename Row::type;
    const int64_t rows = int64_t{1} << bits;
    for (int64_t j = 0; j < width; j += Row::piece) {
        const int64_t now = std::min(width - j, Row::piece);
        sweep<T>(bits, row.data + at + j, stride, rows, now, s);
        if (last)
            for (int64_t r = 0; r < rows; ++r) row.store(at + j + r * stride, now);
    }
}

/// The lowest b stages of the 2^b elements from `at` on, by one thread. `last`: they are all.
template <typename Row>
void part(const Row &row, int64_t at, int b, scaling<typename Row::type> s, bool last) {
    constexpr int leaf = l1_bits<typename Row::type>;
    if (b <= leaf) {
        row.block(at, b, s);
        if (last) row.store(at, int64_t{1} << b);
        return;
    }
    const int bits = join_bits(b - leaf);
    const int64_t stride = int64_t{1} << (b - bits);
    for (int64_t r = 0; r < int64_t{1} << bits; ++r)
        part(row, at + r * stride, b - bits, s.unless(true), false);
    join(row, at, stride, bits, stride, s, last);
}

/// A whole row by a team: blocks of single threads, then columns with barriers between sweeps.
template <typename Row>
void team_row(const Row &row, int b, simd_team team, scaling<typename Row::type> s) {
    constexpr int leaf = l1_bits<typename Row::type>;
    constexpr int64_t unit = 64; // columns: whole cache lines, and vectors of every level
    // At least four blocks per thread even out what a division without rest would not.
    int base = team.size == 1 ? b : std::max(std::min(b, leaf), b - 3 - log2_floor(team.size));
    const int64_t blocks = int64_t{1} << (b - base);
    for (int64_t i = team.begin(blocks); i < team.end(blocks); ++i)
        part(row, i << base, base, s.unless(base < b), base == b);
    while (base < b) {
        team.wait();
        // Ascending levels: the first takes the rest of the division.
        const int sweeps = (b - base + wht_simd_join_bits - 1) / wht_simd_join_bits;
        const int bits = (b - base) / sweeps;
        const int64_t stride = int64_t{1} << base;
        const int64_t units = int64_t{1} << (b - bits);
        const int64_t end = team.end(units / unit) * unit;
        for (int64_t i = team.begin(units / unit) * unit; i < end;) {
            const int64_t column = i % stride;
            const int64_t width = std::min(end - i, stride - column);
            join(row, (i / stride << (base + bits)) + column, stride, bits, width,
                 s.unless(base + bits < b), base + bits == b);
            i += width;
        }
        base += bits;
    }
}

/// Rows shorter than a vector with gaps between them: packed into a small buffer and back.
template <typename T>
void gapped_short_rows(const T *src, int64_t src_stride, T *dst, int64_t dst_stride, int b,
                       int64_t rows, scaling<T> s) {
    constexpr int64_t room = 1024;
    HWY_ALIGN T packed[room];
    const int64_t n = int64_t{1} << b;
    for (int64_t r = 0; r < rows;) {
        const int64_t now = std::min(rows - r, room >> b);
        for (int64_t i = 0; i < now; ++i)
            for (int64_t j = 0; j < n; ++j) packed[i * n + j] = src[(r + i) * src_stride + j];
        l1_block<T>(packed, packed, b, now * n, s);
        for (int64_t i = 0; i < now; ++i)
            for (int64_t j = 0; j < n; ++j) dst[(r + i) * dst_stride + j] = packed[i * n + j];
        r += now;
    }
}

/// Rows for all threads together: those left over when each has as many rows of its own, unless a
/// row is so short that barriers cost more than they gain.
inline int64_t shared_rows(int64_t rows, int b, int leaf, simd_team team) {
    return team.size > 1 && b >= leaf + 3 ? rows % team.size : 0;
}

template <typename T>
void plain_rows(const wht_simd_args &elements, simd_team team, int parts = 1) {
    wht_simd_args a = elements;
    a.n *= parts;
    a.x_row_stride *= parts;
    a.y_row_stride *= parts;
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const int b = log2_floor(a.n);
    const scaling<T> s{static_cast<T>(a.scale), a.scale != 1, parts == 2};
    const int64_t own = a.rows - shared_rows(a.rows, b, l1_bits<T>, team);
    const int64_t begin = team.begin(own), end = team.end(own);
    const bool packed = a.rows == 1 || (a.x_row_stride == a.n && a.y_row_stride == a.n);
    if (packed && b <= l1_bits<T>) {
        const int64_t chunk = int64_t{1} << l1_bits<T>;
        for (int64_t i = begin << b; i < end << b; i += chunk)
            l1_block<T>(x + i, y + i, b, std::min(chunk, (end << b) - i), s);
        return;
    }
    if (b < lane_bits<T>)
        return gapped_short_rows<T>(x + begin * a.x_row_stride, a.x_row_stride,
                                    y + begin * a.y_row_stride, a.y_row_stride, b, end - begin, s);
    for (int64_t r = begin; r < end; ++r)
        part(plain_row<T>{x + r * a.x_row_stride, y + r * a.y_row_stride}, 0, b, s, true);
    for (int64_t r = own; r < a.rows; ++r)
        team_row(plain_row<T>{x + r * a.x_row_stride, y + r * a.y_row_stride}, b, team, s);
}

/// f16, bf16 and f32 in any mixture.
void converted_rows(const wht_simd_args &a, simd_team team) {
    const wht_simd_scratch layout = wht_simd_scratch_layout(a.x_type, a.y_type, a.n);
    const int64_t x_size = scalar_bytes(a.x_type), y_size = scalar_bytes(a.y_type);
    const char *x = static_cast<const char *>(a.x);
    char *y = static_cast<char *>(a.y);
    const int b = log2_floor(a.n);
    const scaling<float> s{static_cast<float>(a.scale), a.scale != 1, false};
    float *buffer = reinterpret_cast<float *>(static_cast<char *>(a.scratch) +
                                              (layout.shared ? 0 : layout.buffer_bytes * team.tid));
    const auto row = [&](int64_t r) {
        return converted_row{x + r * a.x_row_stride * x_size, y + r * a.y_row_stride * y_size,
                             buffer, a.x_type, a.y_type};
    };
    if (layout.shared) {
        for (int64_t r = 0; r < a.rows; ++r) {
            team_row(row(r), b, team, s);
            team.wait(); // the buffer is free for the next row
        }
        return;
    }
    const int64_t begin = team.begin(a.rows), end = team.end(a.rows);
    if (a.rows > 1 && (a.x_row_stride != a.n || a.y_row_stride != a.n || b > l1_bits<float>)) {
        for (int64_t r = begin; r < end; ++r) part(row(r), 0, b, s, true);
        return;
    }
    const int64_t room = std::max<int64_t>(1, int64_t{1} << l1_bits<float> >> b);
    for (int64_t r = begin; r < end; r += room) {
        const int64_t count = std::min(end - r, room) << b;
        const converted_row first = row(r);
        if (b > l1_bits<float>) {
            part(first, 0, b, s, true);
            continue;
        }
        convert::load_row(a.x_type, first.x, buffer, count);
        l1_block<float>(buffer, buffer, b, count, s);
        first.store(0, count);
    }
}

void wht_simd_part(const wht_simd_args &a, simd_team team) {
    if (wht_simd_converts(a.x_type, a.y_type)) return converted_rows(a, team);
    switch (a.x_type) {
    case scalar::f32: return plain_rows<float>(a, team);
    case scalar::f64: return plain_rows<double>(a, team);
    case scalar::c64: return plain_rows<float>(a, team, 2);
    case scalar::c128: return plain_rows<double>(a, team, 2);
    case scalar::i32: return plain_rows<int32_t>(a, team);
    case scalar::i64: return plain_rows<int64_t>(a, team);
    default: return;
    }
}

} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#    include "lib/cpu/wht/wht_kernels.h"

#    include <omp.h>

namespace plait::impl::cpu {
namespace {

HWY_EXPORT(wht_simd_part);

void team_barrier() {
#    pragma omp barrier
}

} // namespace

void wht_simd(const void *arguments, int threads) {
    const wht_simd_args &a = *static_cast<const wht_simd_args *>(arguments);
    const auto run = HWY_DYNAMIC_DISPATCH(wht_simd_part);
    if (threads <= 1) return run(a, simd_team{0, 1, nullptr});
#    pragma omp parallel num_threads(threads)
    run(a, simd_team{omp_get_thread_num(), omp_get_num_threads(), team_barrier});
}

} // namespace plait::impl::cpu
#endif
