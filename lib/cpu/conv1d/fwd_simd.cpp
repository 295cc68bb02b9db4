// conv1d.fwd_simd: forward for every problem.
// conv1d.update_simd: decoding steps for every problem.
//   Work     units of a block of channels and a piece of a sequence (simd_args.h); x is converted
//            into lines of accumulators that stay in L1, y leaves from there: across
//            them in runs of a cache line, where y lies so and a line would not stay cached.
//   Vectors  along time where time is contiguous, else across channels; other strides are gathered.
//   States   are written by the unit that reads them where a sequence is one piece; else behind a
//            barrier, because a last state may lie on a first one that another thread still reads.
//   Numbers  f32, or f64 where a floating tensor is; one rounding at the store.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/cpu/conv1d/fwd_simd.cpp"
#include "lib/cpu/simd_targets.h"

#include "lib/cpu/conv1d/sequences.h"
#include "lib/cpu/conv1d/simd_args.h"

#include <algorithm>
#include <hwy/foreach_target.h> // IWYU pragma: keep
#include <hwy/highway.h>
#include <type_traits>

#include "lib/cpu/conv1d/simd_source-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::impl::cpu {
namespace HWY_NAMESPACE {
namespace conv1d_simd {

template <typename T> class forward {
public:
    forward(const conv1d_args &args, const conv1d_sequences &sequences, const conv1d_simd_layout &l,
            char *scratch)
        : a(args), p(args.problem), all(sequences), lay(l), history(p.history()),
          stream(conv1d_simd_streams(args, l, p.y, args.y)),
          narrow(sizeof(T) == 4 && scalar_bytes(p.y.type) == 2) {
        carver from{scratch};
        in = from.take<T>(lay.rows * lay.line);
        out = from.take<T>(std::max<int64_t>(1, lay.turned) * lay.line);
        ids = from.take<id_of<T>>(lay.along_time ? lay.line : lay.tokens + 2 * p.width + 64);
        weights = from.take<T>(lay.along_time ? p.width : p.width * lay.line);
        bias = from.take<T>(lay.along_time ? 1 : lay.line);
    }

    void run(const conv1d_team &team) {
        // Every sequence is one piece: then nobody else reads the states of a unit.
        const bool whole = p.max_length <= lay.tokens;
        const int64_t units = all.pieces() * lay.blocks, end = team.end(units);
        int64_t n = -1, next = -1; // the sequence at hand, and the first piece behind it
        for (int64_t u = team.begin(units); u < end; ++u) {
            const int64_t piece = u / lay.blocks;
            if (piece >= next) {
                n = n < 0 ? all.of_piece(piece) : n + 1;
                next = n + 1 < all.count() ? all.first_piece(n + 1) : all.pieces();
            }
            const source<T> from(a, all.span(n));
            const int64_t t0 = (piece - all.first_piece(n)) * lay.tokens;
            unit(from, u % lay.blocks, t0, std::min(t0 + lay.tokens, from.s.length));
            if (whole) hand_on(from, u % lay.blocks);
        }
        if (p.varlen) clear_gaps(team);
        if (!whole && p.state_out.used()) {
            team.wait();
            const int64_t states = all.count() * lay.blocks, last = team.end(states);
            for (int64_t i = team.begin(states); i < last; ++i)
                hand_on(source<T>(a, all.span(i / lay.blocks)), i % lay.blocks);
        }
        if (stream) hwy::FlushStream();
    }

private:
    const conv1d_args &a;
    const conv1d_problem &p;
    const conv1d_sequences &all;
    const conv1d_simd_layout &lay;
    const int64_t history;
    const bool stream;
    const bool narrow; ///< y has 16 bits
    T *in, *out, *weights, *bias;
    id_of<T> *ids;
    int64_t loaded = -1; ///< the block whose weights are in the buffers
    uint8_t clean[2048];

    int64_t y_at(const conv1d_span &s, int64_t c, int64_t t) const {
        return s.row * p.y.b + c * p.y.c + (s.begin + t) * p.y.t;
    }

    void unit(const source<T> &from, int64_t block, int64_t t0, int64_t t1) {
        const int64_t c0 = block * lay.channels, c1 = std::min(c0 + lay.channels, p.channels);
        if (!from.s.live) return clear(from.s, c0, c1, t0, t1);
        if (t0 >= t1) return;
        if (lay.along_time) {
            if (from.masked()) {
                from.load_ids(t0 - history, t1 - t0 + history, ids);
                // Behind the end: padding, for the outputs of the last group that nobody stores.
                std::fill(ids + t1 - t0 + history, ids + lay.line, id_of<T>{no_id});
                mark_clean<T>(ids, t1 - t0, group_lanes<T>(), group_lanes<T>() + history, clean);
            }
            if (lay.turned > 0) {
                for (int64_t c = c0; c < c1; ++c)
                    time_piece(from, c, t0, t1 - t0, out + (c - c0) * lay.line);
                store_across(y_at(from.s, c0, t0), p.y.c, c1 - c0, p.y.t, t1 - t0);
            } else {
                for (int64_t c = c0; c < c1; ++c) time_piece(from, c, t0, t1 - t0, nullptr);
            }
        } else {
            channel_piece(from, block, c0, c1 - c0, t0, t1);
        }
    }

    template <typename Run> void with_finish(Run run) {
        if (!p.silu) return run(std::integral_constant<finish, finish::none>());
        if constexpr (sizeof(T) == 4)
            if (narrow) return run(std::integral_constant<finish, finish::silu16>());
        run(std::integral_constant<finish, finish::silu>());
    }

    /// A finished line of sums for one run of groups.
    void time_sums(const T *xe, T *y, int64_t count, const id_of<T> *masks) {
        const row_shape s{count, p.width, false, history};
        const T *add = p.residual ? xe + history : nullptr;
        with_finish(
            [&](auto how) { time_row<how(), T>(s, xe, weights, *bias, add, nullptr, masks, y); });
    }

    static int64_t line_offset(const void *at, scalar type) {
        return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) % 64) / scalar_bytes(type);
    }

