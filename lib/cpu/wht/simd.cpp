// wht.simd: y = scale * H * x per row; rows of n = 2^b contiguous elements, natural order.
//   Blocking  L1 block: lane stages and up to 2^register_bits vectors per sweep. Higher bits join
//             blocks as columns: up to 2^register_bits rows straight, more of them in tiles that
//             are gathered, transformed and scattered within a cache.
//   Traffic   one read and one write up to wht_simd_l2_bytes, one more of each per 10 bits above.
//   Threads   over rows; where there are fewer rows than threads, over blocks and over columns.
//   Numbers   f32 for f16, bf16 and f32, one rounding (nearest even) at the store; f64; integers
//             modulo 2^w. Stages run in ascending bit order: same bits for every level and team.
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
        return count / size * id + std::min<int64_t>(count % size, id);
    }
    int64_t begin(int64_t count) const { return begin(count, tid); }
    int64_t end(int64_t count) const { return begin(count, tid + 1); }
    void wait() const {
        if (size > 1) barrier();
    }
};

inline int log2_floor(int64_t n) {
    int b = 0;
    while (n >> (b + 1) != 0) ++b;
    return b;
}

} // namespace plait::impl::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {

template <typename T> constexpr int l1_bits = log2_ct(wht_simd_l1_bytes / int64_t{sizeof(T)});
template <typename T> constexpr int l2_bits = log2_ct(wht_simd_l2_bytes / int64_t{sizeof(T)});
template <typename T> constexpr int64_t tile_width = wht_simd_tile_width_bytes / int64_t{sizeof(T)};
template <typename T>
constexpr int64_t tile_stride = wht_simd_tile_stride_bytes / int64_t{sizeof(T)};

/// The scale, and whether this is the pass that applies it.
template <typename T> struct scaling {
    T factor;
    bool apply;
    scaling unless(bool later) const { return {factor, apply && !later}; }
};

/// The lowest in_lanes + bits stages of `total` contiguous elements. Where a transform is shorter
/// than a vector, the last vector may be incomplete.
template <typename T, int in_lanes, int bits, bool scaled>
void first_pass(const T *src, T *dst, int64_t total, T factor) {
    constexpr int64_t group = lanes<T> << bits;
    const lane_signs<T> signs;
    const vec<T> scale = hn::Set(tag<T>(), factor);
    int64_t i = 0;
    for (; i + group <= total; i += group) {
        registers<T, bits> r;
        r.template load<in_lanes>(src + i, lanes<T>, signs);
        r.template store<scaled>(dst + i, lanes<T>, scale);
    }
    if constexpr (bits == 0) {
        if (i == total) return;
        HWY_ALIGN T last[group] = {};
        for (int64_t j = i; j < total; ++j) last[j - i] = src[j];
        registers<T, 0> r;
        r.template load<in_lanes>(last, lanes<T>, signs);
        r.template store<scaled>(last, lanes<T>, scale);
        for (int64_t j = i; j < total; ++j) dst[j] = last[j - i];
    }
}

/// `bits` stages between rows at distances apart, 2 apart, ... where rows lie a stride apart.
template <typename T, int bits, bool scaled>
void rows_pass(const T *src, int64_t src_stride, T *dst, int64_t dst_stride, int64_t rows,
               int64_t apart, int64_t width, T factor) {
    const lane_signs<T> signs;
    const vec<T> scale = hn::Set(tag<T>(), factor);
    const int64_t src_h = src_stride * apart, dst_h = dst_stride * apart;
    for (int64_t block = 0; block < rows; block += apart << bits) {
        for (int64_t row = block; row < block + apart; ++row) {
            const T *from = src + row * src_stride;
            T *to = dst + row * dst_stride;
            for (int64_t j = 0; j < width; j += lanes<T>) {
                registers<T, bits> r;
                r.template load<0>(from + j, src_h, signs);
                r.template store<scaled>(to + j, dst_h, scale);
            }
        }
    }
}

template <typename T, int in_lanes, int bits>
void first_pass(const T *src, T *dst, int64_t total, scaling<T> s) {
    if constexpr (!std::is_integral_v<T>)
        if (s.apply) return first_pass<T, in_lanes, bits, true>(src, dst, total, s.factor);
    first_pass<T, in_lanes, bits, false>(src, dst, total, s.factor);
}

