// wht.lines: one pass of y = scale * diag * H * (signs * x), or of the adjoint, for every layout.
//   Tiles     all axes that the pass transforms, and so much of the others that lines of contiguous
//             memory are long: gathered into a dense piece of L1 or L2, transformed, scattered.
//             Where a tile is one piece of memory in Y and of its type, Y itself is the tile.
//   Arithmetic stages between lanes, between lines, factor matrices (lines_stages-inl.h).
//   Fusions   SIGNS, DIAG and conversion on the way in or out, the order of the results on the way
//             out (lines_move-inl.h).
//   Threads   over tiles. A pass reads and writes its tensor once.
//   Numbers   f32 or f64, one rounding at the store; integers modulo 2^w, whose overflow is that of
//             any sum. Ascending distances, factors last: same bits at every level and for any
//             team.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/cpu/wht/lines.cpp"
#include "lib/cpu/simd_targets.h"
#include "lib/cpu/wht/lines_args.h"

#include <cmath>
#include <hwy/foreach_target.h> // IWYU pragma: keep
#include <hwy/highway.h>

#include "lib/cpu/wht/lines_move-inl.h"
#include "lib/cpu/wht/lines_stages-inl.h"

#ifndef PLAIT_LIB_CPU_WHT_LINES_ONCE
#    define PLAIT_LIB_CPU_WHT_LINES_ONCE
namespace plait::impl::cpu {

/// A thread of the team.
struct lines_share {
    int tid, size;
    int64_t begin(int64_t count, int id) const {
        return count / size * id + std::min<int64_t>(count % size, id);
    }
    int64_t begin(int64_t count) const { return begin(count, tid); }
    int64_t end(int64_t count) const { return begin(count, tid + 1); }
};

/// Numbers that become one number in this pass.
inline int64_t transform_size(const wht_lines_args &a) {
    int64_t n = 1;
    for (int i = 0; i < a.tile_axes; ++i)
        if (a.tile[i].kind != wht_lines_kind::batch) n *= a.tile[i].length;
    return n;
}

/// Walks from tile to tile.
class lines_outer {
public:
    wht_lines_place x, y; ///< signs and diag are the same in both

    lines_outer(const wht_lines_args &args, int64_t flat) : a(args) {
        for (int i = a.outer_axes - 1; i >= 0; --i) {
            at[i] = flat % a.outer[i].length;
            flat /= a.outer[i].length;
            step(i, at[i]);
        }
    }
    void next() {
        for (int i = a.outer_axes - 1; i >= 0; --i) {
            step(i, 1);
            if (++at[i] < a.outer[i].length) return;
            step(i, -at[i]);
            at[i] = 0;
        }
    }
    /// The lengths of this tile's axes. True if some axis is cut short.
    bool lengths(int64_t *to) const {
        for (int i = 0; i < a.tile_axes; ++i) to[i] = a.tile[i].length;
        bool shorter = false;
        for (int i = 0; i < a.cuts; ++i) {
            const wht_lines_cut &c = a.cut[i];
            if (at[c.outer] + 1 < a.outer[c.outer].length || c.last == a.tile[c.tile].length)
                continue;
            to[c.tile] = c.last;
            shorter = true;
        }
        return shorter;
    }

private:
    const wht_lines_args &a;
    int64_t at[wht_lines_max_outer] = {};

    void step(int i, int64_t by) {
        const wht_lines_axis &o = a.outer[i];
        x.memory += by * o.x_stride;
        y.memory += by * o.y_stride;
        x.signs = y.signs += by * o.signs_stride;
        x.diag = y.diag += by * o.diag_stride;
    }
};

} // namespace plait::impl::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace lines {

inline int64_t largest(const int32_t *v, int64_t count) {
    uint32_t most = 0;
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t u = static_cast<uint32_t>(v[i]), m = v[i] < 0 ? 0 - u : u;
        most = m > most ? m : most;
    }
    return most;
}