    /// Stores `lines` of the buffer across: `count` runs of their elements, `step` apart.
    void store_across(int64_t at, int64_t along, int64_t lines, int64_t step, int64_t count) {
        T run[conv1d_simd_turned / 2];
        for (int64_t i = 0; i < count; ++i) {
            for (int64_t j = 0; j < lines; ++j) run[j] = out[j * lay.line + i];
            store_line(p.y.type, run, a.y, at + i * step, along, lines, false);
        }
    }

    /// One channel: into y, or where `kept` is given into that line.
    void time_piece(const source<T> &from, int64_t c, int64_t t0, int64_t count, T *kept) {
        load_line(p.w.type, a.w, c * p.w.c, p.w.t, weights, p.width);
        *bias = 0;
        if (p.bias.used()) load_line(p.bias.type, a.bias, c * p.bias.c, 1, bias, 1);
        // No conversion: whole groups are read where they lie.
        const bool direct = p.x.type == p.accumulator && p.x.t == 1 && !from.masked();
        const T *x =
            direct ? static_cast<const T *>(a.x) + from.s.row * p.x.b + c * p.x.c : nullptr;
        const int64_t size = group_lanes<T>();
        // Bursts end where cache lines of y do.
        int64_t now = conv1d_simd_burst;
        if (stream && p.y.t == 1 && !from.masked()) // marks of groups are of the whole piece
            now -= line_offset(address(p.y.type, a.y, y_at(from.s, c, t0)), p.y.type);
        for (int64_t j = 0; j < count; j += now, now = conv1d_simd_burst) {
            now = std::min(now, count - j);
            const int64_t t = t0 + j;
            T *to = kept ? kept + j : out;
            // The last group may read tokens behind its own, but none behind the row.
            if (direct && t >= history && t + (now + size - 1) / size * size <= from.s.length) {
                time_sums(x + from.s.begin + t - history, to, now, nullptr);
            } else {
                from.line(c, t - history, now + history, in);
                if (!from.masked())
                    time_sums(in, to, now, nullptr);
                else
                    for_runs(clean + j / size, (now + size - 1) / size,
                             [&](int64_t g, int64_t end, bool plain) {
                                 time_sums(in + g * size, to + g * size, (end - g) * size,
                                           plain ? nullptr : ids + j + g * size);
                             });
            }
            if (!kept) store_line(p.y.type, to, a.y, y_at(from.s, c, t), p.y.t, now, stream);
        }
    }

    void load_weights(int64_t block, int64_t c, int64_t count) {
        if (loaded == block) return;
        loaded = block;
        for (int64_t k = 0; k < p.width; ++k)
            load_line(p.w.type, a.w, c * p.w.c + k * p.w.t, p.w.c, weights + k * lay.line, count);
        std::fill(bias, bias + lay.line, T(0));
        if (p.bias.used()) load_line(p.bias.type, a.bias, c * p.bias.c, p.bias.c, bias, count);
    }

    /// A row of x: where it lies, if it needs no conversion and whole groups of vectors may be read
    /// there, else in its place among the last `width` rows of the buffer.
    const T *row(const source<T> &from, int64_t c, int64_t count, int64_t t) {
        if (t >= 0 && p.x.type == p.accumulator && p.x.c == 1 && count % group_lanes<T>() == 0)
            return static_cast<const T *>(a.x) + from.s.row * p.x.b + c +
                   (from.s.begin + t) * p.x.t;
        T *place = in + (t + history) % p.width * lay.line;
        from.row(c, count, t, place);
        return place;
    }

