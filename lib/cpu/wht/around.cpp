// wht.inputs: X as packed numbers of the accumulate type, with SIGNS and DIAG_IN (adjoint: the sums
// that ROWS makes of X, and conj(DIAG)). Between two transforms: the numbers times DIAG_MID.
// wht.results: results from the numbers: ROWS of them, the order, DIAG (adjoint: conj(DIAG_IN) and
// SIGNS), scale; AMAX, SCALES, HISTOGRAM, OVERFLOW, and Y with its one rounding.
//   Pieces    of the innermost transformed axis (of the chosen results); the batch goes by before
//             the next piece, so that columns that lie next to one another share cache lines.
//   Traffic   X once in, Y once out, the numbers once each; with SCALES results are read twice.
//   Threads   over pieces; of ROWS's sums over transforms, or over places of each. The largest of a
//             group by its bits and counts are atomic: no order of threads changes them.
//   Numbers   as the transform between them: f32 or f64, integers modulo 2^w; in 64 bits, which no
//             sum leaves, where OVERFLOW is asked for.
#include "lib/cpu/wht/around_args.h"
#include "lib/cpu/wht/around_values.h"
#include "lib/cpu/wht/lines_walk.h"
#include "lib/cpu/wht/wht_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <omp.h>

namespace plait::impl::cpu {
namespace around {
namespace {

struct team {
    int tid, size;
    int64_t begin(int64_t count) const {
        return count / size * tid + std::min<int64_t>(count % size, tid);
    }
    int64_t end(int64_t count) const {
        return count / size * (tid + 1) + std::min<int64_t>(count % size, tid + 1);
    }
    void wait() const {
        if (size > 1) {
#pragma omp barrier
        }
    }
};

/// Where number `flat` along all batch axes, or along all transformed axes, lies in each tensor.
struct place {
    const wht_problem &p;
    const bool transformed;
    int64_t at[wht_max_axes];

    place(const wht_problem &problem, bool kind, int64_t flat) : p(problem), transformed(kind) {
        for (int a = p.axes; a-- > 0;) {
            if (p.axis[a].transformed != transformed) continue;
            at[a] = flat % p.axis[a].length;
            flat /= p.axis[a].length;
        }
    }
    int64_t in(int64_t wht_axis::*stride) const {
        int64_t sum = 0;
        for (int a = 0; a < p.axes; ++a)
            if (p.axis[a].transformed == transformed) sum += at[a] * p.axis[a].*stride;
        return sum;
    }
    /// The number that is the result here.
    int64_t natural() const {
        int64_t index = 0;
        for (int a = 0; a < p.axes; ++a)
            if (p.axis[a].transformed)
                index = index * p.axis[a].length +
                        natural_row(p.order, at[a], log2_exact(p.axis[a].length));
        return index;
    }
};

struct shape {
    int64_t n = 1, transforms = 1;
    wht_axis inner{}; ///< the innermost transformed axis, or one of a single element