/// Tiles `begin` to `end` by one thread. True if a result does not fit.
template <typename Sums>
bool tiles(const wht_lines_args &a, void *scratch, int64_t begin, int64_t end) {
    using T = typename Sums::type;
    const operations<T> work(a);
    T *tile = static_cast<T *>(scratch);
    int64_t full[wht_lines_max_tile], lengths[wht_lines_max_tile];
    for (int i = 0; i < a.tile_axes; ++i) full[i] = a.tile[i].length;
    const wht_lines_view from(a, full, true), into(a, full, false);
    const bool same_x = scalar_bytes(a.x_type) == int{sizeof(T)} * a.parts;
    const bool same_y = scalar_bytes(a.y_type) == int{sizeof(T)} * a.parts;
    const auto as_tile = [&](const wht_lines_view &v, bool same, bool load) {
        return same && v.one_piece() && v.line().step.memory == 1 &&
               v.line().step.tile == a.parts && v.line().bits < 0 &&
               v.line().length * a.parts == a.tile_size && !(a.signs && a.signs_first == load) &&
               !(a.diag && a.diag_first == load);
    };
    // Together with DIAG, so that the product is rounded once; a power of two is exact by itself.
    int exponent;
    const bool with_diag =
        a.diag && !a.diag_first && std::fabs(std::frexp(a.scale, &exponent)) != 0.5;
    const T scale = std::is_integral_v<T> || with_diag ? T(1) : static_cast<T>(a.scale);
    const double diag_scale = with_diag ? a.scale : 1;
    // True sums of i32 fit where the largest number times their count does; else they are made in
    // i64, from X again.
    const bool watch = a.overflow && std::is_same_v<T, int32_t>;
    const int64_t harmless = std::numeric_limits<int32_t>::max() / transform_size(a);

    const bool direct_x = !watch && as_tile(from, same_x, true);
    const bool direct_y = !watch && as_tile(into, same_y, false);
    mover<T> move(a, diag_scale);
    Sums sums;
    bool padded = false; // the tile has numbers outside its lengths, which must be harmless
    int64_t elements = a.parts;
    for (int i = 0; i < a.tile_axes; ++i) elements *= full[i];
    padded = elements != a.tile_size;
    const auto clear = [&] { std::fill(tile, tile + a.tile_size, T(0)); };
    if (padded) clear();
    lines_outer at(a, begin);
    bool wide_overflow = false;
    const auto is_wide = [&](int64_t i) {
        if constexpr (std::is_same_v<T, int32_t>) {
            if (!watch || largest(tile, a.tile_size) <= harmless) return false;
            wide_overflow |= tiles<checked_sums<int64_t>>(a, scratch, i, i + 1);
            if (padded) clear();
            return true;
        }
        (void)i;
        return false;
    };
    for (int64_t i = begin; i < end; ++i, at.next()) {
        if (at.lengths(lengths)) {
            clear();
            move.load(wht_lines_view(a, lengths, true), at.x, tile);
            if (is_wide(i)) continue;
            work.run(sums, tile, tile, a.tile_size, scale);
            move.store(wht_lines_view(a, lengths, false), at.y, tile);
            if (padded) clear();
            continue;
        }
        T *data = direct_y ? static_cast<T *>(a.y) + at.y.memory * a.parts : tile;
        const T *source = data;
        if (direct_x)
            source = static_cast<const T *>(a.x) + at.x.memory * a.parts;
        else
            move.load(from, at.x, data);
        if (is_wide(i)) continue;
        work.run(sums, source, data, a.tile_size, scale);
        if (!direct_y) move.store(into, at.y, data);
    }
    return sums.overflow() || move.overflow || wide_overflow;
}

} // namespace lines

bool wht_lines_part(const wht_lines_args &a, void *scratch, int64_t begin, int64_t end) {
    using namespace lines;
    switch (a.arithmetic) {
    case scalar::f32: return tiles<plain_sums<float>>(a, scratch, begin, end);
    case scalar::f64: return tiles<plain_sums<double>>(a, scratch, begin, end);
    case scalar::i32: return tiles<plain_sums<int32_t>>(a, scratch, begin, end);
    case scalar::i64:
        if (a.overflow && a.x_type == scalar::i32 && a.y_type == scalar::i32)
            return tiles<plain_sums<int32_t>>(a, scratch, begin, end);
        if (a.overflow) return tiles<checked_sums<int64_t>>(a, scratch, begin, end);
        return tiles<plain_sums<int64_t>>(a, scratch, begin, end);
    default: return false;
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

HWY_EXPORT(wht_lines_part);

constexpr wht_lines_codes codes[2][6] = {{{},
                                          make_wht_lines_codes(wht_factor::h12_paley2, false),
                                          make_wht_lines_codes(wht_factor::h12_sloane, false),
                                          make_wht_lines_codes(wht_factor::h20_williamson, false),
                                          make_wht_lines_codes(wht_factor::h28_williamson, false),
                                          make_wht_lines_codes(wht_factor::h40, false)},
                                         {{},
                                          make_wht_lines_codes(wht_factor::h12_paley2, true),
                                          make_wht_lines_codes(wht_factor::h12_sloane, true),
                                          make_wht_lines_codes(wht_factor::h20_williamson, true),
                                          make_wht_lines_codes(wht_factor::h28_williamson, true),
                                          make_wht_lines_codes(wht_factor::h40, true)}};

} // namespace

namespace {

template <typename D, typename T>
bool real_coefficients(const D *from, int64_t stride, int64_t count, double scale, T *to) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i * stride] * scale);
    return false;
}