/// First pass with fewer stages than a vector has lane bits.
template <typename T, int in_lanes = 0>
void short_pass(int b, const T *src, T *dst, int64_t total, scaling<T> s) {
    if (b == in_lanes) return first_pass<T, in_lanes, 0>(src, dst, total, s);
    if constexpr (in_lanes < lane_bits<T>) short_pass<T, in_lanes + 1>(b, src, dst, total, s);
}

template <typename T, int bits = 1>
void full_pass(int b, const T *src, T *dst, int64_t total, scaling<T> s) {
    if (b == bits) return first_pass<T, lane_bits<T>, bits>(src, dst, total, s);
    if constexpr (bits < 4) full_pass<T, bits + 1>(b, src, dst, total, s);
}

template <typename T, int bits = 1>
void rows_pass(int b, const T *src, int64_t src_stride, T *dst, int64_t dst_stride, int64_t rows,
               int64_t apart, int64_t width, scaling<T> s) {
    if (b == bits) {
        if constexpr (!std::is_integral_v<T>)
            if (s.apply)
                return rows_pass<T, bits, true>(src, src_stride, dst, dst_stride, rows, apart,
                                                width, s.factor);
        return rows_pass<T, bits, false>(src, src_stride, dst, dst_stride, rows, apart, width,
                                         s.factor);
    }
    if constexpr (bits < 4)
        rows_pass<T, bits + 1>(b, src, src_stride, dst, dst_stride, rows, apart, width, s);
}

/// `total` contiguous elements that hold transforms of 2^b each; all of it fits L1.
template <typename T> void l1_block(const T *src, T *dst, int b, int64_t total, scaling<T> s) {
    int left = b - lane_bits<T>;
    if (left <= 0) return short_pass<T>(b, src, dst, total, s);
    int passes = (left + register_bits - 1) / register_bits;
    int now = left / passes;
    left -= now;
    full_pass<T>(now, src, dst, total, s.unless(left > 0));
    int64_t h = lanes<T> << now;
    while (left > 0) {
        now = left / --passes;
        left -= now;
        rows_pass<T>(now, dst, h, dst, h, total / h, 1, h, s.unless(left > 0));
        h <<= now;
    }
}

/// 2^c rows of `width` elements, a stride apart: c stages between them.
template <typename T>
void column_tile(const T *src, int64_t src_stride, T *dst, int64_t dst_stride, int c, int64_t width,
                 T *tile, scaling<T> s) {
    const int64_t rows = int64_t{1} << c;
    if (c <= register_bits)
        return rows_pass<T>(c, src, src_stride, dst, dst_stride, rows, 1, width, s);
    constexpr int64_t stride = tile_stride<T>;
    int passes = (c + register_bits - 1) / register_bits;
    const int first = c / passes;
    const int second = passes > 2 ? (c - first) / (passes - 1) : 0;
    // The first two passes stay within groups of rows that fit L1 together.
    const int64_t group = int64_t{1} << (first + second);
    const scaling<T> none = s.unless(true);
    for (int64_t row = 0; row < rows; row += group) {
        T *part = tile + row * stride;
        rows_pass<T>(first, src + row * src_stride, src_stride, part, stride, group, 1, width,
                     none);
        if (second > 0)
            rows_pass<T>(second, part, stride, part, stride, group, int64_t{1} << first, width,
                         none);
    }
    int done = first + second;
    passes -= second > 0 ? 2 : 1;
    for (; passes > 1; --passes) {
        const int now = (c - done) / passes;
        rows_pass<T>(now, tile, stride, tile, stride, rows, int64_t{1} << done, width, none);
        done += now;
    }
    rows_pass<T>(c - done, tile, stride, dst, dst_stride, rows, int64_t{1} << done, width, s);
}

/// Where results go instead of into `data`: rows of another type.
struct converted_row {
    scalar type;
    void *row; ///< null: results stay
};