    void channel_piece(const source<T> &from, int64_t block, int64_t c, int64_t count, int64_t t0,
                       int64_t t1) {
        load_weights(block, c, count);
        if (from.masked()) {
            from.load_ids(t0 - history, t1 - t0 + history, ids);
            mark_clean<T>(ids, t1 - t0, 1, p.width, clean);
        }
        const T *taps[conv1d_simd_max_width];
        for (int64_t k = 0; k < history; ++k) taps[k + 1] = row(from, c, count, t0 - history + k);
        const block_shape s{1, p.width, false, history, lay.line, count};
        int64_t kept = 0; // lines of y in the buffer
        for (int64_t t = t0; t < t1; ++t) {
            T *to = out + kept * lay.line;
            std::copy(taps + 1, taps + p.width, taps);
            taps[history] = row(from, c, count, t);
            const T *add = p.residual ? taps[history] : nullptr;
            const id_of<T> *masks = from.masked() && !clean[t - t0] ? ids + t - t0 : nullptr;
            with_finish([&](auto how) {
                channel_rows<how(), T>(s, taps, weights, bias, add, nullptr, masks, to);
            });
            if (lay.turned == 0) {
                store_line(p.y.type, to, a.y, y_at(from.s, c, t), p.y.c, count, stream);
            } else if (++kept == lay.turned || t + 1 == t1) {
                store_across(y_at(from.s, c, t + 1 - kept), p.y.t, kept, p.y.c, count);
                kept = 0;
            }
        }
    }

    void clear(const conv1d_span &s, int64_t c0, int64_t c1, int64_t t0, int64_t t1) const {
        if (lay.along_time)
            for (int64_t c = c0; c < c1; ++c)
                zero_line(p.y.type, a.y, y_at(s, c, t0), p.y.t, t1 - t0);
        else
            for (int64_t t = t0; t < t1; ++t)
                zero_line(p.y.type, a.y, y_at(s, c0, t), p.y.c, c1 - c0);
    }

    /// Packed tokens of no sequence.
    void clear_gaps(const conv1d_team &team) const {
        all.gaps(team.begin(p.length), team.end(p.length), [&](int64_t begin, int64_t end) {
            clear({0, 0, p.length, -1, false}, 0, p.channels, begin, end);
        });
    }

    /// The last state of a block of channels. It may lie on the first one: an entry depends on none
    /// below it, and all of a run are read before any is written.
    void hand_on(const source<T> &from, int64_t block) {
        if (!p.state_out.used() || from.s.state < 0) return;
        const int64_t c0 = block * lay.channels, c1 = std::min(c0 + lay.channels, p.channels);
        const conv1d_view &v = p.state_out;
        const int64_t base = from.s.state * v.b, length = from.s.length;
        const int64_t first =
            p.ring ? std::max<int64_t>(0, length - p.entries) : length - p.entries;
        const bool contiguous = lay.along_time && !p.ring;
        const int64_t most = contiguous ? lay.step : 1;
        for (int64_t at = first; at < length; at += most) {
            const int64_t now = std::min(most, length - at);
            const int64_t e =
                p.ring ? (from.head + at % p.entries) % p.entries : at - (length - p.entries);
            if (contiguous) {
                for (int64_t c = c0; c < c1; ++c) {
                    if (from.s.live) from.line(c, at, now, in);
                    for (int64_t i = 0; i < now; ++i)
                        if (!from.s.live || !from.kept(at + i)) in[i] = 0;
                    store_line(v.type, in, a.last_state(), base + c * v.c + e * v.t, v.t, now,
                               false);
                }
            } else if (from.s.live && from.kept(at)) {
                from.row(c0, c1 - c0, at, in);
                store_line(v.type, in, a.last_state(), base + c0 * v.c + e * v.t, v.c, c1 - c0,
                           false);
            } else {
                zero_line(v.type, a.last_state(), base + c0 * v.c + e * v.t, v.c, c1 - c0);
            }
        }
    }
};

} // namespace conv1d_simd

void conv1d_forward_part(const conv1d_args &a, const conv1d_sequences &all,
                         const conv1d_simd_layout &lay, const conv1d_team &team) {
    char *scratch =
        static_cast<char *>(a.scratch) + lay.table_bytes + lay.slice_bytes * int64_t{team.tid};
    if (a.problem.accumulator == scalar::f64)
        conv1d_simd::forward<double>(a, all, lay, scratch).run(team);
    else
        conv1d_simd::forward<float>(a, all, lay, scratch).run(team);
}

} // namespace HWY_NAMESPACE
} // namespace plait::impl::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#    include "lib/cpu/conv1d/conv1d_kernels.h"
#    include "lib/cpu/conv1d/simd_team.h"

namespace plait::impl::cpu {

HWY_EXPORT(conv1d_forward_part);

void conv1d_fwd_simd(const void *arguments, int threads) {
    conv1d_run_team(arguments, threads, HWY_DYNAMIC_DISPATCH(conv1d_forward_part));
}

void conv1d_update_simd(const void *arguments, int threads) { conv1d_fwd_simd(arguments, threads); }

} // namespace plait::impl::cpu
#endif
