// wht.ref: y = scale * diag * H * (signs * x), or the adjoint; the definition, for every problem.
//   Shapes   any axes and strides; the transformed axes of one batch entry form one dense scratch
//            array of n points, axes row-major, an axis being factor index * 2^k + binary index.
//   Work     gather (signs, or conj diag), two butterfly stages per sweep, factors as dense sums,
//            scatter (scale, diag or signs, output order): n log n, no blocking for caches.
//   Threads  one transform each, or all inside one (wht_ref_shares_transform).
//   Numbers  float64 throughout, one rounding at the store; integers modulo 2^64, or 128 bits wide
//            when OVERFLOW asks for the true results.
#include "lib/common/factor_matrices.h"
#include "lib/common/half.h"
#include "lib/cpu/kernel_table.h"
#include "lib/cpu/wht/ref_args.h"
#include "lib/cpu/wht/wht_kernels.h"

#include <algorithm>
#include <omp.h>

namespace plait::impl::cpu {
namespace {

__extension__ typedef __int128 int128;

struct complex128 {
    double re, im;
};

complex128 operator+(complex128 a, complex128 b) { return {a.re + b.re, a.im + b.im}; }
complex128 operator-(complex128 a, complex128 b) { return {a.re - b.re, a.im - b.im}; }
complex128 operator-(complex128 a) { return {-a.re, -a.im}; }

/// One coefficient of DIAG; im is 0 for real types.
complex128 load_diag(scalar type, const void *base, int64_t i) {
    switch (type) {
    case scalar::f64: return {static_cast<const double *>(base)[i], 0};
    case scalar::f32: return {static_cast<const float *>(base)[i], 0};
    case scalar::f16: return {f16_to_f32(static_cast<const uint16_t *>(base)[i]), 0};
    case scalar::bf16: return {bf16_to_f32(static_cast<const uint16_t *>(base)[i]), 0};
    case scalar::c128: {
        const double *d = static_cast<const double *>(base) + 2 * i;
        return {d[0], d[1]};
    }
    case scalar::c64: {
        const float *d = static_cast<const float *>(base) + 2 * i;
        return {d[0], d[1]};
    }
    default: return {1, 0};
    }
}

// Stored forms: how an element of X becomes an accumulator and how one becomes an element of Y.

struct f16_store {
    uint16_t bits;
    double load() const { return f16_to_f32(bits); }
    void store(double v) { bits = f64_to_f16(v); }
};
struct bf16_store {
    uint16_t bits;
    double load() const { return bf16_to_f32(bits); }
    void store(double v) { bits = f64_to_bf16(v); }
};
struct f32_store {
    float v;
    double load() const { return v; }
    void store(double a) { v = static_cast<float>(a); }
};
struct f64_store {
    double v;
    double load() const { return v; }
    void store(double a) { v = a; }
};
struct c64_store {
    float re, im;
    complex128 load() const { return {re, im}; }
    void store(complex128 a) {
        re = static_cast<float>(a.re);
        im = static_cast<float>(a.im);
    }
};
struct c128_store {
    double re, im;
    complex128 load() const { return {re, im}; }
    void store(complex128 a) {
        re = a.re;
        im = a.im;
    }
};
template <typename I> struct int_store {
    I v;
    // The cast to unsigned keeps the sign bits: arithmetic modulo 2^64 is then right modulo 2^32.
    uint64_t load() const { return static_cast<uint64_t>(static_cast<int64_t>(v)); }
    void store(uint64_t a) { v = static_cast<I>(a); }
};
template <typename I> struct wide_int_store {
    I v;
    int128 load() const { return v; }
    void store(int128 a) { v = static_cast<I>(static_cast<uint64_t>(a)); }
    static bool fits(int128 a) { return a == static_cast<I>(static_cast<uint64_t>(a)); }
};

double times(double v, complex128 d) { return v * d.re; }
complex128 times(complex128 v, complex128 d) {
    return {v.re * d.re - v.im * d.im, v.re * d.im + v.im * d.re};
}
/// A real coefficient multiplies both parts alone: 0 * Inf of a full product would make NaN.
complex128 times_real(complex128 v, double d) { return {v.re * d, v.im * d}; }

bool is_complex(scalar s) { return s == scalar::c64 || s == scalar::c128; }

template <typename acc> acc apply_diag(acc v, complex128 d, bool complex_diag) {
    if constexpr (std::is_same_v<acc, double>)
        return times(v, d);
    else if constexpr (std::is_same_v<acc, complex128>)
        return complex_diag ? times(v, d) : times_real(v, d.re);
    else
        return v;
}

template <typename acc> acc apply_scale(acc v, double s) {
    if constexpr (std::is_same_v<acc, double>)
        return v * s;
    else if constexpr (std::is_same_v<acc, complex128>)
        return times_real(v, s);
    else
        return v;
}

/// Walks one kind of axes row-major and keeps the offsets of every operand.
struct walker {
    const wht_problem &p;
    bool transformed;
    int64_t x = 0, y = 0, signs = 0, diag = 0;
    int64_t at[wht_max_axes] = {};