    explicit shape(const wht_problem &p) {
        inner.length = 1;
        for (int a = 0; a < p.axes; ++a) {
            (p.axis[a].transformed ? n : transforms) *= p.axis[a].length;
            if (p.axis[a].transformed) inner = p.axis[a];
        }
    }
    /// use(transform, first, count) for the pieces of this thread, of runs of `length` among
    /// `elements` of each transform, which lie `step` apart in X or Y.
    template <class Use>
    void pieces(int64_t elements, int64_t length, int64_t step, team part, const Use &use) const {
        const int64_t piece = step == 1 ? wht_around_piece : wht_around_apart;
        const int64_t of_run = (length + piece - 1) / piece;
        const int64_t all = transforms * (elements / length) * of_run;
        for (int64_t u = part.begin(all); u < part.end(all); ++u) {
            const int64_t t = u % transforms, rest = u / transforms;
            const int64_t chunk = rest % of_run * piece;
            use(t, rest / of_run * length + chunk, std::min(piece, length - chunk));
        }
    }
};

/// Element r of ROWS; -1 where it is no place of the transform.
int64_t chosen_row(const wht_problem &p, const void *rows, int64_t r, int64_t n) {
    int64_t k;
    load<int64_t, 1>(p.rows_type, rows, r * p.index_stride, 1, 1, &k);
    return k >= 0 && k < n ? k : -1;
}

int32_t first_wrong_row(const wht_problem &p, const void *rows, int64_t n) {
    for (int64_t r = 0; r < p.rows; ++r)
        if (chosen_row(p, rows, r, n) < 0)
            return static_cast<int32_t>(std::min<int64_t>(r, INT32_MAX - 1) + 1);
    return 0;
}

template <class T> T sum(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
        return a + b;
    }
}

template <class T, int Parts> void inputs(const wht_inputs_args &a, team part) {
    const wht_problem &p = a.problem;
    const shape s(p);
    T *const w = static_cast<T *>(a.w);
    int64_t wht_axis::*const diag = !a.x        ? &wht_axis::diag_mid_stride
                                    : p.adjoint ? &wht_axis::diag_stride
                                                : &wht_axis::diag_in_stride;
    const auto sides = [&](const place &batch, int64_t first, int64_t count, T *v) {
        const place here(p, true, first);
        if (a.signs)
            flip<T, Parts>(a.signs,
                           batch.in(&wht_axis::signs_stride) + here.in(&wht_axis::signs_stride),
                           s.inner.signs_stride, count, v);
        if (a.diag)
            times<T, Parts>(a.diag_type, a.diag, batch.in(diag) + here.in(diag), s.inner.*diag,
                            count, p.adjoint, v);
    };
    if (a.x && p.adjoint && p.rows_type != scalar::none) { // so that one axis is transformed
        const bool whole = s.transforms >= part.size;
        const team all{0, 1}, of_t = whole ? part : all, of_n = whole ? all : part;
        const int64_t begin = of_n.begin(s.n), end = of_n.end(s.n);
        for (int64_t t = of_t.begin(s.transforms); t < of_t.end(s.transforms); ++t) {
            const place batch(p, false, t);
            const int64_t x = batch.in(&wht_axis::x_stride);
            T *const v = w + t * s.n * Parts;
            std::fill(v + begin * Parts, v + end * Parts, T(0));
            for (int64_t r = 0; r < p.rows; ++r) {
                const int64_t k = chosen_row(p, a.rows, r, s.n);
                if (k < begin || k >= end) continue;
                T one[Parts];
                load<T, Parts>(p.x, a.x, x + r * p.row_stride, 1, 1, one);
                for (int i = 0; i < Parts; ++i) v[k * Parts + i] = sum(v[k * Parts + i], one[i]);
            }
            if (begin < end) sides(batch, begin, end - begin, v + begin * Parts);
        }
        if (a.status && part.tid == 0) *a.status = first_wrong_row(p, a.rows, s.n);
        return;
    }
    const int64_t step = a.x ? s.inner.x_stride : 1;
    s.pieces(s.n, s.inner.length, step, part, [&](int64_t t, int64_t first, int64_t count) {
        const place batch(p, false, t);
        T *const v = w + (t * s.n + first) * Parts;
        if (a.x) {
            const place here(p, true, first);
            load<T, Parts>(p.x, a.x, batch.in(&wht_axis::x_stride) + here.in(&wht_axis::x_stride),
                           s.inner.x_stride, count, v);
        }
        if (a.x || p.order == wht_order::natural) return sides(batch, first, count, v);
        // P H with an order P is H P^T: of (P H) D (P H) = H (P^T D P) H no permutation is left.
        const int64_t at = first % s.inner.length;
        T *const line = w + (t * s.n + place(p, true, first - at).natural()) * Parts;
        const int bits = log2_exact(s.inner.length);
        T aside[wht_around_piece * Parts];
        for (const bool back : {false, true}) {
            for (int64_t i = 0; i < count; ++i)
                for (int q = 0; q < Parts; ++q) {
                    T &number = line[natural_row(p.order, at + i, bits) * Parts + q];
                    back ? number = aside[i * Parts + q] : aside[i * Parts + q] = number;
                }
            if (!back) sides(batch, first, count, aside);
        }
    });
}

template <class T, int Parts> struct results {
    const wht_results_args &a;
    const wht_problem &p = a.problem;
    const shape s{p};
    const bool chosen = p.rows_type != scalar::none && !p.adjoint;
    const int64_t count = chosen ? p.rows : s.n;
    const int64_t length = chosen ? p.rows : s.inner.length;
    const int64_t step = chosen ? p.row_stride : s.inner.y_stride;
    const int shift = (p.bin_width & (p.bin_width - 1)) == 0 ? log2_exact(p.bin_width) : -1;
    const T *const w = static_cast<const T *>(a.w);

    /// Results [first, first + some) of transform t.
    void take(int64_t t, int64_t first, int64_t some, T *v) const {
        const place batch(p, false, t);
        const T *const numbers = w + t * s.n * Parts;
        const bool ordered = p.order != wht_order::natural && p.diag_mid == scalar::none;
        const int bits = ordered ? log2_exact(s.inner.length) : 0;
        int64_t wht_axis::*const diag =
            p.adjoint ? &wht_axis::diag_in_stride : &wht_axis::diag_stride;
        if (chosen) {
            for (int64_t i = 0; i < some; ++i) {
                const int64_t k = chosen_row(p, a.rows, first + i, s.n);
                const int64_t from = ordered && k >= 0 ? natural_row(p.order, k, bits) : k;
                T *const one = v + i * Parts;
                for (int q = 0; q < Parts; ++q) one[q] = k >= 0 ? numbers[from * Parts + q] : T(0);
                if (a.diag && k >= 0)
                    times<T, Parts>(a.diag_type, a.diag, batch.in(diag) + k * s.inner.*diag, 1, 1,
                                    false, one);
            }
        } else {
            const place here(p, true, first);
            const int64_t at = first % s.inner.length;
            const T *line = numbers + first * Parts;
            if (ordered) line = numbers + place(p, true, first - at).natural() * Parts;
            if (!ordered)
                std::copy(line, line + some * Parts, v);
            else
                for (int64_t i = 0; i < some; ++i)
                    for (int q = 0; q < Parts; ++q)
                        v[i * Parts + q] = line[natural_row(p.order, at + i, bits) * Parts + q];
            if (a.diag)
                times<T, Parts>(a.diag_type, a.diag, batch.in(diag) + here.in(diag), s.inner.*diag,
                                some, p.adjoint, v);
            if (a.signs)
                flip<T, Parts>(a.signs,
                               batch.in(&wht_axis::signs_stride) + here.in(&wht_axis::signs_stride),
                               s.inner.signs_stride, some, v);
        }
        if constexpr (std::is_floating_point_v<T>)
            if (p.scale != 1)
                for (int64_t i = 0; i < some * Parts; ++i) v[i] *= static_cast<T>(p.scale);
    }

    void put(int64_t t, int64_t first, int64_t some, const T *v) const {
        int64_t at = place(p, false, t).in(&wht_axis::y_stride);
        at += chosen ? first * p.row_stride : place(p, true, first).in(&wht_axis::y_stride);
        store<T, Parts>(p.y, a.y, at, step, some, v);
    }

    int64_t group_of(int64_t result) const { return p.groups == 1 ? 0 : result / p.group_length; }
    int64_t group_end(int64_t g) const { return p.groups == 1 ? count : (g + 1) * p.group_length; }

    void sizes(int64_t t, int64_t first, int64_t some, const T *v) const {
        for (int64_t i = 0; i < some;) {
            const int64_t g = group_of(first + i), end = std::min(some, group_end(g) - first);
            uint64_t most = 0;
            for (; i < end; ++i) most = std::max(most, size_of(v[i]));
            raise_to(a.largest + t * p.groups + g, most);
        }
    }

    void count_bins(int64_t t, int64_t some, bool alone, const T *v) const {
        if constexpr (std::is_integral_v<T>) {
            int64_t *const bins = a.histogram + place(p, false, t).in(&wht_axis::histogram_stride);
            const auto all = static_cast<uint64_t>(p.bins) * static_cast<uint64_t>(p.bin_width);
            for (int64_t i = 0; i < some; ++i) {
                if (v[i] < p.first_bin) continue;
                const uint64_t above =
                    static_cast<uint64_t>(v[i]) - static_cast<uint64_t>(p.first_bin);
                if (above >= all) continue;
                const auto bin = static_cast<int64_t>(
                    shift >= 0 ? above >> shift : above / static_cast<uint64_t>(p.bin_width));
                int64_t *const counter = bins + bin * p.bin_stride;
                if (alone)
                    ++*counter;
                else
                    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
            }
        }
    }

    void clear(team part) const {
        const int64_t groups = a.largest ? s.transforms * p.groups : 0;
        std::fill(a.largest + part.begin(groups), a.largest + part.end(groups), 0);
        for (int64_t t = part.begin(s.transforms); p.bins > 0 && t < part.end(s.transforms); ++t) {
            int64_t *const bins = a.histogram + place(p, false, t).in(&wht_axis::histogram_stride);
            for (int64_t b = 0; b < p.bins; ++b) bins[b * p.bin_stride] = 0;
        }
    }

    void write_groups(team part) const {
        const int64_t all = s.transforms * p.groups;
        for (int64_t i = part.begin(all); i < part.end(all); ++i) {
            const place batch(p, false, i / p.groups);
            const int64_t g = i % p.groups;
            double size;
            std::memcpy(&size, a.largest + i, sizeof size);
            if (p.amax != scalar::none) {
                const int64_t at = batch.in(&wht_axis::amax_stride) + g * p.amax_group_stride;
                if constexpr (std::is_integral_v<T>)
                    static_cast<int64_t *>(a.amax)[at] = static_cast<int64_t>(a.largest[i]);
                else
                    store<double, 1>(p.amax, a.amax, at, 1, 1, &size);
            }
            if (p.scales) *scale_of(batch, g) = e4m3_group_scale(size);
        }
    }
    float *scale_of(const place &batch, int64_t g) const {
        return a.scales + batch.in(&wht_axis::scales_stride) + g * p.scales_group_stride;
    }

    /// True if a result does not fit Y.
    bool run(team part) const {
        bool lost = false;
        clear(part);
        part.wait();
        s.pieces(count, length, step, part, [&](int64_t t, int64_t first, int64_t some) {
            T v[wht_around_piece * Parts];
            take(t, first, some, v);
            if constexpr (std::is_same_v<T, int64_t>)
                if (p.y == scalar::i32)
                    for (int64_t i = 0; i < some; ++i) {
                        lost |= v[i] != static_cast<int32_t>(v[i]);
                        v[i] = static_cast<int32_t>(v[i]); // what AMAX and HISTOGRAM see
                    }
            if constexpr (Parts == 1) {
                if (a.largest) sizes(t, first, some, v);
                if (p.bins > 0) count_bins(t, some, part.size == 1, v);
            }
            if (p.stores && !p.scales) put(t, first, some, v);
        });
        part.wait();
        if (a.largest) write_groups(part);
        if (!p.scales || !p.stores) return lost;
        part.wait();
        s.pieces(count, length, step, part, [&](int64_t t, int64_t first, int64_t some) {
            T v[wht_around_piece * Parts];
            take(t, first, some, v);
            const place batch(p, false, t);
            for (int64_t i = 0; i < some; ++i)
                v[i] /= static_cast<T>(*scale_of(batch, group_of(first + i)));
            put(t, first, some, v);
        });
        return lost;
    }
};

/// run(team) by the caller alone or by a team; true if it was for one of them.
template <class Run> bool with_team(int threads, const Run &run) {
    if (threads <= 1) return run(team{0, 1}); // OpenMP would allocate a team even for one thread
    int any = 0;
#pragma omp parallel num_threads(threads) reduction(| : any)
    any |= run(team{omp_get_thread_num(), omp_get_num_threads()});
    return any != 0;
}

/// use(number type, parts) for the type of the numbers.
template <class Use> void for_type(scalar w, const Use &use) {
    using one = std::integral_constant<int, 1>;
    using two = std::integral_constant<int, 2>;
    switch (w) {
    case scalar::f32: return use(float{}, one{});
    case scalar::f64: return use(double{}, one{});
    case scalar::c64: return use(float{}, two{});
    case scalar::c128: return use(double{}, two{});
    case scalar::i32: return use(int32_t{}, one{});
    default: return use(int64_t{}, one{});
    }
}

} // namespace
} // namespace around

void wht_inputs(const void *arguments, int threads) {
    using namespace around;
    const auto &a = *static_cast<const wht_inputs_args *>(arguments);
    for_type(a.w_type, [&](auto number, auto parts) {
        with_team(threads, [&](team part) {
            inputs<decltype(number), decltype(parts)::value>(a, part);
            return false;
        });
    });
}

void wht_results(const void *arguments, int threads) {
    using namespace around;
    const auto &a = *static_cast<const wht_results_args *>(arguments);
    for_type(a.w_type, [&](auto number, auto parts) {
        const results<decltype(number), decltype(parts)::value> all{a};
        const bool lost = with_team(threads, [&](team part) { return all.run(part); });
        if (a.overflow) *a.overflow = lost;
        if (a.status) *a.status = first_wrong_row(a.problem, a.rows, all.s.n);
    });
}

} // namespace plait::impl::cpu