/// A team's part of c stages between 2^c rows `stride` apart, in `count` matrices of that kind.
template <typename T>
void columns(T *data, int64_t stride, int c, int64_t count, T *tile, simd_team team, scaling<T> s,
             converted_row out = {scalar::none, nullptr}) {
    // Without a tile wider pieces are better: long runs for the prefetchers.
    const bool direct = c <= register_bits && out.row == nullptr;
    const int64_t width = direct ? std::min<int64_t>(stride, 4 * tile_width<T>) : tile_width<T>;
    const int64_t pieces = stride / width;
    const int64_t end = team.end(count * pieces);
    for (int64_t i = team.begin(count * pieces); i < end; ++i) {
        const int64_t at = (i / pieces * stride << c) + i % pieces * width;
        if (out.row == nullptr) {
            column_tile<T>(data + at, stride, data + at, stride, c, width, tile, s);
            continue;
        }
        if constexpr (std::is_same_v<T, float>) {
            column_tile<T>(data + at, stride, tile, tile_stride<T>, c, width, tile, s);
            char *row = static_cast<char *>(out.row) + at * scalar_bytes(out.type);
            for (int64_t r = 0; r < int64_t{1} << c; ++r)
                convert::store_row(out.type, tile + r * tile_stride<T>,
                                   row + r * stride * scalar_bytes(out.type), width);
        }
    }
}

template <typename T> void l2_block(const T *src, T *dst, int b, T *tile, scaling<T> s) {
    if (b <= l1_bits<T>) return l1_block<T>(src, dst, b, int64_t{1} << b, s);
    constexpr int64_t part = int64_t{1} << l1_bits<T>;
    for (int64_t i = 0; i < int64_t{1} << b; i += part)
        l1_block<T>(src + i, dst + i, l1_bits<T>, part, s.unless(true));
    columns<T>(dst, part, b - l1_bits<T>, 1, tile, {0, 1, nullptr}, s);
}

/// Bits of the blocks that single threads transform before the team works on columns.
template <typename T> int block_bits(int b, simd_team team) {
    if (team.size == 1) return std::min(b, l2_bits<T>);
    return std::max(l1_bits<T>, std::min(l2_bits<T>, b - 1 - log2_floor(team.size)));
}

/// The stages above the blocks, in as few levels as tiles allow.
template <typename T>
void all_columns(T *data, int b, int base, T *tile, simd_team team, scaling<T> s,
                 converted_row out) {
    int levels = (b - base + wht_simd_tile_row_bits - 1) / wht_simd_tile_row_bits;
    for (; levels > 0; --levels) {
        const int c = (b - base) / levels;
        team.wait();
        columns<T>(data, int64_t{1} << base, c, int64_t{1} << (b - base - c), tile, team,
                   s.unless(levels > 1), levels > 1 ? converted_row{scalar::none, nullptr} : out);
        base += c;
    }
}

