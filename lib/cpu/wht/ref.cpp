// wht.ref: y = scale * diag * H * (diag_in * signs * x), or the adjoint; the definition, for every
// problem.
//   Shapes   any axes and strides; the transformed axes of one batch entry form one dense scratch
//            array of n points, axes row-major, an axis being factor index * 2^k + binary index.
//   Work     gather (signs, diag_in, or conj diag; rows of an adjoint), two butterfly stages per
//            sweep, factors as dense sums, once more behind diag_mid, then the results: their
//            largest and their histogram, then the store. n log n, no blocking for caches.
//   Threads  one transform each, or all inside one (wht_ref_shares_transform).
//   Numbers  float64 throughout, one rounding at the store; integers modulo 2^64, or 128 bits wide
//            when OVERFLOW asks for the true results.
#include "lib/cpu/kernel_table.h"
#include "lib/cpu/wht/ref_args.h"
#include "lib/cpu/wht/ref_values.h"
#include "lib/cpu/wht/ref_walk.h"
#include "lib/cpu/wht/wht_kernels.h"

#include <algorithm>
#include <omp.h>

namespace plait::impl::cpu {
namespace {

/// The transforms of one thread, or its part of a transform that the team shares.
template <typename acc> struct transform {
    const wht_ref_args &args;
    const wht_problem &p;
    int64_t n;
    acc *data;
    const int8_t *matrices; ///< of the axes, in their order, wht_ref_matrix_bytes each

    bool gathers() const { return p.rows_type != scalar::none; }
    /// Results of one transform.
    int64_t results() const { return gathers() && !p.adjoint ? p.rows : n; }
    /// Entry r of ROWS, -1 where it is no place of the transform.
    int64_t place(int64_t r) const {
        const int64_t k = load_integer(p.rows_type, args.rows, r * p.index_stride);
        return k >= 0 && k < n ? k : -1;
    }

    /// An element of X at `offset` as the transform takes it, `w` standing at its place.
    acc input(const walker &batch, const walker &w, int64_t offset) const {
        acc v = load_value<acc>(p.x, args.x, batch.x + offset);
        if (p.adjoint) {
            if (p.diag != scalar::none)
                v = times_diagonal(v, p.diag, args.diag, batch.diag + w.diag, true);
            return v;
        }
        if (p.signs && bit_at(args.signs, batch.signs + w.signs)) v = -v;
        if (p.diag_in != scalar::none)
            v = times_diagonal(v, p.diag_in, args.diag_in, batch.diag_in + w.diag_in, false);
        return v;
    }

    void gather(const walker &batch, share part) const {
        const int64_t begin = part.begin(n), end = part.end(n);
        if (begin == end) return;
        if (gathers() && p.adjoint) {
            std::fill(data + begin, data + end, acc{});
            for (int64_t r = 0; r < p.rows; ++r) {
                const int64_t k = place(r);
                if (k < begin || k >= end) continue;
                data[k] = data[k] + input(batch, walker(p, true, k), r * p.row_stride);
            }
            return;
        }
        walker w(p, true, begin);
        for (int64_t i = begin; i < end; ++i, w.next()) data[i] = input(batch, w, w.x);
    }

    /// DIAG_MID between the transforms. P H with an order P is H P^T, so that of
    /// (P H) D (P H) = H (P^T D P) H no permutation is left.
    void middle(const walker &batch, share part) const {
        const int64_t begin = part.begin(n), end = part.end(n);
        if (begin == end) return;
        walker w(p, true, begin);
        for (int64_t i = begin; i < end; ++i, w.next()) {
            acc &v = data[p.order == wht_order::natural ? i : natural_index(w)];
            v = times_diagonal(v, p.diag_mid, args.diag_mid, batch.diag_mid + w.diag_mid,
                               p.adjoint);
        }
    }

    /// The result where `w` stands, which is place k of the transform.
    acc result(const walker &batch, const walker &w, int64_t k) const {
        const bool moved = p.order != wht_order::natural && p.diag_mid == scalar::none;
        acc v = data[moved ? natural_index(w) : k];
        if (!p.adjoint) {
            if (p.diag != scalar::none)
                v = times_diagonal(v, p.diag, args.diag, batch.diag + w.diag, false);
        } else {
            if (p.diag_in != scalar::none)
                v = times_diagonal(v, p.diag_in, args.diag_in, batch.diag_in + w.diag_in, true);
            if (p.signs && bit_at(args.signs, batch.signs + w.signs)) v = -v;
        }
        return times_scale(v, p.scale);
    }

    /// use(v, place in Y, number) for results [begin, end).
    template <class Use>
    void for_results(const walker &batch, int64_t begin, int64_t end, const Use &use) const {
        if (begin >= end) return;
        if (gathers() && !p.adjoint) {
            for (int64_t r = begin; r < end; ++r) {
                const int64_t k = place(r);
                const acc v = k < 0 ? acc{} : result(batch, walker(p, true, k), k);
                use(v, batch.y + r * p.row_stride, r);
            }
            return;
        }
        walker w(p, true, begin);
        for (int64_t i = begin; i < end; ++i, w.next()) use(result(batch, w, i), batch.y + w.y, i);
    }

    void groups(const walker &batch, share part) const {
        for (int64_t g = part.begin(p.groups); g < part.end(p.groups); ++g) {
            largest top;
            for_results(batch, g * p.group_length, (g + 1) * p.group_length,
                        [&](acc v, int64_t, int64_t) { top.add(p.y, v); });
            if (p.amax != scalar::none)
                top.store(p.amax, args.amax, batch.amax + g * p.amax_group_stride);
            if (p.scales)
                args.scales[batch.scales + g * p.scales_group_stride] = e4m3_group_scale(top.size);
        }
    }

    void histogram(const walker &batch) const {
        int64_t *bins = args.histogram + batch.histogram;
        for (int64_t b = 0; b < p.bins; ++b) bins[b * p.bin_stride] = 0;
        if constexpr (std::is_integral_v<acc> || std::is_same_v<acc, int128>)
            for_results(batch, 0, results(), [&](acc v, int64_t, int64_t) {
                const int128 above = int128{wrapped(p.y, v)} - p.first_bin;
                if (above < 0 || above >= int128{p.bins} * p.bin_width) return;
                ++bins[static_cast<int64_t>(above / p.bin_width) * p.bin_stride];
            });
    }

    /// Everything behind the transform. True if some result does not fit Y.
    bool finish(const walker &batch, share part) const {
        if (p.amax != scalar::none || p.scales) groups(batch, part);
        if (p.bins > 0 && part.tid == 0) histogram(batch);
        if (p.scales) part.barrier();
        bool overflow = false;
        if (!p.stores && !p.overflow) return overflow;
        for_results(batch, part.begin(results()), part.end(results()),
                    [&](acc v, int64_t at, int64_t number) {
                        if constexpr (std::is_same_v<acc, int128>)
                            overflow |= v != int128{wrapped(p.y, v)};
                        if constexpr (std::is_same_v<acc, double>)
                            if (p.scales)
                                v /= args.scales[batch.scales +
                                                 number / p.group_length * p.scales_group_stride];
                        if (p.stores) store_value(p.y, args.y, at, v);
                    });
        return overflow;
    }

    /// One stage over pairs at distance h.
    void butterflies2(int64_t h, share part) const {
        int64_t left = part.end(n / 2) - part.begin(n / 2);
        int64_t block = part.begin(n / 2) / h, offset = part.begin(n / 2) % h;
        for (int64_t run; left > 0; left -= run, ++block, offset = 0) {
            run = std::min(left, h - offset);
            acc *u = data + block * 2 * h + offset;
            for (int64_t j = 0; j < run; ++j) {
                const acc a = u[j], b = u[j + h];
                u[j] = a + b;
                u[j + h] = a - b;
            }
        }
    }

    /// The stages at distances h and 2 h in one sweep.
    void butterflies4(int64_t h, share part) const {
        int64_t left = part.end(n / 4) - part.begin(n / 4);
        int64_t block = part.begin(n / 4) / h, offset = part.begin(n / 4) % h;
        for (int64_t run; left > 0; left -= run, ++block, offset = 0) {
            run = std::min(left, h - offset);
            acc *u = data + block * 4 * h + offset;
            for (int64_t j = 0; j < run; ++j) {
                const acc a = u[j] + u[j + h], b = u[j] - u[j + h];
                const acc c = u[j + 2 * h] + u[j + 3 * h], d = u[j + 2 * h] - u[j + 3 * h];
                u[j] = a + c;
                u[j + h] = b + d;
                u[j + 2 * h] = a - c;
                u[j + 3 * h] = b - d;
            }
        }
    }

    /// The factor matrix (or its transpose) over elements at distance h.
    void factor(const int8_t *sign, int m, int64_t h, share part) const {
        const int64_t end = part.end(n / m);
        acc in[wht_factor_given_order];
        for (int64_t i = part.begin(n / m); i < end; ++i) {
            acc *u = data + i / h * m * h + i % h;
            for (int j = 0; j < m; ++j) in[j] = u[j * h];
            for (int k = 0; k < m; ++k) {
                acc sum{};
                for (int j = 0; j < m; ++j) {
                    const int s = p.adjoint ? sign[j * m + k] : sign[k * m + j];
                    sum = s > 0 ? sum + in[j] : sum - in[j];
                }
                u[k * h] = sum;
            }
        }
    }

    void all_stages(share part) const {
        int64_t h = 1;
        const int8_t *matrix = matrices + wht_ref_matrices_bytes(p);
        for (int a = p.axes - 1; a >= 0; --a) {
            const wht_axis &ax = p.axis[a];
            matrix -= wht_ref_matrix_bytes(p, ax);
            if (!ax.transformed) continue;
            const int m = wht_ref_order(p, ax);
            int64_t left = ax.length / m;
            for (; left >= 4; left /= 4, h *= 4) {
                butterflies4(h, part);
                part.barrier();
            }
            if (left == 2) {
                butterflies2(h, part);
                h *= 2;
                part.barrier();
            }
            if (m > 1) {
                factor(matrix, m, h, part);
                h *= m;
                part.barrier();
            }
        }
    }
};

/// The transforms of one thread, or its part of every transform. True if a result did not fit.
template <typename acc> bool run_share(const wht_ref_args &args, share team, bool shared) {
    const wht_problem &p = args.problem;
    const int64_t transforms = wht_ref_transforms(p);
    const share part = shared ? team : share{0, 1};
    const int64_t own = shared ? 0 : wht_ref_slice_bytes(p) * team.tid;
    char *matrices = static_cast<char *>(args.scratch);
    char *scratch = matrices + wht_ref_matrices_bytes(p) + own;
    const transform<acc> t{args, p, wht_ref_points(p), reinterpret_cast<acc *>(scratch),
                           reinterpret_cast<const int8_t *>(matrices)};
    const int64_t begin = shared ? 0 : team.begin(transforms);
    const int64_t end = shared ? transforms : team.end(transforms);
    bool overflow = false;
    if (transforms == 0) return overflow;
    walker batch(p, false, begin);
    for (int64_t i = begin; i < end; ++i, batch.next()) {
        t.gather(batch, part);
        part.barrier();
        t.all_stages(part);
        if (p.diag_mid != scalar::none) {
            t.middle(batch, part);
            part.barrier();
            t.all_stages(part);
        }
        if (t.finish(batch, part)) overflow = true;
        part.barrier(); // scratch is free for the next gather
    }
    return overflow;
}

/// The matrices of all axes as bytes at the begin of the scratch.
void expand_matrices(const wht_ref_args &args) {
    const wht_problem &p = args.problem;
    int8_t *out = static_cast<int8_t *>(args.scratch);
    for (int a = 0; a < p.axes; ++a) {
        const wht_axis &ax = p.axis[a];
        const int64_t bytes = wht_ref_matrix_bytes(p, ax);
        const int m = bytes > 0 ? wht_ref_order(p, ax) : 0;
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) {
                int sign = wht_factor_sign(ax.factor, i, j);
                if (ax.factor == wht_factor::given)
                    sign =
                        bit_at(args.factor, i * p.given_stride[0] + j * p.given_stride[1]) ? -1 : 1;
                out[i * m + j] = static_cast<int8_t>(sign);
            }
        out += bytes;
    }
}

/// 1 + the number of the first entry of ROWS that is no place of the transform, else 0; 0 too where
/// there is no transform, whose places nobody knows.
int32_t rows_status(const wht_ref_args &args) {
    const wht_problem &p = args.problem;
    if (wht_ref_transforms(p) == 0 || wht_ref_points(p) == 0) return 0;
    const transform<double> places{args, p, wht_ref_points(p), nullptr, nullptr};
    for (int64_t r = 0; r < p.rows; ++r)
        if (places.place(r) < 0)
            return static_cast<int32_t>(std::min<int64_t>(r, INT32_MAX - 1) + 1);
    return 0;
}

template <typename acc> void run(const wht_ref_args &args, int threads) {
    const bool shared = wht_ref_shares_transform(args.problem, threads);
    expand_matrices(args);
    int overflow = 0;
    if (threads <= 1) { // OpenMP would allocate a team even for one thread
        overflow = run_share<acc>(args, share{0, 1}, shared);
    } else {
#pragma omp parallel num_threads(threads) reduction(| : overflow)
        overflow |=
            run_share<acc>(args, share{omp_get_thread_num(), omp_get_num_threads()}, shared);
    }
    if (args.overflow != nullptr) *args.overflow = overflow;
    if (args.status != nullptr) *args.status = rows_status(args);
}

} // namespace

void wht_ref(const void *arguments, int threads) {
    const wht_ref_args &a = *static_cast<const wht_ref_args *>(arguments);
    switch (a.problem.y) {
    case scalar::c64:
    case scalar::c128: return run<complex128>(a, threads);
    case scalar::i32:
    case scalar::i64:
        return a.problem.overflow ? run<int128>(a, threads) : run<uint64_t>(a, threads);
    default: return run<double>(a, threads);
    }
}

} // namespace plait::impl::cpu
