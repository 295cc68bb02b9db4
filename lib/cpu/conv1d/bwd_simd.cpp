// conv1d.bwd_simd: dx, dw, dbias and dstate_in in one sweep over x and dy, for every problem.
//   Work     units of a block of channels and a strip: a run of pieces (simd_args.h). A piece
//            computes g for its tokens and the history() behind them, then the dx of its tokens;
//            the first piece of a sequence also the gradient of the first state.
//   Sums     dw and dbias: f32 over a piece, float64 over a strip and over strips in their order.
//            Strips depend on the problem and its offsets, not on threads: the bits are always the
//            same.
//   Numbers  f32, or f64 where a floating tensor is; one rounding at the store.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/cpu/conv1d/bwd_simd.cpp"
#include "lib/cpu/simd_targets.h"

#include "lib/cpu/conv1d/sequences.h"
#include "lib/cpu/conv1d/simd_args.h"

#include <algorithm>
#include <cmath>
#include <hwy/foreach_target.h> // IWYU pragma: keep
#include <hwy/highway.h>

#include "lib/cpu/conv1d/simd_source-inl.h"
#include "lib/cpu/conv1d/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {

template <typename T> class backward {
public:
    backward(const conv1d_args &args, const conv1d_sequences &sequences,
             const conv1d_simd_layout &l, char *scratch, double *strip_sums)
        : a(args), p(args.problem), all(sequences), lay(l), history(p.history()),
          stream(conv1d_simd_streams(args, l, p.dx, args.dx)), sums(strip_sums) {
        carver from{scratch};
        x = from.take<T>(lay.rows * lay.line);
        dy = from.take<T>(lay.rows * lay.line);
        g = from.take<T>(lay.rows * lay.line);
        dx = from.take<T>(lay.rows * lay.line);
        ids = from.take<id_of<T>>(lay.along_time ? lay.line : lay.tokens + 2 * p.width + 64);
        weights = from.take<T>(lay.along_time ? p.width : p.width * lay.line);
        bias = from.take<T>(lay.along_time ? 1 : lay.line);
        if (lay.along_time) return;
        piece_sums = from.take<T>((p.width + 1) * lay.line);
        zeros = from.take<T>(lay.line);
        std::fill(zeros, zeros + lay.line, T(0));
    }

    void run(const conv1d_team &team) {
        const int64_t units = lay.strips * lay.blocks, end = team.end(units);
        for (int64_t u = team.begin(units); u < end; ++u) unit(u / lay.blocks, u % lay.blocks);
        if (p.varlen && p.dx.used())
            all.gaps(team.begin(p.length), team.end(p.length), [&](int64_t from, int64_t to) {
                clear({0, 0, p.length, -1, false}, 0, p.channels, from, to);
            });
        if (stream) hwy::FlushStream();
        team.wait();
        const int64_t channels = (p.channels + 63) / 64, last = team.end(channels);
        for (int64_t i = team.begin(channels); i < last; ++i) reduce(64 * i);
    }

private:
    const conv1d_args &a;
    const conv1d_problem &p;
    const conv1d_sequences &all;
    const conv1d_simd_layout &lay;
    const int64_t history;
    const bool stream;
    double *sums; ///< [strip][width + 1][channel]
    T *x, *dy, *g, *dx, *weights, *bias;
    T *zeros = nullptr;      ///< across channels: the bias of dx
    T *piece_sums = nullptr; ///< across channels: [width + 1][line]
    id_of<T> *ids;
    bool finite = true; ///< across channels: all weights of the block
    uint8_t clean[2048];

    void unit(int64_t strip, int64_t block) {
        const int64_t c0 = block * lay.channels, c1 = std::min(c0 + lay.channels, p.channels);
        double *into = sums + strip * (p.width + 1) * p.channels;
        for (int64_t k = 0; k <= p.width; ++k)
            std::fill(into + k * p.channels + c0, into + k * p.channels + c1, 0.0);
        if (!lay.along_time) load_weights(c0, c1 - c0);
        const conv1d_team part{static_cast<int>(strip), static_cast<int>(lay.strips), nullptr};
        const int64_t end = part.end(all.pieces());
        int64_t n = -1, next = -1; // the sequence at hand, and the first piece behind it
        for (int64_t piece = part.begin(all.pieces()); piece < end; ++piece) {
            if (piece >= next) {
                n = n < 0 ? all.of_piece(piece) : n + 1;
                next = n + 1 < all.count() ? all.first_piece(n + 1) : all.pieces();
            }
            const source<T> from(a, all.span(n));
            const int64_t t0 = (piece - all.first_piece(n)) * lay.tokens;
            const int64_t t1 = std::min(t0 + lay.tokens, from.s.length);
            if (!from.s.live)
                clear(from.s, c0, c1, t0, t1);
            else if (lay.along_time)
                time_block(from, c0, c1, t0, t1, into);
            else
                channel_piece(from, c0, c1 - c0, t0, t1, into);
            if (t0 == 0) pass_on(from, c0, c1);
        }
    }

    /// The sums of all strips in their order.
    void reduce(int64_t c0) const {
        const int64_t count = std::min<int64_t>(64, p.channels - c0);
        for (int64_t k = 0; k <= p.width; ++k) {
            double total[64] = {};
            for (int64_t s = 0; s < lay.strips; ++s) {
                const double *part = sums + (s * (p.width + 1) + k) * p.channels + c0;
                for (int64_t c = 0; c < count; ++c) total[c] += part[c];
            }
            if (k < p.width && p.dw.used())
                store_line(p.dw.type, total, a.dw, c0 * p.dw.c + k * p.dw.t, p.dw.c, count, false);
            if (k == p.width && p.dbias.used())
                store_line(p.dbias.type, total, a.dbias, c0 * p.dbias.c, p.dbias.c, count, false);
        }
    }

    bool any_sums() const { return p.dw.used() || p.dbias.used(); }

    int64_t at(const conv1d_view &v, const conv1d_span &s, int64_t c, int64_t t) const {
        return s.row * v.b + c * v.c + (s.begin + t) * v.t;
    }

    /// dx of a channel at positions [from, to), and of the first state below 0.
    void store_gradients(const conv1d_span &s, int64_t c, int64_t from, int64_t to,
                         T *values) const {
        const int64_t before = std::min<int64_t>(std::max<int64_t>(-from, 0), to - from);
        if (before > 0 && p.dstate_in.used()) {
            const conv1d_view &v = p.dstate_in;
            store_line(v.type, values, a.dstate_in,
                       s.state * v.b + c * v.c + (p.entries + from) * v.t, v.t, before, false);
        }
        if (from + before < to && p.dx.used())
            store_line(p.dx.type, values + before, a.dx, at(p.dx, s, c, from + before), p.dx.t,
                       to - from - before, stream);
    }

    void time_block(const source<T> &from, int64_t c0, int64_t c1, int64_t t0, int64_t t1,
                    double *into) {
        if (from.masked()) {
            from.load_ids(t0 - history, t1 - t0 + 2 * history, ids);
            std::fill(ids + t1 - t0 + 2 * history, ids + lay.line, id_of<T>{no_id});
        }
        for (int64_t c = c0; c < c1; ++c) time_piece(from, c, t0, t1, into + c);
    }

    /// Sums of one kind over lines, group by group with and without masks.
    template <finish how>
    void time_sums(const source<T> &from, const row_shape &s, const T *in, T first, const T *add,
                   const T *times, const id_of<T> *masks, T *to) {
        if (!from.masked()) return time_row<how, T>(s, in, weights, first, add, times, nullptr, to);
        const int64_t size = group_lanes<T>();
        mark_clean<T>(masks, s.count, size, size + history, clean);
        for_runs(clean, (s.count + size - 1) / size, [&](int64_t i, int64_t end, bool plain) {
            const int64_t j = i * size;
            time_row<how, T>({(end - i) * size, s.width, s.back, s.own}, in + j, weights, first,
                             add != nullptr ? add + j : nullptr,
                             times != nullptr ? times + j : nullptr, plain ? nullptr : masks + j,
                             to + j);
        });
    }

    void time_piece(const source<T> &from, int64_t c, int64_t t0, int64_t t1, double *into) {
        load_line(p.w.type, a.w, c * p.w.c, p.w.t, weights, p.width);
        *bias = 0;
        if (p.bias.used()) load_line(p.bias.type, a.bias, c * p.bias.c, 1, bias, 1);
        const int64_t length = from.s.length, count = t1 - t0;
        const int64_t reach = std::min(t1 + history, length) - t0; // tokens whose g is needed
        // The lines of dy and g begin history() before t0: zeros, in front of the sequence.
        T *dy0 = dy + history, *g0 = g + history;
        std::fill(dy, dy0, T(0));
        std::fill(g, g0, T(0));
        from.line(c, t0 - history, reach + history, x);
        load_line(p.dy.type, a.dy, at(p.dy, from.s, c, t0), p.dy.t, dy0, reach);
        if (p.silu)
            time_sums<finish::slope>(from, {reach, p.width, false, history}, x, *bias, nullptr, dy0,
                                     ids, g0);
        else
            std::copy(dy0, dy0 + reach, g0);
        if (from.masked() && !p.silu)
            for (int64_t j = 0; j < reach; ++j)
                if (ids[j + history] < 0) g0[j] = 0;
        std::fill(g0 + reach, g + lay.line, T(0));
        if (any_sums() && from.masked())
            time_dots<true, T>(g0, x, count, p.width, ids, into, p.channels);
        else if (any_sums())
            time_dots<false, T>(g0, x, count, p.width, nullptr, into, p.channels);
        if (!p.dx.used() && (t0 > 0 || !p.dstate_in.used())) return;
        const int64_t back = t0 == 0 ? history : 0;
        time_sums<finish::none>(from, {count + back, p.width, true, 0}, g0 - back, T(0),
                                p.residual ? dy0 - back : nullptr, nullptr, ids + history - back,
                                dx);
        if (!all_finite(weights, 1, p.width))
            for (int64_t i = t0 - back; i < t1; ++i)
                if (!inside(from, i))
                    dx[i - t0 + back] = edge_sum(from, i, g0 - t0, 1, weights, 1, dy0 - t0);
        add_last_state(from, c, t0 - back, t1);
        store_gradients(from.s, c, t0 - back, t1, dx);
    }

    bool all_finite(const T *line, int64_t taps, int64_t count) const {
        for (int64_t k = 0; k < taps; ++k)
            for (int64_t i = 0; i < count; ++i)
                if (!std::isfinite(line[k * lay.line + i])) return false;
        return true;
    }

    /// Whether all tokens whose taps meet a position exist.
    bool inside(const source<T> &from, int64_t position) const {
        return position >= 0 && position + history < from.s.length;
    }

    /// dx at a position near an end, where a weight is not finite: beyond the ends g is 0 in the
    /// buffers, but there are no taps, and 0 times Inf is NaN. `token0`, `dy0`: of token 0.
    T edge_sum(const source<T> &from, int64_t position, const T *token0, int64_t stride,
               const T *taps, int64_t tap_stride, const T *dy_token0) const {
        const auto own = from.masked() ? from.id(position) : 0;
        T sum = 0;
        if (own < 0) return sum;
        for (int64_t k = 0; k < p.width; ++k) {
            const int64_t t = position + history - k;
            if (t < 0 || t >= from.s.length || (from.masked() && from.id(t) != own)) continue;
            sum = std::fma(taps[k * tap_stride], token0[t * stride], sum);
        }
        if (p.residual && position >= 0) sum += dy_token0[position * stride];
        return sum;
    }

    /// What dstate_out adds at positions [from, to); dx begins at `begin`.
    void add_last_state(const source<T> &from, int64_t c, int64_t begin, int64_t to) {
        const int64_t stored = from.s.length - p.entries, first = std::max(begin, stored);
        if (!p.dstate_out.used() || first >= to) return;
        const conv1d_view &v = p.dstate_out;
        load_line(v.type, a.dstate_out, from.s.state * v.b + c * v.c + (first - stored) * v.t, v.t,
                  dy, to - first);
        for (int64_t i = first; i < to; ++i)
            if (from.kept(i)) dx[i - begin] += dy[i - first];
    }

    void load_weights(int64_t c, int64_t count) {
        for (int64_t k = 0; k < p.width; ++k)
            load_line(p.w.type, a.w, c * p.w.c + k * p.w.t, p.w.c, weights + k * lay.line, count);
        finite = all_finite(weights, p.width, count);
        std::fill(bias, bias + lay.line, T(0));
        if (p.bias.used()) load_line(p.bias.type, a.bias, c * p.bias.c, p.bias.c, bias, count);
    }

    template <finish how>
    void channel_sums(const source<T> &from, block_shape s, const T *lines, const T *first,
                      const T *add, const T *times, const id_of<T> *masks, T *to) {
        const int64_t rows = s.count;
        const T *in[2 * conv1d_simd_max_width];
        for (int64_t j = 0; j < rows + history; ++j) in[j] = lines + j * lay.line;
        if (!from.masked())
            return channel_rows<how, T>(s, in, weights, first, add, times, nullptr, to);
        mark_clean<T>(masks, rows, 1, p.width, clean);
        for_runs(clean, rows, [&](int64_t j, int64_t end, bool plain) {
            const int64_t skip = j * lay.line;
            s.count = end - j;
            channel_rows<how, T>(s, in + j, weights, first, add != nullptr ? add + skip : nullptr,
                                 times != nullptr ? times + skip : nullptr,
                                 plain ? nullptr : masks + j, to + skip);
        });
    }

    /// In steps: the rows of x, dy and g keep history() rows of the step before, and dx follows
    /// history() tokens behind.
    void channel_piece(const source<T> &from, int64_t c, int64_t count, int64_t t0, int64_t t1,
                       double *into) {
        const int64_t line = lay.line, length = from.s.length, begin = t0 == 0 ? -history : t0;
        T *x0 = x + history * line, *dy0 = dy + history * line, *g0 = g + history * line;
        for (int64_t j = 0; j < history; ++j) from.row(c, count, t0 - history + j, x + j * line);
        std::fill(dy, dy0, T(0));
        std::fill(g, g0, T(0));
        std::fill(piece_sums, piece_sums + (p.width + 1) * line, T(0));
        for (int64_t t = t0; t < t1 + history; t += lay.step) {
            const int64_t rows = std::min(lay.step, t1 + history - t);
            const int64_t reach = std::clamp<int64_t>(length - t, 0, rows); // that are tokens
            for (int64_t j = 0; j < reach; ++j) {
                from.row(c, count, t + j, x0 + j * line);
                load_line(p.dy.type, a.dy, at(p.dy, from.s, c, t + j), p.dy.c, dy0 + j * line,
                          count);
            }
            if (from.masked()) from.load_ids(t - history, rows + history, ids);
            block_shape s{reach, p.width, false, history, line, count};
            if (p.silu)
                channel_sums<finish::slope>(from, s, x, bias, nullptr, dy0, ids, g0);
            else
                std::copy(dy0, dy0 + reach * line, g0);
            if (from.masked() && !p.silu)
                for (int64_t j = 0; j < reach; ++j)
                    if (ids[j + history] < 0) std::fill(g0 + j * line, g0 + (j + 1) * line, T(0));
            std::fill(dy0 + reach * line, dy0 + rows * line, T(0));
            std::fill(g0 + reach * line, g0 + rows * line, T(0));
            s.count = std::clamp<int64_t>(t1 - t, 0, reach);
            if (any_sums() && from.masked())
                channel_dots<true, T>(s, g0, x, ids, piece_sums);
            else if (any_sums())
                channel_dots<false, T>(s, g0, x, nullptr, piece_sums);
            // Row j of the buffers is position t - history + j.
            const int64_t first = std::max<int64_t>(0, begin - (t - history));
            const int64_t last = std::min(rows, t1 - (t - history));
            if (first < last) {
                s = {last - first, p.width, true, 0, line, count};
                channel_sums<finish::none>(from, s, g + first * line, zeros,
                                           p.residual ? dy + first * line : nullptr, nullptr,
                                           ids + first, dx);
                if (!finite)
                    edge_rows(from, count, t - history + first, last - first,
                              g + (history - t) * line, dy + (history - t) * line);
                store_rows(from, c, count, t - history + first, last - first);
            }
            for (T *rows_of : {x, dy, g})
                std::copy(rows_of + rows * line, rows_of + (rows + history) * line, rows_of);
        }
        for (int64_t k = 0; k <= p.width; ++k)
            for (int64_t i = 0; i < count; ++i)
                into[k * p.channels + c + i] += static_cast<double>(piece_sums[k * line + i]);
    }

    /// edge_sum for all channels of rows of dx from position `begin` on.
    void edge_rows(const source<T> &from, int64_t count, int64_t begin, int64_t rows,
                   const T *token0, const T *dy_token0) {
        for (int64_t j = 0; j < rows; ++j)
            for (int64_t i = 0; i < count && !inside(from, begin + j); ++i)
                dx[j * lay.line + i] = edge_sum(from, begin + j, token0 + i, lay.line, weights + i,
                                                lay.line, dy_token0 + i);
    }

    /// Rows of dx from position `begin` on, with what dstate_out adds.
    void store_rows(const source<T> &from, int64_t c, int64_t count, int64_t begin, int64_t rows) {
        const int64_t stored = from.s.length - p.entries;
        for (int64_t j = 0; j < rows; ++j) {
            const int64_t position = begin + j;
            T *values = dx + j * lay.line;
            if (p.dstate_out.used() && position >= stored && from.kept(position)) {
                const conv1d_view &v = p.dstate_out;
                T *more = dx + rows * lay.line; // a row behind those in use
                load_line(v.type, a.dstate_out,
                          from.s.state * v.b + c * v.c + (position - stored) * v.t, v.c, more,
                          count);
                for (int64_t i = 0; i < count; ++i) values[i] += more[i];
            }
            if (position >= 0 && p.dx.used()) {
                store_line(p.dx.type, values, a.dx, at(p.dx, from.s, c, position), p.dx.c, count,
                           stream);
            } else if (position < 0 && p.dstate_in.used()) {
                const conv1d_view &v = p.dstate_in;
                store_line(v.type, values, a.dstate_in,
                           from.s.state * v.b + c * v.c + (p.entries + position) * v.t, v.c, count,
                           false);
            }
        }
    }

    /// Entries of the first state that no tap reads: only dstate_out reaches them, if the sequence
    /// is shorter than a state. All entries of a sequence that belongs to nothing.
    void pass_on(const source<T> &from, int64_t c0, int64_t c1) const {
        if (!p.dstate_in.used()) return;
        const conv1d_view &to = p.dstate_in, &v = p.dstate_out;
        const int64_t entries = from.s.live ? p.entries - history : p.entries;
        for (int64_t c = c0; c < c1; ++c)
            for (int64_t i = 0; i < entries; ++i) {
                T value = 0;
                if (v.used() && from.s.live && i >= from.s.length && from.kept(i - p.entries))
                    load_line(v.type, a.dstate_out,
                              from.s.state * v.b + c * v.c + (i - from.s.length) * v.t, 1, &value,
                              1);
                store_line(to.type, &value, a.dstate_in, from.s.state * to.b + c * to.c + i * to.t,
                           1, 1, false);
            }
    }

    void clear(const conv1d_span &s, int64_t c0, int64_t c1, int64_t t0, int64_t t1) const {
        if (!p.dx.used()) return;
        if (lay.along_time)
            for (int64_t c = c0; c < c1; ++c)
                zero_line(p.dx.type, a.dx, at(p.dx, s, c, t0), p.dx.t, t1 - t0);
        else
            for (int64_t t = t0; t < t1; ++t)
                zero_line(p.dx.type, a.dx, at(p.dx, s, c0, t), p.dx.c, c1 - c0);
    }
};

} // namespace conv1d_simd

void conv1d_backward_part(const conv1d_args &a, const conv1d_sequences &all,
                          const conv1d_simd_layout &lay, const conv1d_team &team) {
    char *const base = static_cast<char *>(a.scratch) + lay.table_bytes;
    double *sums = reinterpret_cast<double *>(base);
    char *scratch = base + lay.sum_bytes + lay.slice_bytes * int64_t{team.tid};
    if (a.problem.accumulator == scalar::f64)
        conv1d_simd::backward<double>(a, all, lay, scratch, sums).run(team);
    else
        conv1d_simd::backward<float>(a, all, lay, scratch, sums).run(team);
}

} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#    include "lib/cpu/conv1d/conv1d_kernels.h"
#    include "lib/cpu/conv1d/simd_team.h"

namespace plait::impl::cpu {

HWY_EXPORT(conv1d_backward_part);

void conv1d_bwd_simd(const void *arguments, int threads) {
    conv1d_run_team(arguments, threads, HWY_DYNAMIC_DISPATCH(conv1d_backward_part));
}

} // namespace plait::impl::cpu
#endif