/// A team's part of one row of one type.
template <typename T> void row(const T *src, T *dst, int b, T *tile, simd_team team, scaling<T> s) {
    const int base = block_bits<T>(b, team);
    const int64_t blocks = int64_t{1} << (b - base);
    const int64_t end = team.end(blocks);
    for (int64_t i = team.begin(blocks); i < end; ++i)
        l2_block<T>(src + (i << base), dst + (i << base), base, tile, s.unless(base < b));
    all_columns<T>(dst, b, base, tile, team, s, {scalar::none, nullptr});
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

template <typename T> T *thread_tile(const wht_simd_args &a, simd_team team) {
    const int64_t bytes = wht_simd_scratch_layout(a.x_type, a.y_type, a.n).tile_bytes;
    return reinterpret_cast<T *>(static_cast<char *>(a.scratch) + bytes * team.tid);
}

/// Rows too short to share: below this a barrier costs more than a second thread gains.
template <typename T> bool worth_sharing(int b) { return b >= l1_bits<T> + 3; }

template <typename T> void plain_rows(const wht_simd_args &a, simd_team team) {
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const int b = log2_floor(a.n);
    const scaling<T> s{static_cast<T>(a.scale), a.scale != 1};
    T *tile = thread_tile<T>(a, team);
    const simd_team alone{0, 1, nullptr};
    // Rows of threads of their own, then what is left over for all threads together.
    const int64_t shared = worth_sharing<T>(b) ? a.rows % team.size : 0;
    const int64_t begin = team.begin(a.rows - shared), end = team.end(a.rows - shared);
    const bool packed = a.rows == 1 || (a.x_row_stride == a.n && a.y_row_stride == a.n);
    if (packed && b <= l1_bits<T>) {
        const int64_t chunk = int64_t{1} << l1_bits<T>;
        for (int64_t i = begin << b; i < end << b; i += chunk)
            l1_block<T>(x + i, y + i, b, std::min(chunk, (end << b) - i), s);
    } else if (b < lane_bits<T>) {
        gapped_short_rows<T>(x + begin * a.x_row_stride, a.x_row_stride, y + begin * a.y_row_stride,
                             a.y_row_stride, b, end - begin, s);
    } else {
        for (int64_t r = begin; r < end; ++r)
            row<T>(x + r * a.x_row_stride, y + r * a.y_row_stride, b, tile, alone, s);
    }
    for (int64_t r = a.rows - shared; r < a.rows; ++r) {
        row<T>(x + r * a.x_row_stride, y + r * a.y_row_stride, b, tile, team, s);
        team.wait();
    }
}

/// f16, bf16 and f32 in any mixture: f32 in a buffer.
void converted_rows(const wht_simd_args &a, simd_team team) {
    const wht_simd_scratch layout = wht_simd_scratch_layout(a.x_type, a.y_type, a.n);
    const int64_t x_size = scalar_bytes(a.x_type), y_size = scalar_bytes(a.y_type);
    const char *x = static_cast<const char *>(a.x);
    char *y = static_cast<char *>(a.y);
    const int b = log2_floor(a.n);
    const scaling<float> s{static_cast<float>(a.scale), a.scale != 1};
    float *tile = thread_tile<float>(a, team);
    char *buffers = static_cast<char *>(a.scratch) + layout.tile_bytes * team.size;
    if (layout.buffer_shared) {
        float *buffer = reinterpret_cast<float *>(buffers);
        const int base = block_bits<float>(b, team);
        const int64_t blocks = int64_t{1} << (b - base);
        for (int64_t r = 0; r < a.rows; ++r) {
            const int64_t end = team.end(blocks);
            for (int64_t i = team.begin(blocks); i < end; ++i) {
                float *part = buffer + (i << base);
                convert::load_row(a.x_type, x + (r * a.x_row_stride + (i << base)) * x_size, part,
                                  int64_t{1} << base);
                l2_block<float>(part, part, base, tile, s.unless(base < b));
            }
            all_columns<float>(buffer, b, base, tile, team, s,
                               {a.y_type, y + r * a.y_row_stride * y_size});
            team.wait();
        }
        return;
    }
    float *buffer = reinterpret_cast<float *>(buffers + layout.buffer_bytes * team.tid);
    const int64_t begin = team.begin(a.rows), end = team.end(a.rows);
    const int64_t room = std::max<int64_t>(1, (layout.buffer_bytes / int64_t{sizeof(float)}) >> b);
    const bool packed = a.rows == 1 || (a.x_row_stride == a.n && a.y_row_stride == a.n);
    for (int64_t r = begin; r < end;) {
        const int64_t now = std::min(end - r, room);
        const char *from = x + r * a.x_row_stride * x_size;
        char *to = y + r * a.y_row_stride * y_size;
        if (packed)
            convert::load_row(a.x_type, from, buffer, now << b);
        else
            for (int64_t i = 0; i < now; ++i)
                convert::load_row(a.x_type, from + i * a.x_row_stride * x_size, buffer + (i << b),
                                  a.n);
        if (b <= l1_bits<float>)
            l1_block<float>(buffer, buffer, b, now << b, s);
        else
            l2_block<float>(buffer, buffer, b, tile, s);
        if (packed)
            convert::store_row(a.y_type, buffer, to, now << b);
        else
            for (int64_t i = 0; i < now; ++i)
                convert::store_row(a.y_type, buffer + (i << b), to + i * a.y_row_stride * y_size,
                                   a.n);
        r += now;
    }
}

void wht_simd_part(const wht_simd_args &a, simd_team team) {
    if (wht_simd_converts(a.x_type, a.y_type)) return converted_rows(a, team);
    switch (a.x_type) {
    case scalar::f32: return plain_rows<float>(a, team);
    case scalar::f64: return plain_rows<double>(a, team);
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
    if (threads <= 1) return HWY_DYNAMIC_DISPATCH(wht_simd_part)(a, simd_team{0, 1, nullptr});
#    pragma omp parallel num_threads(threads)
    HWY_DYNAMIC_DISPATCH(wht_simd_part)
    (a, simd_team{omp_get_thread_num(), omp_get_num_threads(), team_barrier});
}

} // namespace plait::impl::cpu
#endif