template <typename D, typename T>
bool complex_coefficients(const D *from, int64_t stride, int64_t count, double scale, bool conj,
                          T *real, T *imaginary) {
    for (int64_t i = 0; i < count; ++i) {
        real[i] = static_cast<T>(from[2 * i * stride] * scale);
        imaginary[i] = static_cast<T>(from[2 * i * stride + 1] * (conj ? -scale : scale));
    }
    return true;
}

template <typename T>
bool coefficients(scalar type, const void *base, int64_t at, int64_t stride, int64_t count,
                  double scale, bool conj, T *re, T *im) {
    const double *f64 = static_cast<const double *>(base);
    const float *f32 = static_cast<const float *>(base);
    const uint16_t *half = static_cast<const uint16_t *>(base) + at;
    switch (type) {
    case scalar::f64: return real_coefficients(f64 + at, stride, count, scale, re);
    case scalar::f32: return real_coefficients(f32 + at, stride, count, scale, re);
    case scalar::c128:
        return complex_coefficients(f64 + 2 * at, stride, count, scale, conj, re, im);
    case scalar::c64: return complex_coefficients(f32 + 2 * at, stride, count, scale, conj, re, im);
    case scalar::f16:
        for (int64_t i = 0; i < count; ++i)
            re[i] = static_cast<T>(f16_to_f32(half[i * stride]) * scale);
        return false;
    default: // bf16
        for (int64_t i = 0; i < count; ++i)
            re[i] = static_cast<T>(bf16_to_f32(half[i * stride]) * scale);
        return false;
    }
}

} // namespace

bool wht_lines_coefficients(scalar type, const void *base, int64_t at, int64_t stride,
                            int64_t count, double scale, bool conj, float *re, float *im) {
    return coefficients(type, base, at, stride, count, scale, conj, re, im);
}

bool wht_lines_coefficients(scalar type, const void *base, int64_t at, int64_t stride,
                            int64_t count, double scale, bool conj, double *re, double *im) {
    return coefficients(type, base, at, stride, count, scale, conj, re, im);
}

const wht_lines_codes &wht_lines_codes_of(wht_factor f, bool transposed) {
    return codes[transposed ? 1 : 0][static_cast<int>(f)];
}

void wht_lines(const void *arguments, int threads) {
    const wht_lines_args &a = *static_cast<const wht_lines_args *>(arguments);
    const auto run = HWY_DYNAMIC_DISPATCH(wht_lines_part);
    int64_t tiles = 1;
    for (int i = 0; i < a.outer_axes; ++i) tiles *= a.outer[i].length;
    const int64_t bytes = a.tile_size * scalar_bytes(a.arithmetic);
    int overflow = 0;
    if (threads <= 1) { // OpenMP would allocate a team even for one thread
        overflow = run(a, a.scratch, 0, tiles);
    } else {
#    pragma omp parallel num_threads(threads) reduction(| : overflow)
        {
            const lines_share share{omp_get_thread_num(), omp_get_num_threads()};
            if (share.begin(tiles) < share.end(tiles))
                overflow |= run(a, static_cast<char *>(a.scratch) + bytes * share.tid,
                                share.begin(tiles), share.end(tiles));
        }
    }
    if (a.overflow) *a.overflow = (a.clear ? 0 : *a.overflow) | overflow;
}

} // namespace plait::impl::cpu
#endif