    walker(const wht_problem &problem, bool kind, int64_t flat) : p(problem), transformed(kind) {
        for (int a = p.axes - 1; a >= 0; --a) {
            const wht_axis &ax = p.axis[a];
            if (ax.transformed != transformed) continue;
            at[a] = flat % ax.length;
            flat /= ax.length;
            move(ax, at[a]);
        }
    }

    void move(const wht_axis &ax, int64_t by) {
        x += by * ax.x_stride;
        y += by * ax.y_stride;
        signs += by * ax.signs_stride;
        diag += by * ax.diag_stride;
    }

    void next() {
        for (int a = p.axes - 1; a >= 0; --a) {
            const wht_axis &ax = p.axis[a];
            if (ax.transformed != transformed) continue;
            move(ax, 1);
            if (++at[a] < ax.length) return;
            move(ax, -ax.length);
            at[a] = 0;
        }
    }
};

bool bit_at(const uint32_t *words, int64_t i) { return words[i / 32] >> (i % 32) & 1u; }

/// Natural row that stands at output row r of an ordered axis of 2^bits.
int64_t natural_row(wht_order order, int64_t r, int bits) {
    if (order == wht_order::natural) return r;
    if (order == wht_order::sequency) r ^= r >> 1;
    int64_t reversed = 0;
    for (int b = 0; b < bits; ++b) reversed |= (r >> b & 1) << (bits - 1 - b);
    return reversed;
}

int log2_of(int64_t power) {
    int b = 0;
    while (int64_t{1} << b < power) ++b;
    return b;
}

/// One thread's share of work that a team does together.
struct share {
    int tid, team;
    int64_t begin(int64_t count) const {
        return count / team * tid + std::min<int64_t>(count % team, tid);
    }
    int64_t end(int64_t count) const {
        return count / team * (tid + 1) + std::min<int64_t>(count % team, tid + 1);
    }
    void barrier() const {
        if (team > 1) {
#pragma omp barrier
        }
    }
};

template <typename acc> struct transform {
    const wht_ref_args &args;
    const wht_problem &p;
    int64_t n;
    acc *data;

    template <typename X> void gather(const walker &batch, share part) const {
        const X *x = static_cast<const X *>(args.x) + batch.x;
        const int64_t begin = part.begin(n), end = part.end(n);
        walker w(p, true, begin);
        const bool use_signs = p.signs && !p.adjoint;
        const bool use_diag = p.diag != scalar::none && p.adjoint;
        const bool complex_diag = is_complex(p.diag);
        for (int64_t i = begin; i < end; ++i, w.next()) {
            acc v = x[w.x].load();
            if (use_diag) {
                complex128 d = load_diag(p.diag, args.diag, batch.diag + w.diag);
                d.im = -d.im;
                v = apply_diag(v, d, complex_diag);
            }
            if (use_signs && bit_at(args.signs, batch.signs + w.signs)) v = -v;
            data[i] = v;
        }
    }

    /// Returns whether some result does not fit Y.
    template <typename Y> bool scatter(const walker &batch, share part) const {
        Y *y = static_cast<Y *>(args.y) + batch.y;
        const int64_t begin = part.begin(n), end = part.end(n);
        walker w(p, true, begin);
        const bool use_signs = p.signs && p.adjoint;
        const bool use_diag = p.diag != scalar::none && !p.adjoint;
        const bool complex_diag = is_complex(p.diag);
        bool overflow = false;
        for (int64_t i = begin; i < end; ++i, w.next()) {
            acc v = data[p.order == wht_order::natural ? i : natural_index(w)];
            if (use_diag)
                v = apply_diag(v, load_diag(p.diag, args.diag, batch.diag + w.diag), complex_diag);
            if (use_signs && bit_at(args.signs, batch.signs + w.signs)) v = -v;
            v = apply_scale(v, p.scale);
            if constexpr (std::is_same_v<acc, int128>) overflow |= !Y::fits(v);
            y[w.y].store(v);
        }
        return overflow;
    }

    /// Scratch index of the natural rows behind the output rows where `w` stands. Every ordered
    /// matrix is symmetric, so the adjoint permutes its outputs in the same way.
    int64_t natural_index(const walker &w) const {
        int64_t index = 0;
        for (int a = 0; a < p.axes; ++a) {
            const wht_axis &ax = p.axis[a];
            if (!ax.transformed) continue;
            index = index * ax.length + natural_row(p.order, w.at[a], log2_of(ax.length));
        }
        return index;
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
    void factor(const wht_factor_table &t, int64_t h, share part) const {
        const int m = t.order;
        const int64_t end = part.end(n / m);
        acc in[wht_factor_max_order];
        for (int64_t i = part.begin(n / m); i < end; ++i) {
            acc *u = data + i / h * m * h + i % h;
            for (int j = 0; j < m; ++j) in[j] = u[j * h];
            for (int k = 0; k < m; ++k) {
                acc sum{};
                for (int j = 0; j < m; ++j) {
                    const int s = p.adjoint ? t.sign[j * m + k] : t.sign[k * m + j];
                    sum = s > 0 ? sum + in[j] : sum - in[j];
                }
                u[k * h] = sum;
            }
        }
    }

    void all_stages(share part) const {
        int64_t h = 1;
        for (int a = p.axes - 1; a >= 0; --a) {
            const wht_axis &ax = p.axis[a];
            if (!ax.transformed) continue;
            const int m = wht_factor_order(ax.factor);
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
                factor(make_wht_factor_table(ax.factor), h, part);
                h *= m;
                part.barrier();
            }
        }
    }
};

/// The transforms of one thread, or its part of every transform. True if a result did not fit.
template <typename acc, typename X, typename Y>
bool run_share(const wht_ref_args &args, share team, bool shared) {
    const wht_problem &p = args.problem;
    const int64_t transforms = wht_ref_transforms(p);
    const share part = shared ? team : share{0, 1};
    const int64_t own = shared ? 0 : wht_ref_slice_bytes(p) * team.tid;
    char *scratch = static_cast<char *>(args.scratch) + own;
    const transform<acc> t{args, p, wht_ref_points(p), reinterpret_cast<acc *>(scratch)};
    const int64_t begin = shared ? 0 : team.begin(transforms);
    const int64_t end = shared ? transforms : team.end(transforms);
    bool overflow = false;
    if (transforms == 0) return overflow;
    walker batch(p, false, begin);
    for (int64_t i = begin; i < end; ++i, batch.next()) {
        t.template gather<X>(batch, part);
        part.barrier();
        t.all_stages(part);
        if (t.template scatter<Y>(batch, part)) overflow = true;
        part.barrier(); // scratch is free for the next gather
    }
    return overflow;
}

template <typename acc, typename X, typename Y> void run(const wht_ref_args &args, int threads) {
    const bool shared = wht_ref_shares_transform(args.problem, threads);
    int overflow = 0;
    if (threads <= 1) { // OpenMP would allocate a team even for one thread
        overflow = run_share<acc, X, Y>(args, share{0, 1}, shared);
    } else {
#pragma omp parallel num_threads(threads) reduction(| : overflow)
        overflow |=
            run_share<acc, X, Y>(args, share{omp_get_thread_num(), omp_get_num_threads()}, shared);
    }
    if (args.overflow != nullptr) *args.overflow = overflow;
}

template <typename acc, typename X> void real_out(const wht_ref_args &a, int threads) {
    switch (a.problem.y) {
    case scalar::f16: return run<acc, X, f16_store>(a, threads);
    case scalar::bf16: return run<acc, X, bf16_store>(a, threads);
    case scalar::f32: return run<acc, X, f32_store>(a, threads);
    default: return run<acc, X, f64_store>(a, threads);
    }
}

template <typename X> void complex_out(const wht_ref_args &a, int threads) {
    if (a.problem.y == scalar::c64) return run<complex128, X, c64_store>(a, threads);
    return run<complex128, X, c128_store>(a, threads);
}

template <typename I> void integer_out(const wht_ref_args &a, int threads) {
    const bool narrow = a.problem.y == scalar::i32;
    if (a.problem.overflow) {
        if (narrow) return run<int128, wide_int_store<I>, wide_int_store<int32_t>>(a, threads);
        return run<int128, wide_int_store<I>, wide_int_store<int64_t>>(a, threads);
    }
    if (narrow) return run<uint64_t, int_store<I>, int_store<int32_t>>(a, threads);
    return run<uint64_t, int_store<I>, int_store<int64_t>>(a, threads);
}

} // namespace

void wht_ref(const void *arguments, int threads) {
    const wht_ref_args &a = *static_cast<const wht_ref_args *>(arguments);
    switch (a.problem.x) {
    case scalar::f16: return real_out<double, f16_store>(a, threads);
    case scalar::bf16: return real_out<double, bf16_store>(a, threads);
    case scalar::f32: return real_out<double, f32_store>(a, threads);
    case scalar::f64: return real_out<double, f64_store>(a, threads);
    case scalar::c64: return complex_out<c64_store>(a, threads);
    case scalar::c128: return complex_out<c128_store>(a, threads);
    case scalar::i32: return integer_out<int32_t>(a, threads);
    case scalar::i64: return integer_out<int64_t>(a, threads);
    default: return;
    }
}

} // namespace plait::impl::cpu
